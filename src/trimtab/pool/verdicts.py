"""Verdicts: what a reaper does with a row, by what it has seen. Pure.

Nothing here compares the clocks of two hosts: how long a row has been as it is was
measured by this observer. Only the TTL of a row that was parked before this replica
started is judged by the wall clock, with the declared skew added; if that is wrong, an
idle worker ends too early, which costs a spawn and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

import msgspec

from trimtab.pool.kinds import Worker, WorkerPool
from trimtab.pool.limits import ttl_of
from trimtab.pool.parts import PoolOptions
from trimtab.pool.states import PARKED, TAKEN, TERMINAL, Reason, State
from trimtab.pool.view import Row

OVERDUE: Final = 12
"""Periods after which an idle worker is ended by anybody, whoever owns it."""
MARGIN: Final = 1.5
"""A step counts as stuck when it takes so many times its budget."""


class Act(Enum):
    """What to do with a row."""

    EXPIRE = "expire"
    """It has been parked for its time: end it, unless a floor keeps it."""
    MARK = "mark"
    """Say that it will be ended, and take its epoch."""
    UNMARK = "unmark"
    """Whoever has it is alive after all."""
    END = "end"
    """The grace is over and the mark still stands."""
    FINISH = "finish"
    """It drains and nobody has it: do the rest."""


class Verdict(msgspec.Struct, frozen=True):
    act: Act
    reason: Reason = Reason.NORMAL


class Observer(msgspec.Struct, frozen=True, kw_only=True):
    """What a reaper knows at this moment."""

    incarnation: str
    now: float
    """By the loop's clock."""
    wall: datetime
    started: float
    """When this replica had seen all rows, by the loop's clock."""
    dead: Callable[[str], bool]
    options: PoolOptions
    leads: bool = False


def judge(row: Row, pool: WorkerPool, seen: Observer) -> Verdict | None:
    """What to do with a row; None for nothing."""
    status = row.worker.status
    if status.state in TERMINAL:
        return None
    if status.state in PARKED:
        expired = is_expired(row, pool, seen) and _is_ours_to_expire(row, pool, seen)
        return Verdict(Act.EXPIRE, Reason.IDLE_EXPIRED) if expired else None
    if status.state is State.DRAINING and status.checkout is None:
        ours = status.owner == seen.incarnation or seen.leads
        late = seen.now - row.changed > 2 * seen.options.period
        due = late or (ours and seen.now - row.changed > seen.options.period)
        return Verdict(Act.FINISH) if due else None
    return _judge_liveness(row, pool, seen)


def _judge_liveness(row: Row, pool: WorkerPool, seen: Observer) -> Verdict | None:
    """Rows that somebody has or works on: marked first, and ended a grace later."""
    status = row.worker.status
    reason = _trouble(row, pool, seen)
    if not status.reaper:
        return Verdict(Act.MARK, reason) if reason else None
    stuck = status.retireReason == Reason.STUCK.value
    if reason is None and not stuck:
        return Verdict(Act.UNMARK)
    if seen.now - row.changed > seen.options.grace:
        return Verdict(Act.END, reason or Reason.STUCK)
    return None


def _trouble(row: Row, pool: WorkerPool, seen: Observer) -> Reason | None:
    """Why a row that somebody has should be ended."""
    status = row.worker.status
    if status.state in (State.SPAWNING, State.ACTIVATING):
        if seen.dead(owner_of_row(row.worker)):
            return Reason.OWNER_DEAD
        budgets = pool.spec.budgets
        spawns = status.state is State.SPAWNING
        limit = MARGIN * (budgets.spawn if spawns else budgets.activation)
        return Reason.STUCK if seen.now - row.changed > limit else None
    held = status.checkout
    if held is not None and status.state in TAKEN | {State.DRAINING}:
        return Reason.HOLDER_DEAD if seen.dead(held.holder) else None
    return None


def owner_of_row(worker: Worker) -> str:
    """Who works on a row: before its first write, whoever made it."""
    return worker.status.owner or worker.spec.spawner


def is_expired(row: Row, pool: WorkerPool, seen: Observer) -> bool:
    """Whether a parked worker has been so for its time."""
    status = row.worker.status
    ttl = ttl_of(pool.spec, status.tenant, status.ttl)
    if seen.now - row.entered >= ttl:
        return True
    if row.entered > seen.started or status.idleSince is None:
        return False  # we saw it being parked, so our own clock is the better one
    late = timedelta(seconds=ttl + seen.options.skew)
    return seen.wall - status.idleSince > late


def _is_ours_to_expire(row: Row, pool: WorkerPool, seen: Observer) -> bool:
    status = row.worker.status
    if seen.leads or status.owner == seen.incarnation or seen.dead(status.owner):
        return True
    ttl = ttl_of(pool.spec, status.tenant, status.ttl)
    return seen.now - row.entered > ttl + OVERDUE * seen.options.period
