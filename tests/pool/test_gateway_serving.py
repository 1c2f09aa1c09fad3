"""Laws of the small HTTP server: what it understands, and what it costs."""

from __future__ import annotations

import asyncio
import ssl
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from trimtab.client.calling import Caller, Place
from trimtab.pool.secrets import Authority
from trimtab.runtime.asks import Answer, Ask, Bad, json_answer, parse
from trimtab.runtime.serving import CannotListen, Connection, Limits, Server
from trimtab.testing.waiting import eventually

HEAD = "POST /x HTTP/1.1\r\nHost: a\r\n"


async def echo(ask: Ask, connection: Connection) -> Answer:
    if ask.path == "/slow":
        await asyncio.sleep(3600)
    if ask.path == "/broken":
        raise OSError("a bug")
    return json_answer({"path": ask.path, "size": len(ask.body)})


@asynccontextmanager
async def served(limits: Limits | None = None) -> AsyncIterator[Server]:
    server = Server("127.0.0.1", 0, handle=echo, context=None, limits=limits)
    async with server:
        yield server


async def talk(server: Server, data: bytes) -> bytes:
    """Everything that comes back until the other side hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(data)
        async with asyncio.timeout(5):
            return await reader.read()
    finally:
        writer.close()


BAD_HEADS = [
    "GARBAGE",
    "GET / HTTP/1.0\r\nHost: a",
    "GET / HTTP/1.1",
    "GET x HTTP/1.1\r\nHost: a",
    "GET / HTTP/1.1\r\nHost: a\r\nHost: b",
    "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2",
    "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1",
    "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1e3",
    "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked",
    "GET / HTTP/1.1\r\nHost: a\r\n folded",
    "GET / HTTP/1.1\r\nHost: a\r\nName : b",
    "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: a\r\nAuthorization: b",
    "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 65",
]


@pytest.mark.parametrize("head", BAD_HEADS)
def test_what_two_readers_could_read_differently_is_refused(head: str) -> None:
    with pytest.raises(Bad):
        parse(head.encode(), limit=64)


@given(some.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_refusal(data: bytes) -> None:
    for head in (data, HEAD.encode() + data):
        with suppress(Bad):
            assert parse(head, limit=64).length <= 64


async def test_requests_on_one_connection_are_answered_in_order() -> None:
    one = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
    two = b"GET /b%20c HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    async with served() as server:
        said = await talk(server, one + two)
    assert said.count(b"HTTP/1.1 200 OK") == 2
    assert said.index(b'{"path":"/a","size":3}') < said.index(b'"/b c"')


async def test_a_bug_in_a_handler_is_an_answer_and_the_connection_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = b"GET /broken HTTP/1.1\r\nHost: a\r\n\r\n"
    well = b"GET /well HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    async with served() as server:
        said = await talk(server, broken + well)
    assert b"HTTP/1.1 500" in said
    assert b"a bug" not in said
    assert b'"/well"' in said
    assert "a bug" in caplog.text


async def test_slow_and_endless_requests_are_hung_up_on() -> None:
    limits = Limits(read=0.1, idle=0.1, head=256, body=64)
    async with served(limits) as server:
        assert await talk(server, b"") == b""
        assert await talk(server, b"GET / HTTP/1.1\r\nHost:") == b""
        assert b"431" in await talk(server, b"x" * 300)
        assert b"413" in await talk(
            server, f"{HEAD}Content-Length: 65\r\n\r\n".encode()
        )
        await eventually(lambda: not server.connections)


async def test_a_client_that_is_gone_has_its_request_cancelled() -> None:
    async with served() as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        await eventually(lambda: any(each.busy for each in server.connections))
        writer.transport.abort()
        await eventually(lambda: not server.connections)


async def test_at_the_limit_the_most_idle_connection_makes_room() -> None:
    async with served(Limits(connections=3)) as server:
        pairs = [
            await asyncio.open_connection("127.0.0.1", server.port) for _ in range(3)
        ]
        await eventually(lambda: len(server.connections) == 3)
        closing = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        assert b"200 OK" in await talk(server, closing)
        assert await asyncio.wait_for(pairs[0][0].read(), 5) == b""
        for _, writer in pairs:
            writer.close()


async def test_leaving_the_block_leaves_no_connection_and_no_task() -> None:
    before = len(asyncio.all_tasks())
    async with served() as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        await eventually(lambda: any(each.busy for each in server.connections))
    assert not server.connections
    assert len(asyncio.all_tasks()) == before
    writer.close()


async def test_a_taken_port_is_one_clear_sentence() -> None:
    async with served() as server:
        other = Server("127.0.0.1", server.port, handle=echo, context=None)
        with pytest.raises(CannotListen, match="another program has that port"):
            async with other:
                pass


@pytest.fixture
def authority() -> Authority:
    return Authority.make("test", now=datetime.now(UTC))


@pytest.fixture
def context(authority: Authority, tmp_path: Path) -> ssl.SSLContext:
    pair = authority.issue("127.0.0.1", now=datetime.now(UTC))
    path = tmp_path / "pair.pem"
    path.write_bytes(pair.certificate + pair.private)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(path)
    return made


async def test_a_last_answer_leaves_whole_however_slowly_it_is_taken(
    authority: Authority, context: ssl.SSLContext
) -> None:
    body = bytes(range(256)) * (1 << 14)

    async def handle(ask: Ask, connection: Connection) -> Answer:
        return Answer(body=body)

    trust = ssl.create_default_context(cadata=authority.pem.decode())
    async with Server("127.0.0.1", 0, handle=handle, context=context) as server:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", server.port, ssl=trust, limit=1 << 12
        )
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        said = bytearray()
        while piece := await reader.read(1 << 12):
            said += piece
            await asyncio.sleep(0)
        writer.close()
    assert said.endswith(b"\r\n\r\n" + body)


async def test_who_does_not_shake_hands_is_hung_up_on_and_delays_nobody(
    authority: Authority, context: ssl.SSLContext
) -> None:
    caller, limits = Caller(), Limits(read=0.2)
    async with Server(
        "127.0.0.1", 0, handle=echo, context=context, limits=limits
    ) as server:
        mute = [
            await asyncio.open_connection("127.0.0.1", server.port) for _ in range(3)
        ]
        mute[0][1].write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        name = "127.0.0.1"
        place = Place(host=name, port=server.port, name=name, ca=authority.pem)
        assert (await caller.call(place, "GET", "/x", within=9)).status == 200
        for reader, writer in mute:
            with suppress(ConnectionError):
                async with asyncio.timeout(9):
                    await reader.read()
            writer.close()
        await caller.close()


async def test_a_connection_with_tls_costs_little_memory(
    authority: Authority, context: ssl.SSLContext
) -> None:
    caller, count = Caller(idle=64), 20
    async with Server("127.0.0.1", 0, handle=echo, context=context) as server:
        place = Place(
            host="127.0.0.1", port=server.port, name="127.0.0.1", ca=authority.pem
        )

        async def call() -> None:
            reply = await caller.call(place, "POST", "/x", body=b"y" * 40_000, within=9)
            assert reply.status == 200

        await call()
        tracemalloc.start()
        try:
            await asyncio.gather(*(call() for _ in range(count + 1)))
            each = tracemalloc.get_traced_memory()[0] / count
        finally:
            tracemalloc.stop()
        assert caller.opened == count + 1
        assert each < 20_000, "both ends of it"
        await caller.close()
