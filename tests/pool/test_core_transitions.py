"""Laws of the transitions: whatever is tried in whatever order."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.api import Metadata, Quantity, wire
from trimtab.pool import transitions
from trimtab.pool.kinds import Checkout, Worker, WorkerSpec, WorkerStatus
from trimtab.pool.states import (
    ALLOWED,
    PARKED,
    TAKEN,
    TERMINAL,
    Reason,
    State,
)
from trimtab.pool.swapping import changes
from trimtab.pool.transitions import Impossible

NOW = datetime(2026, 1, 2, tzinfo=UTC)
Step = Callable[[Worker], WorkerStatus]


def worker(status: WorkerStatus | None = None) -> Worker:
    return Worker(
        metadata=Metadata(name="w", namespace="n", uid="u", resourceVersion="1"),
        spec=WorkerSpec(
            pool="p",
            shape="small",
            cpu=Quantity("1"),
            memory=Quantity("1Gi"),
            revision="r",
            spawner="a",
        ),
        status=status or WorkerStatus(),
    )


def checkout(name: str) -> Checkout:
    return Checkout(id=name, holder=f"holder of {name}", since=NOW)


names = st.sampled_from(["a", "b"])
checkouts = st.sampled_from(["c1", "c2"])
reasons = st.sampled_from(Reason)
steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(lambda o: partial(transitions.spawned, owner=o), names),
    st.builds(
        lambda o: partial(transitions.ready, owner=o, address="h", port=1, at=NOW),
        names,
    ),
    st.builds(
        lambda t, c, o, a: partial(
            transitions.claim, tenant=t, checkout=checkout(c), owner=o, activation=a
        ),
        names,
        checkouts,
        names,
        st.booleans(),
    ),
    st.builds(lambda c: partial(transitions.activated, checkout=c), checkouts),
    st.builds(lambda o: partial(transitions.beat, owner=o), names),
    st.builds(lambda c: partial(transitions.park, checkout=c, at=NOW), checkouts),
    st.builds(
        lambda o, r: partial(transitions.mark, reaper=o, reason=r, reap_after=NOW),
        names,
        reasons,
    ),
    st.just(transitions.unmark),
    st.just(transitions.fence),
    st.builds(
        lambda r, k: partial(transitions.drain, reason=r, keep=k),
        reasons,
        st.booleans(),
    ),
    st.just(transitions.give_up),
    st.just(transitions.retire),
    st.builds(lambda r: partial(transitions.lose, reason=r), reasons),
)


def lives(taken: list[Step]) -> list[tuple[WorkerStatus, WorkerStatus]]:
    """What each step made of what; steps that are impossible change nothing."""
    found, now = [], WorkerStatus()
    for step in taken:
        try:
            made = step(worker(now))
        except Impossible:
            continue
        found.append((now, made))
        now = made
    return found


@settings(max_examples=25)
@given(st.lists(steps, max_size=30))
def test_epochs_never_decrease(taken: list[Step]) -> None:
    assert all(old.epoch <= new.epoch for old, new in lives(taken))


@settings(max_examples=25)
@given(st.lists(steps, max_size=30))
def test_what_is_over_never_changes(taken: list[Step]) -> None:
    assert all(old.state not in TERMINAL for old, _ in lives(taken))


@settings(max_examples=25)
@given(st.lists(steps, max_size=30))
def test_only_allowed_moves_are_made(taken: list[Step]) -> None:
    for old, new in lives(taken):
        assert new.state is old.state or new.state in ALLOWED[old.state]


@settings(max_examples=25)
@given(st.lists(steps, max_size=30))
def test_a_tenant_once_bound_is_never_another(taken: list[Step]) -> None:
    for old, new in lives(taken):
        assert not old.tenant or new.tenant == old.tenant


@settings(max_examples=25)
@given(st.lists(steps, max_size=30))
def test_a_checkout_ends_before_the_next_begins(taken: list[Step]) -> None:
    for old, new in lives(taken):
        if old.checkout is not None and new.checkout is not None:
            assert old.checkout == new.checkout
        assert new.state not in TAKEN or new.checkout is not None
        assert new.state not in PARKED | TERMINAL or new.checkout is None


@settings(max_examples=25)
@given(st.lists(steps, max_size=30))
def test_every_claim_and_every_mark_has_an_epoch_of_its_own(taken: list[Step]) -> None:
    for old, new in lives(taken):
        claimed = old.checkout is None and new.checkout is not None
        marked = not old.reaper and bool(new.reaper)
        assert not (claimed or marked) or new.epoch > old.epoch


@settings(max_examples=25)
@given(st.lists(steps, max_size=30))
def test_a_marked_worker_is_claimed_by_nobody(taken: list[Step]) -> None:
    for old, new in lives(taken):
        assert not (old.reaper and old.checkout is None and new.checkout is not None)


@settings(max_examples=25)
@given(st.lists(steps, max_size=30))
def test_a_patch_makes_of_the_old_status_the_new_one(taken: list[Step]) -> None:
    for old, new in lives(taken):
        patched = (wire(old) if old.owner else {}) | changes(old, new)
        assert {key: value for key, value in patched.items() if value is not None} == {
            key: value for key, value in wire(new).items() if value is not None
        }


@settings(max_examples=25)
@given(st.lists(steps, max_size=30))
def test_from_every_state_a_worker_can_be_ended(taken: list[Step]) -> None:
    history = lives(taken)
    now = history[-1][1] if history else WorkerStatus()
    if now.state in TERMINAL:
        return
    if now.state is not State.DRAINING:
        now = transitions.drain(worker(now), reason=Reason.NORMAL)
    elif now.checkout is not None:
        now = transitions.give_up(worker(now))
    assert transitions.retire(worker(now)).state in TERMINAL


def test_a_draining_worker_keeps_its_holder_until_it_is_released() -> None:
    status = WorkerStatus(
        state=State.HOT, tenant="t", owner="a", epoch=3, checkout=checkout("c1")
    )
    status = transitions.drain(worker(status), reason=Reason.DRAINED, keep=True)
    assert (status.state, status.checkout) == (State.DRAINING, checkout("c1"))
    with pytest.raises(Impossible, match="checked out"):
        transitions.retire(worker(status))
    status = transitions.park(worker(status), checkout="c1", at=NOW)
    assert (status.state, status.checkout) == (State.DRAINING, None)
    assert transitions.retire(worker(status)).retireReason == "drained"


def test_a_crash_is_lost_and_everything_else_is_retired() -> None:
    ends = {}
    for reason in Reason:
        drained = transitions.drain(worker(), reason=reason)
        ends[reason] = transitions.retire(worker(drained)).state
    assert {each for each in ends if ends[each] is State.LOST} == {Reason.POD_GONE}


def test_each_state_has_its_row_in_the_table() -> None:
    assert set(ALLOWED) == set(State)
    for state, moves in ALLOWED.items():
        assert (not moves) == (state in TERMINAL)
        assert state not in moves


@pytest.mark.parametrize("name", WorkerStatus.__struct_fields__)
def test_every_field_of_a_status_survives_the_wire(name: str) -> None:
    full = WorkerStatus(
        state=State.HOT,
        tenant="t",
        owner="o",
        epoch=4,
        checkout=checkout("c"),
        idleSince=NOW,
        ttl=0,
        reapAfter=NOW,
        reaper="r",
        retireReason="x",
        address="h",
        port=1,
        pod="p",
        certificateExpires=NOW,
        beat=2,
        message="m",
    )
    assert getattr(full, name) != getattr(WorkerStatus(), name)
    again = msgspec.convert(wire(worker(full)), Worker, strict=False, dec_hook=_hook)
    assert getattr(again.status, name) == getattr(full, name)


def _hook(kind: type, value: object) -> object:
    from trimtab.api.codec import dec_hook

    return dec_hook(kind, value)
