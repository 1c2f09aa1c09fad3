"""One connection: what leaves while an answer comes, and where an answer ends."""

from __future__ import annotations

import asyncio
import gzip
import json
from contextlib import suppress

import msgspec
import pytest

from tests.client import certificates
from tests.client.canned import ONE
from tests.client.conftest import ONCE, Connect
from tests.client.faults import Exchange, FaultServer, raw, status_body
from tests.client.kinds import ConfigMap, config_map, item
from tests.client.laws import ends_within, tells_well
from trimtab.client import Client
from trimtab.client import http as transport
from trimtab.client.credentials import Static, TlsMaterial
from trimtab.client.errors import Closed, Disconnected, Malformed, TooLarge
from trimtab.testing import eventually

MiB = 1 << 20
TOO_LARGE = json.dumps(status_body(413, "RequestEntityTooLarge", "too large")).encode()


class Hasty:
    """A server that says things after the head of a request, and reads on only then."""

    def __init__(self, *, says: bytes, reads: bool) -> None:
        self.says = says
        self.reads = reads
        self.received = 0
        self.over = asyncio.Event()

    async def __call__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(self.says)
            await writer.drain()
            length = int(head.lower().partition(b"content-length: ")[2].split()[0])
            while self.reads and self.received < length:
                self.received += len(await reader.read(1 << 16))
            if self.reads:
                writer.write(
                    b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n" % len(ONE)
                )
                writer.write(b"\r\n" + ONE)
            await reader.read()
        writer.transport.abort()
        self.over.set()


async def create_large(connect: Connect, hasty: Hasty) -> ConfigMap:
    listening = await asyncio.start_server(
        hasty, "127.0.0.1", 0, ssl=certificates.server_context()
    )
    port = listening.sockets[0].getsockname()[1]
    async with FaultServer() as other:
        config = msgspec.structs.replace(
            other.config(), server=f"https://127.0.0.1:{port}"
        )
    client = connect(config, retry=ONCE)
    try:
        with ends_within(0):
            return await client.create(config_map(data="x" * (16 * MiB)))
    finally:
        listening.close()
        await client.close()
        await hasty.over.wait()


async def test_an_answer_that_comes_before_the_body_has_left_is_heard(
    connect: Connect,
) -> None:
    says = b"HTTP/1.1 413 No\r\nContent-Length: %d\r\n\r\n" % len(TOO_LARGE)
    with pytest.raises(TooLarge):
        await create_large(connect, Hasty(says=says + TOO_LARGE, reads=False))


async def test_a_preliminary_answer_does_not_stop_a_body(connect: Connect) -> None:
    hasty = Hasty(says=b"HTTP/1.1 102 Processing\r\n\r\n", reads=True)
    assert (await create_large(connect, hasty)).metadata.name == "one"
    assert hasty.received > 16 * MiB


async def test_an_answer_without_a_length_ends_with_a_farewell(
    server: FaultServer, client: Client
) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.head(200)
        await exchange.send(ONE)
        exchange.close()

    server.play(handler)
    assert (await client.get(ConfigMap, "one")).metadata.name == "one"


async def test_an_answer_without_a_length_that_breaks_off_is_not_taken_for_whole(
    server: FaultServer, connect: Connect
) -> None:
    server.play(raw(b"HTTP/1.1 200 OK\r\n\r\n" + ONE))
    with pytest.raises(Disconnected) as caught:
        await connect(retry=ONCE).get(ConfigMap, "one")
    tells_well(caught.value)


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "deflate"])
async def test_a_compression_that_nobody_asked_for_is_named(
    server: FaultServer, connect: Connect, encoding: str
) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.answer(200, ONE, (("Content-Encoding", encoding),))

    server.play(handler)
    with pytest.raises(Malformed, match="compressed") as caught:
        await connect(retry=ONCE).get(ConfigMap, "one")
    tells_well(caught.value)


async def test_half_of_a_gzip_is_not_an_answer(
    server: FaultServer, connect: Connect
) -> None:
    async def handler(exchange: Exchange) -> None:
        half = gzip.compress(ONE)[:-4]
        await exchange.answer(200, half, (("Content-Encoding", "gzip"),))

    server.play(handler)
    with pytest.raises(Malformed, match="no end"):
        await connect(retry=ONCE, compression=True).get(ConfigMap, "one")


async def test_an_idle_connection_ends_before_the_server_ends_it(
    server: FaultServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "KEEP_ALIVE", 0.05)
    await client.get(ConfigMap, "one")
    await eventually(lambda: client.statistics().transport.connections_open == 0)
    await client.get(ConfigMap, "one")
    assert server.connections == 2


class Rotating(Static):
    """Credentials whose TLS material changes."""

    material = TlsMaterial(ca=certificates.authority("tests").pem())

    async def tls(self) -> TlsMaterial | None:
        return self.material


async def test_a_connection_of_old_material_is_not_used_again(
    server: FaultServer, connect: Connect
) -> None:
    credentials = Rotating()
    client = connect(server.config(credentials=credentials))
    go = asyncio.Event()

    async def later(exchange: Exchange) -> None:
        await go.wait()
        await exchange.answer(200, ONE)

    server.play(later)
    call = asyncio.ensure_future(client.get(ConfigMap, "one"))
    await eventually(lambda: server.requests)
    credentials.material = msgspec.structs.replace(credentials.material)
    await client.get(ConfigMap, "one")
    go.set()
    await call  # and gives its connection back, which is the last to be given
    await client.get(ConfigMap, "one")
    assert [request.connection for request in server.requests] in ([0, 1, 1], [0, 1, 2])


async def test_a_closed_client_hands_out_nothing_that_came_before(
    server: FaultServer, client: Client
) -> None:
    line = json.dumps({"type": "ADDED", "object": item("a")}).encode() + b"\n"

    async def handler(exchange: Exchange) -> None:
        await exchange.begin_chunks()
        for _ in range(2):
            await exchange.chunk(line)
            await asyncio.sleep(0.05)
        await exchange.hang()

    server.play(handler)
    async with client.watch(ConfigMap) as watch:
        await anext(watch)
        await asyncio.sleep(0.2)  # the second event has come, and nobody has asked
        await client.close()
        with pytest.raises(Closed):
            await anext(watch)
