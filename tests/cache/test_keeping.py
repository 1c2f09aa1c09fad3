"""What is kept of an object, and that each form gives back what went in."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cache.robots import Robot, robot
from trimtab.api import decode
from trimtab.cache import Predicate, Store, label, owner
from trimtab.cache.keeping import Keeper, identity
from trimtab.kinds import Lease, Node, Pod, Secret

KEY = ("a", "r")
POD: dict[str, Any] = {
    "metadata": {
        "name": "r",
        "namespace": "a",
        "uid": "u",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-02T00:00:00Z",
        "generation": 3,
        "managedFields": [{"manager": "kubelet"}],
        "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "o"}],
    },
    "spec": {
        "nodeName": "n",
        "containers": [
            {"name": "c", "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}}}
        ],
        "tolerations": [],
    },
    "status": {
        "phase": "Running",
        "containerStatuses": [],
        "conditions": [
            {"type": "Ready", "status": "False"},
            {"type": "Ready", "status": "True"},
        ],
    },
}


def raw(**metadata: Any) -> bytes:
    body = {**POD, "metadata": {**POD["metadata"], **metadata}}
    return json.dumps(body).encode()


def test_a_packed_slice_reads_back_equal() -> None:
    keeper: Keeper[Pod] = Keeper(Pod, None)
    pod = decode(Pod, raw())
    data = keeper.packed(pod)
    back = keeper.unpacked(data)
    assert back == pod
    assert back.status.conditions.had_duplicates
    assert back.metadata.creationTimestamp == datetime(2026, 1, 1, tzinfo=UTC)
    assert identity(data) == ("u", "7")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (Secret, {"data": {"k": "AAH/"}, "type": "Opaque"}),
        (Lease, {"spec": {"renewTime": "2026-01-01T00:00:00.123456Z"}}),
        (Node, {"status": {"allocatable": {"cpu": "4", "memory": "16Gi"}}}),
        (Robot, {"spec": {"extra": {"a": [1, None, {"b": {}}], "c": 1.5}}}),
    ],
)
def test_kinds_with_values_of_their_own_read_back_equal(
    kind: type[Any], body: dict[str, Any]
) -> None:
    obj = decode(kind, json.dumps({"metadata": {"name": "r"}, **body}))
    keeper: Keeper[Any] = Keeper(kind, None)
    assert keeper.unpacked(keeper.packed(obj)) == obj


texts = st.text(max_size=12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | texts,
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(texts, inside, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=40)
@given(
    st.lists(
        st.builds(
            lambda arm, tools, extra, phase, labels: robot(
                "r",
                labels=labels,
                spec={"arm": arm, "tools": tools, "extra": extra},
                status={"phase": phase},
            ),
            texts,
            st.lists(texts, max_size=3),
            st.dictionaries(texts, json_values, max_size=3),
            texts,
            st.dictionaries(texts, texts, max_size=3),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_whatever_was_packed_reads_back_equal(objects: list[Robot]) -> None:
    keeper: Keeper[Robot] = Keeper(Robot, None)
    packed = [keeper.packed(obj) for obj in objects * 4]
    assert [keeper.unpacked(data) for data in packed] == objects * 4


def test_a_dictionary_makes_later_objects_smaller() -> None:
    keeper: Keeper[Pod] = Keeper(Pod, "full")
    sizes = [
        len(keeper.whole(decode(Pod, data), data).data)
        for data in (raw(name=f"r{number}", uid=f"u{number}") for number in range(64))
    ]
    assert sizes[-1] < sizes[0] / 2


def test_a_full_object_has_all_but_managed_fields_and_is_read_as_a_slice() -> None:
    store = Store(Pod, keep="full")
    assert store.needs_raw
    pod = decode(Pod, raw())
    store.put(pod, raw=raw())
    whole = json.loads(raw())
    del whole["metadata"]["managedFields"]
    assert store.full(KEY) == whole
    assert store.get(KEY) == pod
    assert store.form(KEY) == "full"
    assert store.full(("a", "nobody")) is None


def test_without_its_bytes_a_full_object_is_a_slice() -> None:
    store = Store(Pod, keep="full")
    store.put(decode(Pod, raw()))
    assert (store.form(KEY), store.full(KEY)) == ("slice", None)


def test_a_key_says_that_the_object_is_there_and_where_it_is_found() -> None:
    store = Store(Robot, indexes=[owner(), label("app")], keep="key")
    store.put(robot("r", 1, owner="f"))
    assert KEY in store
    assert store.get(KEY) is None
    assert store.form(KEY) == "key"
    assert store.keys_by("owner", "f") == [KEY]
    assert store.by("owner", "f") == list(store.values()) == []
    assert store.put(robot("r", 1, owner="f")) is None
    store.put(robot("r", 2, owner="g", labels={"app": "x"}))
    assert store.keys_by("owner", "f") == []
    assert store.keys_by("label:app", "x") == store.keys_by("owner", "g") == [KEY]
    (gone,) = store.begin(None).finish()
    assert (gone.type, gone.old) == ("DELETED", None)
    assert store.keys_by("label:app", "x") == store.keys_by("owner", "g") == []


def test_predicates_work_on_what_is_kept_as_a_key() -> None:
    store = Store(Robot, keep="key")
    store.put(robot("r", 1, spec={"arm": "left"}, labels={"a": "1", "b": "2"}))
    change = store.put(
        robot("r", 2, spec={"arm": "right"}, labels={"b": "2", "a": "1"})
    )
    assert change is not None
    assert change.type == "MODIFIED"
    assert change.differences() == ("spec.arm",)
    assert Predicate(Robot, ["spec"]).matches(change)
    assert not Predicate(Robot, ["status", "metadata.labels"]).matches(change)


def test_what_to_keep_may_depend_on_the_object() -> None:
    def keep(obj: Robot) -> Literal["key", "slice"]:
        return "key" if obj.status.phase == "Done" else "slice"

    store = Store(Robot, keep=keep)
    store.put(robot("r", 1))
    assert store.form(KEY) == "slice"
    done = store.put(robot("r", 2, status={"phase": "Done"}))
    assert done is not None
    assert (done.old, store.form(KEY)) == (robot("r", 1), "key")
    store.put(robot("r", 3))
    assert store.get(KEY) == robot("r", 3)
    assert store.statistics().by_form == {"full": 0, "slice": 1, "bytes": 0, "key": 0}


def test_a_choice_that_fails_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def keep(obj: Robot) -> Literal["key"]:
        raise RuntimeError("broken")

    store = Store(Robot, keep=keep)
    with caplog.at_level(logging.ERROR):
        store.put(robot("r", 1))
        store.put(robot("r", 2))
    assert store.get(KEY) == robot("r", 2)
    assert len(caplog.records) == 1


def test_a_form_that_there_is_not_is_refused() -> None:
    wrong: Any = "bytes"
    with pytest.raises(ValueError, match="choose one of full, slice, key"):
        Store(Robot, keep=wrong)


def test_an_own_write_shows_over_a_key() -> None:
    store = Store(Robot, keep="key")
    store.put(robot("r", 1))
    store.written(robot("r", 2))
    assert store.get(KEY) == robot("r", 2)
    store.put(robot("r", 2))
    assert store.get(KEY) is None
    store.deleted(KEY, "uid-r")
    assert KEY not in store
