"""What stands beside pods is known from an index that follows the store."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.embedded.classes import LIMITS, PRIORITIES, RUNTIMES, Classes
from trimtab.embedded.runtimes import merged_tolerations
from trimtab.embedded.store import Store

Plain = dict[str, Any]
KEYS = (
    *(f"{LIMITS}{place}/{name}" for place in "ab" for name in "xyz"),
    *(f"{PRIORITIES}{name}" for name in "xyz"),
    *(f"{RUNTIMES}{name}" for name in "xy"),
    "core/configmaps/a/x",
)


def stored(key: str, value: int) -> bytes:
    name = key.rpartition("/")[2]
    obj = {"metadata": {"name": name}, "value": value, "globalDefault": value % 2 == 0}
    return msgspec.json.encode(obj)


def _same(body: bytes, revision: int) -> bytes:
    return body


def told(classes: Classes) -> list[Any]:
    return [
        *(list(classes.limits(place)) for place in "ab"),
        *(classes.priority(name) for name in "xyz"),
        *(classes.runtime(name) for name in "xy"),
        classes.default_priority,
    ]


writes = st.lists(
    st.tuples(st.sampled_from(KEYS), st.none() | st.integers(0, 9)), max_size=25
)


@settings(max_examples=30)
@given(writes)
def test_an_index_that_followed_is_as_one_that_begins_now(
    given_writes: list[tuple[str, int | None]],
) -> None:
    with closing(Store(None)) as store:
        classes = Classes(store)
        for key, value in given_writes:
            row = store.get(key)
            revision = 0 if row is None else row.revision
            if value is not None:
                body = stored(key, value)
                store.put(key, partial(_same, body), expect=revision)
            elif row is not None:
                store.delete(key, expect=revision)
        assert told(classes) == told(Classes(store))


tolerations = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "key": st.sampled_from("ab"),
            "operator": st.sampled_from(("Exists", "Equal")),
            "value": st.sampled_from("vw"),
            "effect": st.sampled_from(("NoSchedule", "NoExecute")),
            "tolerationSeconds": st.integers(1, 3),
        },
    ),
    max_size=6,
)


@settings(max_examples=50)
@given(tolerations)
def test_merging_tolerations_again_changes_nothing(given_list: list[Plain]) -> None:
    merged = merged_tolerations(given_list)
    assert merged_tolerations(merged) == merged
    assert all(each in given_list for each in merged)


def test_a_toleration_of_everything_makes_the_others_needless() -> None:
    everything = {"operator": "Exists"}
    some = {"key": "a", "operator": "Equal", "value": "v", "effect": "NoSchedule"}
    assert merged_tolerations([some, everything, some]) == [everything]
