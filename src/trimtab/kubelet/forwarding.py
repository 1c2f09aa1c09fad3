"""Forwarding: kubectl's connections to ports of a pod, through one WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from trimtab.kubelet import spdy

CHUNK = 1 << 15

Send = Callable[[bytes], Awaitable[None]]
Connect = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class Pair:
    """One forwarded connection: a stream for errors, one for data."""

    def __init__(self) -> None:
        self.error = 0
        self.data = 0
        self.port = 0
        self.inbox: asyncio.Queue[bytes] = asyncio.Queue(64)


class Forwarding:
    """All connections of one session.

    Flow: ``receive`` what the client sends, in order, within the group's life.
    """

    def __init__(
        self, group: asyncio.TaskGroup, *, send: Send, connect: Connect
    ) -> None:
        self._group = group
        self._send = send
        self._connect = connect
        self._framing = spdy.Framing()
        self._pairs: dict[str, Pair] = {}
        self._by_stream: dict[int, Pair] = {}

    async def receive(self, data: bytes) -> None:
        """Errors: :class:`spdy.Malformed`."""
        for event in self._framing.receive(data):
            match event:
                case spdy.Opened():
                    await self._opened(event)
                case spdy.Data():
                    await self._data(event)
                case spdy.Dropped(stream=stream):
                    pair = self._by_stream.pop(stream, None)
                    if pair is not None and stream == pair.data:
                        await pair.inbox.put(b"")
                case spdy.Echo(frame=frame):
                    await self._send(frame)

    async def _opened(self, event: spdy.Opened) -> None:
        headers = event.headers
        pair = self._pairs.setdefault(headers.get("requestid", ""), Pair())
        port = headers.get("port", "")
        pair.port = int(port) if port.isdecimal() else 0
        self._by_stream[event.stream] = pair
        await self._send(self._framing.opened(event.stream))
        if headers.get("streamtype") == "error":
            pair.error = event.stream
        else:
            pair.data = event.stream
        if pair.error and pair.data:
            self._pairs.pop(headers.get("requestid", ""), None)
            self._group.create_task(self._carry(pair))

    async def _data(self, event: spdy.Data) -> None:
        pair = self._by_stream.get(event.stream)
        if pair is None or event.stream != pair.data:
            return
        if event.content:
            await pair.inbox.put(event.content)
        if event.finished:
            await pair.inbox.put(b"")

    async def _carry(self, pair: Pair) -> None:
        """One connection, from the pod's port to its end in both directions."""
        framing = self._framing
        try:
            reader, writer = await self._connect(pair.port)
        except OSError as error:
            text = f"error forwarding port {pair.port} to pod: {error}"
            await self._send(framing.data(pair.error, text.encode(), finish=True))
            await self._send(framing.data(pair.data, b"", finish=True))
            return
        outward = self._group.create_task(self._write(pair, writer))
        try:
            while data := await reader.read(CHUNK):
                await self._send(framing.data(pair.data, data))
        except OSError:
            pass
        finally:
            outward.cancel()
            writer.close()
            with suppress(ConnectionError):
                await self._send(framing.data(pair.data, b"", finish=True))
                await self._send(framing.data(pair.error, b"", finish=True))
            self._by_stream.pop(pair.data, None)
            self._by_stream.pop(pair.error, None)

    async def _write(self, pair: Pair, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await pair.inbox.get():
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
