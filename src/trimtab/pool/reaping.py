"""Reaping: what every replica does, again and again, so that nothing leaks.

Each pass goes over what is in memory, lists nothing, has a period of its own, and does
a bounded number of things in a turn. A pass that failed is not stamped, so what shows
that reaping works shows nothing else. All writes are compare-and-swaps: two replicas
that reap the same row do no harm.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Any, Final

from trimtab.cache import Key
from trimtab.client import NotFound, TrimtabError, budget
from trimtab.pool import transitions
from trimtab.pool.kinds import Worker, WorkerPool
from trimtab.pool.limits import policy_of
from trimtab.pool.parts import Parts, logger
from trimtab.pool.pods import ENDED, WorkerPod
from trimtab.pool.retiring import Retirer
from trimtab.pool.states import (
    PARKED,
    TERMINAL,
    Operation,
    Origin,
    Reason,
    State,
)
from trimtab.pool.swapping import Stale
from trimtab.pool.transitions import Impossible
from trimtab.pool.verdicts import Act, Observer, Verdict, judge, owner_of_row
from trimtab.pool.view import pool_of

AT_ONCE: Final = 16
"""Actions of one pass that are under way at a time."""
PASS_WITHIN: Final = 60.0


class Reaper:
    """The passes over rows and pods. Those over ledgers: :mod:`trimtab.pool.auditing`.

    ``leads`` says whether this replica is the leader, which reaps for all.
    """

    def __init__(
        self,
        parts: Parts,
        *,
        retirer: Retirer,
        leads: Callable[[], bool],
        stamp: Callable[[str], None],
    ) -> None:
        self._parts = parts
        self._retirer = retirer
        self._leads = leads
        self._stamp = stamp
        self._started = parts.clock()
        self._orphans: dict[Key, float] = {}
        """Pods without a living row, and since when."""
        self._podless: dict[Key, float] = {}
        """Rows without a pod, and since when."""
        self._suspects: dict[Key, float] = {}
        """Rows that nobody is offered, and since when."""

    def started(self) -> None:
        """All rows have been seen; from now on what changes is seen as it does."""
        self._started = self._parts.clock()

    async def run(self) -> None:
        """All passes, each in its own time, until cancelled."""
        period = self._parts.options.period
        async with asyncio.TaskGroup() as group:
            group.create_task(self.repeat("rows", period, self.rows))
            group.create_task(self.repeat("pods", 2 * period, self.pods))

    async def repeat(
        self, name: str, period: float, work: Callable[[], Awaitable[None]]
    ) -> None:
        """One pass for ever; stamped when it went well, and only then."""
        while True:
            # Not all replicas at the same moment.
            await asyncio.sleep(period * self._parts.random.uniform(0.8, 1.0))
            if not self._parts.may_act():
                continue
            try:
                with budget(PASS_WITHIN):
                    await work()
            except TrimtabError as error:
                logger.warning("The reaper's pass over %s failed: %s", name, error)
            else:
                self._stamp(name)

    # Rows

    async def rows(self) -> None:
        """Judge every row, and do what the verdicts say."""
        work: list[Coroutine[Any, Any, None]] = []
        seen = self.observe()
        parked = self._parked()
        suspects: dict[Key, float] = {}
        for row in self._parts.view.rows():
            pool = self._parts.pools.get(pool_of(row.worker))
            verdict = judge(row, pool, seen) if pool else None
            if pool is None:
                continue
            if row.suspect:
                since = self._suspects.get(row.worker.key, seen.now)
                suspects[row.worker.key] = since
                if seen.now - since > pool.spec.budgets.acquire:
                    work.append(self._look(row.worker))
            elif verdict is not None and not (
                verdict.act is Act.EXPIRE and _spared(row.worker, pool, parked)
            ):
                work.append(self._do(row.worker, verdict))
        self._suspects = suspects
        self._parts.deaths.forget(but=self._mentioned())
        await self.together(work)

    def _mentioned(self) -> set[str]:
        """Everybody whose life some row depends on."""
        found: set[str] = set()
        for row in self._parts.view.rows():
            held = row.worker.status.checkout
            found.add(owner_of_row(row.worker))
            if held is not None:
                found.add(held.holder)
        return found

    def observe(self) -> Observer:
        parts = self._parts
        now = parts.clock()
        return Observer(
            incarnation=parts.incarnation,
            now=now,
            wall=parts.now(),
            started=self._started,
            dead=lambda identity: parts.dead(identity, now),
            options=parts.options,
            leads=self._leads(),
        )

    async def together(self, work: list[Coroutine[Any, Any, None]]) -> None:
        """Do some things side by side, and of too many only the first.

        Errors: the first that is no race lost to another replica.
        """
        limit = self._parts.options.actions
        for late in work[limit:]:
            late.close()
        places = asyncio.Semaphore(AT_ONCE)
        errors: list[TrimtabError] = []

        async def one(each: Coroutine[Any, Any, None]) -> None:
            async with places:
                try:
                    await each
                except (Stale, Impossible) as lost:
                    logger.debug("Another was faster: %s", lost)
                except TrimtabError as error:
                    errors.append(error)

        async with asyncio.TaskGroup() as group:
            for each in work[:limit]:
                group.create_task(one(each))
        if errors:
            raise errors[0]

    async def _look(self, worker: Worker) -> None:
        """Whatever became of a write to this row, it is over by now: read it."""
        await self._parts.rows.read(worker)
        self._parts.view.trust(worker.key)

    async def _do(self, worker: Worker, verdict: Verdict) -> None:
        parts = self._parts
        if verdict.act is Act.EXPIRE:
            parts.view.suspect(worker.key)
            await self._retirer.retire(worker, verdict.reason, origin=self._origin)
        elif verdict.act is Act.END:
            await self._retirer.retire(worker, verdict.reason, origin=self._origin)
        elif verdict.act is Act.FINISH:
            await self._retirer.finish(worker, origin=self._origin)
        elif verdict.act is Act.MARK:
            grace = timedelta(seconds=parts.options.grace)
            status = transitions.mark(
                worker,
                reaper=parts.incarnation,
                reason=verdict.reason,
                reap_after=parts.now() + grace,
            )
            await self._swap(worker, status, Operation.MARK)
        else:
            await self._swap(worker, transitions.unmark(worker), Operation.UNMARK)

    async def _swap(self, worker: Worker, status: Any, operation: Operation) -> None:
        await self._parts.rows.swap(
            worker, status, operation=operation, origin=self._origin
        )

    @property
    def _origin(self) -> Origin:
        return Origin.LEADER if self._leads() else Origin.REAPER

    def _parked(self) -> Counter[tuple[Key, str, str]]:
        """How many are parked by pool, tenant and, if bound to nobody, shape."""
        return Counter(
            _floor(row.worker)
            for row in self._parts.view.rows()
            if row.worker.status.state in PARKED
        )

    # Pods

    async def pods(self) -> None:
        """Bring rows and pods together: each needs the other, after a while."""
        now = self._parts.clock()
        work = [*self._without_pods(now), *self._without_rows(now)]
        await self.together(work)

    def _without_pods(self, now: float) -> list[Coroutine[Any, Any, None]]:
        found: list[Coroutine[Any, Any, None]] = []
        podless: dict[Key, float] = {}
        parts = self._parts
        for row in parts.view.rows():
            worker, state = row.worker, row.worker.status.state
            pool = parts.pools.get(pool_of(worker))
            if pool is None or state in TERMINAL | {State.SPAWNING, State.DRAINING}:
                continue
            pod = parts.pods.get(worker.key)
            if pod is None:
                since = podless[worker.key] = self._podless.get(worker.key, now)
                if now - since > pool.spec.budgets.acquire:
                    found.append(self._lost(worker))
            elif pod.phase in ENDED:
                found.append(self._lose(worker))
            elif pod.going:
                found.append(self._deleted(worker))
        self._podless = podless
        return found

    async def _lost(self, worker: Worker) -> None:
        """Its pod was not seen for long: look, and end it if there is none."""
        namespace, name = worker.key
        try:
            await self._parts.client.get(WorkerPod, name, namespace=namespace)
        except NotFound:
            await self._lose(worker)

    async def _lose(self, worker: Worker) -> None:
        await self._retirer.lose(worker, Reason.POD_GONE, origin=self._origin)

    async def _deleted(self, worker: Worker) -> None:
        """Somebody deletes its pod: whoever has it may finish, nobody else gets it."""
        drained = await self._retirer.drain(
            worker, Reason.DRAINED, origin=self._origin, keep=True
        )
        if drained.status.checkout is None:
            await self._retirer.finish(drained, origin=self._origin)

    def _without_rows(self, now: float) -> list[Coroutine[Any, Any, None]]:
        found: list[Coroutine[Any, Any, None]] = []
        orphans: dict[Key, float] = {}
        for key, pod in self._parts.pods.items():
            row = self._parts.view.get(key)
            living = row is not None and row.worker.status.state not in TERMINAL
            if living or pod.going:
                continue
            orphans[key] = self._orphans.get(key, now)
            if now - orphans[key] > self._minimum_age((key[0], pod.pool)):
                found.append(self._stranded(key, pod.uid))
        self._orphans = orphans
        return found

    def _minimum_age(self, key: Key) -> float:
        pool = self._parts.pools.get(key)
        return pool.spec.budgets.acquire if pool else 2 * self._parts.options.period

    async def _stranded(self, key: Key, uid: str) -> None:
        """Delete a pod whose row is over or gone, by a fresh look at the row."""
        namespace, name = key
        try:
            worker = await self._parts.client.get(Worker, name, namespace=namespace)
            if worker.status.state not in TERMINAL:
                return
        except NotFound:
            pass
        try:
            await self._parts.client.delete(
                WorkerPod, name, namespace=namespace, uid=uid
            )
        except NotFound:
            return


def _floor(worker: Worker) -> tuple[Key, str, str]:
    tenant = worker.status.tenant
    return pool_of(worker), tenant, "" if tenant else worker.spec.shape


def _spared(
    worker: Worker, pool: WorkerPool, parked: Counter[tuple[Key, str, str]]
) -> bool:
    """Whether a floor keeps a worker past its TTL; if not, it is counted as gone."""
    tenant, at = worker.status.tenant, _floor(worker)
    policy = policy_of(pool.spec, tenant) if tenant else None
    floor = policy.keepIdle if policy else 0
    if not tenant and worker.spec.shape == pool.spec.shapes[0].name:
        floor = pool.spec.minIdle
    if parked[at] <= floor:
        return True
    parked[at] -= 1
    return False
