"""Laws of HTTP in front of an API: bounds, bodies, headers and mistakes."""

from __future__ import annotations

import asyncio
import gzip
import io
import logging
import re
import socket
import struct
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.embedded.standin import Standing
from tests.embedded.standin import server as server
from tests.embedded.standin import session as session
from trimtab.embedded.api import Answer
from trimtab.embedded.listener import BODY_LIMIT
from trimtab.embedded.responses import GZIP_FROM

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
GZIP = {"Accept-Encoding": "gzip"}


async def test_an_answer_carries_the_headers_of_the_real_server(
    session: aiohttp.ClientSession,
) -> None:
    async with session.get("/version") as answer:
        assert answer.status == 200
        assert UUID.fullmatch(answer.headers["Audit-Id"])
        assert answer.headers["Cache-Control"] == "no-cache, private"
        assert answer.headers["Content-Type"] == "application/json"
        assert "Date" in answer.headers
        assert "aiohttp" not in str(answer.headers).lower()


async def test_an_audit_id_of_the_client_comes_back(
    session: aiohttp.ClientSession,
) -> None:
    async with session.get("/version", headers={"Audit-ID": "mine"}) as answer:
        assert answer.headers["Audit-Id"] == "mine"


async def test_headers_of_the_api_are_all_sent(
    server: Standing, session: aiohttp.ClientSession
) -> None:
    warnings = (("Warning", '299 - "one"'), ("Warning", '299 - "two"'))
    server.api.routes["/warned"] = lambda _: Answer(status=201, headers=warnings)
    async with session.get("/warned") as answer:
        assert answer.status == 201
        assert answer.headers.getall("Warning") == ['299 - "one"', '299 - "two"']


async def test_paths_are_decoded_and_the_first_of_equal_parameters_counts(
    server: Standing,
) -> None:
    target = "/api/v1/a%20b/%C3%A9?limit=1&limit=2&empty=&x=%3D%26"
    text = await server.exchange(
        f"GET {target} HTTP/1.1\nHost: x\nConnection: close\n\n"
    )
    assert text.startswith(b"HTTP/1.1 200 OK\r\n")
    seen = server.api.requests[-1]
    assert seen.path == "/api/v1/a b/é"
    assert seen.query == {"limit": "1", "empty": "", "x": "=&"}


async def test_an_absolute_address_is_read_like_its_path(server: Standing) -> None:
    await server.exchange(
        "GET https://elsewhere/a/b?c=d HTTP/1.1\nHost: x\nConnection: close\n\n"
    )
    seen = server.api.requests[-1]
    assert (seen.path, seen.query) == ("/a/b", {"c": "d"})


async def test_a_client_of_http_1_0_gets_an_answer_of_known_end(
    server: Standing,
) -> None:
    text = await server.exchange("GET /pieces?count=40&size=8000 HTTP/1.0\n\n")
    head, _, body = text.partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert len(body) == 320_000


@pytest.mark.parametrize("with_length", [True, False])
async def test_a_body_beyond_three_mebibytes_is_refused(
    session: aiohttp.ClientSession, server: Standing, with_length: bool
) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(BODY_LIMIT // 65536 + 1):
            yield b"x" * 65536

    body = io.BytesIO(b"x" * (BODY_LIMIT + 1)) if with_length else endless()
    async with session.post("/echo", data=body) as answer:
        assert answer.status == 413
        status = await answer.json()
    assert status["message"] == "Request entity too large: limit is 3145728"
    assert status["reason"] == "RequestEntityTooLarge"
    assert not server.api.requests


async def test_a_body_of_three_mebibytes_passes(
    session: aiohttp.ClientSession,
) -> None:
    async with session.post("/echo", data=io.BytesIO(b"x" * BODY_LIMIT)) as answer:
        assert (await answer.json())["length"] == BODY_LIMIT


async def test_a_compressed_body_is_refused_unread(
    session: aiohttp.ClientSession, server: Standing
) -> None:
    body = gzip.compress(b"{}")
    headers = {"Content-Encoding": "gzip"}
    async with session.post("/echo", data=body, headers=headers) as answer:
        assert answer.status == 415
        assert (await answer.json())["reason"] == "UnsupportedMediaType"
    assert not server.api.requests


async def test_a_client_that_asks_before_it_sends_is_told_to_go_on(
    server: Standing,
) -> None:
    reader, writer = await server.raw()
    writer.write(
        b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
        b"Expect: 100-continue\r\nConnection: close\r\n\r\n"
    )
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"abc")
    assert b'"length":3' in await reader.read()
    writer.close()


@pytest.mark.parametrize("path", ["/bytes?size={}", "/pieces?count=1&size={}"])
@pytest.mark.parametrize("size", [0, 8, 65536, GZIP_FROM])
async def test_answers_up_to_128_kib_come_whole_and_plain(
    session: aiohttp.ClientSession, path: str, size: int
) -> None:
    async with session.get(path.format(size), headers=GZIP) as answer:
        assert "Content-Encoding" not in answer.headers
        assert answer.headers["Content-Length"] == str(size)
        assert len(await answer.read()) == size


@pytest.mark.parametrize(
    "path",
    [
        "/bytes?size=200000",
        "/pieces?count=100&size=8000",
        "/pieces?count=3&size=65536",
        "/pieces?count=1&size=1000000",
    ],
)
async def test_longer_answers_are_compressed_for_those_who_accept_it(
    session: aiohttp.ClientSession, path: str
) -> None:
    async with session.get(path, headers={"Accept-Encoding": "identity"}) as answer:
        plain = await answer.read()
        assert "Content-Encoding" not in answer.headers
    async with session.get(path, headers=GZIP) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.headers["Vary"] == "Accept-Encoding"
        packed = await answer.read()
    assert len(packed) < len(plain) / 4
    assert gzip.decompress(packed) == plain


async def test_an_answer_that_breaks_off_looks_broken(
    session: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    async with session.get("/pieces?count=100&size=8000&breaks=90") as answer:
        assert answer.status == 200
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()
    assert "broke off" in caplog.text


@pytest.mark.parametrize("path", ["/boom", "/pieces?count=9&size=8&breaks=3"])
async def test_a_mistake_in_the_api_is_a_status_and_the_server_goes_on(
    session: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    async with session.get(path) as answer:
        assert answer.status == 500
        status = await answer.json()
    assert status["reason"] == "InternalError"
    assert "RuntimeError" in status["message"]
    assert "a mistake" in caplog.text
    async with session.get("/version") as answer:
        assert answer.status == 200


@pytest.mark.parametrize("protocol", ["websocket", "SPDY/3.1"])
async def test_other_protocols_are_declined_in_one_sentence(
    server: Standing, protocol: str
) -> None:
    text = await server.exchange(
        "GET /api/v1/namespaces/a/pods/b/exec HTTP/1.1\nHost: x\n"
        f"Connection: Upgrade, close\nUpgrade: {protocol}\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n"
        "Sec-WebSocket-Version: 13\n\n"
    )
    assert text.startswith(b"HTTP/1.1 501 ")
    assert b"exec, attach and port-forward do not work here" in text
    assert not server.api.requests


async def test_an_upgrade_that_is_no_stream_is_ignored(server: Standing) -> None:
    text = await server.exchange(
        "GET /version HTTP/1.1\nHost: x\nConnection: Upgrade, close\nUpgrade: h2c\n\n"
    )
    assert text.startswith(b"HTTP/1.1 200 ")


async def test_an_answer_to_head_has_no_body(
    session: aiohttp.ClientSession, server: Standing
) -> None:
    server.api.routes["/healthz"] = lambda _: Answer(body=b"ok")
    async with session.head("/healthz") as answer:
        assert (answer.status, answer.headers["Content-Length"]) == (200, "2")
        assert await answer.read() == b""
    assert [each.method for each in server.api.requests] == ["HEAD"]


async def test_whether_a_path_takes_a_method_is_for_the_api_to_say(
    session: aiohttp.ClientSession, server: Standing
) -> None:
    methods = ["OPTIONS", "TRACE", "PROPFIND"]
    for method in methods:
        async with session.request(method, "/api/v1/pods") as answer:
            await answer.read()
    assert [each.method for each in server.api.requests] == methods


@pytest.mark.parametrize(
    ("agent", "query", "indented"),
    [
        ("curl/8.5.0", "", True),
        ("Mozilla/5.0 (X11)", "", True),
        ("kubectl/v1.36.3", "", False),
        ("kubectl/v1.36.3", "?pretty=true", True),
        ("curl/8.5.0", "?pretty=false", False),
    ],
)
async def test_json_is_indented_for_people(
    session: aiohttp.ClientSession, agent: str, query: str, indented: bool
) -> None:
    headers = {"User-Agent": agent}
    async with session.get(f"/version{query}", headers=headers) as answer:
        text = await answer.text()
    assert text.startswith('{\n  "method"') == indented


async def test_metrics_count_what_was_answered(
    session: aiohttp.ClientSession, server: Standing
) -> None:
    for path in ("/api/v1/pods", "/api/v1/namespaces/a/pods/b", "/boom"):
        async with session.get(path):
            pass
    watch = await session.get("/api/v1/pods?watch=1")
    async with session.get("/metrics") as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        lines = (await answer.text()).splitlines()
    watch.close()
    assert 'apiserver_request_total{verb="LIST",code="200"} 1.0' in lines
    assert 'apiserver_request_total{verb="GET",code="200"} 1.0' in lines
    assert 'apiserver_request_total{verb="GET",code="500"} 1.0' in lines
    assert 'apiserver_longrunning_requests{verb="WATCH"} 1.0' in lines
    [resident] = [line for line in lines if line.startswith("process_resident_")]
    assert float(resident.split()[1]) > 1 << 20
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


async def test_a_client_that_hangs_up_in_the_middle_harms_nobody(
    server: Standing, session: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    for text in (b"GET /vers", b"POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\nab"):
        _, writer = await server.raw()
        writer.write(text)
        await writer.drain()
        writer.transport.abort()
    async with session.get("/version") as answer:
        assert answer.status == 200
    assert not caplog.records


async def test_what_is_no_http_is_answered_without_a_word_in_the_log(
    server: Standing, session: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    text = await server.exchange("this is not HTTP\n\n")
    assert text.startswith(b"HTTP/1.0 400 ")
    with socket.create_connection(("127.0.0.1", server.port)) as plain:
        plain.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(plain, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await loop.sock_recv(plain, 100)
    with socket.create_connection(("127.0.0.1", server.port)) as plain:
        linger = struct.pack("ii", 1, 0)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    async with session.get("/version") as answer:
        assert answer.status == 200
    assert not caplog.records
