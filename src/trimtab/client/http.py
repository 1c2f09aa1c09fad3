"""The HTTP transport: one pool of verified TLS connections to one API server.

Calls share a bounded pool of kept-alive connections. Streams (watches, followed logs)
have connections of their own, so that a hundred watches leave the pool to the calls. A
stream may take one that no call uses (a watch that of its list), and keeps it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType

from trimtab.client.answers import too_large
from trimtab.client.config import Config
from trimtab.client.connection import Connection, Shut
from trimtab.client.dial import BadCertificate, Dialer, NoConnection, NoTls
from trimtab.client.errors import (
    CertificateInvalid,
    Closed,
    Disconnected,
    Malformed,
    TransportError,
    Unreachable,
)
from trimtab.client.transport import (
    Progress,
    Request,
    Response,
    TransportStatistics,
)
from trimtab.client.wire import Body, Broken, Garbled, Head, Inflater

# Below the 90 s after which kube-apiserver drops an idle connection: a request must
# not be put on a connection that the other side is just closing.
KEEP_ALIVE = 60.0


class _UnderWay:
    """Everything that waits for an answer to begin, so that closing interrupts it."""

    __slots__ = ("closed", "waits")

    def __init__(self) -> None:
        self.closed = False
        self.waits: set[asyncio.Timeout] = set()

    def interrupt(self) -> None:
        if self.closed:
            return  # who waits has been told, and may be told only once
        self.closed = True
        now = asyncio.get_running_loop().time()
        for limit in self.waits:
            limit.reschedule(now)


class _Waiting:
    """What waits inside fails with :class:`Closed` when the client is closed."""

    __slots__ = ("_limit", "_request", "_under_way")

    def __init__(self, under_way: _UnderWay, request: Request) -> None:
        self._under_way = under_way
        self._request = request
        self._limit = asyncio.timeout(None)

    async def __aenter__(self) -> None:
        if self._under_way.closed:
            raise _closed(self._request)
        await self._limit.__aenter__()
        self._under_way.waits.add(self._limit)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._under_way.waits.discard(self._limit)
        try:
            await self._limit.__aexit__(kind, error, traceback)
        except TimeoutError as interrupted:
            text = f"{self._request}: the client was closed meanwhile."
            raise Closed(text) from interrupted


class _Pool:
    """The connections to one server, and who may have one."""

    def __init__(self, dialer: Dialer, *, limit: int) -> None:
        self.opened = self.reused = self.sent = self.received = 0
        self.open: set[Connection] = set()
        self.closed = False
        self._dialer = dialer
        self._places = asyncio.Semaphore(max(1, limit))
        self._idle: dict[Connection, asyncio.TimerHandle] = {}

    async def take(self, *, stream: bool) -> Connection:
        """A connection to send a request on; it must be given back."""
        if stream:
            return await self._reuse() or await self._connect()
        await self._places.acquire()
        try:
            return await self._reuse() or await self._connect()
        except BaseException:
            self._places.release()
            raise

    async def _reuse(self) -> Connection | None:
        context = await self._dialer.context()
        while self._idle:
            connection, timer = self._idle.popitem()
            timer.cancel()
            if connection.usable and connection.context is context:
                self.reused += 1
                return connection
            connection.abort()
        return None

    async def _connect(self) -> Connection:
        connection = await self._dialer.connect(await self._dialer.context())
        self.opened += 1
        self.open.add(connection)
        connection.closed.add_done_callback(lambda _: self._lost(connection))
        return connection

    def _lost(self, connection: Connection) -> None:
        self.open.discard(connection)
        if (timer := self._idle.pop(connection, None)) is not None:
            timer.cancel()

    def give_back(self, connection: Connection, *, done: bool, stream: bool) -> None:
        """Keep a connection for the next, or end it if it is of no use."""
        if not stream:
            self._places.release()
        if done and not stream and connection.usable and not self.closed:
            loop = asyncio.get_running_loop()
            self._idle[connection] = loop.call_later(KEEP_ALIVE, connection.abort)
        else:
            connection.abort()

    async def close(self) -> None:
        self.closed = True
        closing = [connection.closed for connection in self.open]
        for connection in tuple(self.open):
            connection.abort(Shut())
        if closing:  # but the loop has not told them so yet
            await asyncio.wait(closing)


class HttpResponse:
    """An HTTP answer, read within bounds."""

    __slots__ = ("_body", "_connection", "_head", "_inflater", "_pool", "_request")

    def __init__(
        self, pool: _Pool, connection: Connection, head: Head, request: Request
    ) -> None:
        self._pool = pool
        self._connection: Connection | None = connection
        self._head = head
        self._request = request
        self._body = Body(head, method=request.method)
        encoding = [value.lower() for value in head.all("content-encoding")]
        if encoding not in ([], ["identity"], ["gzip"]):
            raise Garbled("it is compressed in a way that nobody asked for")
        self._inflater = Inflater() if encoding == ["gzip"] else None
        if request.stream and self._inflater is None:
            media = "".join(head.all("content-type")).lower()
            connection.whole_lines = media.startswith("application/json")

    @property
    def status(self) -> int:
        return self._head.status

    def headers(self, name: str) -> Sequence[str]:
        return self._head.all(name)

    async def read(self, *, limit: int) -> bytearray:
        body = bytearray()
        while data := await self.chunk():
            body += data
            if len(body) > limit:
                raise too_large(self._request, seen=len(body), limit=limit)
        return body

    async def chunk(self) -> bytes:
        connection = self._connection
        if connection is None:
            return b""
        if self._pool.closed:
            raise _closed(self._request)
        try:
            if self._inflater is None:
                data = await connection.take(self._body)
            else:
                data = await self._inflated(connection, self._inflater)
        except (Broken, Garbled, Shut) as error:
            raise _lost(error, self._request) from error
        self._pool.received += len(data)
        return data

    async def pump(self, take: Callable[[bytes], None]) -> None:
        connection, pool = self._connection, self._pool
        if connection is None:
            return
        if pool.closed:
            raise _closed(self._request)

        def received(data: bytes) -> None:
            pool.received += len(data)
            take(data)

        if self._inflater is not None:
            while data := await self.chunk():
                take(data)
            return
        try:
            await connection.pump(self._body, received)
        except (Broken, Garbled, Shut) as error:
            raise _lost(error, self._request) from error

    async def _inflated(self, connection: Connection, inflater: Inflater) -> bytes:
        if inflater.waiting and (piece := inflater.inflate()):
            return piece
        while data := await connection.take(self._body):
            if piece := inflater.inflate(data):
                return piece
        inflater.end()
        return b""

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            done = self._body.done and self._head.persistent
            self._pool.give_back(connection, done=done, stream=self._request.stream)


class HttpTransport:
    """Carries requests over HTTP/1.1 and verified TLS; see the module's first lines."""

    def __init__(self, config: Config, *, pool: int = 32) -> None:
        self._dialer = Dialer(config)
        self._pool = _Pool(self._dialer, limit=pool)
        self._under_way = _UnderWay()

    async def send(self, request: Request, *, progress: Progress) -> Response:
        """Send a request; its answer's head has come when this returns.

        Errors: what happens before ``progress.sent`` is :class:`Unreachable` or
        :class:`Closed`. It is never sent a second time: whether a PUT or a DELETE may
        be repeated, which may have been carried out, is the client's decision.
        """
        async with _Waiting(self._under_way, request):
            head = self._dialer.head(request)
            try:
                connection = await self._pool.take(stream=request.stream)
            except NoConnection as error:
                raise _unreachable(error, request) from error
            progress.sent = True
            self._pool.sent += len(request.body or b"")
            try:
                connection.send(head, request.body)
                return await self._answer(connection, request)
            except BaseException as error:
                self._pool.give_back(connection, done=False, stream=request.stream)
                if isinstance(error, Broken | Garbled | Shut):
                    raise _lost(error, request) from error
                raise

    async def _answer(self, connection: Connection, request: Request) -> Response:
        head = await connection.head()
        if head.status < 200:
            raise Malformed(
                f"{request}: the server answered {head.status}, to change to a "
                "protocol that nobody asked for."
            )
        return HttpResponse(self._pool, connection, head, request)

    async def close(self) -> None:
        self._under_way.interrupt()
        await asyncio.sleep(0)  # who waits is to hear it from us, not from the pool
        await self._pool.close()

    def statistics(self) -> TransportStatistics:
        pool = self._pool
        return TransportStatistics(
            connections_opened=pool.opened,
            connections_open=len(pool.open),
            connections_reused=pool.reused,
            bytes_sent=pool.sent,
            bytes_received=pool.received,
        )


def _closed(request: Request) -> Closed:
    return Closed(f"{request}: the client is closed; make a new one.")


def _lost(error: Exception, request: Request) -> TransportError:
    """What happened to an answer, in the words of a caller."""
    if isinstance(error, Shut):
        return Closed(f"{request}: the client was closed meanwhile.")
    if isinstance(error, Garbled):
        return Malformed(
            f"{request}: the answer is not HTTP that can be read ({error})."
        )
    return Disconnected(f"{request}: the answer broke off ({error}).")


def _unreachable(error: NoConnection, request: Request) -> Unreachable:
    """Why there is no connection, in the words of a caller."""
    if isinstance(error, BadCertificate | NoTls):
        return CertificateInvalid(f"{request}: {error}.")
    return Unreachable(
        f"{request}: no connection to the API server ({error}); "
        "is it running, and is this its address?"
    )
