"""Subscribers see every change, in order, and cannot disturb each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from trimtab.embedded.store import Change, Store


@pytest.fixture
def db() -> Iterator[Store]:
    with closing(Store(None)) as opened:
        yield opened


def test_a_subscriber_is_told_of_every_change_before_the_write_returns(
    db: Store,
) -> None:
    seen: list[Change] = []
    db.put("before", b"")
    db.subscribe(seen.append)
    row = db.put("a", b"1")
    assert seen == [Change(row.revision, "a", b"1", None, row.revision)]
    db.put("a", b"2")
    db.delete("a")
    assert seen == db.changes(since=2)


def test_who_has_left_is_told_no_more(db: Store) -> None:
    seen: list[Change] = []
    leave = db.subscribe(seen.append)
    leave()
    leave()
    db.put("a", b"")
    assert seen == []


def test_who_is_sent_away_by_another_is_told_no_more(db: Store) -> None:
    seen: list[Change] = []
    leave: list[Callable[[], None]] = []
    db.subscribe(lambda _: leave[0]())
    leave.append(db.subscribe(seen.append))
    db.put("a", b"")
    assert seen == []


def test_a_subscriber_that_writes_does_not_change_the_order_for_others(
    db: Store,
) -> None:
    first: list[int] = []
    second: list[int] = []

    def echo(change: Change) -> None:
        first.append(change.revision)
        if change.revision < 6:
            db.put(change.key, b"")

    db.subscribe(echo)
    db.subscribe(lambda change: second.append(change.revision))
    db.put("a", b"")
    assert first == second == [2, 3, 4, 5, 6]


def test_who_comes_in_the_middle_is_told_only_of_what_comes_after(db: Store) -> None:
    late: list[int] = []
    joined: list[int] = []

    def invite(change: Change) -> None:
        if not joined:
            db.put("b", b"")
            db.subscribe(lambda change: late.append(change.revision))
            joined.append(db.revision)

    db.subscribe(invite)
    db.put("a", b"")
    db.put("c", b"")
    assert joined == [3]
    assert late == [4]


def test_a_subscriber_that_fails_is_logged_and_dropped_and_hurts_nobody(
    db: Store, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[int] = []
    seen: list[int] = []

    def fail(change: Change) -> None:
        calls.append(change.revision)
        raise LookupError("a mistake")

    db.subscribe(fail)
    db.subscribe(lambda change: seen.append(change.revision))
    db.put("a", b"")
    db.put("a", b"")
    assert calls == [2]
    assert seen == [2, 3]
    assert "a mistake" in caplog.text
    assert db.revision == 3


def test_an_interrupt_in_a_subscriber_makes_nobody_miss_a_change(db: Store) -> None:
    first: list[int] = []
    second: list[int] = []

    def interrupted(change: Change) -> None:
        first.append(change.revision)
        if change.revision == 2:
            raise KeyboardInterrupt

    db.subscribe(interrupted)
    db.subscribe(lambda change: second.append(change.revision))
    with pytest.raises(KeyboardInterrupt):
        db.put("a", b"")
    db.put("a", b"")
    assert first == second == [2, 3]
