"""HTTPS: one POST to a webhook, over TLS that is verified, with a bounded answer.

Connections are kept for the next call to the same place. What goes wrong is told in
the words of Go's HTTP client, which people look for.
"""

from __future__ import annotations

import asyncio
import ssl
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

from trimtab.client.connection import Connection
from trimtab.client.wire import Body, Broken, Garbled, request_bytes
from trimtab.embedded.calls import Call, CallAnswer

KEPT = 32
"""So many connections are kept for later; the oldest one goes first."""
IDLE_SECONDS = 30.0
AGENT = "kube-apiserver-admission"

Place = tuple[str, tuple[str, int] | None, bytes]


class TooLong(Exception):
    """An answer that is longer than anybody has a use for."""


class Https:
    """Makes calls, and keeps connections for more of them.

    Flow: one for each driver; ``close`` at its end.
    """

    def __init__(self) -> None:
        self._idle: dict[Place, tuple[Connection, asyncio.TimerHandle]] = {}

    async def __call__(self, call: Call, body: bytes) -> CallAnswer:
        """Send a review and read what comes back; what fails is told as an answer."""
        url = urlsplit(call.url)
        place = (url.netloc, call.address, call.ca)
        try:
            return await self._sent(call, url, place, body)
        except TooLong as error:
            return CallAnswer(error=str(error))
        except TimeoutError:
            raise
        except (OSError, Broken, Garbled) as error:
            return CallAnswer(error=f'Post "{call.url}": {told(error, call, url)}')

    def close(self) -> None:
        """End the connections that nobody uses."""
        while self._idle:
            _, (connection, timer) = self._idle.popitem()
            timer.cancel()
            connection.abort()

    async def _sent(
        self, call: Call, url: SplitResult, place: Place, body: bytes
    ) -> CallAnswer:
        target = f"{url.path}?{url.query}" if url.query else url.path
        headers = (
            ("Host", url.netloc),
            ("User-Agent", AGENT),
            ("Accept", "application/json, */*"),
            ("Content-Type", "application/json"),
        )
        head = request_bytes("POST", target, headers, body)
        kept = self._take(place)
        if kept is not None:
            try:
                return await self._exchange(kept, place, head, body, call.most)
            except Broken:
                pass  # it was ended while nobody looked; a new one will tell
        connection = await _dialled(call, url)
        return await self._exchange(connection, place, head, body, call.most)

    async def _exchange(
        self,
        connection: Connection,
        place: Place,
        head: bytes,
        body: bytes,
        most: int,
    ) -> CallAnswer:
        done = False
        try:
            connection.send(head, body)
            answer = await connection.head()
            reading = Body(answer, method="POST")
            read = bytearray()
            while data := await connection.take(reading):
                read += data
                if len(read) > most:
                    raise TooLong(f"response body is too large: over {most} bytes")
            done = answer.persistent
            media = "".join(answer.all("content-type"))
            return CallAnswer(status=answer.status, media=media, body=bytes(read))
        finally:
            if done and connection.usable:
                self._keep(place, connection)
            else:
                connection.abort()

    def _take(self, place: Place) -> Connection | None:
        connection, timer = self._idle.pop(place, (None, None))
        if timer is not None:
            timer.cancel()
        if connection is not None and not connection.usable:
            connection.abort()
            return None
        return connection

    def _keep(self, place: Place, connection: Connection) -> None:
        before = self._idle.pop(place, None)
        if before is None and len(self._idle) >= KEPT:
            before = self._idle.pop(next(iter(self._idle)))
        if before is not None:
            before[1].cancel()
            before[0].abort()
        loop = asyncio.get_running_loop()
        timer = loop.call_later(IDLE_SECONDS, self._end, place)
        self._idle[place] = (connection, timer)

    def _end(self, place: Place) -> None:
        connection, _ = self._idle.pop(place)
        connection.abort()


async def _dialled(call: Call, url: SplitResult) -> Connection:
    loop = asyncio.get_running_loop()
    connection = Connection(loop)
    host, port = call.address or (url.hostname or "", url.port or 443)
    context = _context(call.ca)
    try:
        await loop.create_connection(
            lambda: connection,
            host,
            port,
            ssl=context,
            server_hostname=url.hostname or "",
        )
    except BaseException:
        connection.abort()
        raise
    return connection


@lru_cache(maxsize=64)
def _context(ca: bytes) -> ssl.SSLContext:
    """What verifies certificates, by the given authorities or by the system's."""
    if not ca:
        return ssl.create_default_context()
    return ssl.create_default_context(cadata=ca.decode("ascii", errors="replace"))


def ca_problem(ca: bytes) -> str:
    """Why nothing can be verified by some certificates; empty if it can."""
    if ca and b"-----BEGIN CERTIFICATE-----" not in ca:
        return "unable to parse bytes as PEM block"
    try:
        _context(ca)
    except (ssl.SSLError, ValueError):
        return "failed to parse certificate: x509: malformed certificate"
    return ""


def told(error: Exception, call: Call, url: SplitResult) -> str:
    """What went wrong, as Go says it."""
    host, port = call.address or (url.hostname or "", url.port or 443)
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: {_mistrust(error, url)}"
    if isinstance(error, ssl.SSLError):
        if "WRONG_VERSION_NUMBER" in str(error) or "HTTP_REQUEST" in str(error):
            return "http: server gave HTTP response to HTTPS client"
        return f"tls: {' '.join(str(error).split())}"
    if isinstance(error, ConnectionRefusedError):
        return f"dial tcp {host}:{port}: connect: connection refused"
    if isinstance(error, ConnectionResetError):
        return "read: connection reset by peer"
    if isinstance(error, Broken | ConnectionError):
        return "EOF"
    if isinstance(error, Garbled):
        return f"net/http: HTTP/1.x transport connection broken: {error}"
    if isinstance(error, OSError) and error.args and "Name" in str(error):
        return f"dial tcp: lookup {host}: no such host"
    text = getattr(error, "strerror", None) or str(error)
    return f"dial tcp {host}:{port}: {text}"


def _mistrust(error: ssl.SSLCertVerificationError, url: SplitResult) -> str:
    code = error.verify_code
    if code in (18, 19, 20, 21):
        return "x509: certificate signed by unknown authority"
    if code == 10:
        return "x509: certificate has expired or is not yet valid"
    if code == 62:
        return (
            "x509: certificate is not valid for any names, but wanted to match "
            f"{url.hostname}"
        )
    if code == 64:
        return (
            f"x509: cannot validate certificate for {url.hostname} because it doesn't "
            "contain any IP SANs"
        )
    return f"x509: {error.verify_message}"
