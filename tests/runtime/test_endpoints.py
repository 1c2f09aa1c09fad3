"""Laws of the endpoints, asked through real sockets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple, TypeAlias

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from trimtab.runtime import endpoints
from trimtab.runtime.endpoints import Ask, CannotListen, Endpoints, parse
from trimtab.runtime.health import Health
from trimtab.testing.waiting import eventually

Pair: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
REASONS = {("Website", "default", "shop"): {"causes": ["change of spec.image"]}}


class Reply(NamedTuple):
    status: int
    fields: dict[str, str]
    body: bytes


async def read(reader: asyncio.StreamReader) -> Reply:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(fields["content-length"]))
    return Reply(int(head[0].split()[1]), fields, body)


@asynccontextmanager
async def connected(server: Endpoints, host: str = "127.0.0.1") -> AsyncIterator[Pair]:
    reader, writer = await asyncio.open_connection(host, server.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def send(server: Endpoints, request: bytes) -> Reply:
    async with connected(server) as (reader, writer):
        writer.write(request)
        return await asyncio.wait_for(read(reader), 10)


async def get(server: Endpoints, target: str, host: str = "127.0.0.1:80") -> Reply:
    return await send(server, f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())


def why(kind: str, namespace: str, name: str) -> Any:
    if name == "broken":
        raise KeyError("secret words")
    return REASONS.get((kind, namespace, name))


def make(host: str = "127.0.0.1", **options: Any) -> Endpoints:
    options.setdefault("health", Health())
    return Endpoints(host, 0, metrics=lambda: ("text/x", b"a 1\n"), why=why, **options)


@pytest.fixture
async def server() -> AsyncIterator[Endpoints]:
    async with make() as server:
        yield server


async def test_health_is_told_as_the_api_server_tells_it() -> None:
    health = Health()
    problems: list[str] = []
    health.add_ready("caches", lambda: problems[0] if problems else None)
    async with make(health=health) as server:
        assert (await get(server, "/readyz")).body == b"ok"
        expected = b"[+]caches ok\nreadyz check passed\n"
        assert (await get(server, "/readyz?verbose")).body == expected
        problems.append("Pod is not listed yet")
        reply = await get(server, "/readyz")
        assert reply.status == 500
        assert b"[-]caches: Pod is not listed yet\n" in reply.body
        assert (await get(server, "/livez?verbose=1")).status == 200


async def test_metrics_have_the_type_that_they_were_rendered_with(
    server: Endpoints,
) -> None:
    reply = await get(server, "/metrics")
    assert (reply.status, reply.body) == (200, b"a 1\n")
    assert reply.fields["content-type"] == "text/x"


async def test_why_is_answered_as_json_or_not_found(server: Endpoints) -> None:
    reply = await get(server, "/debug/why/Website/default/sh%6Fp")
    assert reply.fields["content-type"] == "application/json"
    assert msgspec.json.decode(reply.body) == {"causes": ["change of spec.image"]}
    assert (await get(server, "/debug/why/Website/default/other")).status == 404
    assert (await get(server, "/debug/why/Website/shop")).status == 404
    assert (await get(server, "/debug/why")).status == 404


async def test_debug_is_for_this_machine_unless_asked_for() -> None:
    target = "/debug/why/Website/default/shop"
    ask = Ask("GET", target, host="127.0.0.1")
    async with make("0.0.0.0") as server:
        # Whoever comes from this machine may, wherever else the server listens.
        assert (await get(server, target)).status == 200
        assert server.answer(ask, local=False).status == 404
    async with make("0.0.0.0", debug=True) as server:
        assert server.answer(ask, local=False).status == 200


async def test_the_log_level_is_told_to_get_and_set_by_put_only() -> None:
    levels = ["info"]

    def log(wanted: str | None) -> str:
        if wanted == "loud":
            raise ValueError("There is no log level 'loud'.")
        levels.extend([wanted] if wanted else [])
        return levels[-1]

    async with make(log=log) as server:
        assert b'"info"' in (await get(server, "/debug/log")).body
        refused = await get(server, "/debug/log/debug")
        assert (refused.status, levels) == (404, ["info"])
        put = b"PUT /debug/log/%s HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert b'"debug"' in (await send(server, put % b"debug")).body
        wrong = await send(server, put % b"loud")
        assert (wrong.status, levels) == (400, ["info", "debug"])
        other = b"PUT /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert (await send(server, other)).status == 405


async def test_debug_is_not_for_a_page_whose_name_leads_here(server: Endpoints) -> None:
    target = "/debug/why/Website/default/shop"
    assert (await get(server, target, host="evil.example:8080")).status == 404
    assert (await get(server, target, host="localhost:8080")).status == 200
    assert (await get(server, target, host="[::1]:8080")).status == 200


async def test_a_part_that_raises_is_logged_and_not_told(
    server: Endpoints, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        reply = await get(server, "/debug/why/Website/default/broken")
    assert reply.status == 500
    assert b"secret" not in reply.body
    assert "secret words" in caplog.text


@pytest.mark.parametrize("path", ["/", "/healthz", "/metrics/", "//livez", "/debug/"])
async def test_there_is_nothing_else(server: Endpoints, path: str) -> None:
    assert (await get(server, path)).status == 404


@pytest.mark.parametrize("method", ["HEAD", "POST", "DELETE", "OPTIONS", "get"])
async def test_only_get_is_allowed(server: Endpoints, method: str) -> None:
    reply = await send(server, f"{method} /livez HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert (reply.status, reply.fields["allow"]) == (405, "get")
    assert reply.fields["connection"] == "close"


@pytest.mark.parametrize(
    "head",
    [
        "GET /livez",
        "GET  /livez HTTP/1.1\r\nHost: a",
        "GET /livez HTTP/2.0\r\nHost: a",
        "GET http://a/livez HTTP/1.1\r\nHost: a",
        "GET /livez HTTP/1.1",
        "GET /livez HTTP/1.1\r\nHost: a\r\nHost: b",
        "GET /livez HTTP/1.1\r\nHost : a",
        "GET /livez HTTP/1.1\r\nHost: a\r\n folded",
        "GET /livez HTTP/1.1\r\nHost: a\nX: b",
        "GET /livez HTTP/1.1\r\nHost: a\r\nnonsense",
        "GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 5",
        "GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 0",
        "GET /livez HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked",
        "GET /l\tivez HTTP/1.1\r\nHost: a",
        "GET /livéz HTTP/1.1\r\nHost: a",
    ],
)
async def test_what_can_be_misread_is_refused_and_ends_the_connection(
    server: Endpoints, head: str
) -> None:
    reply = await send(server, f"{head}\r\n\r\n".encode())
    assert (reply.status, reply.fields["connection"]) == (400, "close")


@given(some.binary(max_size=200))
def test_any_bytes_are_a_request_or_a_refusal(head: bytes) -> None:
    ask = parse(head)
    assert ask.refusal is not None or ask.path.startswith("/")


async def test_a_connection_is_kept_and_its_requests_answered_in_order(
    server: Endpoints,
) -> None:
    one = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
    two = b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    async with connected(server) as (reader, writer):
        writer.write(one + one + two[:9])
        assert (await read(reader)).body == b"a 1\n"
        assert (await read(reader)).body == b"a 1\n"
        writer.write(two[9:])
        assert (await read(reader)).body == b"ok"
        assert await reader.read() == b""


async def test_the_old_protocol_gets_one_answer(server: Endpoints) -> None:
    reply = await send(server, b"GET /livez HTTP/1.0\r\n\r\n")
    assert (reply.status, reply.fields["connection"]) == (200, "close")


async def test_a_head_that_does_not_end_is_refused(server: Endpoints) -> None:
    reply = await send(server, b"GET /livez HTTP/1.1\r\nX: " + b"a" * 9000)
    assert reply.status == 431


async def test_a_slow_request_is_cut_off_though_it_keeps_coming(
    server: Endpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "READ_SECONDS", 0.2)
    async with connected(server) as (reader, writer):

        def cut_off() -> bool:
            writer.write(b"G")
            return reader.at_eof() or reader.exception() is not None

        await eventually(cut_off, every=0.05)
        assert not server.connections


async def test_whoever_does_not_take_answers_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = bytes(1 << 24)
    large = Endpoints(port=0, health=Health(), metrics=lambda: ("text/x", body))
    async with large as server, connected(server) as (_, writer):
        await eventually(lambda: bool(server.connections))
        monkeypatch.setattr(endpoints, "READ_SECONDS", 0.2)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 3)
        await eventually(lambda: not server.connections)


async def test_connections_are_bounded_and_the_most_idle_makes_room(
    server: Endpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "CONNECTIONS", 3)
    ask = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
    async with connected(server) as first, connected(server) as second:
        async with connected(server):
            await eventually(lambda: len(server.connections) == 3)
            first[1].write(ask)
            assert (await read(first[0])).status == 200
            assert (await get(server, "/livez")).status == 200
            assert await asyncio.wait_for(second[0].read(), 5) == b""
            first[1].write(ask)
            assert (await read(first[0])).status == 200


async def test_nothing_is_open_after_the_end() -> None:
    async with make() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        await eventually(lambda: bool(server.connections))
    assert not server.connections
    assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", server.port)


async def test_a_port_that_is_taken_is_told_in_a_sentence(server: Endpoints) -> None:
    second = Endpoints(port=server.port, health=Health())
    with pytest.raises(CannotListen) as caught:
        async with second:
            pass
    assert str(caught.value) == (
        f"The endpoints cannot listen on 127.0.0.1:{server.port}: another program has"
        " that port. Stop it, or choose another port (0 takes any that is free)."
    )


async def test_an_address_that_is_not_ours_is_told_in_a_sentence() -> None:
    with pytest.raises(CannotListen, match=r"on 192\.0\.2\.1:0: .*Choose an address"):
        async with make("192.0.2.1"):
            pass


async def test_the_second_address_family_works_too() -> None:
    async with make("::1") as server, connected(server, "::1") as (reader, writer):
        writer.write(b"GET /livez HTTP/1.1\r\nHost: [::1]\r\n\r\n")
        assert (await read(reader)).body == b"ok"
