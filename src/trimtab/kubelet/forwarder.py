"""The forwarder: a port on the loopback for each port of a Service, to its pods."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

logger = logging.getLogger("trimtab.kubelet")

CHUNK = 1 << 16
CONNECT_SECONDS = 5.0

Place = tuple[str, int]
"""An address and a port."""


class Forwarder:
    """Listens where it is told to, and carries each connection to one of its targets.

    Flow: ``route`` with all that is wished for, as often as that changes; ``close``.

    Guarantees: a target that does not answer is passed over for the next one; those
    that go on are not disturbed by a change.
    """

    def __init__(self, *, problem: Callable[[Place, OSError], None]) -> None:
        self._problem = problem
        self._servers: dict[Place, asyncio.Server | None] = {}
        self._targets: dict[Place, Sequence[Place]] = {}
        self._turns: dict[Place, int] = {}

    async def route(self, wanted: Mapping[Place, Sequence[Place]]) -> None:
        """Listen at these places and no others; each has the targets that are well."""
        for gone in self._servers.keys() - wanted.keys():
            server = self._servers.pop(gone)
            self._turns.pop(gone, None)
            if server is not None:
                server.close()
        self._targets = dict(wanted)
        for place in wanted.keys() - self._servers.keys():
            self._servers[place] = await self._listen(place)

    async def close(self) -> None:
        await self.route({})

    async def _listen(self, place: Place) -> asyncio.Server | None:
        async def serve(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            with suppress(OSError, asyncio.CancelledError):
                await self._carry(place, reader, writer)
            writer.close()

        try:
            return await asyncio.start_server(serve, *place)
        except OSError as error:
            self._problem(place, error)
            return None

    async def _carry(
        self, place: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One connection, to the next target whose turn it is."""
        targets = self._targets.get(place, ())
        turn = self._turns.get(place, 0)
        self._turns[place] = turn + 1
        for number in range(len(targets)):
            target = targets[(turn + number) % len(targets)]
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    there = await asyncio.open_connection(*target)
            except (OSError, TimeoutError):
                continue
            try:
                await _both(reader, writer, *there)
            finally:
                there[1].close()
            return


async def _both(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    other_reader: asyncio.StreamReader,
    other_writer: asyncio.StreamWriter,
) -> None:
    """Copy until both ends are closed; one that breaks breaks the other."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy(reader, other_writer))
            group.create_task(_copy(other_reader, writer))
    except* OSError:
        pass


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
