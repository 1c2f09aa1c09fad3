"""A relay on loopback between a client and a server, which can be cut or be slow."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

HOST = "127.0.0.1"


class Relay:
    """Use it as ``async with Relay(server) as relay``; ``relay.server`` leads there.

    While it is ``cut``, connections stay open and nothing comes through: nobody is
    told. ``delay`` is added to each piece, in each direction.
    """

    def __init__(self, server: str) -> None:
        self._target = urlsplit(server)
        self.delay = 0.0
        self._through = asyncio.Event()
        self._through.set()
        self._tasks: set[asyncio.Task[None]] = set()

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

    def cut(self) -> None:
        self._through.clear()

    def mend(self) -> None:
        self._through.set()

    async def _connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        there_reader, there = await asyncio.open_connection(
            self._target.hostname, self._target.port
        )
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._copy(reader, there))
                group.create_task(self._copy(there_reader, writer))
        finally:
            there.transport.abort()

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                await self._through.wait()
                await asyncio.sleep(self.delay)
                writer.write(data)
        writer.transport.abort()
