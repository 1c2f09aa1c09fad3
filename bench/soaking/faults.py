"""Faults: connections are cut or fall silent, leaders are killed or stopped."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random

import msgspec

from bench.soaking.replica import Replica
from trimtab.testing import eventually


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds between two faults of each sort, on average; 0 is never."""

    cuts: float = 4.0
    silences: float = 30.0
    """Short ones: no watch is given up for them, but calls are, and leases."""
    long_silences: float = 400.0
    """Longer than a watch may be silent: it is given up."""
    coups: float = 25.0
    """The leader is killed, or stopped beyond its lease."""


SHORT = (1.0, 8.0)
LONG = (155.0, 165.0)
"""Watches are given up after 150 seconds."""


class Faults:
    """Disturbs two replicas; the witness is stopped at times and never killed."""

    def __init__(
        self,
        witness: Replica,
        other: Replica,
        *,
        random: Random,
        pace: Pace,
        lease: int,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._witness = witness
        self._other = other
        self._random = random
        self._pace = pace
        self._lease = lease

    async def run(self, *, seconds: float) -> None:
        """Disturb for so long; all is mended when this returns."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        async with asyncio.TaskGroup() as group:
            for pause, fault, longest in (
                (self._pace.cuts, self._cut, 0.0),
                (self._pace.silences, self._silence, SHORT[1]),
                (self._pace.long_silences, self._long_silence, LONG[1]),
                (self._pace.coups, self._coup, 6.0 * self._lease),
            ):
                if pause:
                    group.create_task(self._every(pause, fault, until=end - longest))
        for replica in (self._witness, self._other):
            replica.relay.mend()

    async def _every(
        self, pause: float, fault: Callable[[], Awaitable[None]], *, until: float
    ) -> None:
        loop = asyncio.get_running_loop()
        while True:
            wait = pause * self._random.uniform(0.5, 1.5)
            if loop.time() + wait > until:
                return
            await asyncio.sleep(wait)
            await fault()

    def _either(self) -> Replica:
        return self._random.choice((self._witness, self._other))

    async def _cut(self) -> None:
        all = self._random.random() < 0.25
        cut = self._either().relay.cut(self._random, all=all)
        self.counts["connections cut"] += cut

    async def _silence(self) -> None:
        await self._silent(self._either(), self._random.uniform(*SHORT))
        self.counts["short silences"] += 1

    async def _long_silence(self) -> None:
        # Of the witness, which lives long enough to be judged by it.
        await self._silent(self._witness, self._random.uniform(*LONG))
        self.counts["silences beyond the limit of a watch"] += 1

    async def _silent(self, replica: Replica, seconds: float) -> None:
        links = replica.relay.silence()
        await asyncio.sleep(seconds)
        for link in links:
            link.flows.set()

    async def _coup(self) -> None:
        """Whoever leads, leads no more."""
        if await self._other.leads():
            await self._other.kill()
            self.counts["leaders killed"] += 1
            await asyncio.sleep(self._random.uniform(0.1, 2.0))
            await self._other.start()
            await self._other.ready()
        elif await self._witness.leads():
            self._witness.signal(signal.SIGSTOP)
            try:
                await eventually(
                    self._other.leads,
                    within=5.0 * self._lease,
                    every=0.2,
                    describe="the other replica leads while the witness is stopped",
                )
                self.counts["leaders stopped beyond the lease"] += 1
            finally:
                self._witness.signal(signal.SIGCONT)
