"""Auditing: ledgers and rows are brought together, so that no slot is lost for ever.

An entry is written before what it counts, so a crash leaves an entry too many. Anybody
may remove it once nothing can come of it any more: the row that it names is over or
gone, or it is fenced first, so that a claim still on its way fails.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Coroutine, Iterator
from typing import Any

from trimtab.cache import Key, Store
from trimtab.client import NotFound
from trimtab.pool import transitions
from trimtab.pool.kinds import LedgerEntry, TenantLedger, Worker, WorkerPool
from trimtab.pool.limits import cap_of
from trimtab.pool.parts import Parts
from trimtab.pool.reaping import Reaper
from trimtab.pool.states import TERMINAL, Operation, Origin, State
from trimtab.pool.transitions import carries
from trimtab.pool.view import pool_of

Mention = tuple[Key, str]
"""A ledger and a checkout in it."""


class Auditor:
    """The pass over ledgers.

    Guarantees: an entry is removed only when its row cannot come to carry its checkout
    any more, however late a write arrives.
    """

    def __init__(
        self, parts: Parts, *, reaper: Reaper, ledgers: Store[TenantLedger]
    ) -> None:
        self._parts = parts
        self._reaper = reaper
        self._ledgers = ledgers
        self._unmatched: dict[Mention, float] = {}
        """Entries that no row carries, and since when."""

    async def run(self) -> None:
        """The pass, again and again, until cancelled."""
        period = 2 * self._parts.options.period
        await self._reaper.repeat("ledgers", period, self.ledgers)

    async def ledgers(self) -> None:
        """Remove what counts nothing, and count what nobody counts."""
        now = self._parts.clock()
        work = [*self._leftovers(now), *self._uncounted(now)]
        await self._reaper.together(work)

    def _leftovers(self, now: float) -> Iterator[Coroutine[Any, Any, None]]:
        unmatched: dict[Mention, float] = {}
        for ledger in self._ledgers.values():
            key = (ledger.metadata.namespace, ledger.spec.pool)
            pool = self._parts.pools.get(key)
            if pool is None:
                continue
            budgets = pool.spec.budgets
            for entry in ledger.status.entries:
                if self._matches(ledger, entry):
                    continue
                mention = (ledger.key, entry.checkout)
                since = unmatched[mention] = self._unmatched.get(mention, now)
                if now - since > budgets.acquire:
                    yield self._remove(pool, ledger, entry)
        self._unmatched = unmatched

    def _matches(self, ledger: TenantLedger, entry: LedgerEntry) -> bool:
        """Whether what an entry counts is there, as far as we see."""
        row = self._parts.view.get((ledger.metadata.namespace, entry.worker))
        if row is None:
            return False
        if ledger.spec.tenant:
            return carries(row.worker, entry.checkout)
        return row.worker.status.state not in TERMINAL

    async def _remove(
        self, pool: WorkerPool, ledger: TenantLedger, entry: LedgerEntry
    ) -> None:
        """Look at the row itself, fence it where it lives, then remove the entry."""
        parts, tenant = self._parts, ledger.spec.tenant
        namespace = ledger.metadata.namespace
        try:
            worker = await parts.client.get(Worker, entry.worker, namespace=namespace)
        except NotFound:
            await parts.accounts.leave(pool, tenant, [entry.checkout])
            return
        if worker.status.state not in TERMINAL:
            if not tenant or carries(worker, entry.checkout):
                return
            await parts.rows.swap(
                worker,
                transitions.fence(worker),
                operation=Operation.FENCE,
                origin=Origin.ACCOUNTS,
            )
        await parts.accounts.leave(pool, tenant, [entry.checkout])

    def _uncounted(self, now: float) -> Iterator[Coroutine[Any, Any, None]]:
        """Rows that no ledger counts: limits that are new, a ledger that was lost."""
        counted = {
            ((ledger.metadata.namespace, ledger.spec.pool), ledger.spec.tenant): {
                entry.checkout for entry in ledger.status.entries
            }
            for ledger in self._ledgers.values()
        }
        missing: defaultdict[tuple[Key, str], list[LedgerEntry]] = defaultdict(list)
        for row in self._parts.view.rows():
            worker, key = row.worker, pool_of(row.worker)
            pool = self._parts.pools.get(key)
            if pool is None or worker.status.state in TERMINAL:
                continue
            if now - row.entered <= pool.spec.budgets.acquire:
                continue
            for tenant, entry in _entries(worker):
                limited = not cap_of(pool.spec, tenant).unlimited
                if limited and entry.checkout not in counted.get((key, tenant), ()):
                    missing[key, tenant].append(entry)
        for (key, tenant), entries in missing.items():
            pool = self._parts.pools.get(key)
            if pool is not None:
                yield self._parts.accounts.adopt(pool, tenant, entries)


def _entries(worker: Worker) -> Iterator[tuple[str, LedgerEntry]]:
    """What a living row counts for: a slot of the pool, and its tenant's checkout."""
    name, status = worker.metadata.name, worker.status
    yield "", LedgerEntry(checkout=name, worker=name)
    if status.checkout is not None and status.state is not State.SPAWNING:
        yield (
            status.tenant,
            LedgerEntry(
                checkout=status.checkout.id,
                worker=name,
                cpu=worker.spec.cpu,
                memory=worker.spec.memory,
            ),
        )
