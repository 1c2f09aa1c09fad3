"""One connection of HTTP/1.1 on asyncio, with at most one request under way.

What comes is put into one buffer; whoever reads takes it out from there, and the other
side is stopped when it is not taken. What goes out is written as fast as it is taken,
while the answer is already listened for.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial

from trimtab.client.wire import (
    HEAD_LIMIT,
    Body,
    Broken,
    Garbled,
    Head,
    parse_head,
    starts_well,
)

PIECE = 1 << 16
"""How much is read, and written, at a time."""
HIGH_WATER = 1 << 18
"""So many bytes that nobody has taken yet make the other side wait."""
NOTHING = memoryview(bytearray())


class _Rooms(threading.local):
    """Where the bytes of all connections of a thread's loop come in.

    One is enough: each piece is taken out before the loop reads the next.
    """

    def __init__(self) -> None:
        self.room = memoryview(bytearray(PIECE))


_ROOMS = _Rooms()


class Shut(Exception):
    """The connection was ended because the client was closed."""


class Connection(asyncio.BufferedProtocol):
    """See the module's first lines.

    Guarantees: at most ``HIGH_WATER`` and a piece of unread bytes are held.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.closed: asyncio.Future[None] = loop.create_future()
        """Done when the connection is no more, for whatever reason."""
        self.context: ssl.SSLContext | None = None
        """What it was verified with."""
        self._loop = loop
        self._room = _ROOMS.room
        self._data = bytearray()
        self._outgoing = NOTHING
        """What of a request has not been written yet."""
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._ended: Exception | None = None
        self._farewell = False
        """The other side has said that nothing more comes; else it just broke off."""
        self._paused = False
        self._full = False
        self.whole_lines = False
        """The body is lines of JSON, and its reader has no use for half of one."""
        self._pour: Callable[[], None] | None = None
        """Takes what has come at once; without one, a reader is woken."""

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    @transport.setter
    def transport(self, transport: asyncio.Transport) -> None:
        self._transport = transport  # TLS was started on the one before

    @property
    def usable(self) -> bool:
        """Whether another request may be sent.

        An answer that came unasked (some servers say 408 before they hang up) would
        be taken for the answer to the next request.
        """
        fresh = self._ended is None and not self._data and not self._outgoing
        return fresh and not self.transport.is_closing()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        had = len(self._data)
        self._data += self._room[:nbytes]
        full = len(self._data) > HIGH_WATER
        if self.whole_lines and not full and not self._ends_line(had):
            return  # the rest is on its way: to look once is enough
        if self._pour is not None:
            self._pour()
            return
        if full and not self._paused:
            self._paused = True
            self.transport.pause_reading()
        self._wake()

    def _ends_line(self, had: int) -> bool:
        """Whether what came ends a line, or a chunk that may have no more than that."""
        data = self._data
        return data.find(b"}\n", max(had - 1, 0)) >= 0 or data.endswith(b"\n\r\n")

    def eof_received(self) -> bool:
        self._farewell = _said_farewell(self.transport)
        self._end(Broken("the server hung up"))
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._end(Broken(_reason(error)))
        if not self.closed.done():
            self.closed.set_result(None)
        # TLS points back here; a circle, and its 256 KiB of buffers, would stay until
        # the collector comes by.
        self._transport = None
        self._room = NOTHING

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._pump()

    # What we call

    def send(self, head: bytes, body: bytes | None) -> None:
        """Begin to send a request; the rest leaves while the answer is waited for.

        A server may answer before it has read everything: the connection is not
        usable then.
        """
        if self._transport is None:
            return  # it was lost at once; who waits for the answer is told
        if not body or len(body) <= PIECE:
            self.transport.write(head + (body or b""))
        else:
            self.transport.write(head)
            self._outgoing = memoryview(body)
            self._pump()

    def _pump(self) -> None:
        while self._outgoing and not self._full and self._ended is None:
            piece, self._outgoing = self._outgoing[:PIECE], self._outgoing[PIECE:]
            self.transport.write(piece)

    async def head(self) -> Head:
        """The head of the next answer; preliminary ones are passed over."""
        while True:
            while (end := self._data.find(b"\r\n\r\n", 0, HEAD_LIMIT)) < 0:
                if len(self._data) >= HEAD_LIMIT:
                    raise Garbled("its headers do not end")
                if not starts_well(self._data):
                    raise Garbled("its first line is not that of an answer")
                await self._more()
            head = parse_head(bytes(self._data[:end]))
            del self._data[: end + 4]
            if head.status >= 200 or head.status == 101:
                return head

    async def take(self, body: Body) -> bytes:
        """What has come of a body, at least a byte unless it is done."""
        while not body.done:
            if self._data and (taken := body.take(self._data)):
                return taken
            if body.done:
                break
            try:
                await self._more()
            except Broken:
                self._check_end(body)
        return b""

    async def pump(self, body: Body, take: Callable[[bytes], None]) -> None:
        """Hand over what comes of a body as it comes, until it is done.

        Guarantees: ``take`` is called while the bytes come in, before anything else
        that waits for the loop, and in the context of who calls this: what it starts
        has their budget, not that of whoever opened the connection. Errors: also what
        ``take`` raises, which is then not called again.
        """
        failed: list[Exception] = []
        context = copy_context()

        def pour() -> None:
            try:
                if data := body.take(self._data):
                    take(data)
            except Exception as error:
                self._pour = None
                failed.append(error)
            if failed or body.done:
                self._wake()

        self._resume()
        self._pour = partial(context.run, pour)
        try:
            pour()
            while not (failed or body.done or self._ended):
                self._waiter = self._loop.create_future()
                await self._waiter
            if not (failed or body.done):
                pour()  # what was kept for the rest of its line
        finally:
            self._pour = None
        if failed:
            raise failed.pop()  # nothing is to hold it but who handles it
        if not body.done:
            self._check_end(body)

    def _check_end(self, body: Body) -> None:
        """The connection has ended: so has a body that says nothing of its length."""
        assert self._ended is not None
        if body.bounded or not self._farewell or not isinstance(self._ended, Broken):
            # A new one: its traceback leads to this connection.
            raise type(self._ended)(*self._ended.args)
        body.done = True

    def abort(self, error: Exception | None = None) -> None:
        """End the connection without a farewell; who reads from it gets ``error``.

        A peer that is gone would not answer a farewell, and keep us waiting for it.
        """
        self._end(error or Broken("the connection was closed"))
        self._outgoing = NOTHING
        if self._transport is not None:
            self._transport.abort()

    async def _more(self) -> None:
        """Wait for bytes; the error if there will be none."""
        had = len(self._data)
        self._resume()
        while len(self._data) == had:
            if self._ended is not None:
                # A new one: its traceback leads to this connection.
                raise type(self._ended)(*self._ended.args)
            self._waiter = self._loop.create_future()
            await self._waiter

    def _resume(self) -> None:
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def _end(self, error: Exception) -> None:
        if self._ended is None:
            self._ended = error
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def _said_farewell(transport: asyncio.Transport) -> bool:
    """Whether TLS was ended, too: else somebody on the way may have cut it short."""
    secured: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    try:
        return secured is None or not secured.read(1)
    except ssl.SSLError:
        return False


def _reason(error: Exception | None) -> str:
    return "the server hung up" if error is None else reason(error)


def reason(error: Exception) -> str:
    """What an error says, as a part of a sentence."""
    text = getattr(error, "strerror", None) or str(error)
    return " ".join(text.split())[:300] or type(error).__name__
