"""Strategic merge patches do what the real server's do, and fail as they fail.

They were tried on one, by `hack/record_apply_facts.py`.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.embedded.histories import JSON, read, settled, steps, type_of
from trimtab.embedded import facts
from trimtab.embedded.patches import PatchError
from trimtab.embedded.strategic import strategic_merge

MAP = "map[string]interface {}"
PANIC = 0
"""The code that stands for an answer that never came."""


def test_patches_do_what_a_real_server_does() -> None:
    wrong, count = [], 0
    for group in read("patches"):
        for each in group["tried"]:
            if each["verb"] != "strategic" or group["kind"] == "Thing":
                continue
            count += 1
            if not _agrees(group["kind"], group["live"], each):
                wrong.append(each["body"])
    assert wrong == []
    assert count > 200


def _agrees(kind: str, live: JSON, tried: JSON) -> bool:
    saved = json.dumps((live, tried["body"]))
    try:
        mine = strategic_merge(live, tried["body"], type_of(kind))
    except PatchError as error:
        answer = (tried["code"], tried["answer"].get("message"))
        return (error.code, error.message) == answer or tried["code"] == PANIC
    finally:
        assert json.dumps((live, tried["body"])) == saved
    if tried["code"] != 200:  # it merges; what is wrong with it is found later
        message = tried["answer"].get("message", "")
        return tried["code"] in (422, PANIC) or "name of the object" in message
    return settled(kind, mine) == settled(kind, tried["answer"])


def test_patches_of_histories_leave_the_recorded_objects() -> None:
    wrong = []
    for step in steps("strategic"):
        if step.code >= 300 or step.subresource or not step.before:
            continue
        mine = strategic_merge(step.before, step.body, step.type)
        one, other = (settled(step.kind, each) for each in (mine, step.answer))
        for name in ("spec", "data", "binaryData"):
            if one.get(name) != other.get(name):
                wrong.append((step.place, name))
    assert wrong == []


NAMES = ("a", "b", "c", "d", "e")
CONTAINERS = st.lists(st.sampled_from(NAMES), unique=True, max_size=5)


def pod(names: list[str], **more: Any) -> JSON:
    return {"spec": {"containers": [{"name": name, **more} for name in names]}}


def names_of(document: JSON) -> list[str]:
    return [each["name"] for each in document["spec"]["containers"]]


@given(CONTAINERS, CONTAINERS)
def test_items_merge_by_their_key_and_none_is_lost(
    live: list[str], given_names: list[str]
) -> None:
    document, patch = pod(live, image="old"), pod(given_names, image="new")
    saved = copy.deepcopy((document, patch))
    merged = strategic_merge(document, patch, type_of("Pod"))
    assert sorted(names_of(merged)) == sorted({*live, *given_names})
    assert [n for n in names_of(merged) if n in given_names] == given_names
    for item in merged["spec"]["containers"]:
        assert item["image"] == ("new" if item["name"] in given_names else "old")
    assert (document, patch) == saved


@given(CONTAINERS.filter(bool), st.permutations(NAMES))
def test_an_order_is_kept_as_far_as_it_goes(live: list[str], order: list[str]) -> None:
    ordering = {"$setElementOrder/containers": [{"name": name} for name in order]}
    merged = strategic_merge(pod(live), {"spec": ordering}, type_of("Pod"))
    assert names_of(merged) == [name for name in order if name in live]


@given(CONTAINERS, CONTAINERS)
def test_deleted_items_are_gone_and_the_rest_stays(
    live: list[str], gone: list[str]
) -> None:
    items = [{"name": name, "$patch": "delete"} for name in gone]
    patch = {"spec": {"containers": items}}
    merged = strategic_merge(pod(live), patch, type_of("Pod"))
    assert names_of(merged) == [name for name in live if name not in gone]


@given(CONTAINERS, CONTAINERS)
def test_merging_twice_is_merging_once(live: list[str], wanted: list[str]) -> None:
    patch = pod(wanted, image="new")
    once = strategic_merge(pod(live), patch, type_of("Pod"))
    twice = strategic_merge(once, patch, type_of("Pod"))
    assert sorted(names_of(twice)) == sorted(names_of(once))


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (
            [],
            f"json: cannot unmarshal array into Go value of type {MAP}",
        ),
        (
            {"metadata": {"labels": {"$retainKeys": 1}}},
            "invalid patch format of retainKeys",
        ),
    ],
)
def test_a_patch_of_the_wrong_form_is_a_bad_request(patch: Any, message: str) -> None:
    with pytest.raises(PatchError) as caught:
        strategic_merge({"metadata": {"labels": {}}}, patch, type_of("Pod"))
    assert (caught.value.code, caught.value.message) == (400, message)


def test_maps_of_objects_cannot_be_merged_into() -> None:
    schema = {"properties": {"spec": {"type": "object", "description": "x"}}}
    crd = {
        "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}
    }
    of = facts.definitions().of(
        "apiextensions.k8s.io", "v1", "CustomResourceDefinition"
    )
    inner = of.fields["spec"].fields["versions"].element
    assert inner is not None
    version = crd["spec"]["versions"][0]
    with pytest.raises(PatchError, match="data type is not struct, instead is: map"):
        strategic_merge(
            version, {"schema": {"openAPIV3Schema": copy.deepcopy(schema)}}, inner
        )
