"""The HTTP transport: one pool of verified TLS connections to one API server.

Calls share a bounded pool of kept-alive connections. Streams (watches, followed logs)
have connections of their own, so that a hundred watches leave the pool to the calls.
"""

from __future__ import annotations

import asyncio
import io
import socket
import ssl
import sys
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace, TracebackType
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp import ClientTimeout, TraceConfig
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from trimtab.client.config import Config
from trimtab.client.errors import (
    BodyTooLarge,
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

# Below the 90 s after which kube-apiserver drops an idle connection: a request must
# not be put on a connection that the other side is just closing.
KEEP_ALIVE = 60.0
READ_BUFFER = 1 << 18
ONE_PIECE = 1 << 16
NO_TIMEOUT = ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)


class _Counters:
    """What the statistics are made of; the only mutable state here."""

    __slots__ = ("open", "opened", "received", "reused", "sent")

    def __init__(self) -> None:
        self.opened = self.reused = self.sent = self.received = 0
        self.open: set[ResponseHandler] = set()

    def add(self, protocol: ResponseHandler) -> None:
        self.opened += 1
        if (closed := protocol.closed) is not None:  # else it is closed already
            self.open.add(protocol)
            closed.add_done_callback(lambda future: self._lost(protocol, future))

    def _lost(self, protocol: ResponseHandler, future: asyncio.Future[None]) -> None:
        self.open.discard(protocol)
        if not future.cancelled():
            future.exception()  # seen here, so that asyncio does not report it


class _Protocol(ResponseHandler):
    """One connection; what it does differently, and why, is said below."""

    def close(self) -> None:
        # Without a farewell: a peer that is gone would not answer it, and keep a dead
        # connection open for half a minute.
        self.abort()

    def is_connected(self) -> bool:
        # Asked before an idle connection is used again. An answer that came on it
        # unasked (some servers say 408 before they hang up) would be taken for the
        # answer to the next request.
        return super().is_connected() and not self._buffer


class _Connector(aiohttp.TCPConnector):
    """A pool that knows which of its connections are open."""

    def __init__(self, counters: _Counters, *, limit: int) -> None:
        super().__init__(
            limit=limit, keepalive_timeout=KEEP_ALIVE, socket_factory=_socket
        )
        self._counters = counters
        self._factory: Any = partial(_Protocol, loop=asyncio.get_running_loop())

    async def _create_connection(self, req: Any, traces: Any, timeout: Any) -> Any:
        protocol = await super()._create_connection(req, traces, timeout)
        self._counters.add(protocol)
        return protocol


class _UnderWay:
    """Everything that waits for the server, so that closing can interrupt it."""

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
            raise Closed(f"{self._request}: the client is closed; make a new one.")
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


def _socket(address: Any) -> socket.socket:
    """A socket that notices a peer which is gone without a word."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000)
    made.setblocking(False)
    return made


class HttpResponse:
    """An HTTP answer, read within bounds."""

    __slots__ = ("_counters", "_request", "_response", "_under_way")

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        request: Request,
        counters: _Counters,
        under_way: _UnderWay,
    ) -> None:
        self._response = response
        self._request = request
        self._counters = counters
        self._under_way = under_way

    @property
    def status(self) -> int:
        return self._response.status

    def headers(self, name: str) -> Sequence[str]:
        return self._response.headers.getall(name, ())

    async def read(self, *, limit: int) -> bytearray:
        body = bytearray()
        async with _Waiting(self._under_way, self._request):
            while data := await self._piece():
                body += data
                if len(body) > limit:
                    raise BodyTooLarge(
                        f"{self._request}: the answer is longer than {limit} bytes "
                        f"({len(body)} seen); ask for less or raise the cap.",
                        seen=len(body),
                        limit=limit,
                    )
        return body

    async def chunk(self) -> bytes:
        async with _Waiting(self._under_way, self._request):
            return await self._piece()

    async def _piece(self) -> bytes:
        try:
            data = await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise _translate(error, self._request, sent=True) from error
        self._counters.received += len(data)
        return data

    def close(self) -> None:
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()


class HttpTransport:
    """Carries requests over HTTP/1.1 and verified TLS; see the module's first lines."""

    def __init__(self, config: Config, *, pool: int = 32) -> None:
        self._config = config
        self._base = config.server
        self._counters = _Counters()
        self._contexts: tuple[Any, ssl.SSLContext] | None = None
        self._pool = pool
        self._sessions: tuple[aiohttp.ClientSession, aiohttp.ClientSession] | None
        self._sessions = None
        self._under_way = _UnderWay()

    def _session(self, *, limit: int) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=_Connector(self._counters, limit=limit),
            timeout=NO_TIMEOUT,
            cookie_jar=aiohttp.DummyCookieJar(),
            trace_configs=[_tracing(self._counters)],
            read_bufsize=READ_BUFFER,
            trust_env=False,
        )
        # A repeated PUT or DELETE is not the same request any more (the first one may
        # have been carried out): whether to send again is the client's decision.
        session._retry_connection = False
        return session

    def _session_for(self, request: Request) -> aiohttp.ClientSession:
        """The pool of a request; both are made at the first one, inside its loop."""
        if self._sessions is None:
            self._sessions = (self._session(limit=self._pool), self._session(limit=0))
        return self._sessions[1 if request.stream else 0]

    async def send(self, request: Request, *, progress: Progress) -> Response:
        async with _Waiting(self._under_way, request):
            try:
                response = await self._exchange(request, progress)
            finally:
                if progress.sent:
                    self._counters.sent += len(request.body or b"")
        if response.status < 200:
            response.close()
            raise Malformed(
                f"{request}: the server answered {response.status}, to change to a "
                "protocol that nobody asked for."
            )
        return HttpResponse(response, request, self._counters, self._under_way)

    async def _exchange(
        self, request: Request, progress: Progress
    ) -> aiohttp.ClientResponse:
        try:
            return await self._session_for(request).request(
                request.method,
                self._url(request),
                headers=request.headers,
                data=_payload(request.body),
                ssl=await self._context(),
                proxy=self._config.proxy,
                server_hostname=self._config.tls.server_name,
                allow_redirects=False,
                trace_request_ctx=progress,
            )
        except aiohttp.ClientResponseError as error:
            failure = _translate(error, request, sent=progress.sent)
        except (aiohttp.ClientError, OSError) as error:
            raise _translate(error, request, sent=progress.sent) from error
        raise failure  # without its cause, which holds our headers, and the token

    def _url(self, request: Request) -> URL:
        query = f"?{urlencode(request.query)}" if request.query else ""
        return URL(f"{self._base}{request.path}{query}", encoded=True)

    async def _context(self) -> ssl.SSLContext:
        """The TLS context of the present credentials, made again when they change."""
        material = await self._config.credentials.tls() or self._config.tls
        if self._contexts is None or self._contexts[0] is not material:
            self._contexts = (material, material.context())
        return self._contexts[1]

    async def close(self) -> None:
        self._under_way.interrupt()
        await asyncio.sleep(0)  # who waits is to hear it from us, not from the library
        for protocol in tuple(self._counters.open):
            protocol.close()
        for session in self._sessions or ():
            await session.close()
        closed = [each.closed for each in self._counters.open if each.closed]
        if closed:  # but the loop has not told them so yet
            await asyncio.wait(closed)

    def statistics(self) -> TransportStatistics:
        counters = self._counters
        return TransportStatistics(
            connections_opened=counters.opened,
            connections_open=len(counters.open),
            connections_reused=counters.reused,
            bytes_sent=counters.sent,
            bytes_received=counters.received,
        )


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    """A body; a large one in a form that is written in pieces."""
    return io.BytesIO(body) if body and len(body) > ONE_PIECE else body


def _tracing(counters: _Counters) -> TraceConfig:
    """Hooks that see a connection reused and a request about to leave."""
    trace = TraceConfig()

    async def reused(*_: object) -> None:
        counters.reused += 1

    async def leaving(_: object, context: SimpleNamespace, __: object) -> None:
        context.trace_request_ctx.sent = True

    trace.on_connection_reuseconn.append(reused)
    trace.on_request_headers_sent.append(leaving)
    return trace


def _translate(error: Exception, request: Request, *, sent: bool) -> TransportError:
    """The error of ours that says what the HTTP library's error means to a caller."""
    why = _why(error)
    if sent:
        if isinstance(error, aiohttp.ClientResponseError):
            return Malformed(f"{request}: the answer is not HTTP that can be read.")
        return Disconnected(f"{request}: the answer broke off ({why}).")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return CertificateInvalid(
            f"{request}: the server's certificate was not accepted ({why}); "
            "check certificate-authority and server in the kubeconfig."
        )
    if isinstance(error, aiohttp.ClientConnectorSSLError | ssl.SSLError):
        return CertificateInvalid(f"{request}: TLS could not be agreed on ({why}).")
    return Unreachable(
        f"{request}: no connection to the API server ({why}); "
        "is it running, and is this its address?"
    )


def _why(error: Exception) -> str:
    """What the library's error says, without what does not belong into a sentence.

    Not its repr: that of some holds the headers of the request, and the token.
    """
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answered {error.status}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server hung up"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        inner = error.certificate_error
        return getattr(inner, "verify_message", None) or str(inner)
    if isinstance(error, aiohttp.ClientConnectorError):
        inner = error.os_error
        return f"{error.host}:{error.port}: {inner.strerror or inner}"
    return " ".join(str(error).split())[:300] or type(error).__name__
