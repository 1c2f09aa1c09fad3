"""The listener: HTTP over TLS in front of a driver.

It knows connections, credentials, bodies and bounds; what a request means is the API's.
A client that has no credential learns nothing here but that it has none.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import ssl
import sys
import uuid
from contextlib import suppress
from typing import Protocol
from urllib.parse import parse_qsl, unquote

import msgspec
from aiohttp import StreamReader

# Not aiohttp.web, which brings a whole framework along, and 50 ms.
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_server import Server

from trimtab.embedded import status
from trimtab.embedded.authentication import (
    ANONYMOUS,
    Authenticator,
    certificate_user,
)
from trimtab.embedded.driver import Cut, Driver
from trimtab.embedded.requests import IMPERSONATE, ApiRequest, User
from trimtab.embedded.responses import Reply
from trimtab.embedded.status import ApiProblem

logger = logging.getLogger(__name__)
# What is no HTTP is answered with 400 and is not worth a line of ours.
wire_logger = logging.getLogger(f"{__name__}.wire")
wire_logger.setLevel(logging.CRITICAL)

BODY_LIMIT = 3 << 20
BODY_SECONDS = 60.0
LINE_LIMIT = 64 << 10
HEADERS = 256
# Longer than clients keep idle connections: they, not we, must be the ones to hang up.
KEEP_ALIVE = 300.0
# How much may wait to be sent to one client.
WRITE_BUFFER = 64 << 10
HANDSHAKE_SECONDS = 10.0
FAREWELL_SECONDS = 0.5
STOP_SECONDS = 3.0
CANCEL_SECONDS = 0.5
UPGRADES = ("websocket", "spdy")
_BROKEN = re.compile("%(?![0-9A-Fa-f]{2})")
"""What is escaped, and escapes nothing."""
_UNREADABLE = re.compile(f"{_BROKEN.pattern}|;")


class Nodes(Protocol):
    """Who answers for the processes of pods: their logs, commands and ports."""

    async def serve(
        self, request: BaseRequest, asked: ApiRequest
    ) -> StreamResponse | None:
        """The answer, or None if the request is not about a pod that runs here."""


class _Connections(Server):
    """The open connections, and who is at the other end of each."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(
            listener.serve,
            handler_cancellation=True,
            access_log=None,
            logger=wire_logger,
            auto_decompress=False,
            keepalive_timeout=KEEP_ALIVE,
            max_line_size=LINE_LIMIT,
            max_field_size=LINE_LIMIT,
            max_headers=HEADERS,
            lingering_time=2.0,
        )
        self.users: dict[RequestHandler, User | None] = {}
        self._transports: dict[RequestHandler, asyncio.Transport] = {}
        self._empty = asyncio.Event()

    def connection_made(
        self, handler: RequestHandler, transport: asyncio.Transport
    ) -> None:
        transport.set_write_buffer_limits(high=WRITE_BUFFER)
        self.users[handler] = _peer(transport)
        self._transports[handler] = transport
        self._empty.clear()
        super().connection_made(handler, transport)

    def connection_lost(
        self, handler: RequestHandler, exc: BaseException | None = None
    ) -> None:
        self.users.pop(handler, None)
        self._transports.pop(handler, None)
        if not self._transports:
            self._empty.set()
        super().connection_lost(handler, exc)

    async def abort(self) -> None:
        """End what is still open; returns when the loop knows it."""
        for transport in tuple(self._transports.values()):
            transport.abort()
        if self._transports:
            await self._empty.wait()


class Listener:
    """Takes connections on one socket and answers their requests.

    Flow: ``open`` with a bound socket, ``close`` once.
    """

    def __init__(
        self, driver: Driver, *, authenticator: Authenticator, context: ssl.SSLContext
    ) -> None:
        self._driver = driver
        self._authenticator = authenticator
        self._context = context
        self.nodes: Nodes | None = None
        """Who runs pods in this process, if anybody does."""
        self._connections: _Connections | None = None
        self._server: asyncio.Server | None = None
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = False

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._connections.users) if self._connections else 0

    async def open(self, bound: socket.socket) -> None:
        """Begin to take connections."""
        self._connections = _Connections(self)
        self._server = await asyncio.get_running_loop().create_server(
            self._connections,
            sock=bound,
            ssl=self._context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=FAREWELL_SECONDS,
            backlog=512,
        )

    async def close(self, *, seconds: float = STOP_SECONDS) -> None:
        """Take no more connections, let requests under way end, and end the rest.

        Flow: requests have so many seconds to come in and be answered. Watches must
        have been ended before, or they are cut off when the time is up.
        """
        if self._server is None or self._connections is None:
            return
        self._stopping = True
        self._server.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        # Not before: from here on a connection hears nothing more from its client.
        self._connections.pre_shutdown()
        await self._connections.shutdown(CANCEL_SECONDS)
        await self._connections.abort()
        await self._server.wait_closed()

    async def serve(self, request: BaseRequest) -> StreamResponse:
        """Answer one request."""
        self._under_way += 1
        self._idle.clear()
        try:
            response = await self._serve(request)
            if self._stopping:
                response.force_close()
            return response
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    async def _serve(self, request: BaseRequest) -> StreamResponse:
        if _BROKEN.search(request.raw_path.partition("?")[0]):
            return _nonsense()
        headers: dict[str, str] = {}
        acting: list[tuple[str, str]] = []
        for key, value in request.headers.items():
            name = key.lower()
            headers.setdefault(name, value)
            if name.startswith(IMPERSONATE):
                acting.append((name, value))
        audit = headers.get("audit-id") or str(uuid.uuid4())
        path, query = _place(request)
        asked = ApiRequest(
            method=request.method,
            path=path,
            query=query,
            headers=headers,
            user=ANONYMOUS,
            impersonation=tuple(acting),
        )
        reply = Reply(request, asked, audit=audit)
        try:
            asked = await self._complete(request, asked)
            if self.nodes is not None:
                response = await self.nodes.serve(request, asked)
                if response is not None:
                    return response
            return await reply.send(await self._driver.answer(asked))
        except (Cut, ConnectionError):
            return reply.abort()
        except ApiProblem as problem:
            failure = problem
        except Exception as error:
            logger.exception("%s %s failed.", asked.method, asked.path)
            what = f"{type(error).__name__}; the server's log says more"
            failure = status.internal(what)
        return await reply.send(self._driver.refuse(asked, failure))

    async def _complete(self, request: BaseRequest, asked: ApiRequest) -> ApiRequest:
        """The request with its user and its body; raises what refuses it."""
        assert self._connections is not None, "requests come by connections"
        peer = self._connections.users.get(request.protocol)
        user = self._authenticator.user(peer, asked.headers, asked.path)
        if self.nodes is None:
            _refuse_upgrade(asked)
        body = await _body(request) if request.body_exists else b""
        return msgspec.structs.replace(asked, user=user, body=body)


def _nonsense() -> StreamResponse:
    """To what is not even a request, as Go answers it, and then hangs up."""
    response = Response(status=400, text="400 Bad Request")
    response.force_close()
    return response


def _peer(transport: asyncio.Transport) -> User | None:
    """Who the client's certificate says is there; sets up the socket by the way."""
    found: socket.socket | None = transport.get_extra_info("socket")
    if found is not None and sys.platform == "linux":
        # A peer that is gone without a word is noticed within a minute.
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000)
    secured: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    if secured is None:
        return None
    return certificate_user(secured.getpeercert(), secured.getpeercert(True))


def _place(request: BaseRequest) -> tuple[str, dict[str, str]]:
    """The decoded path, and the query; of a repeated parameter the first counts, and
    one that cannot be read is not there."""
    raw = request.raw_path
    if not raw.startswith("/"):  # an absolute address, as for a proxy
        raw = request.rel_url.raw_path_qs
    path, _, query = raw.partition("?")
    if "%" in path:
        path = unquote(path)
    if not query:
        return path, {}
    if "%" in query or ";" in query:
        read = (each for each in query.split("&") if not _UNREADABLE.search(each))
        query = "&".join(read)
    pairs = parse_qsl(query, keep_blank_values=True)
    return path, dict(reversed(pairs))


async def _body(request: BaseRequest) -> bytes:
    """All of a request's body, within bounds."""
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise ApiProblem(
            415,
            "UnsupportedMediaType",
            "compressed request bodies are not read: send it without a "
            "Content-Encoding",
        )
    if (request.content_length or 0) > BODY_LIMIT:
        raise _too_large()
    content = request.content
    if content.is_eof():
        body = content.read_nowait(-1)
        if len(body) > BODY_LIMIT:
            raise _too_large()
        return body
    if request.headers.get("Expect", "").lower() == "100-continue":
        assert request.transport is not None, "its body is being awaited"
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _collected(content)
    except TimeoutError:
        raise status.bad_request(
            "the body of the request did not come in time"
        ) from None


async def _collected(content: StreamReader) -> bytes:
    body = bytearray()
    while data := await content.readany():
        body += data
        if len(body) > BODY_LIMIT:
            raise _too_large()
    return bytes(body)


def _too_large() -> ApiProblem:
    return status.too_large(f"limit is {BODY_LIMIT}")


def _refuse_upgrade(asked: ApiRequest) -> None:
    """Other protocols lead into a pod's processes, and there is no node to run them."""
    wanted = asked.headers.get("upgrade", "").lower()
    switching = "upgrade" in asked.headers.get("connection", "").lower()
    if switching and wanted.startswith(UPGRADES):
        raise ApiProblem(
            501,
            "NotImplemented",
            "this server cannot switch to WebSocket or SPDY, so exec, attach and "
            "port-forward do not work here: watch over plain HTTP, and run pods on a "
            "cluster with nodes.",
        )
