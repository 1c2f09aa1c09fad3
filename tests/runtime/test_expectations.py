"""Expectations hold a key exactly as long as something is in flight for it."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from trimtab.api.resource import Metadata
from trimtab.cache.changes import Change
from trimtab.kinds import Pod
from trimtab.runtime.expectations import Expectations

KEY = ("shop", "web")
EARLIER = datetime(2026, 1, 1, tzinfo=UTC)


def pod(uid: str, *, going: bool = False) -> Pod:
    when = EARLIER if going else None
    return Pod(metadata=Metadata(name=uid, uid=uid, deletionTimestamp=when))


def added(uid: str, *, initial: bool = False) -> Change[Pod]:
    return Change("ADDED", ("shop", uid), None, pod(uid), initial)


def deleted(uid: str) -> Change[Pod]:
    return Change("DELETED", ("shop", uid), pod(uid), None)


@given(
    creates=st.integers(0, 5),
    deletes=st.sets(st.sampled_from("abcde")),
    order=st.randoms(use_true_random=False),
)
def test_a_key_is_satisfied_after_the_last_event_and_not_before(
    creates: int, deletes: set[str], order: object
) -> None:
    open_ = Expectations()
    open_.expect(KEY, now=0, creates=creates, deletes=deletes)
    changes = [added(str(n)) for n in range(creates)]
    changes += [deleted(uid) for uid in sorted(deletes)]
    order.shuffle(changes)  # type: ignore[attr-defined]
    for change in changes:
        assert not open_.satisfied(KEY, now=0)
        open_.observed(KEY, change)
    assert open_.satisfied(KEY, now=0)
    assert len(open_) == 0


def test_a_child_that_is_being_deleted_counts_as_deleted() -> None:
    open_ = Expectations()
    open_.expect(KEY, now=0, deletes={"a"})
    open_.observed(KEY, Change("MODIFIED", KEY, pod("a"), pod("a")))
    assert not open_.satisfied(KEY, now=0)
    open_.observed(KEY, Change("MODIFIED", KEY, pod("a"), pod("a", going=True)))
    assert open_.satisfied(KEY, now=0)


def test_a_child_that_came_back_under_its_name_is_gone_all_the_same() -> None:
    open_ = Expectations()
    open_.expect(KEY, now=0, deletes={"a"})
    change = added("b")
    change.replaced = deleted("a")
    open_.observed(KEY, change)
    assert open_.satisfied(KEY, now=0)


def test_what_was_there_before_is_not_what_was_created() -> None:
    open_ = Expectations()
    open_.expect(KEY, now=0, creates=1)
    open_.observed(KEY, added("old", initial=True))
    assert not open_.satisfied(KEY, now=0)


def test_a_write_that_failed_is_not_waited_for() -> None:
    open_ = Expectations()
    open_.expect(KEY, now=0, creates=2, deletes={"a"})
    open_.failed(KEY, creates=1, deletes={"a"})
    open_.observed(KEY, added("new"))
    assert open_.satisfied(KEY, now=0)


def test_a_lost_event_holds_a_key_for_its_lifetime_and_no_longer() -> None:
    open_ = Expectations(lifetime=300)
    open_.expect(KEY, now=0, creates=1)
    assert not open_.satisfied(KEY, now=299)
    assert open_.satisfied(KEY, now=300)


def test_memory_is_bounded_by_what_was_expected_within_a_lifetime() -> None:
    open_ = Expectations(lifetime=10)
    for number in range(1000):
        open_.expect(("shop", str(number)), now=float(number), creates=1)
    assert len(open_) == 10


def test_a_parent_that_is_gone_is_forgotten() -> None:
    open_ = Expectations()
    open_.expect(KEY, now=0, creates=1)
    open_.forget(KEY)
    assert len(open_) == 0
