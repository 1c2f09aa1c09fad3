"""A server that misbehaves on purpose, at the level of bytes.

It listens on loopback, with TLS unless told otherwise, and follows a script: one
:data:`Handler` for each request, written against the raw wire, so that an answer can
be slow, cut anywhere, garbage, endless, or never come.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Self, TypeAlias

from multidict import CIMultiDict

from tests.client import certificates
from trimtab.client.config import Config
from trimtab.client.credentials import Credentials, Static, TlsMaterial

HOST = "127.0.0.1"
TOKEN = "s3cr3t-t0ken"
PIECE = 1 << 16

Handler: TypeAlias = Callable[["Exchange"], Awaitable[None]]
Headers: TypeAlias = Sequence[tuple[str, str]]


class Cut(Exception):
    """Ends a connection from within a handler."""


class Exchange:
    """One request, and the raw wire to answer it on."""

    def __init__(
        self, server: FaultServer, writer: asyncio.StreamWriter, connection: int
    ) -> None:
        self.server = server
        self.connection = connection
        """Which connection of the server it came on, from zero."""
        self.method = self.target = ""
        self.headers: CIMultiDict[str] = CIMultiDict()
        self.body = b""
        self.flooded = 0
        self._writer = writer

    @property
    def _transport(self) -> asyncio.Transport:
        transport = self._writer.transport
        assert isinstance(transport, asyncio.Transport)
        return transport

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def length(self) -> int:
        return int(self.headers.get("Content-Length", "0"))

    async def send(self, raw: bytes) -> None:
        """Put bytes on the wire, as they are."""
        if self._writer.transport.is_closing():
            raise ConnectionResetError("the client has gone")
        self._writer.write(raw)
        await self._writer.drain()

    async def head(self, status: int, headers: Headers = ()) -> None:
        """The start of an answer, up to and with the empty line."""
        lines = [f"HTTP/1.1 {status} Some Words", *(f"{k}: {v}" for k, v in headers)]
        await self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    async def answer(
        self, status: int = 200, body: bytes = b"", headers: Headers = ()
    ) -> None:
        """A whole, correct answer."""
        length = (("Content-Length", str(len(body))),)
        await self.head(status, (*length, *headers))
        await self.send(body)

    async def json(self, value: Any, status: int = 200, headers: Headers = ()) -> None:
        await self.answer(status, json.dumps(value).encode(), headers)

    async def begin_chunks(self, status: int = 200, headers: Headers = ()) -> None:
        await self.head(status, (("Transfer-Encoding", "chunked"), *headers))

    async def chunk(self, data: bytes) -> None:
        """One piece of a chunked answer; an empty one ends it."""
        await self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def events(self, events: Iterable[Any], *, end: bool = True) -> None:
        """The answer to a watch: one event in each chunk."""
        await self.begin_chunks()
        for event in events:
            await self.chunk(json.dumps(event, separators=(",", ":")).encode() + b"\n")
        if end:
            await self.chunk(b"")

    async def flood(self, size: int) -> None:
        """Send so many bytes, or as many as the client lets us: see ``flooded``."""
        piece = b"x" * PIECE
        while self.flooded < size:
            await self.send(piece)
            self.flooded += len(piece)
            await asyncio.sleep(0)  # so that the end of the connection is noticed

    async def hang(self) -> None:
        """Say nothing more until the client goes away or the test ends."""
        await self.server.over.wait()

    def stop_listening(self) -> None:
        """Take no notice of anything that the client still sends."""
        self._transport.pause_reading()

    def listen(self) -> None:
        """Take notice again."""
        self._transport.resume_reading()

    def close(self) -> None:
        """End the connection with a farewell."""
        self._transport.close()

    def cut(self) -> Cut:
        """``raise exchange.cut()`` drops the connection without a farewell."""
        self._writer.transport.abort()
        return Cut()


def status(
    code: int,
    reason: str = "",
    message: str = "no",
    *,
    headers: Headers = (),
    **details: Any,
) -> Handler:
    """Answers with a ``Status`` object, as an API server refuses."""
    body = status_body(code, reason, message, **details)

    async def handler(exchange: Exchange) -> None:
        await exchange.json(body, code, headers)

    return handler


def status_body(
    code: int, reason: str = "", message: str = "no", **details: Any
) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
        "details": details,
    }


def answers(value: Any, *, code: int = 200, headers: Headers = ()) -> Handler:
    """Answers with JSON."""

    async def handler(exchange: Exchange) -> None:
        await exchange.json(value, code, headers)

    return handler


def raw(*pieces: bytes, cut: bool = True) -> Handler:
    """Puts bytes on the wire, then cuts the connection (or waits)."""

    async def handler(exchange: Exchange) -> None:
        for piece in pieces:
            await exchange.send(piece)
        if cut:
            raise exchange.cut()
        await exchange.hang()

    return handler


async def hang(exchange: Exchange) -> None:
    """Reads the request and never answers."""
    await exchange.hang()


async def cut(exchange: Exchange) -> None:
    """Reads the request and drops the connection."""
    raise exchange.cut()


class FaultServer:
    """Use it as ``async with FaultServer() as server``; see the module's first lines.

    ``flaw`` is what is wrong with its certificate. With ``tls`` off it speaks plain
    TCP; with a ``greeting`` it says that, without being asked, and nothing more.
    """

    def __init__(
        self,
        *,
        flaw: certificates.Flaw = "none",
        tls: bool = True,
        greeting: bytes | None = None,
    ) -> None:
        self.requests: list[Exchange] = []
        self.connections = 0
        """How many connections there ever were."""
        self.open = 0
        """How many there are now."""
        self.over = asyncio.Event()
        self.reads = asyncio.Event()
        """Clear it, and no body of a request is read until it is set again."""
        self.reads.set()
        self.default: Handler = answers({"metadata": {"name": "one"}})
        self._flaw: certificates.Flaw = flaw
        self._tls = tls
        self._greeting = greeting
        self._script: list[Handler] = []
        self._readers: set[_Reader] = set()

    def play(self, *handlers: Handler) -> None:
        """Answer the next requests with these, in order."""
        self._script += handlers

    def always(self, handler: Handler) -> None:
        """Answer every request that no ``play`` is for with this."""
        self.default = handler

    async def __aenter__(self) -> Self:
        context = certificates.server_context(self._flaw) if self._tls else None
        self._server = await asyncio.get_running_loop().create_server(
            self._protocol, HOST, 0, ssl=context
        )
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.over.set()
        self._server.close()
        for reader in tuple(self._readers):
            reader.stop()
        while self.open:
            await asyncio.sleep(0.001)

    def config(
        self,
        *,
        credentials: Credentials | None = None,
        server_name: str | None = None,
        proxy: str | None = None,
        host: str = HOST,
    ) -> Config:
        """How a client reaches this server."""
        authority = certificates.authority("tests").pem()
        return Config(
            server=f"{'https' if self._tls else 'http'}://{host}:{self.port}",
            tls=TlsMaterial(ca=authority, server_name=server_name),
            credentials=credentials or Static({"Authorization": f"Bearer {TOKEN}"}),
            namespace="default",
            proxy=proxy,
            impersonate=None,
            source="a test",
        )

    def _protocol(self) -> asyncio.StreamReaderProtocol:
        return asyncio.StreamReaderProtocol(_Reader(), self._connected)

    async def _connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        assert isinstance(reader, _Reader)
        number, self.connections = self.connections, self.connections + 1
        self.open += 1
        self._readers.add(reader)
        try:
            await self._serve(reader, writer, number)
        except (Cut, ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        except asyncio.CancelledError:
            assert reader.stopped  # by us, and nobody waits for this task
        finally:
            self.open -= 1
            self._readers.discard(reader)
            writer.transport.abort()

    async def _serve(
        self, reader: _Reader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        if self._greeting is not None:
            writer.write(self._greeting)
            await reader.handling(self.over.wait())
            return
        while not self.over.is_set():
            exchange = Exchange(self, writer, number)
            await _read_head(reader, exchange)
            await reader.handling(self.reads.wait())
            exchange.body = await reader.readexactly(exchange.length)
            self.requests.append(exchange)
            handler = self._script.pop(0) if self._script else self.default
            await reader.handling(handler(exchange))


class _Reader(asyncio.StreamReader):
    """A reader that stops the handler of a request when its client is gone."""

    def __init__(self) -> None:
        super().__init__(limit=1 << 20)
        self.stopped = False
        self._task: asyncio.Task[Any] | None = None

    async def handling(self, work: Awaitable[Any]) -> None:
        self._task = asyncio.current_task()
        try:
            await work
        finally:
            self._task = None

    def stop(self) -> None:
        if self._task is not None and not self.stopped:
            self.stopped = True
            self._task.cancel()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.stop()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.stop()


async def _read_head(reader: asyncio.StreamReader, exchange: Exchange) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    exchange.method, exchange.target, _ = first.split(" ")
    for line in lines:
        key, _, value = line.partition(":")
        exchange.headers.add(key, value.strip())
