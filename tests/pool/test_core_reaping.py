"""Laws of liveness and of verdicts: who seems dead, and what is done about it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pool.test_core_view import worker
from trimtab.api import Metadata, Quantity
from trimtab.cache import Change
from trimtab.kinds import Lease, LeaseSpec
from trimtab.pool.kinds import (
    Checkout,
    Shape,
    Tenant,
    Worker,
    WorkerPool,
    WorkerPoolSpec,
)
from trimtab.pool.liveness import Deaths, LivenessOptions
from trimtab.pool.parts import PoolOptions
from trimtab.pool.reaping import _spared
from trimtab.pool.states import Reason, State
from trimtab.pool.verdicts import MARGIN, OVERDUE, Act, Observer, judge
from trimtab.pool.view import Row

OPTIONS = PoolOptions(lease_namespace="n", lease_seconds=15.0, grace=10.0, period=5.0)
ME, WALL = "me", datetime(2026, 1, 2, tzinfo=UTC)

# Liveness


def lease(identity: str, *, gone: bool = False) -> Change[Lease]:
    made = Lease(
        metadata=Metadata(name=identity), spec=LeaseSpec(holderIdentity=identity)
    )
    if gone:
        return Change("DELETED", ("n", identity), made, None)
    return Change("MODIFIED", ("n", identity), None, made)


def deaths() -> Deaths:
    return Deaths(OPTIONS.liveness, incarnation=ME)


def seen_ourselves(made: Deaths, until: float, since: float = 0.0) -> None:
    """Our own renewals come by, as they do while the watch works."""
    now = since
    while now <= until:
        made.follow(lease(ME), now)
        now += OPTIONS.liveness.period


def eighths(most: float) -> st.SearchStrategy[float]:
    """Seconds up to so many whose sums are exact, so that nothing rounds."""
    return st.integers(1, int(most * 8)).map(lambda number: number / 8)


@settings(max_examples=50)
@given(st.lists(eighths(14.9), max_size=10), eighths(40))
def test_nobody_is_dead_before_a_whole_duration_without_a_change(
    pauses: list[float], silence: float
) -> None:
    made, now = deaths(), 0.0
    seen_ourselves(made, 200.0)
    for pause in [0.0, *pauses]:
        now += pause
        assert not made.dead("other", now)
        made.follow(lease("other"), now)
    seen_ourselves(made, now + silence, since=now)
    made.follow(lease(ME), now + silence)
    assert made.dead("other", now + silence) == (silence > 15.0)


@pytest.mark.parametrize("there", [True, False])
def test_a_fresh_observer_waits_a_whole_duration(there: bool) -> None:
    made = deaths()
    seen_ourselves(made, 130.0, since=100.0)
    if there:
        made.follow(lease("other"), 100.0)
    assert not made.dead("other", 100.0)
    assert not made.dead("other", 114.0)
    assert made.dead("other", 116.0)


def test_while_the_watch_is_silent_for_all_nobody_is_dead_and_then_all_begin_anew() -> (
    None
):
    made = deaths()
    made.follow(lease(ME), 0.0)
    made.follow(lease("other"), 0.0)
    assert not made.dead("other", 60.0), "we have not seen ourselves either"
    seen_ourselves(made, 90.0, since=60.0)
    assert not made.dead("other", 74.0)
    assert made.dead("other", 76.0)


def test_a_lease_that_was_deleted_is_missed_from_then_on() -> None:
    made = deaths()
    seen_ourselves(made, 100.0)
    made.follow(lease("other"), 0.0)
    made.follow(lease("other", gone=True), 50.0)
    assert not made.dead("other", 64.0)
    assert made.dead("other", 66.0)
    made.follow(lease("other"), 67.0)
    assert not made.dead("other", 68.0)


def test_nobody_and_ourselves_are_never_dead() -> None:
    made = deaths()
    seen_ourselves(made, 100.0)
    assert not made.dead("", 99.0)
    assert not made.dead(ME, 99.0)


def test_a_replica_stops_acting_before_others_may_think_it_dead() -> None:
    options = LivenessOptions(namespace="n")
    assert options.period < options.act_within < options.duration


# Verdicts


def pool(**spec: Any) -> WorkerPool:
    shape = Shape(name="s", cpu=Quantity("1"), memory=Quantity("1Gi"))
    return WorkerPool(
        metadata=Metadata(name="p", namespace="n"),
        spec=WorkerPoolSpec(template={}, shapes=[shape], **spec),
    )


def verdict(
    made: Worker,
    age: float,
    *,
    dead: tuple[str, ...] = (),
    leads: bool = False,
    started: float = 0.0,
    wall: datetime = WALL,
    **spec: Any,
) -> tuple[Act, Reason] | None:
    """What becomes of a row that has been as it is for so long."""
    now = 10_000.0
    row = Row(made, now - age)
    seen = Observer(
        incarnation=ME,
        now=now,
        wall=wall,
        started=started or now - age - 1,
        dead=lambda identity: identity in dead,
        options=OPTIONS,
        leads=leads,
    )
    found = judge(row, pool(**spec), seen)
    return None if found is None else (found.act, found.reason)


def hot(**status: Any) -> Worker:
    held = Checkout(id="c", holder="holder")
    return worker(
        "w", state=State.HOT, tenant="t", checkout=held, owner="other", **status
    )


EXPIRED = (Act.EXPIRE, Reason.IDLE_EXPIRED)


def test_an_idle_worker_ends_by_its_owner_when_its_time_is_up() -> None:
    parked = worker("w", state=State.HOT_IDLE, tenant="t")
    assert verdict(parked, 59.0) is None
    assert verdict(parked, 60.0) == EXPIRED
    assert verdict(worker("w", state=State.HOT_IDLE, ttl=7), 8.0) == EXPIRED
    assert verdict(worker("w", state=State.HOT_IDLE, ttl=0), 0.0) == EXPIRED


def test_an_idle_worker_of_another_ends_by_the_leader_by_its_heirs_or_by_anybody() -> (
    None
):
    parked = worker("w", state=State.HOT_IDLE, tenant="t", owner="other")
    assert verdict(parked, 61.0) is None
    assert verdict(parked, 61.0, leads=True) == EXPIRED
    assert verdict(parked, 61.0, dead=("other",)) == EXPIRED
    assert verdict(parked, 61.0 + OVERDUE * OPTIONS.period) == EXPIRED


def test_a_fresh_replica_believes_the_wall_clock_beyond_the_declared_skew() -> None:
    parked = worker("w", state=State.HOT_IDLE, idleSince=WALL)
    late = WALL + timedelta(seconds=60 + OPTIONS.skew)
    fresh: dict[str, Any] = {"started": 10_000.0}
    assert verdict(parked, 1.0, wall=late, **fresh) is None
    later = late + timedelta(seconds=1)
    assert verdict(parked, 1.0, wall=later, **fresh) == EXPIRED
    assert verdict(parked, 1.0, wall=later) is None, "we saw it being parked"


def test_what_somebody_has_is_marked_first_and_ended_a_grace_later() -> None:
    marked = hot(reaper="x", retireReason="holder-dead")
    dead = ("holder",)
    assert verdict(hot(), 1e6) is None
    assert verdict(hot(), 0.0, dead=dead) == (Act.MARK, Reason.HOLDER_DEAD)
    assert verdict(marked, 9.0, dead=dead) is None
    assert verdict(marked, 11.0, dead=dead) == (Act.END, Reason.HOLDER_DEAD)
    assert verdict(marked, 9.0) == (Act.UNMARK, Reason.NORMAL)


def test_what_a_living_replica_works_on_is_left_alone_within_its_budget() -> None:
    spawning = worker("w", state=State.SPAWNING, owner="other")
    assert verdict(spawning, 300 * MARGIN) is None
    assert verdict(spawning, 300 * MARGIN + 1) == (Act.MARK, Reason.STUCK)
    assert verdict(spawning, 1.0, dead=("other",)) == (Act.MARK, Reason.OWNER_DEAD)
    fresh = worker("w", state=State.SPAWNING, owner="")
    assert verdict(fresh, 1.0, dead=("",)) == (Act.MARK, Reason.OWNER_DEAD)
    stuck = worker(
        "w", state=State.SPAWNING, owner="other", reaper="x", retireReason="stuck"
    )
    assert verdict(stuck, 9.0) is None
    assert verdict(stuck, 11.0) == (Act.END, Reason.STUCK)


def test_a_cutoff_is_longer_than_the_budget_that_it_is_derived_from() -> None:
    assert MARGIN > 1


def test_what_drains_is_finished_by_its_owner_first_and_then_by_anybody() -> None:
    ours = worker("w", state=State.DRAINING)
    others = worker("w", state=State.DRAINING, owner="other")
    assert verdict(ours, 4.0) is None
    assert verdict(ours, 6.0) == (Act.FINISH, Reason.NORMAL)
    assert verdict(others, 6.0) is None
    assert verdict(others, 11.0) == (Act.FINISH, Reason.NORMAL)
    held = Checkout(id="c", holder="holder")
    busy = worker("w", state=State.DRAINING, checkout=held)
    assert verdict(busy, 1e6) is None
    assert verdict(busy, 1.0, dead=("holder",)) == (Act.MARK, Reason.HOLDER_DEAD)


def test_what_is_over_is_never_judged() -> None:
    for state in (State.RETIRED, State.LOST):
        assert verdict(worker("w", state=state), 1e6, leads=True) is None


def test_a_floor_keeps_so_many_and_not_one_more() -> None:
    policy = pool(minIdle=2, tenants=[Tenant(name="t", keepIdle=1)])
    neutral = worker("w")
    bound = worker("w", state=State.HOT_IDLE, tenant="t")
    other = worker("w", state=State.HOT_IDLE, tenant="x")
    key = ("n", "p")
    parked = Counter({(key, "", "s"): 3, (key, "t", ""): 2, (key, "x", ""): 1})
    for each, expected in (
        (neutral, [False, True]),
        (bound, [False, True]),
        (other, [False]),
    ):
        assert [_spared(each, policy, parked) for _ in expected] == expected
