"""Server-side apply does what the real server does, to the letter of its messages.

The histories and refusals were played on one, by `hack/record_apply_facts.py`.
"""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.apply_corpus import parts as made
from hack.apply_corpus.things import THING
from tests.embedded.histories import JSON, Step, entries, read, settled, steps, type_of
from trimtab.embedded.apply import LAST_APPLIED, ApplyConflict, ApplyFailed, apply
from trimtab.embedded.comparing import fields_of
from trimtab.embedded.fieldsets import FieldSet
from trimtab.embedded.merging import extract, remove
from trimtab.embedded.plans import plan_of
from trimtab.embedded.resets import resets_of
from trimtab.embedded.types import of_structural

TIME, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
VERSIONS = {"Thing": THING.api_version, "Deployment": "apps/v1"}


def applied(step: Step) -> JSON:
    return apply(step.before, step.body, force=step.force, **step.request)


def played() -> list[Step]:
    return [step for step in steps("apply") if step.subresource != "scale"]


def test_what_is_applied_is_owned_as_on_a_real_server() -> None:
    wrong, count = [], 0
    for step in played():
        if step.code >= 300:
            continue
        count += 1
        mine, theirs = entries(applied(step)), entries(step.answer)
        if step.is_ordered:
            mine, theirs = json.dumps(mine), json.dumps(theirs)
        if mine != theirs:
            wrong.append(step.place)
    assert wrong == []
    assert count > 700


def test_objects_are_merged_and_pruned_as_on_a_real_server() -> None:
    wrong, count = [], 0
    for step in played():
        # A built-in object that an apply creates has all defaults, which come later.
        if step.code >= 300 or (step.code == 201 and step.kind != "Thing"):
            continue
        count += 1
        mine, theirs = (
            settled(step.kind, each) for each in (applied(step), step.answer)
        )
        for name in ("status",) if step.subresource else ("metadata", "spec", "data"):
            if mine.get(name) != theirs.get(name):
                wrong.append((step.place, name))
    assert wrong == []
    assert count > 700


def test_conflicts_are_told_in_the_words_of_a_real_server() -> None:
    wrong, count = [], 0
    for step in played():
        if step.code != 409:
            continue
        count += 1
        with pytest.raises(ApplyConflict) as caught:
            applied(step)
        causes = sorted(caught.value.causes, key=json.dumps)
        mine = (caught.value.message, causes)
        if mine != (step.answer["message"], step.answer["details"]["causes"]):
            wrong.append(step.place)
    assert wrong == []
    assert count > 150


def test_what_a_real_server_refuses_for_other_reasons_merges_here() -> None:
    for step in played():
        if step.code == 422:
            applied(step)


@pytest.mark.parametrize("fact", read("refusals"), ids=lambda fact: fact["kind"])
def test_an_intent_that_does_not_fit_is_refused_in_the_same_words(fact: JSON) -> None:
    kind = fact["kind"]
    request: dict[str, Any] = {
        "type": type_of(kind),
        "api_version": VERSIONS.get(kind, "v1"),
        "kind": kind,
        "manager": "alice",
        "force": False,
        "now": "",
    }
    group = request["api_version"].rpartition("/")[0]
    request["reset"] = resets_of(group, kind, custom=kind == "Thing")
    theirs = fact["answer"]
    try:
        mine: Any = _owned(apply(fact["before"], fact["body"], **request))
    except ApplyFailed as refused:
        mine = (refused.code, refused.message)
    message = theirs.get("message", "")
    if fact["code"] == 422 or "failed to convert" in message:
        # It merges; what is wrong with it is found by validation or conversion.
        assert isinstance(mine, dict)
    else:
        is_refused = fact["code"] >= 300
        assert mine == ((fact["code"], message) if is_refused else _owned(theirs))


def _owned(object: JSON) -> JSON:
    return {each["manager"]: each["fieldsV1"] for each in entries(object) or ()}


def thing(live: JSON | None, intent: JSON, manager: str, **more: Any) -> JSON:
    """An apply of a thing."""
    request: dict[str, Any] = {"force": False, "now": TIME, **more}
    return apply(
        live,
        intent,
        type=type_of("Thing"),
        api_version=THING.api_version,
        manager=manager,
        **request,
    )


def intent_of(random: Random) -> JSON:
    """An intent that owns at least one field: an empty list, say, is nobody's."""
    base = {**THING.named("x"), "spec": {"number": 2}}
    return made.filled(random, THING.parts, base, most=8)


RANDOMS = st.randoms(use_true_random=False)


@given(RANDOMS)
def test_applying_the_same_again_changes_nothing(random: Random) -> None:
    intent = intent_of(random)
    once = thing(None, intent, "alice")
    assert thing(once, intent, "alice", now=LATER) == once


@given(RANDOMS)
def test_equal_values_are_owned_by_all_who_apply_them(random: Random) -> None:
    intent = intent_of(random)
    once = thing(None, intent, "alice")
    both = thing(once, intent, "bob", now=LATER)
    assert {k: v for k, v in both.items() if k != "metadata"} == {
        k: v for k, v in once.items() if k != "metadata"
    }
    owned = _owned(both)
    assert owned["alice"] == owned["bob"]
    # And it stays as long as one of them applies it.
    alone = thing(both, THING.named("x"), "alice", now=LATER)
    assert alone.get("spec") == both.get("spec")


@given(RANDOMS)
def test_a_field_that_nobody_applies_any_longer_is_gone(random: Random) -> None:
    once = thing(None, intent_of(random), "alice")
    owned = set(FieldSet(_owned(once).get("alice")))
    gone = thing(once, THING.named("x"), "alice", now=LATER)
    assert not owned & set(FieldSet(fields_of(gone, plan_of(type_of("Thing")))))
    assert "alice" not in _owned(gone)


@given(RANDOMS)
def test_force_takes_over_and_without_it_nothing_is_overwritten(random: Random) -> None:
    first, second = intent_of(random), intent_of(random)
    live = thing(None, first, "alice")
    forced = thing(live, second, "bob", force=True, now=LATER)
    owned = FieldSet.from_v1(_owned(forced).get("bob", {}))
    try:
        gentle = thing(live, second, "bob", now=LATER)
    except ApplyConflict as conflict:
        lost = FieldSet.of(path for _, path in conflict.conflicts)
        left = FieldSet.from_v1(_owned(forced).get("alice", {}))
        assert not lost & left
        assert set(lost) <= set(FieldSet.from_v1(_owned(live)["alice"]))
    else:
        assert gentle == forced
    assert thing(forced, second, "bob", now="later") == forced
    assert FieldSet.from_v1(_owned(thing(None, second, "bob")).get("bob", {})) == owned


@given(RANDOMS)
def test_nothing_that_was_given_is_changed(random: Random) -> None:
    first, second, third = (intent_of(random) for _ in range(3))
    live = thing(thing(None, first, "alice"), second, "bob", force=True)
    saved = copy.deepcopy((live, third))
    thing(live, third, "alice", force=True)
    assert (live, third) == saved


@given(RANDOMS)
def test_extract_and_remove_divide_an_object(random: Random) -> None:
    plan = plan_of(type_of("Thing"))
    one, other = intent_of(random), intent_of(random)
    live = thing(thing(None, one, "alice"), other, "bob", force=True)
    owned = _owned(live).get("alice", {})
    part = extract(live["spec"], owned.get("f:spec", {}), plan.fields["spec"])
    rest = remove(live["spec"], owned.get("f:spec", {}), plan.fields["spec"])
    for name in live["spec"]:
        node = owned.get("f:spec", {}).get(f"f:{name}")
        is_whole = node is not None and (not node or "." in node)
        assert (name in (part or {})) == (node is not None)
        assert (name in (rest or {})) == (not is_whole)


def test_items_that_both_have_are_in_the_applied_order() -> None:
    def words(*values: str) -> JSON:
        return {**THING.named("x"), "spec": {"words": list(values)}}

    live = thing(None, words("a", "b", "c", "d"), "alice")
    merged = thing(live, words("d", "x", "b"), "bob")
    assert merged["spec"]["words"] == ["a", "c", "d", "x", "b"]


def test_an_unnamed_part_of_a_key_is_its_default() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]
    container = {"name": "a", "ports": ports}
    intent = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [container]},
    }
    mine = apply(
        None,
        intent,
        type=type_of("Pod"),
        api_version="v1",
        manager="m",
        force=False,
        now=TIME,
    )
    [tree] = _owned(mine).values()
    [item] = tree["f:spec"]["f:containers"].values()
    assert list(item["f:ports"]) == [
        'k:{"containerPort":80,"protocol":"TCP"}',
        'k:{"containerPort":80,"protocol":"UDP"}',
    ]


def test_true_is_not_one() -> None:
    def anything(value: Any) -> JSON:
        return {**THING.named("x"), "spec": {"any": {"a": value}}}

    live = thing(None, anything(1), "alice")
    with pytest.raises(ApplyConflict, match=r"conflict with \"alice\": .spec.any.a"):
        thing(live, anything(True), "bob")
    assert thing(live, anything(1.0), "bob")["spec"]["any"] == {"a": 1}


def config_map(manager: str, live: JSON | None, intent: JSON) -> JSON:
    return apply(
        live,
        intent,
        type=type_of("ConfigMap"),
        api_version="v1",
        manager=manager,
        force=False,
        now=TIME,
    )


def test_kubectl_takes_over_what_it_applied_on_the_client_side() -> None:
    intent = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {"a": "1", "b": "<2>"},
    }
    live: JSON = copy.deepcopy(intent)
    live["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(intent)}
    changed = {**intent, "data": {"a": "9", "b": "<2>"}}
    with pytest.raises(ApplyConflict, match="before-first-apply"):
        config_map("somebody", live, changed)
    mine = config_map("kubectl", live, changed)
    assert mine["data"] == {"a": "9", "b": "<2>"}
    text = mine["metadata"]["annotations"][LAST_APPLIED]
    assert json.loads(text)["data"] == changed["data"]
    assert "\\u003c2\\u003e" in text
    # What was changed since is somebody else's.
    since = {**live, "data": {"a": "5", "b": "<2>"}}
    with pytest.raises(ApplyConflict, match=r"using v1: \.data\.a$"):
        config_map("kubectl", since, changed)


def test_a_kind_without_a_schema_is_merged_key_by_key() -> None:
    loose = of_structural(
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    )
    request: dict[str, Any] = {"type": loose, "api_version": "x.dev/v1", "now": TIME}
    base = {"apiVersion": "x.dev/v1", "kind": "X", "metadata": {"name": "a"}}
    live = apply(
        None, {**base, "spec": {"a": [1]}}, manager="m", force=False, **request
    )
    both = apply(
        live, {**base, "spec": {"b": {"c": 1}}}, manager="n", force=False, **request
    )
    assert both["spec"] == {"a": [1], "b": {"c": 1}}
    assert _owned(both)["n"] == {
        "f:spec": {".": {}, "f:b": {".": {}, "f:c": {}}},
    }
