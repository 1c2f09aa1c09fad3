"""Applying: conflicts, wrong types, and who owns what."""

from __future__ import annotations

from typing import Any

from tests.differential.kinds import sample
from tests.differential.scenario import APPLY, GROUP, JSON_PATCH, Run, scenario
from tests.differential.wire import Plain

TWO = ("configmaps", "things")
DEPLOYMENT_SPECS: tuple[Any, ...] = (
    {"replicas": 3000000000},
    {"replicas": "x"},
    {"replicas": 1.5},
    {"replicas": True},
    {"replicas": None},
    {"paused": "x"},
    {"paused": 1},
    {"template": []},
    {"template": {"spec": {"containers": {}}}},
    {"template": {"spec": {"containers": ["x"]}}},
    {"template": {"spec": {"containers": [{}]}}},
    {"template": {"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}},
    {"template": {"spec": {"containers": [{"name": 1}]}}},
    {"template": {"spec": {"terminationGracePeriodSeconds": 1 << 63}}},
    {"progressDeadlineSeconds": -3000000000},
    "text",
    None,
    [],
)
THING_SPECS: tuple[Any, ...] = (
    {"number": "x"},
    {"number": 1.5},
    {"small": 3000000000},
    {"flag": 1},
    {"words": ["a", "a"]},
    {"words": {}},
    {"items": [{}]},
    {"items": [{"name": "a"}, {"name": "a"}]},
    {"items": [{"name": 1}]},
    {"pairs": [{"port": 1}, {"port": 1, "protocol": "TCP"}]},
    {"nested": {"inner": []}},
    {"table": {"a": "x"}},
    {"mixed": True},
    "text",
    None,
    [],
)
PORTS: tuple[Any, ...] = ([{"port": 1}, {"port": 1}], [{}], [{"port": "x"}], {}, ["x"])
DATA: tuple[Any, ...] = ({"a": 1}, {"a": None}, [], "x", {"a": {}}, None)


def named(plural: str, name: str = "a", **more: Any) -> Plain:
    """A body of a kind, as an apply needs it."""
    kinds = {
        "configmaps": ("v1", "ConfigMap"),
        "deployments": ("apps/v1", "Deployment"),
        "services": ("v1", "Service"),
        "things": (f"{GROUP}/v1", "Thing"),
    }
    version, kind = kinds[plural]
    made: Plain = {"apiVersion": version, "kind": kind, "metadata": {"name": name}}
    return {**made, **more}


@scenario
def applies_and_conflicts(do: Run) -> None:
    for plural, field, one, two in (
        ("configmaps", "data", {"a": "1"}, {"a": "2", "b": "3"}),
        ("things", "spec", {"text": "1"}, {"text": "2", "number": 3}),
    ):
        target = f"{plural}/a"
        do.apply(target, named(plural) | {field: one})
        do.apply(target, named(plural) | {field: one})
        do.apply(target, named(plural) | {field: one}, "bob")
        do.apply(target, named(plural) | {field: two}, "bob")
        do.apply(target, named(plural) | {field: two}, "bob", force=True)
        do.apply(target, named(plural))
        do.apply(target, named(plural), "bob")
        do("PUT", f"{target}?fieldManager=carol", named(plural) | {field: two})
        do.apply(target, named(plural) | {field: one})
        do("PATCH", target, named(plural), media=APPLY)
        do("PATCH", f"{target}?force=true", named(plural), media=APPLY)
        do("PATCH", f"{target}?force=odd&fieldManager=x", named(plural), media=APPLY)
        do.patch(f"{target}?force=true", {})
        do.apply(target, named(plural, "other"))
        do.apply(target, {**named(plural), "kind": "Other"})
        do.apply(target, {**named(plural), "apiVersion": "other/v1"})
        do.apply(target, {"metadata": {"name": "a"}})
        do.apply(target, {})
        extra: Plain = {"metadata": {"name": "a", "managedFields": [{}]}}
        do.apply(target, {**named(plural), **extra})
        extra = {"metadata": {"name": "a", "resourceVersion": "1"}}
        do.apply(target, {**named(plural), **extra})
        extra = {"metadata": {"name": "a", "uid": "other"}}
        do.apply(target, {**named(plural), **extra})
        do.apply(f"{plural}/new", {**named(plural, "new"), **extra})
        extra = {"metadata": {"name": "a", "namespace": "other"}}
        do.apply(target, {**named(plural), **extra})
        extra = {"metadata": {"labels": {"no": "name"}}}
        do.apply(target, {**named(plural), **extra})
        do.apply(target, named(plural, unknown={"a": 1}))
        do.apply(f"{target}?fieldValidation=Strict", named(plural, unknown=1))
        do.apply(f"{target}?dryRun=All", named(plural) | {field: two}, force=True)


@scenario
def applies_of_wrong_types(do: Run) -> None:
    do.create("deployments", sample("deployments"))
    for spec in DEPLOYMENT_SPECS:
        do.apply("deployments/a", named("deployments", spec=spec), force=True)
    for spec in THING_SPECS:
        do.apply("things/t", named("things", "t", spec=spec), force=True)
    for ports in PORTS:
        body = named("services", "s", spec={"ports": ports})
        do.apply("services/s", body)
    for data in DATA:
        do.apply("configmaps/c", named("configmaps", "c", data=data))


@scenario
def writers_are_told_apart(do: Run) -> None:
    for plural in TWO:
        do("POST", plural, sample(plural), agent="one/1")
        do.patch(f"{plural}/a?fieldManager=two", {"metadata": {"labels": {"b": "2"}}})
        add = [{"op": "add", "path": "/metadata/labels/c", "value": "3"}]
        do.patch(f"{plural}/a?fieldManager=three", add, JSON_PATCH)
        do.patch(f"{plural}/a?fieldManager=one", {"metadata": {"labels": {"b": "4"}}})
        do.apply(f"{plural}/a", named(plural), "one")
        label = {"metadata": {"name": "a", "labels": {"b": "4"}}}
        do.apply(f"{plural}/a", {**named(plural), **label}, "four")
        do.apply(f"{plural}/a", named(plural), "four")
        do.patch(f"{plural}/a?fieldManager=five", {"metadata": {"labels": None}})
        do.patch(f"{plural}/a", {"metadata": {"managedFields": [{}]}})
        do.patch(f"{plural}/a?fieldManager=six", {"metadata": {"labels": {"z": "1"}}})
        do.patch(f"{plural}/a", {"metadata": {"managedFields": None}})
