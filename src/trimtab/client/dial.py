"""Dialling: from the address of a server to a verified connection, through a proxy too.

An HTTP proxy is asked to connect us (CONNECT), and TLS to the server goes through it; a
server without TLS is spoken to by the proxy itself. As in client-go a proxy that has
TLS of its own is verified with the cluster's authority.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
from base64 import b64encode
from collections.abc import Sequence
from typing import Any
from urllib.parse import SplitResult, unquote, urlencode, urlsplit

from trimtab.client import secure
from trimtab.client.config import Config
from trimtab.client.connection import Connection, reason
from trimtab.client.transport import Request
from trimtab.client.wire import Broken, Garbled, request_bytes

PORTS = {"http": 80, "https": 443}


class NoConnection(Exception):
    """There is no connection; nothing was sent to the server."""


class BadCertificate(NoConnection):
    """The certificate of the server or of the proxy was not accepted."""


class NoTls(NoConnection):
    """TLS could not be agreed on with the server or the proxy."""


class Dialer:
    """Makes connections to one server, and knows how a request is addressed there."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._server = urlsplit(config.server)
        self._proxy = urlsplit(config.proxy) if config.proxy else None
        self._contexts: tuple[Any, ssl.SSLContext] | None = None
        self._relayed = self._proxy is not None and self._server.scheme == "http"
        """The proxy is spoken to as if it were the server."""

    async def context(self) -> ssl.SSLContext | None:
        """The TLS context of the present credentials, made again when they change."""
        schemes = {self._server.scheme, self._proxy.scheme if self._proxy else ""}
        if "https" not in schemes:
            return None
        material = await self._config.credentials.tls() or self._config.tls
        if self._contexts is None or self._contexts[0] is not material:
            self._contexts = (material, material.context())
        return self._contexts[1]

    def head(self, request: Request) -> bytes:
        """The head of a request, as the server or the proxy is to read it."""
        query = f"?{urlencode(request.query)}" if request.query else ""
        base = self._config.server if self._relayed else self._server.path
        headers = [("Host", self._server.netloc)]
        if self._proxy is not None and self._relayed:
            headers += _login(self._proxy)
        return request_bytes(
            request.method,
            f"{base}{request.path}{query}",
            (*headers, *request.headers),
            request.body,
        )

    async def connect(self, context: ssl.SSLContext | None) -> Connection:
        """A connection on which requests can be sent."""
        if self._proxy is None:
            connection = await self._directly(context)
        else:
            connection = await self._through(self._proxy, context)
        connection.context = context
        return connection

    async def _directly(self, context: ssl.SSLContext | None) -> Connection:
        server, name = self._server, self._config.tls.server_name
        if context is None or server.scheme != "https" or sys.platform == "win32":
            return await _dial(server, context, name=name)
        host = server.hostname or ""
        port = server.port or PORTS["https"]
        connection = Connection(asyncio.get_running_loop())
        try:
            transport = await secure.connect(
                connection, host, port, context=context, name=name or host
            )
        except OSError as error:
            raise _failure(error, server, peer="server") from error
        _notice_death(transport.get_extra_info("socket"))
        return connection

    async def _through(
        self, proxy: SplitResult, context: ssl.SSLContext | None
    ) -> Connection:
        connection = await _dial(proxy, context, peer="proxy")
        if self._relayed:
            return connection
        assert context is not None
        try:
            await self._ask(connection, proxy)
            await self._start_tls(connection, context)
        except BaseException:
            connection.abort()
            raise
        return connection

    async def _ask(self, connection: Connection, proxy: SplitResult) -> None:
        """Have a proxy connect us to the server."""
        target = _authority(self._server)
        headers: Sequence[tuple[str, str]] = (("Host", target), *_login(proxy))
        connection.send(request_bytes("CONNECT", target, headers, None), None)
        try:
            answer = await connection.head()
        except (Broken, Garbled) as error:
            text = f"the answer of the proxy {_authority(proxy)} is of no use: {error}"
            raise NoConnection(text) from error
        if answer.status != 200 or not connection.usable:
            raise NoConnection(
                f"the proxy {_authority(proxy)} answered {answer.status}"
            )

    async def _start_tls(self, connection: Connection, context: ssl.SSLContext) -> None:
        name = self._config.tls.server_name or self._server.hostname
        try:
            transport = await asyncio.get_running_loop().start_tls(
                connection.transport, connection, context, server_hostname=name
            )
        except OSError as error:
            raise _failure(error, self._server, peer="server") from error
        if transport is None:
            raise NoConnection(f"{_authority(self._server)}: the proxy hung up")
        connection.transport = transport


async def _dial(
    address: SplitResult,
    context: ssl.SSLContext | None,
    *,
    name: str | None = None,
    peer: str = "server",
) -> Connection:
    loop = asyncio.get_running_loop()
    connection = Connection(loop)
    secured = address.scheme == "https"
    try:
        # One address after the other: asyncio's race between them loses the socket
        # that has just won when the caller is cancelled at that moment.
        transport, _ = await loop.create_connection(
            lambda: connection,
            address.hostname or "",
            address.port or PORTS[address.scheme],
            ssl=context if secured else None,
            server_hostname=name if secured else None,
        )
    except OSError as error:
        raise _failure(error, address, peer=peer) from error
    except BaseException:
        connection.abort()  # it may just have been made
        raise
    _notice_death(transport.get_extra_info("socket"))
    return connection


def _failure(error: OSError, address: SplitResult, *, peer: str) -> NoConnection:
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message or reason(error)
        return BadCertificate(
            f"the {peer}'s certificate was not accepted ({why}); check "
            "certificate-authority and server in the kubeconfig"
        )
    if isinstance(error, ssl.SSLError):
        text = f"TLS could not be agreed on with the {peer} ({reason(error)})"
        return NoTls(text)
    whose = "the proxy " if peer == "proxy" else ""
    return NoConnection(f"{whose}{_authority(address)}: {reason(error)}")


def _authority(address: SplitResult) -> str:
    """Host and port, without the name and the password that may stand before them."""
    host = address.hostname or ""
    port = address.port or PORTS[address.scheme]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _login(proxy: SplitResult) -> list[tuple[str, str]]:
    """The credentials that the address of a proxy holds."""
    if proxy.username is None:
        return []
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return [("Proxy-Authorization", f"Basic {b64encode(pair.encode()).decode()}")]


def _notice_death(made: socket.socket) -> None:
    """Have the system notice a peer which is gone without a word."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000)
