"""Serving: the small HTTPS server that API servers send reviews to.

It reads one kind of request, a POST with a length, and answers it with one body.
Everything is bounded: connections, heads, bodies, all bodies together, and the time
that each part may take. The certificate can be replaced at any moment: connections that
stand go on, and those that follow get the new one.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import parse_qs

from trimtab.client.errors import TrimtabError
from trimtab.runtime.listening import Timed, sentence
from trimtab.runtime.webhooks.declarations import CONVERTS
from trimtab.runtime.webhooks.routing import Answer

HEAD_LIMIT: Final = 16 << 10
ADMISSION_LIMIT: Final = 8 << 20
"""A review has an object twice, and objects have at most 3 MiB."""
CONVERSION_LIMIT: Final = 128 << 20
"""A server converts all objects of a list in one review."""
BODIES_LIMIT: Final = 256 << 20
"""All bodies that are held at once."""
CONNECTIONS: Final = 512
READ_SECONDS: Final = 30.0
IDLE_SECONDS: Final = 150.0
"""Longer than API servers keep a connection, so that it is they who end it."""
HANDSHAKE_SECONDS: Final = 10.0
SECONDS: Final = 10.0
"""For a review that does not say how long it is waited for."""
GRACE: Final = 1.0
"""Seconds that answers under way have at the end."""

Answering: TypeAlias = Callable[[str, bytes, float], Awaitable[Answer]]


class CannotServe(TrimtabError):
    """The webhooks' address cannot be had, or their certificate is of no use."""


class Head(NamedTuple):
    """What a request is about. A refusal is one that is answered already."""

    path: str = ""
    length: int = 0
    seconds: float = SECONDS
    keep: bool = False
    refusal: HTTPStatus | None = None


def parse(data: bytes) -> Head:
    """Read the head of a request, strictly, without the empty line that ends it."""
    bad = Head(refusal=HTTPStatus.BAD_REQUEST)
    try:
        first, *lines = data.decode("ascii").split("\r\n")
        method, target, version = first.split(" ")
        pairs = [line.split(":", 1) for line in lines]
        fields = {name.lower(): value.strip() for name, value in pairs}
    except ValueError:
        return bad
    if len(fields) < len(pairs) and any(
        [name.lower() for name, _ in pairs].count(each) > 1
        for each in ("content-length", "host", "transfer-encoding")
    ):
        return bad
    if version != "HTTP/1.1" or not target.startswith("/") or "host" not in fields:
        return bad
    if method != "POST":
        return Head(refusal=HTTPStatus.METHOD_NOT_ALLOWED)
    length = fields.get("content-length", "")
    if "transfer-encoding" in fields or not length:
        return Head(refusal=HTTPStatus.LENGTH_REQUIRED)
    if not length.isdigit() or len(length) > 12:
        return bad
    path, _, query = target.partition("?")
    keep = "close" not in fields.get("connection", "").lower()
    return Head(path, int(length), _seconds(query), keep)


def _seconds(query: str) -> float:
    """How long the server waits, as it says in ``?timeout=10s``."""
    text = parse_qs(query).get("timeout", [""])[0].removesuffix("s")
    return float(text) if text.isdigit() and 0 < int(text) <= 60 else SECONDS


class Server:
    """Serves reviews, once it has a certificate, until it is closed.

    Flow: ``open`` takes the address, ``load`` a certificate, ``start`` in a task group,
    ``close`` at the end; the next ``load`` replaces the certificate for connections to
    come.

    Guarantees: ``close`` takes no new request, lets those under way be answered for a
    moment, and leaves no connection behind.

    Errors: :class:`CannotServe`.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        answer: Answering,
        serves: Callable[[str], bool],
    ) -> None:
        self.host = host
        self.port = port
        self.answer = answer
        self.serves = serves
        self.ending = False
        """Whether connections are ended with their next answer."""
        self.held = 0
        """Bytes of bodies that are in hand."""
        self.connections: dict[Connection, None] = {}
        """Those that are open; the one that was idle the longest is the first."""
        self._context = new_context()
        self._loaded = b""
        self._server: asyncio.Server | None = None
        self._group: asyncio.TaskGroup | None = None
        self._empty = asyncio.Event()

    def load(self, pem: bytes) -> None:
        """Take a key and its certificates for all handshakes that follow."""
        if pem == self._loaded:
            return
        load_pair(new_context(), pem)  # a bad one changes nothing
        load_pair(self._context, pem)
        self._loaded = pem

    async def open(self) -> None:
        """Take the address, before anything is written that would lead to it."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: Connection(self),
                self.host,
                self.port,
                ssl=self._context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                start_serving=False,
            )
        except (OSError, OverflowError) as error:
            raise self._cannot_listen(error) from error
        # Port 0 was a wish for any; this is the one that was given.
        self.port = self._server.sockets[0].getsockname()[1]

    async def start(self, group: asyncio.TaskGroup) -> None:
        """Listen; answers are made in the group."""
        assert self._loaded, "a certificate is loaded first"
        assert self._server is not None, "the address is taken first"
        self._group = group
        try:
            await self._server.start_serving()
        except OSError as error:  # somebody else was faster after all
            raise self._cannot_listen(error) from error

    def _cannot_listen(self, error: Exception) -> CannotServe:
        other = "with --webhook-port (0 takes any)"
        return CannotServe(
            sentence("The webhooks", self.host, self.port, error, other=other)
        )

    async def close(self) -> None:
        """Answer what is under way, and end."""
        if self._server is None:
            return
        self.ending = True
        self._server.close()
        for connection in list(self.connections):
            connection.end()
        try:
            async with asyncio.timeout(GRACE):
                await self._drained()
        except TimeoutError:
            for connection in list(self.connections):
                connection.abort()
            await self._drained()
        # Whoever is in the middle of a handshake is not waited for.
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await self._server.wait_closed()

    async def _drained(self) -> None:
        while self.connections:
            self._empty.clear()
            await self._empty.wait()

    def opened(self, connection: Connection) -> None:
        """There is a new connection; at the limit, the most idle one makes room."""
        if len(self.connections) >= CONNECTIONS:
            idle = (each for each in self.connections if not each.busy)
            victim = next(idle, connection)
            victim.abort()
        self.connections[connection] = None

    def used(self, connection: Connection) -> None:
        self.connections[connection] = self.connections.pop(connection, None)

    def closed(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        self._empty.set()

    def limit(self, head: Head) -> HTTPStatus | None:
        """Why a body is not read; None if it is."""
        if not self.serves(head.path):
            return HTTPStatus.NOT_FOUND
        most = CONVERSION_LIMIT if head.path == CONVERTS else ADMISSION_LIMIT
        if head.length > most:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        if self.held + head.length > BODIES_LIMIT:
            return HTTPStatus.SERVICE_UNAVAILABLE
        return None

    def begin(self, work: Coroutine[Any, Any, None]) -> bool:
        """Have an answer made; False if the server has ended, and nobody is answered.

        A handshake that was under way at the end brings a request after it.
        """
        assert self._group is not None, "connections come after the start"
        try:
            self._group.create_task(work, name="webhook")
        except RuntimeError:
            work.close()
            return False
        return True


class Connection(Timed, asyncio.Protocol):
    """One connection: one request after the other, and one timer for what may hang."""

    def __init__(self, server: Server) -> None:
        self.busy = False
        """Whether a request has begun to come in, or waits for its answer."""
        self._server = server
        self._buffer = bytearray()
        self._head: Head | None = None
        self._answering = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.opened(self)
        self._limit(IDLE_SECONDS)

    def connection_lost(self, error: Exception | None) -> None:
        self._limit(None)
        self._transport = None
        self._forget()
        self._server.closed(self)

    def end(self) -> None:
        """End it at once if nothing is in hand, else with the next answer."""
        if not self.busy and self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        if not self.busy:
            self.busy = True
            self._limit(READ_SECONDS)
            self._server.used(self)
        self._buffer += data
        self._read()

    def _read(self) -> None:
        """Begin to answer, if a request is there as a whole."""
        if self._answering or self._transport is None:
            return
        if self._head is None and not self._read_head():
            return
        head = self._head
        if head is None or len(self._buffer) < head.length:
            return
        body = bytes(self._buffer[: head.length])
        del self._buffer[: head.length]
        self._answering = True
        self._limit(None)
        # One after the other: the next request is read when this one is answered.
        self._transport.pause_reading()
        if not self._server.begin(self._answer(head, body)):
            self.abort()

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n", 0, HEAD_LIMIT)
        if end < 0:
            if len(self._buffer) >= HEAD_LIMIT:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return False
        head = parse(bytes(self._buffer[:end]))
        refusal = head.refusal or self._server.limit(head)
        if refusal is not None:
            self._refuse(refusal)
            return False
        del self._buffer[: end + 4]
        self._head = head
        self._server.held += head.length
        return True

    async def _answer(self, head: Head, body: bytes) -> None:
        answer = await self._server.answer(head.path, body, head.seconds)
        self._answering = False
        self._forget()
        if self._transport is None or self._transport.is_closing():
            return
        keep = head.keep and not self._server.ending
        self._send(answer, keep=keep)
        if keep:
            self.busy = bool(self._buffer)
            self._limit(READ_SECONDS if self.busy else IDLE_SECONDS)
            self._transport.resume_reading()
            self._read()

    def _refuse(self, status: HTTPStatus) -> None:
        text = f"{status} {status.phrase}\n".encode()
        self._send(Answer(status, text), keep=False)

    def _send(self, answer: Answer, *, keep: bool) -> None:
        assert self._transport is not None
        head = [
            f"HTTP/1.1 {answer.status} {answer.status.phrase}",
            f"Content-Type: {answer.type}",
            f"Content-Length: {len(answer.body)}",
        ]
        if not keep:
            head.append("Connection: close")
        self._transport.write("\r\n".join([*head, "", ""]).encode() + answer.body)
        if not keep:
            # Whoever does not take it must not keep the connection.
            self._limit(READ_SECONDS)
            self._transport.close()

    def _forget(self) -> None:
        if self._head is not None:
            self._server.held -= self._head.length
            self._head = None


def new_context() -> ssl.SSLContext:
    """TLS as API servers speak it, without a certificate so far."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def load_pair(context: ssl.SSLContext, pem: bytes) -> None:
    """Give a context a key and its certificates.

    It takes them from files only: one of mode 0600 that is gone at once.
    """
    with tempfile.NamedTemporaryFile(prefix="trimtab-") as file:
        file.write(pem)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=lambda: b"")
        except (ssl.SSLError, OSError, ValueError) as error:
            raise CannotServe(
                "The certificate of the webhooks and its key do not belong together "
                f"or cannot be read ({getattr(error, 'reason', None) or 'no PEM'}); "
                "the one that was served before, if any, stays."
            ) from None
