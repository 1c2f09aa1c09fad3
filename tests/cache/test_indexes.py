"""An index finds exactly the objects that a full scan would find."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cache.robots import Robot, robot
from trimtab.cache import Index, Store, field, label, owner
from trimtab.cache.indexes import Buckets

values = st.lists(st.sampled_from("xyz"), max_size=3).map(tuple)


def test_owners_labels_and_fields_find_their_objects() -> None:
    indexes = [owner(), label("app"), field("spec.arm"), field("spec.tools")]
    store = Store(Robot, indexes=indexes)
    one = robot("one", owner="f", labels={"app": "x"}, spec={"arm": "left"})
    two = robot("two", owner="f", labels={"app": ""}, spec={"tools": ["saw", "drill"]})
    store.put(one)
    store.put(two)
    assert store.children("f") == [one, two]
    assert store.by("label:app", "x") == [one]
    assert store.by("label:app", "") == [two]
    assert store.by("field:spec.arm", "left") == [one]
    assert store.by("field:spec.tools", "drill") == [two]
    assert store.by("field:spec.arm", "") == []


def test_an_index_that_nobody_named_is_an_error() -> None:
    with pytest.raises(KeyError, match="has no index 'owner'"):
        Store(Robot).children("f")


def test_an_index_that_comes_later_has_what_is_there() -> None:
    store = Store(Robot)
    store.put(robot("one", owner="f"))
    store.add_index(owner())
    store.add_index(owner())
    store.put(robot("two", owner="f"))
    assert store.keys_by("owner", "f") == [("a", "one"), ("a", "two")]


def test_an_index_that_cannot_read_an_object_loses_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(obj: Any) -> list[str]:
        raise RuntimeError("broken")

    store = Store(Robot, indexes=[Index("broken", broken), owner()])
    with caplog.at_level(logging.ERROR):
        store.put(robot("one", 1, owner="f"))
        store.put(robot("one", 2, owner="f"))
    assert len(store.children("f")) == 1
    assert store.by("broken", "x") == []
    assert len(caplog.records) == 1
    assert store.remove(robot("one", 3)) is not None


@given(
    st.lists(
        st.tuples(st.sampled_from([("a", "1"), ("a", "2"), ("b", "1")]), values),
        max_size=30,
    )
)
def test_buckets_are_what_their_moves_make_them(
    moves: list[tuple[tuple[str, str], tuple[str, ...]]],
) -> None:
    buckets = Buckets(owner())
    model: dict[tuple[str, str], tuple[str, ...]] = {}
    for key, found in moves:
        buckets.move(key, model.get(key, ()), found)
        model[key] = found
        scanned: dict[str, set[tuple[str, str]]] = {}
        for each, under in model.items():
            for value in under:
                scanned.setdefault(value, set()).add(each)
        assert buckets.contents() == scanned
        shared = sum(len(each) for each in scanned.values() if len(each) > 1)
        assert buckets._shared == shared
