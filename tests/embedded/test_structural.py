"""Definitions are refused, pruned and defaulted as a real server does it.

It was asked, by `hack/record_crd_facts.py`.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hack.crd_corpus.definitions import base, definition
from hack.crd_corpus.schemas import Maker, array, integer, record, string, table
from hack.crd_corpus.values import Filler
from tests.embedded.crd_replay import JSON, defined, facts, recorded, whole
from trimtab.embedded.conform import Mistyped
from trimtab.embedded.crds import CustomKind
from trimtab.embedded.structural import structural_problems, unsupported

BROKEN = {each["label"]: each for each in facts("broken")}
UPDATES = {each["label"]: each for each in facts("updates")["updates"]}
KEEP = "x-kubernetes-preserve-unknown-fields"
EMBED = "x-kubernetes-embedded-resource"

seeds = st.integers(0, 10**6)


def kind_of(spec: JSON, **more: Any) -> CustomKind:
    """A kind whose spec has a schema."""
    return CustomKind(definition("things", record({"spec": spec}), **more), "v1")


def conformed(kind: CustomKind, body: JSON) -> tuple[JSON, list[str]]:
    """An object after all that happens to it before it is judged, and what was lost."""
    obj = whole(kind, body)
    lost = kind.conform(obj)
    kind.default(obj)
    return obj, lost


def random_object(seed: int, *, mistakes: float) -> tuple[CustomKind, JSON]:
    """A kind with a random schema, and an object that mostly fits it."""
    schema = Maker(seed % 997).root()
    kind = CustomKind(definition("randoms", schema), "v1")
    return kind, whole(kind, Filler(seed).body(schema, mistakes=mistakes))


@pytest.mark.parametrize("label", BROKEN)
def test_a_definition_meets_the_fate_it_meets_on_a_real_server(label: str) -> None:
    case = BROKEN[label]
    assert defined(case["crd"]) == recorded(case["answer"])


@pytest.mark.parametrize("label", UPDATES)
def test_a_change_of_a_definition_meets_the_same_fate(label: str) -> None:
    case = UPDATES[label]
    assert defined(case["crd"], case["old"]) == recorded(case["answer"])


def test_facts_hold_refusals_and_acceptances() -> None:
    codes = {recorded(each["answer"]).code for each in BROKEN.values()}
    assert codes == {200, 422}


def test_a_structural_schema_gives_no_complaint() -> None:
    for seed in range(50):
        raw = Maker(seed).root()
        assert not unsupported(raw)
        assert structural_problems(raw, "") == []


@given(seeds, st.floats(0, 0.3))
def test_pruning_again_drops_nothing(seed: int, mistakes: float) -> None:
    kind, obj = random_object(seed, mistakes=mistakes)
    kind.conform(obj)
    once = deepcopy(obj)
    assert kind.unknown_fields(obj) == []
    kind.prune(obj)
    assert obj == once


@given(seeds, st.floats(0, 0.3))
def test_defaulting_again_changes_nothing(seed: int, mistakes: float) -> None:
    kind, obj = random_object(seed, mistakes=mistakes)
    kind.conform(obj)
    kind.default(obj)
    once = deepcopy(obj)
    kind.default(obj)
    assert obj == once


@given(seeds)
def test_naming_unknown_fields_leaves_the_object_alone(seed: int) -> None:
    kind, obj = random_object(seed, mistakes=0.2)
    before = deepcopy(obj)
    named = kind.unknown_fields(obj)
    assert obj == before
    assert kind.conform(obj) == named


@settings(max_examples=30)
@given(seeds)
def test_two_objects_never_share_a_default(seed: int) -> None:
    kind = kind_of(record({"list": array(string(), default=["a"])}, default={}))
    one, _ = conformed(kind, {})
    one["spec"]["list"].append(str(seed))
    other, _ = conformed(kind, {})
    assert other["spec"] == {"list": ["a"]}


def test_unknown_fields_are_dropped_and_named_by_their_path() -> None:
    kind = kind_of(
        record({"known": string(), "items": array(record({"x": integer()}))})
    )
    obj, lost = conformed(
        kind, {"spec": {"known": "a", "nope": 1, "items": [{"x": 1, "y": 2}]}, "z": 1}
    )
    assert obj["spec"] == {"known": "a", "items": [{"x": 1}]}
    assert lost == ["spec.items[0].y", "spec.nope", "z"]


def test_what_a_schema_preserves_stays_with_its_nulls() -> None:
    spec = {**record({"known": record({"a": string()})}), KEEP: True}
    obj, lost = conformed(
        kind_of(spec), {"spec": {"free": {"x": None}, "known": {"a": "b", "c": 1}}}
    )
    assert obj["spec"] == {"free": {"x": None}, "known": {"a": "b"}}
    assert lost == ["spec.known.c"]


def test_a_null_stays_only_where_it_may_be() -> None:
    spec = record(
        {
            "may": string(nullable=True, default="x"),
            "may_not": string(default="x"),
            "plain": string(),
        }
    )
    nulls = {"spec": {"may": None, "may_not": None, "plain": None}}
    obj, _ = conformed(kind_of(spec), nulls)
    assert obj["spec"] == {"may": None, "may_not": "x"}


def test_defaults_reach_into_what_they_make() -> None:
    inner = record({"deep": integer(default=3)}, default={})
    spec = record({"inner": inner, "table": table(record({"a": integer(default=1)}))})
    obj, _ = conformed(kind_of(spec), {"spec": {"table": {"k": {}}}})
    assert obj["spec"] == {"inner": {"deep": 3}, "table": {"k": {"a": 1}}}


def test_the_root_keeps_its_type_and_metadata_whatever_the_schema_says() -> None:
    kind = CustomKind(definition("things", {"type": "object"}), "v1")
    obj, lost = conformed(kind, {"spec": {}, "metadata": {"labels": {"a": "b"}}})
    assert lost == ["spec"]
    assert obj["metadata"] == {"name": "it", "labels": {"a": "b"}}
    assert obj["kind"] == "Thing"


def test_an_embedded_object_keeps_metadata_that_is_well_formed() -> None:
    spec = record({"pod": {"type": "object", EMBED: True, KEEP: True}})
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "nope": 1}}
    obj, lost = conformed(kind_of(spec), {"spec": {"pod": pod}})
    assert obj["spec"]["pod"]["metadata"] == {"name": "a"}
    assert lost == ["spec.pod.metadata.nope"]


def test_metadata_that_no_struct_can_hold_is_a_mistake() -> None:
    kind = kind_of(record({}))
    with pytest.raises(Mistyped, match=r"cannot unmarshal number into .*name"):
        kind.conform({**whole(kind, {}), "metadata": {"name": 5}})


def test_a_definition_that_was_accepted_makes_a_kind_for_each_version() -> None:
    crd = base()
    crd["spec"]["versions"].append(
        {**deepcopy(crd["spec"]["versions"][0]), "name": "v2", "storage": False}
    )
    assert [CustomKind(crd, name).resource.version for name in ("v1", "v2")] == [
        "v1",
        "v2",
    ]
