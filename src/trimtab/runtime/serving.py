"""Serving: the small HTTP/1.1 server, with TLS, of workers and gateways.

One request at a time on a connection, read strictly and within bounds: what two readers
could understand differently is refused. A client that hangs up has its request
cancelled. The head and the body of a request, the answer's way out and the time between
two requests each have a limit, and so has the number of connections.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, aclosing, suppress
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import msgspec

from trimtab.client import secure
from trimtab.runtime.asks import Answer, Ask, Bad, Head, answer_head, parse, refusal
from trimtab.runtime.listening import CannotListen as CannotListen
from trimtab.runtime.listening import Timed, sentence

logger = logging.getLogger("trimtab.runtime.serving")

ROOM: Final = 1 << 16
BACKLOG: Final = 512
PAUSE: Final = 1.0
"""Seconds before the next try to accept, after one that the system refused."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a server."""

    connections: int = 1024
    """At the limit, the connection that was idle the longest makes room."""
    head: int = 16 * 1024
    body: int = 64 * 1024
    read: float = 5.0
    """Seconds for a request to come as a whole, and for an answer to be taken."""
    idle: float = 120.0
    """Seconds between two requests."""


class Connection(Timed, asyncio.BufferedProtocol):
    """One connection: requests in, answers out, one timer for whatever may hang."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._limits = server.limits
        self._buffer = bytearray()
        self._head: Head | None = None
        self._task: asyncio.Task[None] | None = None
        self._room: asyncio.Future[None] | None = None
        """Somebody waits until the other side takes more."""
        self._paused = False

    @property
    def busy(self) -> bool:
        return self._task is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._limit(self._limits.read)
        self.server.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._limit(None)
        self._transport = None
        self.resume_writing()
        if self._task is not None:
            self._task.cancel()
        self.server.closed(self)

    def finish(self) -> None:
        """End it after the present answer; at once if there is none."""
        if self._task is None:
            self.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.server.room

    def buffer_updated(self, nbytes: int) -> None:
        if not self._buffer and not self.busy:
            self._limit(self._limits.read)
        self._buffer += self.server.room[:nbytes]
        if len(self._buffer) > self._limits.head + self._limits.body:
            self.abort()
        elif not self.busy:
            self._next()

    def pause_writing(self) -> None:
        self._paused = True
        self._limit(self._limits.read)

    def resume_writing(self) -> None:
        self._paused = False
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    def _next(self) -> None:
        """Begin with the next request, if it has come as a whole."""
        try:
            ask, keep = self._take() or (None, False)
        except Bad as error:
            phrase = error.status.phrase
            answer = refusal(error.status, "bad-request", f"{phrase}.")
            self._write(answer, keep=False)
            return
        if ask is not None:
            self._limit(None)
            self._task = self.server.group.create_task(self._serve(ask, keep))

    def _take(self) -> tuple[Ask, bool] | None:
        if self._head is None:
            end = self._buffer.find(b"\r\n\r\n", 0, self._limits.head)
            if end < 0:
                if len(self._buffer) >= self._limits.head:
                    raise Bad(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
                return None
            head = bytes(self._buffer[:end])
            del self._buffer[: end + 4]
            self._head = parse(head, limit=self._limits.body)
        found = self._head
        if len(self._buffer) < found.length:
            return None
        ask = found.ask
        if found.length:
            body = bytes(self._buffer[: found.length])
            ask = msgspec.structs.replace(ask, body=body)
            del self._buffer[: found.length]
        self._head = None
        return ask, found.keep

    async def _serve(self, ask: Ask, keep: bool) -> None:
        try:
            answer = await self._answered(ask)
            if answer.stream is None:
                self._write(answer, keep=keep and not self.server.stopping)
            else:
                await self._pour(answer, answer.stream)
        finally:
            self._task = None
        self.server.idle(self)
        if self._transport is not None and not self._transport.is_closing():
            self._limit(self._limits.read if self._buffer else self._limits.idle)
            self._next()

    async def _answered(self, ask: Ask) -> Answer:
        try:
            return await self.server.handle(ask, self)
        except Exception:
            logger.exception("The answer to %s %r failed.", ask.method, ask.path)
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            return refusal(status, "internal", "This failed; the log says why.")

    def _write(self, answer: Answer, *, keep: bool) -> None:
        if self._transport is None:
            return
        length = ("Content-Length", str(len(answer.body)))
        self._transport.write(answer_head(answer, length, keep=keep) + answer.body)
        if not keep:
            self._transport.close()
            self._limit(self._limits.read)

    async def _pour(self, answer: Answer, stream: AsyncIterator[bytes]) -> None:
        """Write the pieces of a body as they come, no faster than they are taken."""
        chunked = ("Transfer-Encoding", "chunked")
        if self._transport is not None:
            self._transport.write(answer_head(answer, chunked, keep=False))
        try:
            async with aclosing(stream) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    if self._transport is None:
                        return
                    self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                    await self._taken()
            if self._transport is not None:
                self._transport.write(b"0\r\n\r\n")
                self._transport.close()
        except Exception:
            logger.exception("A stream of answers broke off.")
            self.abort()  # a body without its end is one that nobody takes for whole

    async def _taken(self) -> None:
        while self._paused and self._transport is not None:
            self._room = asyncio.get_running_loop().create_future()
            await self._room
            self._limit(None)


Handle: TypeAlias = Callable[[Ask, Connection], Awaitable[Answer]]


class Server:
    """Serves for as long as its ``async with`` block runs.

    Guarantees: when the block has been left, no connection and no request is left;
    requests that are under way then are cancelled, unless ``drain`` let them finish.

    Errors: :class:`CannotListen` when the address cannot be had. What ``handle``
    raises is an answer of 500 and a line in the log.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        handle: Handle,
        context: ssl.SSLContext | None,
        limits: Limits | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.handle = handle
        self.limits = limits or Limits()
        self.stopping = False
        self.connections: dict[Connection, None] = {}
        """Those that are open; the one that was idle the longest is the first."""
        self.group: asyncio.TaskGroup = asyncio.TaskGroup()
        self.room = memoryview(bytearray(ROOM))
        """Where the bytes of all connections come in: each takes them out at once."""
        self._context = context
        self._sockets: list[socket.socket] = []
        self._accepting: set[asyncio.Task[None]] = set()
        """What listens, and what has not shaken hands yet."""
        self._stack = AsyncExitStack()
        self._empty = asyncio.Event()
        self._empty.set()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.group)
        try:
            self._sockets = await _listening(self.host, self.port)
        except (OSError, OverflowError) as error:
            await self._stack.aclose()
            said = sentence("A server", self.host, self.port, error, other="port")
            raise CannotListen(said) from error
        # Port 0 was a wish for any; this is the one that was given.
        self.port = self._sockets[0].getsockname()[1]
        for listener in self._sockets:
            self._begin(self._accept(listener))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        for connection in list(self.connections):
            connection.abort()
        await self._stack.aclose()
        await self._empty.wait()

    def stop(self) -> None:
        """Take no new connections, and end each after its present answer."""
        self.stopping = True
        for task in self._accepting:
            task.cancel()
        for connection in list(self.connections):
            connection.finish()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.group.create_task(work)
        self._accepting.add(task)
        task.add_done_callback(self._accepting.discard)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    made, _ = await loop.sock_accept(listener)
                except OSError as error:  # no more files, mostly: others end meanwhile
                    logger.warning("A connection could not be accepted: %s.", error)
                    await asyncio.sleep(PAUSE)
                    continue
                if len(self._accepting) > self.limits.connections:
                    made.close()
                else:
                    self._begin(self._greet(made))
        finally:
            listener.close()

    async def _greet(self, made: socket.socket) -> None:
        """Shake hands with whoever has come; who does not in time has to come again."""
        loop, connection = asyncio.get_running_loop(), Connection(self)
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(self.limits.read):
                if self._context is None:
                    await loop.connect_accepted_socket(lambda: connection, made)
                else:
                    await secure.accept(made, connection, context=self._context)

    async def drain(self, seconds: float) -> bool:
        """Stop, and let what is under way finish; whether all of it did in time."""
        self.stop()
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True

    def opened(self, connection: Connection) -> None:
        if len(self.connections) >= self.limits.connections:
            oldest = next(iter(self.connections))
            # One with a request is not idle: the newcomer has to wait elsewhere.
            (connection if oldest.busy else oldest).abort()
        self.connections[connection] = None
        self._empty.clear()

    def idle(self, connection: Connection) -> None:
        """It has answered: others were idle for longer."""
        if connection in self.connections:
            self.connections[connection] = self.connections.pop(connection)

    def closed(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        if not self.connections:
            self._empty.set()


async def _listening(host: str, port: int) -> list[socket.socket]:
    """A socket for each address of a host, all on one port."""
    loop = asyncio.get_running_loop()
    made: list[socket.socket] = []
    try:
        for family, *_, address in await loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            where = (address[0], made[0].getsockname()[1] if made else port)
            made.append(_bound(family, where + tuple(address[2:])))
    except BaseException:
        for each in made:
            each.close()
        raise
    return made


def _bound(family: int, address: tuple[Any, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener
