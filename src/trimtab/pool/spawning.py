"""Spawning: a slot, a row, a Secret, a pod, and then a worker that anybody may have.

Nobody who asks for a worker waits in here: spawning is detached from requests, so one
that gave up leaves a warm worker behind and not a half-made one. Whoever took a slot
gives it back on every way out.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec

from trimtab.cache import Key
from trimtab.client import AlreadyExists, Ambiguous, TrimtabError, budget
from trimtab.pool import secrets, templates, transitions
from trimtab.pool.calls import CallFailed
from trimtab.pool.kinds import LedgerEntry, Shape, Worker, WorkerPool
from trimtab.pool.parts import Parts, Tasks, logger
from trimtab.pool.requests import Full
from trimtab.pool.retiring import Retirer
from trimtab.pool.states import Operation, Origin, Reason, State
from trimtab.pool.swapping import Stale
from trimtab.runtime import Backoff

PAUSE: Final = Backoff(first=0.5, factor=2.0, cap=30.0)
HEALTH: Final = Backoff(first=0.02, factor=1.5, cap=1.0)
"""Between two tries of a worker that was just started."""
UNDO_WITHIN: Final = 5.0
"""Seconds to take back what was begun, also while the replica stops."""


class _Begun:
    """How far a spawn has come, and so what has to be undone if it fails."""

    __slots__ = ("finished", "name", "sent", "slot", "worker")

    def __init__(self, name: str) -> None:
        self.name = name
        self.slot = False
        """A slot may have been taken."""
        self.sent = False
        """The row may have been made, or may still come."""
        self.worker: Worker | None = None
        self.finished = False


class Spawner:
    """Makes workers, a bounded number at a time.

    Guarantees: a worker exists only with a slot in the pool's ledger, written before
    it, so there are never more than ``maxWorkers``. A spawn that fails has freed its
    slot when it ends; if this replica dies on the way, others do.
    """

    def __init__(
        self, parts: Parts, *, retirer: Retirer, changed: Callable[[Key], None]
    ) -> None:
        self._parts = parts
        self._retirer = retirer
        self._changed = changed
        self._tasks = Tasks(parts.group)
        self._places = asyncio.Semaphore(max(2, parts.options.spawns))
        self._in_flight: Counter[tuple[Key, str]] = Counter()
        self._failures: Counter[Key] = Counter()
        self._not_before: dict[Key, float] = {}
        self.full: set[Key] = set()
        """Pools whose last slot was taken when this replica asked."""

    def in_flight(self, pool: Key, shape: str) -> int:
        """Spawns of this replica that have not ended."""
        return self._in_flight[pool, shape]

    def start(self, pool: WorkerPool, shape: Shape, count: int) -> None:
        """Begin so many spawns, unless they failed a moment ago."""
        now = self._parts.clock()
        if count <= 0 or self._parts.stopping:
            return
        if now < self._not_before.get(pool.key, now):
            return
        self._in_flight[pool.key, shape.name] += count
        for _ in range(count):
            self._tasks.start(self._spawn(pool, shape))

    async def stop(self) -> None:
        """Break off what is under way, and return when it has been taken back."""
        await self._tasks.end(0.0)

    async def _spawn(self, pool: WorkerPool, shape: Shape) -> None:
        begun = _Begun(f"{pool.metadata.name[:46]}-{self._parts.unique()}")
        try:
            async with self._places, asyncio.timeout(pool.spec.budgets.spawn):
                with budget(pool.spec.budgets.spawn):
                    await self._make(pool, shape, begun)
            self._failures.pop(pool.key, None)
        except Full:
            begun.slot = False
            self.full.add(pool.key)
        except (TrimtabError, TimeoutError) as error:
            self._failed(pool.key, error)
        finally:
            if not begun.finished:
                await self._undo(pool, begun)
            self._in_flight[pool.key, shape.name] -= 1
            self._changed(pool.key)

    async def _make(self, pool: WorkerPool, shape: Shape, begun: _Begun) -> None:
        """All steps, one after the other."""
        parts = self._parts
        worker = begun.worker = await self._row(pool, shape, begun)
        status = transitions.spawned(worker, owner=parts.incarnation)
        worker = begun.worker = await parts.rows.swap(
            worker, status, operation=Operation.SPAWN, origin=Origin.SPAWNER
        )
        secret = await parts.keyring.secret(worker, pool=pool)
        await self._create(secret)
        await self._create(templates.pod(pool, worker))
        pod = await parts.pods.until_ready(worker.key)
        become = partial(
            transitions.ready,
            owner=parts.incarnation,
            address=pod.address,
            port=pool.spec.port,
            at=parts.now(),
            certificate_expires=secrets.expires(secret.metadata.annotations),
        )
        await self._answers(msgspec.structs.replace(worker, status=become(worker)))
        await parts.rows.step(
            worker, become, operation=Operation.READY, origin=Origin.SPAWNER
        )
        begun.finished = True

    async def _row(self, pool: WorkerPool, shape: Shape, begun: _Begun) -> Worker:
        """Take a slot, and make the row right after it: others free old slots."""
        parts, name = self._parts, begun.name
        row = templates.row(pool, shape, name=name, spawner=parts.incarnation)
        with budget(pool.spec.budgets.acquire / 2):
            begun.slot = True
            entry = LedgerEntry(checkout=name, worker=name)
            await parts.accounts.enter(pool, "", entry)
            begun.sent = True
            try:
                made = await parts.client.create(row)
            except Ambiguous:
                # Its name is ours alone: what is there by that name is what was sent.
                namespace = pool.metadata.namespace
                made = await parts.client.get(Worker, name, namespace=namespace)
            except TrimtabError:
                begun.sent = False
                raise
        parts.view.saw(made, parts.clock())
        return made

    async def _create(self, obj: Any) -> None:
        """Make something that has the worker's own name; made already is as good."""
        create = self._parts.client.create
        try:
            await create(obj)
        except AlreadyExists:
            return
        except Ambiguous:
            with suppress(AlreadyExists):
                await create(obj)

    async def _answers(self, worker: Worker) -> None:
        """Return when the worker is healthy; the budget of the spawn is the limit."""
        target = await self._parts.keyring.target(worker)
        failures = 0
        while True:
            try:
                return await self._parts.calls.healthy(target)
            except CallFailed:
                failures += 1
            await asyncio.sleep(HEALTH.pause(failures, random=self._parts.random))

    async def _undo(self, pool: WorkerPool, begun: _Begun) -> None:
        """Give back what a failed spawn took; what is left over, reapers find.

        A row that may still come to be keeps its slot: auditors free it later.
        """
        try:
            async with asyncio.timeout(UNDO_WITHIN):
                with budget(UNDO_WITHIN):
                    if begun.worker is not None:
                        begun.slot = not await self._retired(begun.worker)
                    elif begun.sent:
                        return
                    if begun.slot:
                        await self._parts.accounts.leave(pool, "", [begun.name])
        except (TrimtabError, TimeoutError) as error:
            logger.warning("The failed %s is left to reapers: %s", begun.name, error)

    async def _retired(self, worker: Worker) -> bool:
        """Whether there is a row. It is ended, unless it became a worker after all."""
        while True:
            try:
                worker = await self._parts.rows.read(worker)
            except Stale:
                return False
            if worker.status.state is not State.SPAWNING:
                return True
            with suppress(Stale):  # what was broken off last may arrive only now
                await self._retirer.retire(
                    worker, Reason.SPAWN_FAILED, origin=Origin.SPAWNER
                )
                return True

    def _failed(self, pool: Key, error: Exception) -> None:
        parts = self._parts
        self._failures[pool] += 1
        pause = PAUSE.pause(self._failures[pool], random=parts.random)
        self._not_before[pool] = parts.clock() + pause
        loop = asyncio.get_running_loop()
        loop.call_later(pause, self._again, pool)
        logger.warning(
            "A worker of %s/%s was not spawned, the next try is in %.1f s: %s",
            *pool,
            pause,
            error or "its time was up",
        )

    def _again(self, pool: Key) -> None:
        if not self._parts.stopping:
            self._not_before.pop(pool, None)
            self._changed(pool)
