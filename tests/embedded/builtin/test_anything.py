"""No object breaks the rules for built-in kinds: it is made, or it is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import trimtab.embedded
from tests.embedded.builtin.objects import SHAPES, made, randoms, spoiled
from tests.embedded.builtin.recorded import CREATED, JSON, UID, read
from trimtab.embedded.builtin import generation, prepare, validate
from trimtab.embedded.builtin.remembered import remembered
from trimtab.embedded.builtin.shapes import shape_of
from trimtab.embedded.builtin.strategy import services
from trimtab.embedded.status import ApiProblem, FieldProblem

RESOURCES = [
    each
    for each in map(
        json.loads,
        Path(trimtab.embedded.__file__)
        .with_name("data")
        .joinpath("resources.jsonl")
        .read_text()
        .splitlines(),
    )
    if each["definition"].removeprefix("io.k8s.api.") in SHAPES
]
PARTS = ("", "status", "resize", "ephemeralcontainers", "finalize", "approval", "scale")


def allocate(what: str, wanted: Any) -> Any:
    return wanted or ("10.0.0.7" if what == "clusterIP" else 30007)


def new(resource: JSON, choose: Random) -> JSON:
    version = f"{resource['group']}/{resource['version']}".lstrip("/")
    obj = made(resource["definition"].removeprefix("io.k8s.api."), choose)
    obj |= {"apiVersion": version, "kind": resource["kind"]}
    metadata = obj["metadata"] = obj.get("metadata") or {}
    metadata |= {"name": "a", "uid": UID, "creationTimestamp": CREATED}
    metadata.pop("generation", None)
    if resource["namespaced"]:
        metadata["namespace"] = "default"
    return obj


def problem_of(action: Callable[[], None]) -> ApiProblem | None:
    """What is refused by raising, as what cannot be read is."""
    try:
        action()
    except ApiProblem as problem:
        return problem
    return None


def changed(resource: JSON, choose: Random) -> None:
    """An object is created, and changed into another in every way."""
    group, kind = resource["group"], resource["kind"]
    old, other = new(resource, choose), new(resource, choose)
    created(resource, old)
    read(group, kind, other)
    kept = copy.deepcopy(old)
    for part in PARTS:
        obj = copy.deepcopy(other)
        prepare(group, kind, obj, old, subresource=part, allocate=allocate)
        for each in validate(group, kind, obj, old, subresource=part):
            told = any(word in each.body for word in ("CIDR", "dual stack"))
            assert each.type.startswith("FieldValue") or told
        assert generation(group, kind, obj, old, subresource=part) >= 0
        assert old == kept


def created(resource: JSON, obj: JSON) -> list[FieldProblem]:
    group, kind = resource["group"], resource["kind"]
    read(group, kind, obj)
    prepare(group, kind, obj, None, allocate=allocate)
    return validate(group, kind, obj)


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each["definition"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(choose=randoms)
def test_an_object_of_the_right_types_is_made_or_refused(
    resource: JSON, choose: Random
) -> None:
    problem = problem_of(lambda: changed(resource, choose))
    assert problem is None or problem.code == 422


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each["definition"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(choose=randoms)
def test_an_object_of_wrong_types_is_a_bad_request(
    resource: JSON, choose: Random
) -> None:
    good = new(resource, choose)
    part = choose.choice(sorted(good.keys() - {"apiVersion", "kind"}))
    obj = good | {part: spoiled(good[part], choose)}
    group, kind = resource["group"], resource["kind"]
    problem = problem_of(lambda: read(group, kind, obj))
    if problem is not None:
        assert problem.code == 400
        assert "cannot be handled as a" in problem.message


def test_a_kind_that_is_not_known_is_left_as_it_is() -> None:
    obj = {"apiVersion": "x.com/v1", "kind": "X", "metadata": {"name": "a"}, "y": None}
    kept = copy.deepcopy(obj)
    read("x.com", "X", obj)
    prepare("x.com", "X", obj, None)
    assert obj == kept
    assert shape_of("x.com", "X") == ""


@pytest.mark.parametrize(
    ("what", "spec"),
    [
        ("clusterIP", {"clusterIP": "10.0.0.1", "ports": [{"port": 1}]}),
        ("nodePort", {"type": "NodePort", "ports": [{"port": 1, "nodePort": 30001}]}),
    ],
)
def test_what_another_service_has_is_refused(what: str, spec: JSON) -> None:
    def taken(asked: str, wanted: Any) -> Any:
        if wanted:
            raise ValueError(services.TAKEN[asked])
        return allocate(asked, wanted)

    obj = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": spec,
    }
    read("", "Service", obj)
    with pytest.raises(ApiProblem) as caught:
        prepare("", "Service", obj, None, allocate=taken)
    assert caught.value.code == 422
    assert services.TAKEN[what] in caught.value.message


def test_long_texts_are_not_remembered() -> None:
    asked: list[str] = []

    @remembered
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    short, long = "a" * 256, "a" * 257
    assert [length(short), length(short), length(long), length(long)] == [
        *(256, 256),
        *(257, 257),
    ]
    assert asked == [short, long, long]
