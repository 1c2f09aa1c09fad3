"""Refusals: intents that the server does not apply, and some odd ones that it does."""

from __future__ import annotations

import copy
from typing import Any

from hack.apply_corpus.kinds import CONFIG_MAP, DEPLOYMENT, Kind
from hack.apply_corpus.parts import JSON, put
from hack.apply_corpus.things import THING

_THINGS: tuple[tuple[str, Any], ...] = (
    ("spec.unknown", 1),
    ("spec.nested.unknown", {"a": 1}),
    ("spec.text", 5),
    ("spec.text", True),
    ("spec.text", 1.5),
    ("spec.text", ["a", 1]),
    ("spec.text", {"a": "b"}),
    ("spec.text", None),
    ("spec.number", "5"),
    ("spec.number", True),
    ("spec.number", {"a": 1}),
    ("spec.number", [1]),
    ("spec.number", None),
    ("spec.flag", "yes"),
    ("spec.flag", 1),
    ("spec.flag", {}),
    ("spec.mixed", True),
    ("spec.nested", "text"),
    ("spec.nested", [1, "a"]),
    ("spec.nested", 5),
    ("spec.nested", None),
    ("spec.labels", ["a"]),
    ("spec.labels", {"a": 1}),
    ("spec.labels", {"a": None}),
    ("spec.labels", {"a": {"b": "c"}}),
    ("spec.items", {"a": 1}),
    ("spec.items", "text"),
    ("spec.items", [{"value": "x"}]),
    ("spec.items", [{"name": "x"}, {"name": "x"}]),
    ("spec.items", [{"name": "x"}, {"name": "x"}, {"name": "x"}]),
    ("spec.items", [None]),
    ("spec.items", ["x"]),
    ("spec.items", [{"name": "x", "ports": [{"protocol": "TCP"}]}]),
    ("spec.items", [{"name": "x", "ports": [{"port": 80}, {"port": 80}]}]),
    (
        "spec.items",
        [{"name": "x", "ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]}],
    ),
    ("spec.items", [{"name": 5}]),
    ("spec.items", [{"name": "x", "value": 5}]),
    ("spec.items", [{"name": "x", "unknown": 5}]),
    ("spec.pairs", [{"value": 1}]),
    ("spec.pairs", [{"left": "a"}, {"left": "a", "right": "r"}]),
    ("spec.words", ["a", "a"]),
    ("spec.words", [None]),
    ("spec.words", [["a"]]),
    ("spec.words", [{"a": "b"}]),
    ("spec.words", [1]),
    ("spec.numbers", [1, 1.0]),
    ("spec.list", [1]),
    ("spec.objects", [{"a": 1}]),
    ("spec.objects", [{"unknown": 1}]),
    ("spec.table", {"k": {"a": 5}}),
    ("spec.table", {"k": {"c": 5}}),
    ("spec.open", {"known": 5}),
    ("spec.open", {"deep": {"b": 5}}),
    ("spec.whole", {"a": 5}),
    ("spec", "text"),
    ("spec", None),
    ("metadata.labels", {"a": 5}),
    ("metadata.finalizers", ["a.dev/x", "a.dev/x"]),
    ("metadata.managedFields", []),
    ("metadata.managedFields", None),
    ("metadata.managedFields", [{"manager": "x"}]),
    ("status", {"phase": "x"}),
    ("apiVersion", "v1"),
    ("apiVersion", "facts.trimtab.dev/v2"),
    ("kind", "ConfigMap"),
)
_CONFIG_MAPS: tuple[tuple[str, Any], ...] = (
    ("data", {"a": 5}),
    ("data", {"a": None}),
    ("data", None),
    ("unknown", 5),
    ("immutable", "x"),
    ("metadata.creationTimestamp", None),
    ("metadata.ownerReferences", [{"uid": "a"}, {"uid": "a"}]),
)
_DEPLOYMENTS: tuple[tuple[str, Any], ...] = (
    ("spec.replicas", "3"),
    ("spec.template.spec.containers", [{"image": "x"}]),
    ("spec.template.spec.containers", [{"name": "a"}, {"name": "a"}]),
    ("spec.template.spec.containers", [{"name": "a", "ports": [{"name": "x"}]}]),
    ("spec.template.spec.containers", [{"name": "a", "env": [{"value": "x"}]}]),
    ("spec.template.spec.nodeSelector", {"a": 1}),
    ("spec.template.spec.unknown", 1),
    ("spec.strategy.rollingUpdate.maxSurge", {"a": 1}),
)
_BY_KIND = ((THING, _THINGS), (CONFIG_MAP, _CONFIG_MAPS), (DEPLOYMENT, _DEPLOYMENTS))


async def ask(asked: Any) -> list[JSON]:
    """Each intent, applied dry to an object that is not there and to one that is."""
    told = []
    for kind, cases in _BY_KIND:
        first = _apply(kind, "r", None, None, manager="first")
        live = _without_noise((await asked.play(kind, "r", first))["answer"])
        for field, value in cases:
            for name, before in (("q", None), ("r", live)):
                step = _apply(kind, name, field, value)
                played = await asked.play(kind, name, step, dryRun="All")
                if played["code"] < 300:
                    played["answer"] = _without_noise(played["answer"])
                told.append({"kind": kind.name, "before": before, **played})
    return told


def _apply(
    kind: Kind, name: str, field: str | None, value: Any, manager: str = "alice"
) -> JSON:
    body = {**kind.named(name), **copy.deepcopy(kind.base)}
    if kind is THING and field is None:
        body["spec"] = {"text": "t", "nested": {"a": "b"}, "labels": {"a": "b"}}
    if field:
        put(body, tuple(field.split(".")), value)
    return {"verb": "apply", "manager": manager, "body": body}


def _without_noise(answer: JSON) -> JSON:
    metadata = dict(answer["metadata"])
    for name in ("uid", "resourceVersion", "creationTimestamp"):
        metadata.pop(name, None)
    entries = metadata.get("managedFields", [])
    for entry in entries:
        entry.pop("time", None)
    entries.sort(key=lambda entry: str(entry["manager"]))  # not by when, but by who
    return {**answer, "metadata": metadata}
