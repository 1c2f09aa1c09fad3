"""A relay between a replica and the server, whose connections fail in every way."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import Self
from urllib.parse import urlsplit

HOST = "127.0.0.1"
PIECE = 1 << 16


class Link:
    """One connection through the relay."""

    def __init__(self) -> None:
        self.flows = asyncio.Event()
        """Cleared while nothing comes through, in neither direction."""
        self.flows.set()
        self.ends: list[asyncio.StreamWriter] = []

    def cut(self) -> None:
        """End both halves at once, without a farewell."""
        for end in self.ends:
            end.transport.abort()


class Relay:
    """Use it as ``async with Relay(server) as relay``; ``relay.server`` leads there."""

    def __init__(self, server: str) -> None:
        self._target = urlsplit(server)
        self._tasks: set[asyncio.Task[None]] = set()
        self.links: dict[Link, None] = {}
        """The connections that are open."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, HOST, 0)
        port = self._server.sockets[0].getsockname()[1]
        self.server = f"{self._target.scheme}://{HOST}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self, random: Random, *, all: bool) -> int:
        """End one connection, or all; how many."""
        links = list(self.links)
        if links and not all:
            links = [random.choice(links)]
        for link in links:
            link.cut()
        return len(links)

    def silence(self) -> list[Link]:
        """Nothing more comes through what is open; nobody is told. New ones work."""
        links = list(self.links)
        for link in links:
            link.flows.clear()
        return links

    def mend(self) -> None:
        """What was held back comes through now."""
        for link in self.links:
            link.flows.set()

    async def _connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        link = Link()
        link.ends.append(writer)
        self.links[link] = None
        try:
            # The streams of asyncio complain about a task that ends as cancelled.
            with suppress(ConnectionError, asyncio.CancelledError):
                await self._serve(link, reader, writer)
        finally:
            self._tasks.discard(task)
            self.links.pop(link, None)
            link.cut()

    async def _serve(
        self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        there_reader, there = await asyncio.open_connection(
            self._target.hostname, self._target.port
        )
        link.ends.append(there)
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy(link, reader, there))
            group.create_task(_copy(link, there_reader, writer))


async def _copy(
    link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(PIECE):
            await link.flows.wait()
            writer.write(data)
            await writer.drain()
    # A silent connection hides its end, too: the other side must find out by itself.
    await link.flows.wait()
    link.cut()
