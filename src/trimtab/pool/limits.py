"""Limits: the arithmetic of a ledger, without any I/O.

A ledger is a list of entries. A batch of wishes is applied to it at once: first all who
leave, then those who enter, first come first served, each as far as the limits allow.
Applying the same batch once more changes nothing, so a write whose answer was lost is
simply tried again on what is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from trimtab.pool.kinds import LedgerEntry, Limits, Tenant, WorkerPoolSpec
from trimtab.pool.shapes import Size, size


class Cap(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a ledger may hold; None where there is no limit."""

    count: int | None = None
    cpu: int | None = None
    memory: int | None = None
    name: str = "workers"
    """What the limit on the count is called in the spec."""

    @property
    def unlimited(self) -> bool:
        return self.count is None and self.cpu is None and self.memory is None

    def broken_by(self, count: int, total: Size) -> str | None:
        """Which limit so much would break, by its name in the spec."""
        if self.count is not None and count > self.count:
            return self.name
        if self.cpu is not None and total.cpu > self.cpu:
            return "cpu"
        if self.memory is not None and total.memory > self.memory:
            return "memory"
        return None


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a batch."""

    entries: list[LedgerEntry]
    changed: bool
    refused: dict[str, str]
    """By checkout: the limit that stood against it."""


def entry_size(entry: LedgerEntry) -> Size:
    return size(entry.cpu, entry.memory)


def apply(
    entries: Sequence[LedgerEntry],
    *,
    leave: Iterable[str] = (),
    enter: Iterable[LedgerEntry] = (),
    adopt: Iterable[LedgerEntry] = (),
    cap: Cap,
) -> Batch:
    """Apply a batch to a ledger.

    Guarantees: whoever enters is within the cap. Entries that were over it before (the
    cap was lowered) stay, and nobody enters until there is room again. Whoever is in
    already is not refused and not counted twice. What is adopted counts whatever the
    cap says: it is there already.
    """
    leaving = set(leave)
    kept = {each.checkout: each for each in entries if each.checkout not in leaving}
    changed = len(kept) != len(entries)
    for entry in adopt:
        if entry.checkout not in leaving and entry.checkout not in kept:
            kept[entry.checkout], changed = entry, True
    total = sum(map(entry_size, kept.values()), Size())
    refused: dict[str, str] = {}
    for entry in enter:
        if entry.checkout in kept:
            continue
        after = total + entry_size(entry)
        broken = cap.broken_by(len(kept) + 1, after)
        if broken is not None:
            refused[entry.checkout] = broken
            continue
        kept[entry.checkout], total, changed = entry, after, True
    return Batch(entries=list(kept.values()), changed=changed, refused=refused)


def limits_of(spec: WorkerPoolSpec, tenant: str) -> Limits:
    """The limits of a tenant: its own, all of them, or else the pool's."""
    own = policy_of(spec, tenant)
    return spec.limits if own is None or own.limits is None else own.limits


def policy_of(spec: WorkerPoolSpec, tenant: str) -> Tenant | None:
    return next((each for each in spec.tenants if each.name == tenant), None)


def cap_of(spec: WorkerPoolSpec, tenant: str) -> Cap:
    """What the ledger of a tenant may hold; the pool's own for the tenant ""."""
    if not tenant:
        return Cap(count=spec.maxWorkers, name="maxWorkers")
    limits = limits_of(spec, tenant)
    return Cap(
        count=limits.workers,
        cpu=None if limits.cpu is None else limits.cpu.milli,
        memory=None if limits.memory is None else int(limits.memory),
    )


def idle_cap_of(spec: WorkerPoolSpec, tenant: str) -> Cap:
    """How much may be parked for a tenant."""
    limits = limits_of(spec, tenant)
    return Cap(
        count=limits.idleWorkers,
        cpu=None if limits.idleCpu is None else limits.idleCpu.milli,
        memory=None if limits.idleMemory is None else int(limits.idleMemory),
        name="idleWorkers",
    )


def ttl_of(spec: WorkerPoolSpec, tenant: str, asked: int | None) -> int:
    """Seconds that a worker stays parked: as asked, as the tenant or the pool says."""
    own = policy_of(spec, tenant)
    said = asked
    if said is None and own is not None:
        said = own.ttl
    if said is None:
        said = spec.idleTTL
    return said if spec.maxTTL is None else min(said, spec.maxTTL)
