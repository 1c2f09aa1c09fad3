"""Laws of the pool: what holds at every write of a town, and what is left at rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import cast

from trimtab.pool.kinds import LABEL_ROLE, Budgets
from trimtab.pool.parts import PoolOptions
from trimtab.pool.placeholders import HEADROOM
from trimtab.pool.states import ALLOWED, TAKEN, TERMINAL, Reason, State
from trimtab.sim.server import ObjectChange, Plain, Server

WORKERS, PODS = "trimtab.dev/workers", "core/pods"
LEDGERS, WORKER_POOLS = "trimtab.dev/tenantledgers", "trimtab.dev/workerpools"
LEASES = "coordination.k8s.io/leases"
TENANTS = [f"tenant-{number}" for number in range(5)]
LIMITED = TENANTS[::2]
MAX_WORKERS, PER_TENANT = 4, 1
OPTIONS = PoolOptions(
    lease_namespace="default",
    namespaces=("default",),
    lease_seconds=6.0,
    grace=4.0,
    period=2.0,
    keep_terminal=20.0,
)
BUDGETS = Budgets(spawn=20, activation=10, acquire=10)
REAPED = {each.value for each in (Reason.HOLDER_DEAD, Reason.OWNER_DEAD, Reason.STUCK)}


def _status(obj: Plain) -> Plain:
    return cast(Plain, obj.get("status") or {})


def _state(obj: Plain) -> State:
    return State(_status(obj).get("state", "spawning"))


def rows_move_as_they_may(server: Server, change: ObjectChange) -> Iterator[str]:
    """Epochs never decrease, what is over never changes, moves are allowed ones."""
    if change.resource != WORKERS or not change.before or not change.after:
        return
    old, new = _state(change.before), _state(change.after)
    if new is not old and new not in ALLOWED[old]:
        yield f"{change.key} went from {old.value} to {new.value}."
    before, after = _status(change.before), _status(change.after)
    if old in TERMINAL and before != after:
        yield f"{change.key} was over and has changed."
    held, holds = before.get("checkout"), after.get("checkout")
    if held and holds and held["id"] != holds["id"]:
        yield f"{change.key} went from one checkout to another."


def epochs_rise(server: Server, change: ObjectChange) -> Iterator[str]:
    """With every claim and every mark; and they never go down."""
    if change.resource != WORKERS or not change.before or not change.after:
        return
    before, after = _status(change.before), _status(change.after)
    rise = after.get("epoch", 0) - before.get("epoch", 0)
    if rise < 0:
        yield f"The epoch of {change.key} went down."
    if rise < 1 and after.get("checkout") and not before.get("checkout"):
        yield f"{change.key} was claimed, and has its old epoch."
    if rise < 1 and after.get("reaper") and not before.get("reaper"):
        yield f"{change.key} was marked, and has its old epoch."


class TakenInTwoSwaps:
    """What somebody has is taken from them a grace after a mark, and not without."""

    def __init__(self) -> None:
        self._marked: dict[str, float] = {}

    def __call__(self, server: Server, change: ObjectChange) -> Iterator[str]:
        if change.resource != WORKERS or not change.before or not change.after:
            return
        before, after = _status(change.before), _status(change.after)
        if after.get("reaper") and not before.get("reaper"):
            self._marked[change.key] = server.time()
        ends = _state(change.after) is State.DRAINING is not _state(change.before)
        if not ends or after.get("retireReason") not in REAPED:
            return
        if not before.get("reaper"):
            yield f"{change.key} was taken away without a mark."
        elif server.time() - self._marked[change.key] < OPTIONS.grace:
            yield f"{change.key} was taken away before its grace was over."


def no_limit_is_exceeded(server: Server, change: ObjectChange) -> Iterator[str]:
    """Of checked-out workers per tenant, and of living workers per pool."""
    if change.resource != WORKERS:
        return
    tenants: Counter[tuple[str, str]] = Counter()
    living: Counter[str] = Counter()
    for each in server.of(WORKERS):
        state, name = _state(each), each["spec"]["pool"]
        living[name] += state not in TERMINAL
        if state in TAKEN:
            tenants[name, _status(each)["tenant"]] += 1
    for name, count in living.items():
        if count > MAX_WORKERS:
            yield f"{name} has {count} workers."
    for (name, tenant), count in tenants.items():
        if tenant in LIMITED and count > PER_TENANT:
            yield f"{tenant} has {count} workers of {name}."


def nobodys_pod_is_deleted(server: Server, change: ObjectChange) -> Iterator[str]:
    """A pod goes only after its row says that nobody is to have it.

    Unless its node is lost, or it is evicted: that is no replica's doing.
    """
    ours = change.resource == PODS and change.writer.replica >= 0
    if not ours or not change.before:
        return
    if change.after and "deletionTimestamp" not in change.after["metadata"]:
        return
    name = change.before["metadata"]["name"]
    row = server.objects.get(f"{WORKERS}/default/{name}")
    if row is not None and _state(row) in TAKEN:
        yield f"The pod {name} is deleted while it is {_state(row).value}."


ALIVE: dict[str, float] = {}
"""When each replica of the present run last took a step, by its incarnation."""
AWAKE = 3.0
"""Seconds without a step after which a replica stood still."""


class NobodyDeadHandsOut:
    """A worker is claimed only by a replica that nobody may think dead yet.

    One that stood still in the middle of it does not count: it could not know.
    """

    def __init__(self) -> None:
        ALIVE.clear()
        self._renewed: dict[str, float] = {}

    def __call__(self, server: Server, change: ObjectChange) -> Iterator[str]:
        if not change.after:
            return
        now = server.time()
        if change.resource == LEASES:
            self._renewed[change.after["spec"].get("holderIdentity", "")] = now
        if change.resource != WORKERS or _status(change.before or {}).get("checkout"):
            return
        status = _status(change.after)
        owner = status.get("owner", "")
        awake = now - ALIVE.get(owner, 0.0) < AWAKE
        silent = now - self._renewed.get(owner, 0.0)
        if status.get("checkout") and awake and silent > OPTIONS.lease_seconds:
            yield f"{change.key} was claimed by {owner}, silent for {silent:.1f} s."


# At rest


def nothing_leaks(server: Server) -> Iterable[str]:
    """At rest there is what minIdle wants, in every place, and nothing else."""
    pools = server.of(WORKER_POOLS)
    rows = {each["metadata"]["name"]: each for each in server.of(WORKERS)}
    living = {name for name, each in rows.items() if _state(each) not in TERMINAL}
    for name in sorted(living):
        if _state(rows[name]) is not State.IDLE:
            yield f"{name} is {_state(rows[name]).value} at rest."
    idle = Counter(rows[name]["spec"]["pool"] for name in living)
    wanted = {
        each["metadata"]["name"]: each["spec"].get("minIdle", 0) for each in pools
    }
    if idle != Counter({name: count for name, count in wanted.items() if count}):
        yield f"Idle at rest: {dict(idle)}, wanted: {wanted}."
    yield from _nothing_beside(server, rows, living)


def all_is_tidy(server: Server) -> Iterable[str]:
    """What a leader does for all, is done: pruning, and as much headroom as is said."""
    ended = [each for each in server.of(WORKERS) if _state(each) in TERMINAL]
    if ended:
        yield f"{len(ended)} ended rows were not pruned."
    for lease in server.of(LEASES):
        if _role(lease) == "holder":
            yield f"The lease {lease['metadata']['name']} of a dead holder stays."
    for pool in server.of(WORKER_POOLS):
        uid = pool["metadata"]["uid"]
        count = (pool["spec"].get("headroom") or {}).get("count", 0)
        found = [each for each in server.of(PODS) if _role(each) == HEADROOM]
        ours = [
            each
            for each in found
            if each["metadata"]["ownerReferences"][0]["uid"] == uid
        ]
        if len(ours) != count:
            name = pool["metadata"]["name"]
            yield f"{name} has {len(ours)} placeholders, and should have {count}."


def _nothing_beside(
    server: Server, rows: dict[str, Plain], living: set[str]
) -> Iterator[str]:
    """Pods, Secrets and entries of ledgers are those of living rows."""
    for resource in (PODS, "core/secrets"):
        found = {
            each["metadata"]["name"]
            for each in server.of(resource)
            if _role(each) != HEADROOM
        }
        if found != living:
            yield f"{resource}: {sorted(found ^ living)} do not match the rows."
    for ledger in server.of(LEDGERS):
        entries = _status(ledger).get("entries") or []
        counted = {each["worker"] for each in entries}
        pool = ledger["spec"]["pool"]
        of_pool = {name for name in living if rows[name]["spec"]["pool"] == pool}
        if counted != (set() if ledger["spec"].get("tenant") else of_pool):
            yield f"{ledger['metadata']['name']} counts {sorted(counted)}."


def _role(obj: Plain) -> str:
    return str((obj["metadata"].get("labels") or {}).get(LABEL_ROLE, ""))
