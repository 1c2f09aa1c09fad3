"""Calling: kept-alive HTTP connections to many servers, within one bound.

A gateway calls thousands of workers, a client one gateway or two: each is a *place*,
and a connection to it is kept for the next call. What was idle the longest makes room.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import msgspec

from trimtab.client import secure
from trimtab.client.connection import Connection, reason
from trimtab.client.credentials import TlsMaterial
from trimtab.client.errors import ConfigError, TrimtabError
from trimtab.client.wire import Body, Broken, Garbled, Head, request_bytes

KEEP: Final = 100.0
"""Seconds; below those after which our servers drop an idle connection."""
IDLE: Final = 512
CONTEXTS: Final = 64
ANSWER: Final = 4 * 1024 * 1024


class NoReply(TrimtabError):
    """There was no usable answer. ``sent`` tells whether the request may have left,
    and ``late`` that only the time was up."""

    def __init__(self, message: str, *, sent: bool, late: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
        self.late = late


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A server, the name that its certificate must have, and whom to trust for it."""

    host: str
    port: int
    name: str
    ca: bytes | None = None
    """PEM; None means the authorities that the system trusts."""
    tls: bool = True
    """False where the other side is a pod that speaks plain HTTP."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name} ({host}:{self.port})"


class Reply(msgspec.Struct, frozen=True):
    """An answer, read as a whole."""

    status: int
    body: bytes
    head: Head


class Caller:
    """Sends requests to places; see the module's first lines.

    Guarantees: every call ends within its time. A call that is ``safe`` to repeat is
    sent once more if the connection that was kept for it turns out to be dead.

    Errors: :class:`NoReply`.
    """

    def __init__(self, *, idle: int = IDLE) -> None:
        self._limit = idle
        self._idle: dict[Connection, tuple[Place, asyncio.TimerHandle]] = {}
        """The one that was idle the longest is the first."""
        self._by_place: dict[Place, list[Connection]] = {}
        self._contexts: dict[bytes | None, ssl.SSLContext] = {}
        self._open: set[Connection] = set()
        self.opened = self.reused = 0

    async def call(
        self,
        place: Place,
        method: str,
        path: str,
        *,
        headers: tuple[tuple[str, str], ...] = (),
        body: bytes | None = None,
        within: float,
        dial: float | None = None,
        safe: bool = True,
        limit: int = ANSWER,
    ) -> Reply:
        """One request and its whole answer; ``dial`` is for a new connection alone."""
        data = request_bytes(method, path, (("Host", place.name), *headers), body)
        sent = False
        try:
            async with asyncio.timeout(within):
                connection = self._kept(place)
                if connection is not None:
                    sent = True
                    try:
                        return await self._exchange(
                            connection, place, data, body, limit
                        )
                    except Broken:
                        if not safe:
                            raise
                sent = False
                async with asyncio.timeout(dial):
                    connection = await self._dial(place)
                sent = True
                return await self._exchange(connection, place, data, body, limit)
        except TimeoutError:
            spent = within if sent or dial is None else min(dial, within)
            text = f"{place} did not answer within {spent:g} s"
            raise NoReply(text, sent=sent, late=True) from None
        except (Broken, Garbled, OSError, ConfigError) as error:
            text = f"{place} gave no answer: {reason(error)}"
            raise NoReply(text, sent=sent) from error

    async def lines(
        self,
        place: Place,
        path: str,
        *,
        headers: tuple[tuple[str, str], ...] = (),
        within: float,
    ) -> AsyncIterator[bytes]:
        """The lines of an answer that goes on; ``within`` is for its beginning."""
        data = request_bytes("GET", path, (("Host", place.name), *headers), None)
        connection: Connection | None = None
        try:
            async with asyncio.timeout(within):
                connection = await self._dial(place)
                connection.send(data, None)
                head = await connection.head()
            body, rest = Body(head, method="GET"), b""
            while piece := await connection.take(body):
                *whole, rest = (rest + piece).split(b"\n")
                for line in whole:
                    yield line
            if head.status != 200:
                raise NoReply(f"{place} answered {head.status}", sent=True)
        except TimeoutError:
            raise NoReply(f"{place} did not answer", sent=True) from None
        except (Broken, Garbled, OSError) as error:
            text = f"{place} broke off: {reason(error)}"
            raise NoReply(text, sent=True) from error
        finally:
            if connection is not None:
                connection.abort()

    async def close(self) -> None:
        """End every connection."""
        closing = [connection.closed for connection in self._open]
        for connection in tuple(self._open):
            connection.abort()
        if closing:
            await asyncio.wait(closing)

    def context(self, ca: bytes | None) -> ssl.SSLContext:
        """What a server's certificate is verified with; made once for an authority."""
        if (found := self._contexts.get(ca)) is None:
            found = TlsMaterial(ca=ca).context()
            if len(self._contexts) >= CONTEXTS:
                del self._contexts[next(iter(self._contexts))]
            self._contexts[ca] = found
        return found

    async def _exchange(
        self,
        connection: Connection,
        place: Place,
        data: bytes,
        body: bytes | None,
        limit: int,
    ) -> Reply:
        whole = False
        try:
            connection.send(data, body)
            head = await connection.head()
            method = data[:4].decode().strip()
            pieces, size, rest = [], 0, Body(head, method=method)
            while piece := await connection.take(rest):
                size += len(piece)
                if size > limit:
                    raise Garbled(f"the answer is longer than {limit} bytes")
                pieces.append(piece)
            whole = head.persistent
            return Reply(head.status, b"".join(pieces), head)
        finally:
            self._give_back(connection, place, whole=whole)

    def _kept(self, place: Place) -> Connection | None:
        kept = self._by_place.get(place, [])
        while kept:
            connection = kept[-1]
            self._forget(connection)
            if connection.usable:
                self.reused += 1
                return connection
            connection.abort()
        return None

    async def _dial(self, place: Place) -> Connection:
        loop = asyncio.get_running_loop()
        connection = Connection(loop)
        try:
            if place.tls:
                await secure.connect(
                    connection,
                    place.host,
                    place.port,
                    context=self.context(place.ca),
                    name=place.name,
                )
            else:
                await loop.create_connection(lambda: connection, place.host, place.port)
        except BaseException:
            connection.abort()
            raise
        self.opened += 1
        self._open.add(connection)
        connection.closed.add_done_callback(lambda _: self._lost(connection))
        return connection

    def _lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        self._forget(connection)

    def _give_back(self, connection: Connection, place: Place, *, whole: bool) -> None:
        if not whole or not connection.usable:
            connection.abort()
            return
        if len(self._idle) >= self._limit:
            oldest = next(iter(self._idle))
            self._forget(oldest)
            oldest.abort()
        loop = asyncio.get_running_loop()
        timer = loop.call_later(KEEP, connection.abort)
        self._idle[connection] = place, timer
        self._by_place.setdefault(place, []).append(connection)

    def _forget(self, connection: Connection) -> None:
        place, timer = self._idle.pop(connection, (None, None))
        if place is None or timer is None:
            return
        timer.cancel()
        kept = self._by_place[place]
        with suppress(ValueError):
            kept.remove(connection)
        if not kept:
            del self._by_place[place]
