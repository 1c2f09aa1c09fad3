"""TLS on a socket: bytes come whole and in order, and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from tests.client import certificates
from trimtab.client import secure
from trimtab.client.connection import PIECE
from trimtab.testing import eventually

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HOST = "127.0.0.1"
MiB = 1 << 20


class Heard(asyncio.BufferedProtocol):
    """A protocol that keeps all that it is told."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.waits = self.ended = False
        self.lost: list[Exception | None] = []
        self._room = memoryview(bytearray(PIECE))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        self.data += self._room[:nbytes]

    def eof_received(self) -> bool:
        self.ended = True
        return False

    def pause_writing(self) -> None:
        self.waits = True

    def resume_writing(self) -> None:
        self.waits = False

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.append(error)


def trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=certificates.authority("tests").pem().decode())
    return context


@asynccontextmanager
async def serving(serve: Serve, context: ssl.SSLContext | None) -> AsyncIterator[int]:
    """The port of a server that does this with its one connection, to its end."""
    over = asyncio.Event()

    async def serve_one(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            with suppress(OSError):
                await serve(reader, writer)
        finally:
            writer.transport.abort()
            over.set()

    server = await asyncio.start_server(serve_one, HOST, 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]
        await over.wait()
        await asyncio.sleep(0)


@asynccontextmanager
async def connected(serve: Serve) -> AsyncIterator[tuple[secure.Secure, Heard]]:
    """A connection to a server that does this with it."""
    heard = Heard()
    async with serving(serve, certificates.server_context()) as port:
        made = await secure.connect(heard, HOST, port, context=trusting(), name=HOST)
        try:
            yield made, heard
        finally:
            made.abort()
            await eventually(lambda: heard.lost)
    assert len(heard.lost) == 1


@pytest.mark.parametrize("size", [1, 1000, 16383, 16384, 16385, 70_000, 1_000_000])
async def test_records_of_any_size_come_whole_and_in_order(size: int) -> None:
    piece = bytes(number % 251 for number in range(size))
    count = max(3, 2 * MiB // size) if size > 1000 else 50

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(count):
            writer.write(piece)
            await writer.drain()
        await reader.read()

    async with connected(serve) as (_, heard):
        await eventually(lambda: len(heard.data) == count * size)
        assert heard.data == piece * count


async def test_what_is_written_arrives_although_the_server_is_slow_to_read() -> None:
    wanted, reads = os.urandom(8 * MiB), asyncio.Event()
    got: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reads.wait()
        got.append(await reader.readexactly(len(wanted)))

    async with connected(serve) as (made, heard):
        for start in range(0, len(wanted), PIECE):
            made.write(wanted[start : start + PIECE])
        assert heard.waits
        reads.set()
        await eventually(lambda: got)
        assert got == [wanted]
        assert not heard.waits


async def test_nothing_comes_while_reading_is_paused() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x" * MiB)
        await reader.read()

    async with connected(serve) as (made, heard):
        made.pause_reading()
        before = len(heard.data)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(heard.data) == before
        made.resume_reading()
        await eventually(lambda: len(heard.data) == MiB)


async def test_a_server_that_ends_is_told_once_and_after_its_last_bytes() -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x" * 100_000)
        writer.close()
        await writer.wait_closed()

    async with connected(serve) as (made, heard):
        await eventually(lambda: heard.lost)
        assert len(heard.data) == 100_000
        assert heard.ended
        assert heard.lost == [None]
        made.write(b"too late")


async def test_a_handshake_that_is_given_up_leaves_no_socket() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        begun.set()
        await reader.read()  # until the other side is closed
        ended.set()

    async with serving(silent, None) as port:  # which speaks no TLS
        connecting = asyncio.ensure_future(
            secure.connect(Heard(), HOST, port, context=trusting(), name=HOST)
        )
        await begun.wait()
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await eventually(ended.is_set)


async def test_a_certificate_of_another_name_is_refused() -> None:
    server = await asyncio.start_server(
        lambda *_: None, HOST, 0, ssl=certificates.server_context("other name")
    )
    port = server.sockets[0].getsockname()[1]
    async with server:
        with pytest.raises(ssl.SSLCertVerificationError):
            await secure.connect(Heard(), HOST, port, context=trusting(), name=HOST)


async def test_a_server_that_is_gone_before_a_word_was_said_leaves_no_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connected = secure._connected
    listener = socket.create_server((HOST, 0))

    async def connected_and_reset(
        loop: asyncio.AbstractEventLoop, host: str, port: int
    ) -> socket.socket:
        made = await connected(loop, host, port)
        taken, _ = listener.accept()
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        taken.close()

        def is_gone() -> bool:
            with pytest.raises(OSError, match="not connected"):
                made.getpeername()
            return True

        await eventually(is_gone)
        return made

    monkeypatch.setattr(secure, "_connected", connected_and_reset)
    before, port = unclosed(), listener.getsockname()[1]
    with listener, pytest.raises(ConnectionResetError):
        await secure.connect(Heard(), HOST, port, context=trusting(), name=HOST)
    assert unclosed() <= before


def unclosed() -> set[ssl.SSLSocket]:
    found = (each for each in gc.get_objects() if isinstance(each, ssl.SSLSocket))
    return {each for each in found if each.fileno() >= 0}
