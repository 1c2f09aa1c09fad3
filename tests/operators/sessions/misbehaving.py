"""A server that answers as no runner should, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trimtab.operators.sessions.calling import Runner

GIGABYTE = 1 << 30
HOST = "127.0.0.1"


class Server:
    """Answers every request in one way, and counts."""

    def __init__(self, way: str) -> None:
        self.way = way
        self.connections = 0
        self.requests = 0
        self.sent = 0
        """Bytes of bodies that were taken from it."""
        self.port = 0

    def runner(self, name: str = "mine", *, token: str = "t0ken") -> Runner:
        return Runner(key=("team", name), host=HOST, port=self.port, token=token)

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = 0
                for line in head.decode().lower().split("\r\n"):
                    if line.startswith("content-length:"):
                        length = int(line.partition(":")[2])
                await reader.readexactly(length)
                self.requests += 1
                await self._answer(writer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        match self.way:
            case "good":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            case "excuse":
                body = b'{"error": "the clone failed"}'
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
                )
                writer.write(body)
            case "failing":
                body = b'{"detail": "no\\u0000 disk\\nleft"}'
                writer.write(
                    b"HTTP/1.1 500 Bad\r\nContent-Length: %d\r\n\r\n" % len(body)
                )
                writer.write(body)
            case "giant":
                head = b"HTTP/1.1 500 Bad\r\nContent-Length: %d\r\n\r\n" % GIGABYTE
                writer.write(head)
                await self._pour(writer)
            case "endless":
                writer.write(b"HTTP/1.1 500 Bad\r\nConnection: close\r\n\r\n")
                await self._pour(writer)
            case "garbage":
                writer.write(b"\x00\xff no protocol at all \r\n\r\n")
            case "hangs up":
                writer.close()
            case "silent":
                await asyncio.Event().wait()
        await writer.drain()

    async def _pour(self, writer: asyncio.StreamWriter) -> None:
        piece = b"x" * (1 << 14)
        while self.sent < GIGABYTE:
            writer.write(piece)
            await writer.drain()
            self.sent += len(piece)


@asynccontextmanager
async def misbehaving(way: str) -> AsyncIterator[Server]:
    """A server of one kind, for the length of a block."""
    made = Server(way)
    async with asyncio.TaskGroup() as group:
        tasks: list[asyncio.Task[None]] = []

        def connected(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            tasks.append(group.create_task(made.serve(reader, writer)))

        server = await asyncio.start_server(connected, HOST, 0, limit=1 << 16)
        made.port = server.sockets[0].getsockname()[1]
        try:
            yield made
        finally:
            server.close()
            for task in tasks:
                task.cancel()
