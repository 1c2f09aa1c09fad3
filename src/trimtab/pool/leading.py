"""Leading: what one replica does for all, because all doing it would be too much.

Nothing here is needed for safety: the limits hold without a leader, every replica reaps
what it owns and what the dead left, and two leaders at once make at most a few idle
workers too many, which end by their TTL.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, Final

from trimtab.cache import Key, Store
from trimtab.client import Conflict, NotFound, TrimtabError
from trimtab.kinds import Lease
from trimtab.pool import placeholders, transitions
from trimtab.pool.kinds import LABEL_POOL, Worker, WorkerPool, WorkerPoolStatus
from trimtab.pool.limits import idle_cap_of
from trimtab.pool.parts import Parts, logger
from trimtab.pool.pods import WorkerPod
from trimtab.pool.reaping import Reaper
from trimtab.pool.retiring import Retirer
from trimtab.pool.shapes import Size, size
from trimtab.pool.spawning import Spawner
from trimtab.pool.states import PARKED, TERMINAL, Operation, Origin, Reason, State
from trimtab.pool.view import Row, pool_of

MANAGER: Final = "trimtab-pool"
RENEW_BEFORE: Final = timedelta(days=10)
"""A certificate is renewed when it has less than this left."""


class Leader:
    """Keeps pools warm, replaces what is outdated, and tidies up."""

    def __init__(
        self,
        parts: Parts,
        *,
        reaper: Reaper,
        retirer: Retirer,
        spawner: Spawner,
        placeholders: Store[WorkerPod],
        leases: Store[Lease],
    ) -> None:
        self._parts = parts
        self._reaper = reaper
        self._retirer = retirer
        self._spawner = spawner
        self._placeholders = placeholders
        self._leases = leases
        self._wake = asyncio.Event()
        self._told: dict[Key, WorkerPoolStatus] = {}
        """The status that was last written of each pool."""

    def changed(self) -> None:
        """A pool or a worker has changed: look again."""
        self._wake.set()

    async def run(self) -> None:
        """Lead until cancelled."""
        period = self._parts.options.period
        self._told.clear()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep_warm())
            group.create_task(self._reaper.repeat("caps", period, self.caps))
            group.create_task(self._reaper.repeat("updates", period, self.updates))
            group.create_task(self._reaper.repeat("pruning", period, self.prune))
            group.create_task(self._reaper.repeat("statuses", period, self.statuses))
            group.create_task(self._reaper.repeat("headroom", period, self.headroom))
            group.create_task(
                self._reaper.repeat("certificates", 60 * period, self.certificates)
            )

    # Minimum idle

    async def _keep_warm(self) -> None:
        """Spawn what is missing as soon as it is, and look again now and then."""
        while True:
            self._wake.clear()
            if self._parts.may_act():
                for pool in list(self._parts.pools.values()):
                    self.warm(pool)
            try:
                async with asyncio.timeout(self._parts.options.period):
                    await self._wake.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(0.05)  # what comes together is looked at together

    def warm(self, pool: WorkerPool) -> None:
        """Start what ``minIdle`` lacks, counting what is on its way."""
        if pool.metadata.deletionTimestamp is not None:
            return
        shape, key = pool.spec.shapes[0], pool.key
        in_rows = self._parts.view.neutral(key, shape.name)
        on_the_way = self._spawner.in_flight(key, shape.name)
        # A spawn in flight has a row after a while, and then counts in both.
        spawning = self._parts.view.count(key, State.SPAWNING)
        have = in_rows + max(0, on_the_way - spawning)
        if key not in self._spawner.full:
            self._spawner.start(pool, shape, pool.spec.minIdle - have)

    # Idle caps

    async def caps(self) -> None:
        """End what is parked beyond a tenant's cap, the oldest first; a cap wins."""
        work: list[Coroutine[Any, Any, None]] = []
        for pool in list(self._parts.pools.values()):
            parked: defaultdict[str, list[Row]] = defaultdict(list)
            for row in self._parts.view.rows(pool.key):
                if row.worker.status.state is State.HOT_IDLE and not row.suspect:
                    parked[row.worker.status.tenant].append(row)
            for tenant, rows in parked.items():
                work += self._over(pool, tenant, rows)
        await self._reaper.together(work)

    def _over(
        self, pool: WorkerPool, tenant: str, rows: list[Row]
    ) -> list[Coroutine[Any, Any, None]]:
        cap = idle_cap_of(pool.spec, tenant)
        if cap.unlimited:
            return []
        rows.sort(key=lambda row: row.entered)
        sizes = [size(row.worker.spec.cpu, row.worker.spec.memory) for row in rows]
        over = 0
        while over < len(rows):
            if not cap.broken_by(len(rows) - over, sum(sizes[over:], Size())):
                break
            over += 1
        return [self._end(row.worker, Reason.IDLE_CAP) for row in rows[:over]]

    # Updates

    async def updates(self) -> None:
        """Replace parked workers of an older template, a few at a time."""
        work: list[Coroutine[Any, Any, None]] = []
        for pool in list(self._parts.pools.values()):
            going = self._parts.view.count(pool.key, State.DRAINING)
            going += self._parts.view.count(pool.key, State.SPAWNING)
            room = pool.spec.update.maxUnavailable - going
            old = [
                row.worker
                for row in self._parts.view.rows(pool.key)
                if row.worker.status.state in PARKED
                and not row.suspect
                and self._parts.outdated(pool, row.worker)
            ]
            work += [self._end(each, Reason.OUTDATED) for each in old[: max(0, room)]]
        await self._reaper.together(work)

    async def _end(self, worker: Worker, reason: Reason) -> None:
        self._parts.view.suspect(worker.key)
        await self._retirer.retire(worker, reason, origin=Origin.LEADER)

    # Pruning

    async def prune(self) -> None:
        """Delete rows that have been over for a while, and Leases of the dead."""
        parts = self._parts
        now, keep = parts.clock(), parts.options.keep_terminal
        rows = [
            self._delete(row.worker)
            for row in parts.view.rows()
            if row.worker.status.state in TERMINAL and now - row.entered > keep
        ]
        leases = [
            self._delete(lease)
            for lease in list(self._leases.values())
            if self._is_forgotten(lease, now)
        ]
        await self._reaper.together([*rows, *leases])

    def _is_forgotten(self, lease: Lease, now: float) -> bool:
        """Whether nobody is there for whom a Lease would say anything."""
        parts, identity = self._parts, lease.spec.holderIdentity or ""
        dead = parts.deaths.dead(identity, now)
        silent = parts.deaths.silent(identity, now)
        return (
            dead
            and silent > parts.options.keep_terminal + parts.options.lease_seconds
            and not parts.view.by_holder(identity)
        )

    async def _delete(self, obj: Worker | Lease) -> None:
        namespace, name = obj.key
        try:
            await self._parts.client.delete(
                type(obj),
                name,
                namespace=namespace,
                uid=obj.metadata.uid,
                resource_version=obj.metadata.resourceVersion,
            )
        except (NotFound, Conflict):
            return

    # Certificates

    async def certificates(self) -> None:
        """Renew those that end soon."""
        soon = self._parts.now() + RENEW_BEFORE
        work: list[Coroutine[Any, Any, None]] = []
        for row in self._parts.view.rows():
            expires, state = (
                row.worker.status.certificateExpires,
                row.worker.status.state,
            )
            pool = self._parts.pools.get(pool_of(row.worker))
            settled = state in PARKED or state is State.HOT
            if pool is not None and settled and expires is not None and expires < soon:
                work.append(self._renew(pool, row.worker))
        await self._reaper.together(work)

    async def _renew(self, pool: WorkerPool, worker: Worker) -> None:
        expires = await self._parts.keyring.renew(worker, pool=pool)
        await self._parts.rows.swap(
            worker,
            transitions.certified(worker, expires=expires),
            operation=Operation.RENEW,
            origin=Origin.LEADER,
        )

    # Headroom

    async def headroom(self) -> None:
        """Have as many placeholders as each pool says, of its present shape."""
        found: defaultdict[Key, list[WorkerPod]] = defaultdict(list)
        for pod in self._placeholders.values():
            name = pod.metadata.labels.get(LABEL_POOL, "")
            if pod.metadata.deletionTimestamp is None:
                found[pod.metadata.namespace, name].append(pod)
        work: list[Coroutine[Any, Any, None]] = []
        for pool in list(self._parts.pools.values()):
            keep, surplus = placeholders.sorted_out(pool, found.pop(pool.key, []))
            work += [self._remove(each) for each in surplus]
            wanted = placeholders.wanted(pool)
            work += [self._place(pool) for _ in range(wanted - len(keep))]
        work += [self._remove(each) for pods in found.values() for each in pods]
        await self._reaper.together(work)

    async def _place(self, pool: WorkerPool) -> None:
        name = f"{pool.metadata.name[:40]}-headroom-{self._parts.unique()}"
        await self._parts.client.create(placeholders.pod(pool, name=name))

    async def _remove(self, pod: WorkerPod) -> None:
        namespace, name = pod.key
        try:
            await self._parts.client.delete(
                WorkerPod, name, namespace=namespace, uid=pod.metadata.uid, grace=0
            )
        except NotFound:
            return

    # Statuses

    async def statuses(self) -> None:
        """Write what the pools look like, where that has changed."""
        pools = list(self._parts.pools.values())
        there = {pool.key for pool in pools}
        self._told = {key: said for key, said in self._told.items() if key in there}
        for pool in pools:
            status = self._status(pool)
            if self._told.get(pool.key) == status:
                continue
            try:
                await self._parts.client.apply_status(
                    WorkerPool,
                    pool.metadata.name,
                    status,
                    namespace=pool.metadata.namespace,
                    manager=MANAGER,
                    force=True,
                )
                self._told[pool.key] = status
            except NotFound:
                self._told.pop(pool.key, None)
            except TrimtabError as error:
                logger.warning("The status of %s was not written: %s", pool, error)

    def _status(self, pool: WorkerPool) -> WorkerPoolStatus:
        view, key = self._parts.view, pool.key
        spawning, idle = view.count(key, State.SPAWNING), view.count(key, State.IDLE)
        missing = max(0, pool.spec.minIdle - idle)
        conditions = pool.status.conditions.set(
            "Ready",
            not missing,
            reason="MinimumIdle" if not missing else "Spawning",
            message=f"{missing} of {pool.spec.minIdle} idle workers are missing."
            if missing
            else "",
            now=self._parts.now(),
        )
        return WorkerPoolStatus(
            observedGeneration=pool.metadata.generation,
            replicas=spawning + idle,
            selector=f"{LABEL_POOL}={pool.metadata.name}",
            spawning=spawning,
            idle=idle,
            activating=view.count(key, State.ACTIVATING),
            hot=view.count(key, State.HOT),
            hotIdle=view.count(key, State.HOT_IDLE),
            draining=view.count(key, State.DRAINING),
            conditions=conditions,
        )
