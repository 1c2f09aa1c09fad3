"""Churn: sessions that begin, work and end for a long time, and what memory that takes.

There is no node: this program says of each pod that it is ready, answers for its
runner, and ends it. All else is real. What is looked for is not how much memory the
operator has, but whether it has more and more of it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from random import Random
from statistics import median

from bench.board import sessions as board
from bench.sessions import platform
from bench.sessions.measuring import Key, Site, site
from bench.sessions.operating import Operator, operating
from bench.sessions.platform import Plain, Scale
from trimtab.api.times import rfc3339
from trimtab.client import ApiError, Client
from trimtab.operators.sessions.kinds import APP, DESIRED, TERMINAL, AgenticSession
from trimtab.operators.sessions.names import pod_name
from trimtab.testing.waiting import eventually

ADDRESS, PORT = "127.0.0.9", 8001
"""Where all runners are."""
PEOPLE = 6
"""Sessions that are lived through at once."""
EVERY = 10.0
"""Seconds between two looks at the memory."""
GROWTH = 4.0
"""MiB that the last quarter may have over the second one: the first is for caches."""

STAY = 20
"""Sessions of each that stay when they are over; the oldest goes for the next one."""
UNDONE = 0.05
"""The share of sessions that may not come to their end; with more it shows nothing."""


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Every runner: whatever it is asked, it has done it."""
    with suppress(OSError, asyncio.IncompleteReadError):
        while head := await reader.readuntil(b"\r\n\r\n"):
            for line in head.lower().splitlines():
                if line.startswith(b"content-length:"):
                    await reader.readexactly(int(line.partition(b":")[2]))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()
    writer.close()


class Life:
    """One person's sessions, one after the other."""

    def __init__(self, here: Site, number: int) -> None:
        self._client: Client = here.client
        self._scale = here.scale
        self._random = Random(number)
        self._number = number
        self._over: deque[Key] = deque()
        self.lived = 0
        self.failed = 0

    async def live(self, ends: float) -> None:
        while time.monotonic() < ends:
            try:
                await self._one()
            except (ApiError, AssertionError):
                self.failed += 1  # a server that is slow now and then is no finding
            self.lived += 1

    async def _one(self) -> None:
        name = f"churn-{self._number}-{self.lived}"
        where = board.namespace(self._random.randrange(self._scale.namespaces))
        key = (where, name)
        body = platform.session(self._scale, 1).body
        await self._client.create(
            {**body, "metadata": {"name": name, "namespace": where}}, manager="backend"
        )
        await self._runs(key)
        for _ in range(self._random.randrange(3)):
            await self._works(key)
        if self._random.random() < 0.3:
            await self._ends(key)
        else:
            await self._command(key, "Stopped")
        await self._until(key, *TERMINAL)
        if self._random.random() < 0.3:
            await self._command(key, "Running")
            await self._runs(key)
            await self._command(key, "Stopped")
            await self._until(key, *TERMINAL)
        self._over.append(key)
        if len(self._over) > STAY:
            where, name = self._over.popleft()
            await self._client.delete(AgenticSession, name, namespace=where)

    async def _runs(self, key: Key) -> None:
        await self._until(key, "Creating")
        since = {"startedAt": rfc3339(datetime.now(UTC))}
        await self._pod(key, "Running", {"running": since}, ready=True)
        await self._until(key, "Running")

    async def _works(self, key: Key) -> None:
        """The backend writes that something was done."""
        body = {"status": {"lastActivityTime": rfc3339(datetime.now(UTC))}}
        await self._client.patch(
            AgenticSession, key[1], body, namespace=key[0], subresource="status"
        )

    async def _ends(self, key: Key) -> None:
        ended = {"exitCode": 0, "reason": "Completed"}
        await self._pod(key, "Succeeded", {"terminated": ended}, ready=False)

    async def _pod(self, key: Key, phase: str, state: Plain, *, ready: bool) -> None:
        container = {"name": APP, "image": "none", "imageID": "", "ready": ready}
        status = {
            "phase": phase,
            "podIP": ADDRESS,
            "podIPs": [{"ip": ADDRESS}],
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "containerStatuses": [{**container, "restartCount": 0, "state": state}],
        }
        info = await self._client.discover("v1", "Pod")
        await self._client.patch(
            info,
            pod_name(key[1]),
            {"status": status},
            namespace=key[0],
            subresource="status",
        )

    async def _command(self, key: Key, phase: str) -> None:
        body = {"metadata": {"annotations": {DESIRED: phase}}}
        await self._client.patch(AgenticSession, key[1], body, namespace=key[0])

    async def _until(self, key: Key, *phases: str) -> None:
        async def look() -> bool:
            found = await self._client.get(AgenticSession, key[1], namespace=key[0])
            return found.status.phase in phases

        await eventually(look, within=60.0, every=0.2)


@asynccontextmanager
async def _runners() -> AsyncIterator[None]:
    server = await asyncio.start_server(_answer, ADDRESS, PORT)
    async with server:
        yield


async def churn(scale: Scale, *, minutes: float) -> int:
    """The memory of the operator while sessions come and go; 0 if it stays."""
    series: list[float] = []
    async with site(scale, collects=True) as here, _runners():
        async with operating(here.cluster, here.folder) as program:
            ends = time.monotonic() + minutes * 60
            people = [Life(here, number) for number in range(PEOPLE)]
            async with asyncio.TaskGroup() as group:
                for each in people:
                    group.create_task(each.live(ends))
                await _watched(program, people, ends, series)
    failed = sum(each.failed for each in people)
    lived = sum(each.lived for each in people)
    print(f"\n{lived} sessions were lived through, {failed} not to their end")
    return _judged(series, scale) if failed <= lived * UNDONE else 1


async def _watched(
    program: Operator, people: list[Life], ends: float, series: list[float]
) -> None:
    print("| minute | RSS, MiB | sessions lived |\n|---|---|---|", flush=True)
    began = time.monotonic()
    while time.monotonic() < ends:
        await asyncio.sleep(EVERY)
        series.append(program.memory("VmRSS"))
        lived = sum(each.lived for each in people)
        minute = (time.monotonic() - began) / 60
        print(f"| {minute:.1f} | {series[-1]:.1f} | {lived} |", flush=True)


def quarters(series: list[float]) -> Iterator[float]:
    """The median of each quarter of a series."""
    length = max(1, len(series) // 4)
    for number in range(4):
        yield median(series[number * length :][:length] or series[-1:])


def _judged(series: list[float], scale: Scale) -> int:
    _, second, _, last = quarters(series)
    grown, most = last - second, max(series)
    flat, small = grown <= GROWTH, most <= scale.rss
    print(f"\ngrown by {grown:.1f} MiB (≤ {GROWTH:g}), {most:.1f} MiB at the most")
    return 0 if flat and small else 1
