"""Ratcheting: what a stricter schema forgives in objects that are there already."""

from __future__ import annotations

import time
from typing import Any

from tests.differential.kinds import definition, many, of, version
from tests.differential.scenario import GROUP, JSON_PATCH, Run, scenario
from tests.differential.wire import Plain

NAME = {"apiVersion": f"{GROUP}/v1", "kind": "Ratchet", "metadata": {"name": "a"}}
STORED: Plain = {
    "name": "toolong",
    "size": 50,
    "tags": ["bad", "fine"],
    "keyed": [{"k": "a", "v": "bad", "w": "x"}, {"k": "b", "v": "ok"}],
    "plain": [{"v": "bad"}, {"v": "ok"}],
    "deep": {"a": 99, "b": 1},
}
WITHIN = 20.0


def _schema(*, strict: bool) -> Plain:
    def only(schema: Plain, **more: Any) -> Plain:
        return {**schema, **more} if strict else schema

    def rule(text: str, **more: Any) -> Plain:
        return {"x-kubernetes-validations": [{"rule": text, **more}]} if strict else {}

    text, number = {"type": "string"}, {"type": "integer"}
    word = only(text, enum=["ok", "fine"])
    deep = of(a=only(number, maximum=10), b=number)
    spec = of(
        name=only(text, maxLength=5),
        size=only(number, maximum=10),
        tags=many(word),
        keyed=many(
            {**of(k=text, v=word, w=text), "required": ["k"]},
            list_type="map",
            list_map_keys=["k"],
        ),
        plain=many(of(v=word)),
        deep={**deep, **rule("self.a < 50", message="a is too large")},
        grows={**number, **rule("self >= oldSelf", message="it shrinks")},
        new={
            **text,
            **rule("oldSelf.hasValue() || self == 'x'", optionalOldSelf=True),
        },
    )
    if strict:
        spec["required"] = ["size", "added"]
        spec["properties"]["added"] = text
    return of(spec=spec)


def _defined(plural: str, *, strict: bool) -> Plain:
    return definition(plural, [version("v1", _schema(strict=strict))])


def _until(do: Run, target: str, body: Plain, code: int) -> None:
    """A schema is in force some time after it was written."""
    deadline = time.monotonic() + WITHIN
    while do.prepare("POST", target, body).status != code:
        assert time.monotonic() < deadline, f"{target} does not answer with {code}"
        time.sleep(0.05)


def _stricter(do: Run) -> str:
    """Where ratchets are, after the schema became stricter than the one stored."""
    crds = "customresourcedefinitions"
    group = f"/apis/{GROUP}/v1/namespaces/{do.namespace}/ratchets"
    do.prepare("POST", crds, _defined("ratchets", strict=False))
    trial = {**NAME, "spec": {**STORED, "tags": ["none"]}}
    _until(do, f"{group}?dryRun=All", trial, 201)
    made = do("POST", group, {**NAME, "spec": {**STORED, "grows": 3}})
    do.settle(f"{group}/a", made)
    crd = do.prepare("GET", f"{crds}/ratchets.{GROUP}").obj
    crd["spec"]["versions"] = _defined("ratchets", strict=True)["spec"]["versions"]
    do.prepare("PUT", f"{crds}/ratchets.{GROUP}", crd)
    _until(do, f"{group}?dryRun=All", trial, 422)
    return group


@scenario
def what_was_bad_before_may_stay_bad(do: Run) -> None:
    group = _stricter(do)
    one = f"{group}/a"
    changes: list[Plain] = [
        {},
        {"name": "short"},
        {"name": "toolonger"},
        {"size": 51},
        {"size": None},
        {"tags": ["bad", "fine", "bad"]},
        {"tags": ["fine", "bad"]},
        {"keyed": [{"k": "b", "v": "ok"}, {"k": "a", "v": "bad", "w": "x"}]},
        {"keyed": [{"k": "a", "v": "bad", "w": "y"}]},
        {"keyed": [{"k": "a", "v": "bad", "w": "x"}, {"k": "c", "v": "bad"}]},
        {"plain": [{"v": "bad"}]},
        {"plain": [{"v": "bad"}, {"v": "ok"}, {"v": "ok"}]},
        {"deep": {"b": 2}},
        {"deep": {"a": 98}},
        {"deep": {"a": 1}},
        {"grows": 2},
        {"new": "y"},
        {"new": "x"},
        {"added": "a"},
        {"added": None},
    ]
    for change in changes:
        do.settle(one, do.patch(one, {"spec": change}))
    for change in changes:
        do.patch(f"{one}?dryRun=All", {"metadata": {"labels": {"a": "b"}}})
        do.patch(f"{one}?dryRun=All", {"spec": change})
    do.patch(one, [{"op": "add", "path": "/spec/tags/0", "value": "bad"}], JSON_PATCH)
    intent = {**NAME, "spec": {"name": "toolong", "added": "a"}}
    do.settle(one, do.apply(one, intent, force=True))
    do.apply(one, {**NAME, "spec": {"size": 60}}, "bob", force=True)
    do("POST", group, {**NAME, "metadata": {"name": "b"}, "spec": STORED})
    now = do.get(one)
    grown = {**now, "spec": {**now["spec"], "grows": 4}}
    do.settle(one, do("PUT", one, grown))
    do("PUT", one, {**now, "spec": {}})
    do.prepare("DELETE", f"/apis/apiextensions.k8s.io/v1/{_CRD}")


_CRD = f"customresourcedefinitions/ratchets.{GROUP}"
