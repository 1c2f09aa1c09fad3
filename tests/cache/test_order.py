"""Order: which events are news, if some come twice or late."""

from __future__ import annotations

from trimtab.api.resource import Metadata
from trimtab.cache.order import BURIED, Order


def meta(uid: str, revision: str) -> Metadata:
    return Metadata(name=uid, uid=uid, resourceVersion=revision)


def test_what_a_list_covers_is_old_and_what_follows_is_news() -> None:
    order = Order()
    order.restart("10")
    assert order.judge("ADDED", meta("a", "10")) == "old"
    assert order.judge("ADDED", meta("a", "11")) == "news"


def test_a_late_event_is_taken_unless_its_object_is_known_to_be_gone() -> None:
    order = Order()
    order.restart("10")
    assert order.judge("DELETED", meta("a", "15")) == "news"
    assert order.judge("MODIFIED", meta("a", "14")) == "old"
    assert order.judge("ADDED", meta("b", "13")) == "late"
    order.restart("20")
    assert order.judge("ADDED", meta("b", "19")) == "old"


def test_revisions_that_are_no_numbers_are_taken_as_they_come() -> None:
    order = Order()
    order.restart("abc")
    assert order.judge("ADDED", meta("a", "b-1")) == "news"
    assert not order.is_older("b-1", than="c-1")


def test_no_more_deletions_are_remembered_than_are_worth_it() -> None:
    order = Order()
    order.restart("10")
    for number in range(11, 12 + BURIED):
        order.judge("DELETED", meta(f"u{number}", str(number)))
    assert order.judge("MODIFIED", meta("u12", "11")) == "old"
    assert order.judge("MODIFIED", meta("u11", "11")) == "late"
