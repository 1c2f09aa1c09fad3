"""A replica: everything that one process does for its pools, from start to stop.

It opens no socket of its own: what it is given (a client, calls to workers, a keyring,
a generator, the wall clock) is all it knows of the world, so a simulation runs the same
code.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Final

from trimtab.api import fit
from trimtab.cache import Cache, Change, Scope
from trimtab.client import Client
from trimtab.kinds import Lease
from trimtab.pool.accounts import Accounts
from trimtab.pool.allocator import Allocator
from trimtab.pool.auditing import Auditor
from trimtab.pool.calls import Keyring, WorkerCalls
from trimtab.pool.claims import Claims
from trimtab.pool.kinds import (
    LABEL_POOL,
    LABEL_ROLE,
    LABEL_WORKER,
    TenantLedger,
    Worker,
    WorkerClaim,
    WorkerPool,
)
from trimtab.pool.leading import Leader
from trimtab.pool.liveness import Holders, Leases, Presence
from trimtab.pool.parts import Parts, PoolOptions, logger
from trimtab.pool.placeholders import HEADROOM
from trimtab.pool.pods import WorkerPod
from trimtab.pool.reaping import Reaper
from trimtab.pool.retiring import Retirer
from trimtab.pool.states import Operation, Origin, Outcome
from trimtab.pool.swapping import Rows
from trimtab.pool.view import View, pool_of
from trimtab.runtime.leadership import Leadership
from trimtab.runtime.lease import LeaseOptions

STOP_WITHIN: Final = 10.0
"""Seconds for what is being handed out when a replica stops."""
LEADER: Final = "trimtab-pool-leader"


class _Stopped(Exception):
    """The replica has stopped in order; its tasks may go."""


class Observed:
    """Whom a replica tells what it did; metrics are made of it. Does nothing here."""

    def swapped(self, operation: Operation, outcome: Outcome, origin: Origin) -> None:
        """A row was written, or not."""

    def passed(self, name: str) -> None:
        """A pass of the reaper went well."""

    def leading(self, leads: bool) -> None:
        """This replica leads, or does so no more."""

    def moved(self, worker: Worker, gone: bool) -> None:
        """A row is another one than it was, or is there no more."""


class Replica:
    """One process of the pool.

    Flow: ``run()`` in a task group; ``await ready.wait()``; then ``allocator``.
    ``stop()``, or cancelling ``run()``, refuses new requests, finishes or takes back
    what is under way, and leaves parked workers to the others.

    Guarantees: when ``run()`` ends, nothing of this replica runs any more.
    """

    allocator: Allocator

    def __init__(
        self,
        client: Client,
        *,
        calls: WorkerCalls,
        keyring: Keyring,
        options: PoolOptions,
        random: Random,
        now: Callable[[], datetime],
        connect: Callable[[], Client],
        observed: Observed | None = None,
        thread: bool = True,
    ) -> None:
        self.options = options
        self.incarnation = incarnation(options.name, random)
        self.ready = asyncio.Event()
        self._client = client
        self._calls = calls
        self._keyring = keyring
        self._random = random
        self._now = now
        self._observed = observed or Observed()
        self._stop = asyncio.Event()
        self._cache = Cache(client, random=random)
        lease = LeaseOptions(
            name=LEADER,
            namespace=options.lease_namespace,
            identity=self.incarnation,
            duration=float(max(1, round(options.lease_seconds))),
            renew_deadline=options.lease_seconds * 2 / 3,
            retry=options.lease_seconds * 2 / 15,
            stuck=max(60.0, options.lease_seconds),
        )
        self._leadership = Leadership(
            connect,
            lease,
            random=random,
            now=now,
            on_change=self._observed.leading,
            thread=thread,
        )

    @property
    def view(self) -> View:
        """All workers as they were last seen."""
        return self._parts.view

    @property
    def leads(self) -> bool:
        return self._leadership.is_leader

    def may_act(self) -> bool:
        """Whether it has renewed its lease, and hands out workers."""
        return self._parts.may_act()

    def stop(self) -> None:
        """Have ``run()`` stop in order, and return."""
        self._stop.set()

    async def run(self) -> None:
        """Serve until stopped or cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._assemble(group)
                try:
                    await self._serve(group)
                finally:
                    await self._leave()
                raise _Stopped
        except* _Stopped:
            logger.info("The replica %s has stopped.", self.incarnation)

    def _assemble(self, group: asyncio.TaskGroup) -> None:
        self._watch()
        options = self.options
        parts = self._parts = Parts(
            self._client,
            calls=self._calls,
            keyring=self._keyring,
            options=options,
            incarnation=self.incarnation,
            random=self._random,
            now=self._now,
            group=group,
            pools=self._pools.store,
        )
        leases = Leases(self._client, options.liveness, now=self._now)
        parts.holders = Holders(leases, options.liveness)
        parts.presence = Presence(
            leases, options.liveness, incarnation=self.incarnation
        )
        parts.rows = Rows(
            self._client,
            saw=self._saw,
            gone=parts.view.gone,
            count=self._observed.swapped,
        )
        self._retirer = Retirer(parts)
        self.allocator = Allocator(parts, retirer=self._retirer)
        parts.accounts = Accounts(self._client, group=group, freed=self.allocator.freed)
        self._reaper = Reaper(
            parts,
            retirer=self._retirer,
            leads=lambda: self.leads,
            stamp=self._observed.passed,
        )
        self._auditor = Auditor(parts, reaper=self._reaper, ledgers=self._ledgers.store)
        self._leader = Leader(
            parts,
            reaper=self._reaper,
            retirer=self._retirer,
            spawner=self.allocator.spawner,
            placeholders=self._placeholders.store,
            leases=self._leases.store,
        )
        self._claims = Claims(parts, allocator=self.allocator)

    def _watch(self) -> None:
        """Name what it sees of the cluster, but for the rows."""
        options = self.options
        everywhere = Scope(everything=True)
        if options.namespaces:
            everywhere = Scope(namespaces=options.namespaces)
        self._everywhere = everywhere
        self._pools = self._cache.informer(WorkerPool, everywhere)
        self._ledgers = self._cache.informer(TenantLedger, everywhere)
        headroom = Scope(namespaces=options.namespaces, labels={LABEL_ROLE: HEADROOM})
        self._placeholders = self._cache.informer(WorkerPod, headroom)
        lease_scope = Scope(
            namespaces=options.lease_namespace,
            labels=f"{LABEL_ROLE} in (holder,replica)",
        )
        self._leases = self._cache.informer(Lease, lease_scope)

    async def _serve(self, group: asyncio.TaskGroup) -> None:
        self._subscribe()
        group.create_task(self._cache.run())
        group.create_task(self._parts.presence.run())
        begun = group.create_task(self._begun())
        stopped = group.create_task(self._stop.wait())
        # A server that refuses, or is not there, must not keep it from stopping.
        await asyncio.wait((begun, stopped), return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        if self._stop.is_set():
            return
        self._reaper.started()
        group.create_task(self._reaper.run())
        group.create_task(self._auditor.run())
        group.create_task(self._retry())
        group.create_task(self._leadership.run(self._lead))
        self.ready.set()
        await stopped

    async def _begun(self) -> None:
        await self._cache.wait_synced()
        # Before it has a Lease it would be ready, and refuse everybody.
        await self._parts.presence.begun.wait()

    async def _retry(self) -> None:
        """Wake-ups serve the line; this is for one that was missed."""
        while True:
            await asyncio.sleep(self.options.period)
            self.allocator.retry()

    async def _lead(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._leader.run())
            group.create_task(self._claims.run())

    async def _leave(self) -> None:
        """Stop in order: what is left behind, others can go on with."""
        parts = self._parts
        parts.stopping = True
        self.ready.clear()
        await self._leadership.stop()
        await self.allocator.stop(STOP_WITHIN)
        await parts.background.end(STOP_WITHIN)
        await parts.presence.leave()

    # What the watches bring

    def _subscribe(self) -> None:
        cache, parts = self._cache, self._parts
        workers = cache.informer(Worker, self._scope(LABEL_POOL))
        workers.subscribe(self._on_worker)
        pods = cache.informer(WorkerPod, self._scope(LABEL_WORKER), keep="key")
        pods.subscribe(parts.pods.follow)
        self._leases.subscribe(
            lambda change: parts.deaths.follow(change, parts.clock())
        )
        cache.informer(WorkerClaim, self._everywhere).subscribe(self._claims.follow)
        self._pools.subscribe(self._on_pool)
        self._ledgers.subscribe(self._on_ledger)

    def _scope(self, label: str) -> Scope:
        return Scope(namespaces=self.options.namespaces, labels=label)

    def _saw(self, worker: Worker) -> None:
        """One of our own writes, or a read: the same as if the watch had brought it."""
        if self._parts.view.saw(worker, self._parts.clock()):
            self._moved(worker)

    def _on_worker(self, change: Change[Worker]) -> None:
        if self._parts.view.follow(change, self._parts.clock()):
            worker = change.new or change.old
            if worker is not None:
                self._moved(worker, gone=change.new is None)

    def _moved(self, worker: Worker, *, gone: bool = False) -> None:
        self._observed.moved(worker, gone)
        self._leader.changed()
        self.allocator.dispatch(pool_of(worker))

    def _on_pool(self, change: Change[WorkerPool]) -> None:
        self._leader.changed()
        if change.new is None:
            self.allocator.forget(change.key)
            return
        self.allocator.spawner.full.discard(change.key)
        self.allocator.dispatch(change.key)

    def _on_ledger(self, change: Change[TenantLedger]) -> None:
        ledger = change.new
        if ledger is not None:
            pool = (ledger.metadata.namespace, ledger.spec.pool)
            self.allocator.freed(pool, ledger.spec.tenant)


def incarnation(name: str, random: Random) -> str:
    """A name for this life of a process; the next one is somebody else."""
    host = (name or socket.gethostname()).lower().replace("_", "-")
    return f"{fit(host, limit=50)}-{random.getrandbits(32):08x}"
