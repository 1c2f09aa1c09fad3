"""Managed fields are kept up as the real server keeps them up.

The histories were played on one, by `hack/record_apply_facts.py`.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.apply_corpus import parts as made
from hack.apply_corpus.things import THING
from tests.embedded.histories import JSON, Step, entries, steps, type_of
from trimtab.embedded import facts
from trimtab.embedded.apply import ApplyFailed, apply
from trimtab.embedded.fieldsets import FieldSet
from trimtab.embedded.managed import (
    ANCIENT,
    MAXIMUM_UPDATERS,
    after_update,
    zero,
)
from trimtab.embedded.resets import resets_of
from trimtab.embedded.scalefields import from_scale, to_scale
from trimtab.embedded.settling import with_settled_times
from trimtab.embedded.types import of_structural

POD = json.loads(
    (Path(__file__).parents[1] / "api" / "data" / "pod.json").read_text("utf-8")
)
WRITES = ("create", "update", "merge", "json", "strategic", "reset", "claim")
TIME, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"


def written(step: Step) -> JSON:
    """The object as the client wanted it, with the entries that it sent."""
    after = step.answer
    if step.verb == "create" and step.kind != "Thing":
        after = step.body  # all defaults are in it, and nothing that the server adds
    metadata = {k: v for k, v in after["metadata"].items() if k != "managedFields"}
    if step.verb in ("merge", "json", "strategic"):
        sent = entries(step.before or {"metadata": {}})
    else:
        sent = entries(step.body)
    if sent is not None:
        metadata["managedFields"] = sent
    return {**after, "metadata": metadata}


def same(step: Step, mine: Any) -> bool:
    """Whether entries are the recorded ones, to the letter where that is known."""
    theirs = entries(step.answer)
    is_same = not step.is_ordered or json.dumps(mine) == json.dumps(theirs)
    return bool(mine == theirs) and is_same


def test_writes_move_fields_between_managers_as_on_a_real_server() -> None:
    count, wrong = 0, []
    for step in steps(*WRITES):
        if step.code >= 300 or step.subresource == "scale":
            continue
        count += 1
        mine = after_update(step.before, written(step), **step.request)
        if not same(step, entries(mine)):
            wrong.append(step.place)
    assert wrong == []
    assert count > 1000


def test_writes_to_the_scale_move_one_field_as_on_a_real_server() -> None:
    count, wrong = 0, []
    for step in steps("apply", "update", "merge"):
        if step.subresource == "scale":
            count += 1
            if scaled(step) != (entries(step.answer) or step.answer.get("message", [])):
                wrong.append(step.place)
    assert wrong == []
    assert count > 50


def scaled(step: Step) -> Any:
    """The object's entries after a write to its scale, or why there was none."""
    assert step.before is not None
    name = {"name": "any"}
    owners = to_scale(entries(step.before), api_version=step.api_version)
    before = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {**name, "managedFields": owners} if owners else name,
        "spec": {"replicas": step.before["spec"]["replicas"]},
    }
    request = {
        **step.request,
        "type": facts.definitions().of("autoscaling", "v1", "Scale"),
        "api_version": "autoscaling/v1",
        "reset": None,
    }
    try:
        if step.verb == "apply":
            intent = {**step.body, "metadata": name}
            after = apply(before, intent, force=step.force, **request)
        else:
            after = after_update(
                before, {**before, "spec": step.body["spec"]}, **request
            )
    except ApplyFailed as failed:
        return failed.message
    version = step.api_version
    return from_scale(entries(step.before), entries(after), api_version=version)


def update(before: JSON | None, after: JSON, **more: Any) -> JSON:
    """An update of a config map."""
    request: dict[str, Any] = {"manager": "alice", "now": TIME, **more}
    return after_update(
        before, after, type=type_of("ConfigMap"), api_version="v1", **request
    )


def config_map(**data: str) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "uid": "1"},
        "data": data,
    }


def test_a_write_that_changes_nothing_changes_no_entry() -> None:
    stored = update(None, config_map(a="1"))
    again = update(stored, stored, manager="bob", now=LATER)
    assert again == stored


def test_a_changed_value_moves_to_who_changed_it_and_an_empty_entry_is_gone() -> None:
    stored = update(None, config_map(a="1"))
    changed = update(stored, {**stored, "data": {"a": "2"}}, manager="bob", now=LATER)
    owned = {e["manager"]: e["fieldsV1"] for e in entries(changed)}
    assert owned == {
        "alice": {"f:data": {}},
        "bob": {"f:data": {"f:a": {}}},
    }
    gone = {k: v for k, v in changed.items() if k != "data"}
    assert entries(update(changed, gone, manager="carol", now=LATER)) is None


def test_a_manager_without_a_name_is_unknown() -> None:
    assert (
        entries(update(None, config_map(a="1"), manager=""))[0]["manager"] == "unknown"
    )


def test_each_subresource_and_version_has_an_entry_of_its_own() -> None:
    stored = update(None, config_map(a="1"))
    other = update(
        stored, {**stored, "data": {"a": "1", "b": "2"}}, subresource="x", now=LATER
    )
    assert [e.get("subresource") for e in entries(other)] == [None, "x"]


@pytest.mark.parametrize("sent", [[], [{}]])
def test_entries_can_be_cleared_and_stay_cleared(sent: list[JSON]) -> None:
    stored = update(None, config_map(a="1"))
    metadata = {**stored["metadata"], "managedFields": sent}
    cleared = update(stored, {**stored, "metadata": metadata})
    assert entries(cleared) is None
    assert entries(update(cleared, {**cleared, "data": {"b": "2"}})) is None


@pytest.mark.parametrize(
    "broken",
    [
        {"operation": "Create"},
        {"apiVersion": ""},
        {"fieldsType": ""},
        {"fieldsType": "FieldsV2"},
        {"fieldsV1": {"nonsense": {}}},
    ],
)
def test_entries_that_make_no_sense_do_not_count(broken: JSON) -> None:
    stored = update(None, config_map(a="1"))
    sent = [{**entries(stored)[0], **broken}]
    metadata = {**stored["metadata"], "managedFields": sent}
    assert update(stored, {**stored, "metadata": metadata}) == stored


def test_there_are_never_more_updaters_than_allowed() -> None:
    stored = update(None, config_map(k0="0"))
    for number in range(1, 3 * MAXIMUM_UPDATERS):
        data = {**stored["data"], f"k{number}": "0"}
        stored = update(
            stored,
            {**stored, "data": data},
            manager=f"m{number}",
            now=f"2026-01-01T00:00:{number:02d}Z",
        )
        assert len(entries(stored)) <= MAXIMUM_UPDATERS
    names = [entry["manager"] for entry in entries(stored)]
    assert names[0] == ANCIENT
    assert names[-1] == f"m{3 * MAXIMUM_UPDATERS - 1}"
    owned = FieldSet()
    for entry in entries(stored):
        owned |= FieldSet.from_v1(entry["fieldsV1"])
    assert len(owned) == 3 * MAXIMUM_UPDATERS + 1  # all keys, and data itself


def test_nobody_owns_what_only_the_server_writes() -> None:
    assert entries(after_update(None, POD, **_pod("kubectl"))) is not None
    tree = entries(after_update(None, POD, **_pod("kubectl")))[0]["fieldsV1"]
    assert set(tree) == {"f:metadata", "f:spec"}
    kept = {"f:annotations", "f:generateName", "f:labels", "f:ownerReferences"}
    assert set(tree["f:metadata"]) == kept


def _pod(manager: str, subresource: str = "") -> dict[str, Any]:
    return {
        "type": type_of("Pod"),
        "api_version": "v1",
        "manager": manager,
        "subresource": subresource,
        "now": TIME,
        "reset": resets_of("", "Pod", subresource),
    }


def test_a_write_to_the_status_owns_nothing_else() -> None:
    after = copy.deepcopy(POD)
    after["status"]["phase"] = "Failed"
    after["spec"]["nodeName"] = "other"
    mine = after_update(POD, after, **_pod("kubelet", "status"))
    fields = {e["manager"]: e["fieldsV1"] for e in entries(mine)}
    assert set(fields["kubelet"]) == {"f:status"}
    assert "f:nodeName" in fields["kube-controller-manager"]["f:spec"]


@pytest.mark.parametrize(
    ("subresource", "owned"),
    [
        ("resize", {"f:containers": {'k:{"name":"web"}': {"f:resources": {}}}}),
        ("ephemeralcontainers", {"f:ephemeralContainers": {}}),
    ],
)
def test_some_paths_own_only_what_they_are_for(subresource: str, owned: JSON) -> None:
    before = copy.deepcopy(POD)
    before["spec"]["containers"][0]["resources"] = {}
    after = copy.deepcopy(before)
    after["metadata"]["labels"]["new"] = "x"
    after["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    after["spec"]["containers"][0]["image"] = "other"
    after["spec"]["ephemeralContainers"] = [{"name": "debug"}]
    mine = after_update(before, after, **_pod("me", subresource))
    [fields] = [e["fieldsV1"] for e in entries(mine) if e["manager"] == "me"]
    assert set(fields) == {"f:spec"}
    assert set(fields["f:spec"]) == set(owned)


def test_what_go_always_writes_is_nobodys() -> None:
    assert zero("apps/v1", "Deployment")["spec"]["template"]["spec"] == {
        "containers": None
    }
    assert zero("example.com/v1", "Website") == {
        "apiVersion": "example.com/v1",
        "metadata": {},
    }
    assert zero("apiextensions.k8s.io/v1", "CustomResourceDefinition")["spec"]


def test_a_list_of_a_custom_kind_that_became_atomic_is_owned_as_a_whole() -> None:
    kind = {"apiVersion": "x.dev/v1", "kind": "X", "metadata": {"name": "a"}}
    items = {"type": "array", "items": {"type": "string"}}
    both = [
        of_structural({"type": "object", "properties": {"list": {**items, **more}}})
        for more in ({"x-kubernetes-list-type": "set"}, {})
    ]
    request: dict[str, Any] = {"api_version": "x.dev/v1", "manager": "m", "now": TIME}
    stored = after_update(None, {**kind, "list": ["a"]}, type=both[0], **request)
    assert entries(stored)[0]["fieldsV1"] == {"f:list": {".": {}, 'v:"a"': {}}}
    later = after_update(stored, stored, type=both[1], **request)
    assert entries(later)[0]["fieldsV1"] == {"f:list": {}}


def test_a_time_alone_is_no_change() -> None:
    stored = update(None, config_map(a="1"))
    moved = copy.deepcopy(stored)
    moved["metadata"]["managedFields"][0]["time"] = LATER
    assert with_settled_times(stored, moved) == stored
    changed = {**moved, "data": {"a": "2"}}
    assert with_settled_times(stored, changed) == changed


@given(st.randoms(use_true_random=False))
def test_an_update_changes_no_object_and_is_stable(random: Random) -> None:
    base = {**THING.named("x"), "spec": {}}
    before = made.filled(random, THING.parts, base, most=8)
    after = made.changed(random, THING.parts, before)
    saved = copy.deepcopy((before, after))
    request: dict[str, Any] = {
        "type": type_of("Thing"),
        "api_version": THING.api_version,
    }
    stored = after_update(None, before, manager="a", now=TIME, **request)
    after = {**after, "metadata": {**stored["metadata"], **after["metadata"]}}
    once = after_update(stored, after, manager="b", now=LATER, **request)
    twice = after_update(once, once, manager="c", now="later", **request)
    assert twice == once
    assert (before, {**after, "metadata": saved[1]["metadata"]}) == saved
