"""Explaining: how a pool or a worker is, why, and what happens to it next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from trimtab.pool.kinds import TenantLedger, Worker, WorkerPool
from trimtab.pool.limits import cap_of, entry_size, ttl_of
from trimtab.pool.shapes import Size
from trimtab.pool.states import TERMINAL, Reason, State

WHY = {
    Reason.NORMAL: "its pool was told to let it go",
    Reason.IDLE_EXPIRED: "nobody wanted it within its TTL",
    Reason.IDLE_CAP: "its tenant may have only so many parked workers",
    Reason.SPAWN_FAILED: "its pod did not become ready within the spawn budget",
    Reason.ACTIVATION_FAILED: "it could not be bound to its tenant",
    Reason.BEGIN_FAILED: "it did not acknowledge a checkout",
    Reason.CLEAN_FAILED: "it was not clean after a client, so nobody gets it again",
    Reason.HOLDER_DEAD: "the client that had it stopped renewing",
    Reason.OWNER_DEAD: "the gateway that worked on it stopped renewing",
    Reason.STUCK: "a step took longer than its budget",
    Reason.OUTDATED: "the pool's template or shape has changed since",
    Reason.DRAINED: "somebody asked for it to go",
    Reason.SURPLUS: "there were more idle workers than the pool wants",
    Reason.POD_GONE: "its pod ended by itself, or was deleted",
}


def worker(found: Worker, pool: WorkerPool, *, now: datetime) -> list[str]:
    """Sentences about one worker."""
    return list(_worker(found, pool, now))


def _worker(found: Worker, pool: WorkerPool, now: datetime) -> Iterator[str]:
    status = found.status
    yield (
        f"{found.metadata.name} is {status.state.value}: a worker of the pool "
        f"{found.spec.pool}, shape {found.spec.shape}, epoch {status.epoch}."
    )
    yield from _state(found, pool, now)
    if status.reaper:
        when = f", after {status.reapAfter:%H:%M:%S}" if status.reapAfter else ""
        yield (
            f"{status.reaper} has marked it ({status.retireReason}): it ends{when} "
            "unless whoever has it shows that it lives."
        )
    if status.message:
        yield f"It was noted: {status.message}"


def _state(found: Worker, pool: WorkerPool, now: datetime) -> Iterator[str]:
    status, budgets = found.status, pool.spec.budgets
    held = status.checkout
    owner = status.owner or found.spec.spawner
    match status.state:
        case State.SPAWNING:
            yield (
                f"{owner} makes its pod; if it is not ready {budgets.spawn} s after the"
                " last step, it is ended and its place is free."
            )
        case State.ACTIVATING:
            yield (
                f"{owner} binds it to the tenant {status.tenant}, which may take "
                f"{budgets.activation} s."
            )
        case State.IDLE | State.HOT_IDLE:
            whose = f"the tenant {status.tenant}" if status.tenant else "any tenant"
            ttl = ttl_of(pool.spec, status.tenant, status.ttl)
            yield f"It is free for {whose}, and is ended {ttl} s after it was parked."
            if status.idleSince is not None:
                ago = max(0, round((now - status.idleSince).total_seconds()))
                yield f"It was parked {ago} s ago; a floor or minIdle may keep it."
        case State.DRAINING:
            yield f"It goes, because {_why(status.retireReason)}."
        case State.RETIRED | State.LOST:
            yield f"It has ended, because {_why(status.retireReason)}."
    if held is not None:
        since = f" since {held.since:%H:%M:%S}" if held.since else ""
        yield (
            f"{held.holder} has it{since} for the tenant {status.tenant} (checkout "
            f"{held.id}), for as long as it renews."
        )


def pool(
    found: WorkerPool, workers: Sequence[Worker], ledgers: Sequence[TenantLedger]
) -> list[str]:
    """Sentences about one pool, its tenants, and what went wrong lately."""
    return list(_pool(found, workers, ledgers))


def _pool(
    found: WorkerPool, workers: Sequence[Worker], ledgers: Sequence[TenantLedger]
) -> Iterator[str]:
    spec = found.spec
    states = Counter(each.status.state for each in workers)
    living = sum(count for state, count in states.items() if state not in TERMINAL)
    yield (
        f"{found.metadata.name} has {living} of at most {spec.maxWorkers} workers, and "
        f"keeps {spec.minIdle} idle."
    )
    counted = [
        f"{states[state]} {state.value}"
        for state in State
        if states[state] and state not in TERMINAL
    ]
    if counted:
        yield f"They are: {', '.join(counted)}."
    if living >= spec.maxWorkers:
        yield "No more can be spawned: raise maxWorkers, or wait for releases."
    yield from _tenants(found, ledgers)
    reasons = Counter(
        each.status.retireReason for each in workers if each.status.state in TERMINAL
    )
    for reason, count in reasons.most_common():
        yield f"{count} ended lately, because {_why(reason)}."
    for condition in found.status.conditions.values():
        yield f"{condition.type} is {condition.status}: {condition.message}"


def _tenants(found: WorkerPool, ledgers: Sequence[TenantLedger]) -> Iterator[str]:
    for ledger in ledgers:
        tenant, entries = ledger.spec.tenant, ledger.status.entries
        if ledger.spec.pool != found.metadata.name or not tenant or not entries:
            continue
        cap = cap_of(found.spec, tenant)
        after = sum(map(entry_size, entries), Size())
        most = "any number" if cap.count is None else str(cap.count)
        full = cap.broken_by(len(entries) + 1, after)
        more = f"; its limit on {full} is reached" if full else ""
        yield f"The tenant {tenant} has {len(entries)} of {most} workers{more}."


def _why(reason: str) -> str:
    try:
        return WHY[Reason(reason)]
    except ValueError:
        return reason or "nobody said why"
