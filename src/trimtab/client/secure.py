"""A TLS connection on a socket of its own: OpenSSL reads from it what has come.

asyncio's own transport has TLS work in memory. That is right for what is no socket;
here it would take a quarter of a megabyte for each connection, twice that where a list
came through it, and a good part of the time of an event.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

RECORD = 1 << 14
"""What one record of TLS holds at most. A read into so much room takes all of it, so
nothing waits inside of OpenSSL that the loop does not know of."""
ROOMS = 4
"""How many rooms full of bytes may come before the loop has its turn."""
HIGH_WATER = 1 << 16
"""So many bytes that the other side has not taken make the writer wait."""
_LATER = (ssl.SSLWantReadError, ssl.SSLWantWriteError)


async def connect(
    protocol: asyncio.BufferedProtocol,
    host: str,
    port: int,
    *,
    context: ssl.SSLContext,
    name: str,
) -> Secure:
    """Connect to a server, and have its certificate verified for ``name``.

    Guarantees: when it fails or is cancelled, no socket is left behind.
    Errors: ``OSError``; the certificate's and TLS's own are among its subclasses.
    """
    loop = asyncio.get_running_loop()
    plain = await _connected(loop, host, port)
    return await _greeted(
        loop, _wrapped(plain, context, server_hostname=name), protocol
    )


async def accept(
    plain: socket.socket, protocol: asyncio.BufferedProtocol, *, context: ssl.SSLContext
) -> Secure:
    """Be the server on a connection that was just accepted.

    Guarantees and errors: as those of :func:`connect`.
    """
    made = _wrapped(plain, context, server_side=True)
    return await _greeted(asyncio.get_running_loop(), made, protocol)


def _wrapped(
    plain: socket.socket, context: ssl.SSLContext, **how: Any
) -> ssl.SSLSocket:
    """A connection with TLS on it, before anything was said."""
    try:
        plain.setblocking(False)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return context.wrap_socket(
            plain, do_handshake_on_connect=False, suppress_ragged_eofs=False, **how
        )
    except BaseException as error:
        plain.close()
        # If the other side is gone already, the socket was taken over, and lost.
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if isinstance(lost := frame.f_locals.get("self"), ssl.SSLSocket):
                lost.close()
        raise


async def _greeted(
    loop: asyncio.AbstractEventLoop,
    made: ssl.SSLSocket,
    protocol: asyncio.BufferedProtocol,
) -> Secure:
    try:
        await _shake_hands(loop, made)
    except BaseException:
        made.close()
        raise
    return Secure(loop, made, protocol)


async def _connected(
    loop: asyncio.AbstractEventLoop, host: str, port: int
) -> socket.socket:
    """A socket to the first address that answers."""
    failures: list[OSError] = []
    for family, kind, number, _, address in await _addresses(loop, host, port):
        made = socket.socket(family, kind, number)
        try:
            made.setblocking(False)
            await loop.sock_connect(made, address)
        except OSError as error:
            made.close()
            failures.append(error)
        except BaseException:
            made.close()
            raise
        else:
            return made
    raise failures[0] if failures else OSError(f"there is no address of {host}")


async def _addresses(
    loop: asyncio.AbstractEventLoop, host: str, port: int
) -> Sequence[Any]:
    """Where a host is. What is an address already needs no thread to be asked for."""
    try:
        return socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    except socket.gaierror:
        return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)


async def _shake_hands(loop: asyncio.AbstractEventLoop, made: ssl.SSLSocket) -> None:
    while True:
        try:
            return made.do_handshake()
        except ssl.SSLWantReadError:
            watch, leave = loop.add_reader, loop.remove_reader
        except ssl.SSLWantWriteError:
            watch, leave = loop.add_writer, loop.remove_writer
        ready = loop.create_future()
        watch(made, _done, ready)
        try:
            await ready
        finally:
            leave(made)


def _done(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


class Secure(asyncio.Transport):
    """What a protocol reads from and writes to; see the module's first lines.

    Guarantees: the protocol hears of the end once, after the last call that led to it
    has returned; then the socket is closed and nothing here points to it any more.
    Assumptions: the protocol's room has place for a record.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        made: ssl.SSLSocket,
        protocol: asyncio.BufferedProtocol,
    ) -> None:
        super().__init__({"socket": made, "ssl_object": made})
        self._loop = loop
        self._socket = made
        self._protocol = protocol
        self._backlog = bytearray()
        """What was written and has not left; nothing overtakes it."""
        self._full = False
        self._reading = False
        self._closing = False
        self._leaving = False
        """The end comes when all that was written has left."""
        protocol.connection_made(self)
        self.resume_reading()

    def is_closing(self) -> bool:
        return self._closing or self._leaving

    # Reading

    def pause_reading(self) -> None:
        self._reading = False
        self._loop.remove_reader(self._socket)

    def resume_reading(self) -> None:
        if not self.is_closing():
            self._reading = True
            self._loop.add_reader(self._socket, self._read)

    def _read(self) -> None:
        """Hand over what has come, but let others have their turn."""
        for _ in range(ROOMS):
            room: Any = self._protocol.get_buffer(-1)
            filled, failed = self._fill(room)
            if filled:
                self._protocol.buffer_updated(filled)
            if failed is not None:
                self._failed(failed)
            elif filled == len(room) and self._reading and not self._closing:
                continue
            return

    def _fill(self, room: memoryview) -> tuple[int, OSError | None]:
        """Read records until there is no whole one; how much, and what ended it."""
        filled = 0
        try:
            while len(room) - filled >= RECORD:
                count: Any = self._socket.read(RECORD, room[filled:])
                if not count:
                    return filled, ssl.SSLEOFError("the server said that it ends")
                filled += count
                if count < RECORD:
                    break  # after a full one there is likely more; to ask costs
        except _LATER:
            pass
        except OSError as error:
            return filled, error
        return filled, None

    def _failed(self, error: OSError) -> None:
        if self._closing:
            return
        if isinstance(error, ssl.SSLEOFError):  # said properly, or just broken off
            self._protocol.eof_received()
            self._end(None)
        else:
            self._end(error)

    # Writing

    def write(self, data: Any) -> None:
        if self.is_closing():
            return
        if not self._backlog:
            data = memoryview(data)[self._sent(data) :]
            if not data or self._closing:
                return
            self._loop.add_writer(self._socket, self._flush)
        self._backlog += data
        if len(self._backlog) > HIGH_WATER and not self._full:
            self._full = True
            self._protocol.pause_writing()

    def _sent(self, data: Any) -> int:
        """Send what the system takes: all, or nothing that anybody could see."""
        try:
            return self._socket.send(data)
        except _LATER:
            return 0
        except OSError as error:
            self._end(error)
            return 0

    def _flush(self) -> None:
        # OpenSSL wants to see again what it could not send, which may be longer now.
        del self._backlog[: self._sent(self._backlog)]
        if self._backlog or self._closing:
            return
        self._loop.remove_writer(self._socket)
        if self._leaving:
            self._leave()
        elif self._full:
            self._full = False
            self._protocol.resume_writing()

    # The end

    def close(self) -> None:
        """Read no more, and end the connection when what was written has left."""
        if self._backlog and not self._closing:
            self._leaving = True
            self.pause_reading()
        else:
            self._leave()

    def abort(self) -> None:
        """End the connection at once, without a farewell."""
        self._end(None)

    def _end(self, error: Exception | None) -> None:
        if self._closing:
            return
        self._closing = True
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._loop.call_soon(self._lost, error)

    def _leave(self) -> None:
        """End it, and tell the other side that this is all."""
        if not self._closing:
            with suppress(OSError):
                self._socket.unwrap()
            self._end(None)

    def _lost(self, error: Exception | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self._socket.close()
            del self._protocol, self._backlog
