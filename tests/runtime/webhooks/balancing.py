"""A balancer on loopback: one port, and each connection goes to the next replica."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from trimtab.runtime.manager import Manager


class Balancer:
    """Where it listens, and the replicas that it sends connections to in turn."""

    def __init__(self) -> None:
        self.port = 0
        self.replicas: list[Manager] = []
        self.taken = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    async def connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._through(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _through(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        webhooks = self.replicas[self.taken % len(self.replicas)].webhooks
        assert webhooks is not None
        self.taken += 1
        there, out = await asyncio.open_connection("127.0.0.1", webhooks.server.port)
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy(reader, out))
            group.create_task(_copy(there, writer))

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def balancing() -> AsyncIterator[Balancer]:
    balancer = Balancer()
    server = await asyncio.start_server(balancer.connected, "127.0.0.1", 0)
    balancer.port = server.sockets[0].getsockname()[1]
    try:
        yield balancer
    finally:
        server.close()
        await balancer.end()
