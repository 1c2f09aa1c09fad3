"""Accounts: ledgers on the server, one writer at a time here, all wishes in one write.

A ledger is written *before* what it counts, so its limits hold under every
interleaving: what crashed in between is an entry too many, never one too few. While one
write of a ledger is under way, wishes gather and make up the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from trimtab.api import Metadata, owner_of, wire
from trimtab.cache import Key
from trimtab.client import (
    AlreadyExists,
    Ambiguous,
    Client,
    Conflict,
    NotFound,
    TrimtabError,
)
from trimtab.client.budget import without_budget
from trimtab.pool.kinds import (
    LABEL_POOL,
    LedgerEntry,
    TenantLedger,
    TenantLedgerSpec,
    WorkerPool,
    ledger_name,
)
from trimtab.pool.limits import Batch, Cap, apply, cap_of
from trimtab.pool.requests import Full

RETRY_AFTER: Final = 1.0
TRIES: Final = 20
"""Conflicts in a row after which a batch gives up; each means that another won."""

LEDGERS: Final = 4096
"""Ledgers whose last form is remembered, which saves a read at the next use."""


class _Wish:
    """One call: who leaves and who enters, and how it is told who may not."""

    __slots__ = ("adopt", "done", "enter", "leave")

    def __init__(
        self,
        *,
        enter: Iterable[LedgerEntry] = (),
        leave: Iterable[str] = (),
        adopt: Iterable[LedgerEntry] = (),
    ) -> None:
        self.enter = tuple(enter)
        self.leave = tuple(leave)
        self.adopt = tuple(adopt)
        loop = asyncio.get_running_loop()
        self.done: asyncio.Future[dict[str, str]] = loop.create_future()


class _Ledger:
    """One ledger, its last known form, and the wishes that wait for it."""

    __slots__ = ("busy", "known", "pool", "wishes")

    def __init__(self) -> None:
        self.pool: WorkerPool | None = None
        self.known: TenantLedger | None = None
        self.wishes: list[_Wish] = []
        self.busy = False


class Accounts:
    """Enters and leaves ledgers.

    Flow: ``enter`` before a worker is claimed (or a slot's worker is made), ``leave``
    when it is over. A tenant without limits has no ledger, and both do nothing.

    Guarantees: entries of a ledger never exceed its cap, whoever else writes it. One
    write of a ledger at a time here. A wish that was granted is written; one that was
    refused, or whose call failed, may at most leave an entry that others remove.

    Errors: :class:`Full`, or what the API server said.
    """

    def __init__(
        self,
        client: Client,
        *,
        group: asyncio.TaskGroup,
        freed: Callable[[Key, str], None],
    ) -> None:
        self._client = client
        self._group = group
        self._freed = freed
        self._ledgers: dict[tuple[Key, str], _Ledger] = {}
        """Those that were used last."""

    async def enter(self, pool: WorkerPool, tenant: str, entry: LedgerEntry) -> None:
        """Count this one. Errors: :class:`Full` where the cap does not allow it."""
        if cap_of(pool.spec, tenant).unlimited:
            return
        refused = await self._ask(pool, tenant, _Wish(enter=(entry,)))
        for limit in refused.values():
            raise _full(pool, tenant, limit)

    async def admit(
        self, pool: WorkerPool, tenant: str, entries: Iterable[LedgerEntry]
    ) -> list[LedgerEntry]:
        """Count as many of these as the cap allows; those that count now."""
        asked = tuple(entries)
        if cap_of(pool.spec, tenant).unlimited:
            return list(asked)
        refused = await self._ask(pool, tenant, _Wish(enter=asked))
        return [each for each in asked if each.checkout not in refused]

    async def adopt(
        self, pool: WorkerPool, tenant: str, entries: Iterable[LedgerEntry]
    ) -> None:
        """Count what is there already and was not counted, over the cap or not."""
        await self._ask(pool, tenant, _Wish(adopt=entries))

    async def leave(
        self, pool: WorkerPool, tenant: str, checkouts: Iterable[str]
    ) -> None:
        """These count no more; those that did not are no error."""
        known = (pool.key, tenant) in self._ledgers
        if known or not cap_of(pool.spec, tenant).unlimited:
            await self._ask(pool, tenant, _Wish(leave=checkouts))

    async def _ask(self, pool: WorkerPool, tenant: str, wish: _Wish) -> dict[str, str]:
        ledger = self._ledgers.pop((pool.key, tenant), None) or _Ledger()
        self._ledgers[pool.key, tenant] = ledger
        ledger.pool = pool
        ledger.wishes.append(wish)
        if not ledger.busy:
            ledger.busy = True
            # It writes for others, too: the budget of who came first is not theirs.
            self._group.create_task(
                self._work(ledger, tenant), context=without_budget()
            )
            self._bound()
        return await wish.done

    def _bound(self) -> None:
        for key in list(self._ledgers)[: max(0, len(self._ledgers) - LEDGERS)]:
            if not self._ledgers[key].busy:
                del self._ledgers[key]

    async def _work(self, ledger: _Ledger, tenant: str) -> None:
        """Write until nobody wishes anything; the one task that touches a ledger."""
        try:
            while ledger.wishes:
                wishes, ledger.wishes = ledger.wishes, []
                try:
                    batch = await self._write(ledger, tenant, wishes)
                except TrimtabError as error:
                    ledger.known = None
                    _fail(wishes, error)
                except asyncio.CancelledError:
                    _fail(wishes, TrimtabError("The replica is stopping."))
                    raise
                else:
                    self._tell(ledger, tenant, wishes, batch)
        finally:
            ledger.busy = False
            _fail(ledger.wishes, TrimtabError("The replica is stopping."))

    async def _write(self, ledger: _Ledger, tenant: str, wishes: list[_Wish]) -> Batch:
        """Bring a batch into the ledger, on whatever is there."""
        pool = ledger.pool
        assert pool is not None
        cap = cap_of(pool.spec, tenant)
        fresh = False
        for _ in range(TRIES):
            if ledger.known is None:
                ledger.known, fresh = await self._read(pool, tenant), True
            batch = _apply(ledger.known, wishes, cap)
            if not fresh and _in_doubt(ledger.known, wishes, batch):
                ledger.known = None
            elif not batch.changed:
                return batch
            else:
                try:
                    ledger.known = await self._swap(ledger.known, batch.entries)
                    return batch
                except (Conflict, NotFound, Ambiguous):
                    # Whatever is there now, applying the same batch to it is right.
                    ledger.known = None
        raise TrimtabError(
            f"The ledger of {tenant or 'the pool'} in {pool} was written by others "
            f"{TRIES} times in a row; try again."
        )

    async def _read(self, pool: WorkerPool, tenant: str) -> TenantLedger:
        namespace, name = pool.metadata.namespace, pool.metadata.name
        at = ledger_name(name, tenant)
        try:
            return await self._client.get(TenantLedger, at, namespace=namespace)
        except NotFound:
            made = _new(pool, tenant, at)
        try:
            return await self._client.create(made)
        except (AlreadyExists, Ambiguous):
            return await self._client.get(TenantLedger, at, namespace=namespace)

    async def _swap(
        self, ledger: TenantLedger, entries: list[LedgerEntry]
    ) -> TenantLedger:
        metadata = ledger.metadata
        body = {
            "metadata": {
                "uid": metadata.uid,
                "resourceVersion": metadata.resourceVersion,
            },
            "status": {"entries": [wire(each) for each in entries]},
        }
        return await self._client.patch(
            TenantLedger,
            metadata.name,
            body,
            namespace=metadata.namespace,
            subresource="status",
        )

    def _tell(
        self, ledger: _Ledger, tenant: str, wishes: list[_Wish], batch: Batch
    ) -> None:
        for wish in wishes:
            asked = (each.checkout for each in wish.enter)
            refused = {
                each: batch.refused[each] for each in asked if each in batch.refused
            }
            if not wish.done.done():
                wish.done.set_result(refused)
        if ledger.pool is not None and any(wish.leave for wish in wishes):
            self._freed(ledger.pool.key, tenant)


def _new(pool: WorkerPool, tenant: str, at: str) -> TenantLedger:
    metadata = Metadata(
        name=at,
        namespace=pool.metadata.namespace,
        labels={LABEL_POOL: pool.metadata.name},
        ownerReferences=[owner_of(pool)],
    )
    spec = TenantLedgerSpec(pool=pool.metadata.name, tenant=tenant)
    return TenantLedger(metadata=metadata, spec=spec)


def _apply(ledger: TenantLedger, wishes: list[_Wish], cap: Cap) -> Batch:
    return apply(
        ledger.status.entries,
        leave=[each for wish in wishes for each in wish.leave],
        enter=[each for wish in wishes for each in wish.enter],
        adopt=[each for wish in wishes for each in wish.adopt],
        cap=cap,
    )


def _in_doubt(ledger: TenantLedger, wishes: list[_Wish], batch: Batch) -> bool:
    """Whether a ledger that was not just read may mislead.

    A write that it is the ground for would fail; but a refusal, or that somebody is not
    in who wants to leave, needs no write.
    """
    held = {each.checkout for each in ledger.status.entries}
    leaving = (each for wish in wishes for each in wish.leave)
    return bool(batch.refused) or not held.issuperset(leaving)


def _full(pool: WorkerPool, tenant: str, limit: str) -> Full:
    who = f"The tenant {tenant}" if tenant else "The pool itself"
    return Full(
        f"{who} has all that {limit} allows in {pool}; release a worker, or raise the "
        "limit.",
        limit=limit,
        retry_after=RETRY_AFTER,
    )


def _fail(wishes: list[_Wish], error: Exception) -> None:
    for wish in wishes:
        if not wish.done.done():
            wish.done.set_exception(error)
