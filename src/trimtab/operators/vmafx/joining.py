"""Joining: a split job ends with its segments, and its segments with it.

Every gateway does this for all split jobs; of two that write the run of one job, one
wins, and both would have written the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from trimtab.cache import Change
from trimtab.client import Client, TrimtabError
from trimtab.operators.vmafx import claims, frames, splitting
from trimtab.operators.vmafx.desk import SWEEP, Desk
from trimtab.operators.vmafx.kinds import VmafxJob
from trimtab.operators.vmafx.queue import Key

log = logging.getLogger(__name__)


class Joining:
    """What a gateway does for jobs that are split.

    Flow: ``run`` in a task group when the caches are complete.

    Guarantees: a split job is completed once, when all its segments are, with what all
    their frames come to. It ends when one of them can never be scored. When it is over,
    however that came, no segment of it is given away any more, and nodes stop theirs.
    """

    def __init__(
        self, client: Client, desk: Desk, *, now: Callable[[], datetime]
    ) -> None:
        self._client = client
        self._desk = desk
        self._now = now
        # Split jobs of which something has changed.
        self._changed: set[Key] = set()
        self._stir = asyncio.Event()
        desk.watch(self._hear)

    def _hear(self, change: Change[VmafxJob]) -> None:
        job = change.new
        if job is None:
            return
        key = job.key if claims.is_split(job) else splitting.whole(job)
        if key is not None:
            self._changed.add(key)
            self._stir.set()

    async def run(self) -> None:
        """Look after every split job that has changed, until cancelled."""
        while True:
            self._stir.clear()  # first: what comes while we work is for the next round
            for key in tuple(self._changed):
                self._changed.discard(key)
                if not await self._look(key):
                    self._changed.add(key)
            try:
                async with asyncio.timeout(SWEEP if self._changed else None):
                    await self._stir.wait()
            except TimeoutError:
                continue

    async def _look(self, key: Key) -> bool:
        """Bring a split job one step on; whether nothing is left to do now."""
        job = self._desk.at(key)
        if job is None or not claims.is_split(job):
            return True
        found = [each for each in splitting.segments(job, self._desk.at) if each]
        if claims.is_over(job):
            return await self._stop(found)
        for each in found:
            if claims.is_over(each) and each.status.run.outcome != "completed":
                return await self._end_with(key, each)
        if found and len(found) == job.spec.segments and all(map(_is_scored, found)):
            return await self._join(key, found)
        if any(each.status.run.attempt for each in found):
            return await self._desk.end(
                key, lambda job: claims.begin(job, now=self._now())
            )
        return True

    async def _stop(self, segments: list[VmafxJob]) -> bool:
        why = "The job that it is of is over."
        left = [each.key for each in segments if not claims.is_over(each)]
        ended = [
            await self._desk.end(
                key, lambda job: claims.cancel(job, now=self._now(), why=why)
            )
            for key in left
        ]
        return all(ended)

    async def _end_with(self, key: Key, segment: VmafxJob) -> bool:
        return await self._desk.end(
            key, lambda job: claims.end_with(job, segment, now=self._now())
        )

    async def _join(self, key: Key, segments: list[VmafxJob]) -> bool:
        job = self._desk.at(key)
        assert job is not None
        try:
            values = await frames.joined(self._client, segments)
            kept = await frames.keep(self._client, job, values) if values else ""
        except TrimtabError as error:
            log.warning("The segments of %s could not be joined: %s", job, error)
            return False
        return await self._desk.end(
            key,
            lambda job: claims.join(job, segments, frames=kept, now=self._now()),
        )


def _is_scored(segment: VmafxJob) -> bool:
    return segment.status.run.outcome == "completed"
