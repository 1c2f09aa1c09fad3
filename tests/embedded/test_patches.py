"""JSON and merge patches do what the real server's do, and fail as they fail.

They were tried on one, by `hack/record_apply_facts.py`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.embedded.histories import JSON, read, settled, steps
from trimtab.embedded.patches import (
    MAXIMUM_OPERATIONS,
    PatchError,
    json_patch,
    merge_patch,
)

REMOVE = "error in remove for path: '/{}': "


def tried(verb: str) -> Iterator[tuple[JSON, JSON]]:
    """What each patch was tried on, and what came of it."""
    for group in read("patches"):
        for each in group["tried"]:
            if each["verb"] == verb and group["kind"] == "Thing":
                yield group["live"], each


@pytest.mark.parametrize("verb", ["json", "merge"])
def test_patches_do_what_a_real_server_does(verb: str) -> None:
    patch = json_patch if verb == "json" else merge_patch
    wrong, count = [], 0
    for live, each in tried(verb):
        count += 1
        try:
            answer = patch(live, each["body"])
        except PatchError as error:
            if (error.code, error.message) != (each["code"], each["answer"]["message"]):
                wrong.append((each["body"], error.code, error.message))
            continue
        if each["code"] != 200:
            # It applies; what it leaves is no longer that object.
            assert not isinstance(answer, dict) or "metadata" not in answer
        elif (answer.get("spec") or {}) != (each["answer"].get("spec") or {}):
            wrong.append((each["body"], 200, answer))
    assert wrong == []
    assert count > 30


def test_patches_of_histories_leave_the_recorded_objects() -> None:
    wrong = []
    for step in steps("json", "merge"):
        if step.code >= 300 or step.subresource or not step.before:
            continue
        patch = json_patch if step.verb == "json" else merge_patch
        mine, theirs = (
            settled(step.kind, each)
            for each in (patch(step.before, step.body), step.answer)
        )
        for name in ("metadata", "spec", "data", "binaryData"):
            if (mine.get(name) or None) != (theirs.get(name) or None):
                wrong.append((step.place, name))
    assert wrong == []


@pytest.mark.parametrize(
    ("operation", "detail"),
    [
        (
            {"op": "add", "path": "/x/y", "value": 1},
            'add operation does not apply: doc is missing path: "/x/y": missing value',
        ),
        (
            {"op": "remove", "path": "/x"},
            REMOVE.format("x") + "Unable to remove nonexistent key: x: missing value",
        ),
        (
            {"op": "remove", "path": "/l/x"},
            REMOVE.format("l/x") + 'strconv.Atoi: parsing "x": invalid syntax',
        ),
        (
            {"op": "replace", "path": "/l/9", "value": 1},
            "replace operation does not apply: doc is missing key: /l/9: missing value",
        ),
        (
            {"op": "test", "path": "/a", "value": 2},
            "testing value /a failed: test failed",
        ),
        ({"op": "bogus", "path": "/a"}, "Unexpected kind: bogus"),
    ],
)
def test_the_detail_says_what_the_real_server_keeps_to_itself(
    operation: JSON, detail: str
) -> None:
    with pytest.raises(PatchError) as caught:
        json_patch({"a": 1, "l": [1]}, [operation])
    assert caught.value.detail == detail


def test_too_many_operations_are_refused() -> None:
    test = {"op": "test", "path": "/a", "value": 1}
    assert json_patch({"a": 1}, [test] * MAXIMUM_OPERATIONS) == {"a": 1}
    with pytest.raises(PatchError) as caught:
        json_patch({"a": 1}, [test] * (MAXIMUM_OPERATIONS + 1))
    assert caught.value.code == 413


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab~/", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("ab~/", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text("ab~/", min_size=1, max_size=2), VALUES, max_size=4)


def escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


@given(OBJECTS, st.data())
def test_an_added_value_is_there_and_nothing_else_changed(
    document: JSON, data: st.DataObject
) -> None:
    key = data.draw(st.text("ab~/", min_size=1, max_size=2))
    value = data.draw(VALUES)
    saved = copy.deepcopy(document)
    operation = {"op": "add", "path": f"/{escaped(key)}", "value": value}
    assert json_patch(document, [operation]) == {**saved, key: value}
    assert document == saved


@given(OBJECTS, OBJECTS)
def test_operations_that_undo_each_other_leave_the_document(
    document: JSON, more: JSON
) -> None:
    fresh = {f"new{key}": value for key, value in more.items()}
    paths = {f"/{escaped(key)}": value for key, value in fresh.items()}
    adding = [{"op": "add", "path": p, "value": v} for p, v in paths.items()]
    removing = [{"op": "remove", "path": path} for path in paths]
    assert json_patch(document, adding + removing) == document


@given(OBJECTS, OBJECTS)
def test_a_copy_is_apart_from_its_original(document: JSON, inner: JSON) -> None:
    start = {**document, "o": inner}
    patched = json_patch(
        start,
        [
            {"op": "copy", "from": "/o", "path": "/c"},
            {"op": "add", "path": "/c/new", "value": 1},
        ],
    )
    assert patched["o"] == inner
    assert patched["c"] == {**inner, "new": 1}


def nullless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: nullless(v) for k, v in value.items() if v is not None}
    return [nullless(each) for each in value] if isinstance(value, list) else value


@given(OBJECTS, OBJECTS)
def test_merging_twice_is_merging_once_but_for_nulls(
    document: JSON, patch: JSON
) -> None:
    saved = copy.deepcopy((document, patch))
    once = merge_patch(document, patch)
    assert nullless(merge_patch(once, patch)) == nullless(once)
    assert (document, patch) == saved


@given(OBJECTS)
def test_a_patch_into_nothing_is_the_patch_without_its_nulls(patch: JSON) -> None:
    assert merge_patch({}, patch) == nullless(patch)
