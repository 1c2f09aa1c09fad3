"""Patches: JSON and merge ones, and those of `strategic`, tried on a few objects."""

from __future__ import annotations

import copy
from typing import Any

from hack.apply_corpus import strategic
from hack.apply_corpus.kinds import Kind
from hack.apply_corpus.parts import JSON
from hack.apply_corpus.things import THING

_ANY: JSON = {
    "a": {"b": {"c": 1, "d": [1, 2, 3]}, "e": "text"},
    "f": [{"g": 1}, {"g": 2}],
    "n": 5,
    "t": True,
    "x/y": "slash",
    "p~q": "tilde",
    "r": 1.5,
    "empty": {},
    "none": None,
    "list": [],
    "html": "<&>",
}
_AT = "/spec/any"


def _op(kind: str, path: Any, value: Any = ..., **more: Any) -> JSON:
    made = {"op": kind, "path": path, **more}
    return made if value is ... else {**made, "value": value}


_JSON: tuple[Any, ...] = (
    [],
    [_op("add", f"{_AT}/new", 1)],
    [_op("add", f"{_AT}/new", None)],
    [_op("add", f"{_AT}/a", {"z": 1})],
    [_op("add", f"{_AT}/new")],
    [_op("add", f"{_AT}/a/b/d/0", 9)],
    [_op("add", f"{_AT}/a/b/d/3", 9)],
    [_op("add", f"{_AT}/a/b/d/4", 9)],
    [_op("add", f"{_AT}/a/b/d/-", 9)],
    [_op("add", f"{_AT}/a/b/d/-1", 9)],
    [_op("add", f"{_AT}/a/b/d/-4", 9)],
    [_op("add", f"{_AT}/a/b/d/-5", 9)],
    [_op("add", f"{_AT}/a/b/d/01", 9)],
    [_op("add", f"{_AT}/a/b/d/+1", 9)],
    [_op("add", f"{_AT}/a/b/d/x", 9)],
    [_op("add", f"{_AT}/a/b/d/1e1", 9)],
    [_op("add", f"{_AT}/a/b/d/", 9)],
    [_op("add", f"{_AT}/a/b/d/99999999999999999999", 9)],
    [_op("add", f"{_AT}/missing/x", 1)],
    [_op("add", f"{_AT}/n/x", 1)],
    [_op("add", f"{_AT}/none/x", 1)],
    [_op("add", f"{_AT}/a/e/x", 1)],
    [_op("add", f"{_AT}/f/0/h", [1])],
    [_op("add", f"{_AT}/f/5/h", [1])],
    [_op("add", f"{_AT}/x~1y", "new")],
    [_op("add", f"{_AT}/p~0q", "new")],
    [_op("add", f"{_AT}/~01", "new")],
    [_op("add", f"{_AT}/ü b", "new")],
    [_op("add", "spec/any/new", 1)],
    [_op("add", "", {"a": 1})],
    [_op("add", "/", 1)],
    [_op("add", f"{_AT}/", 1)],
    [_op("remove", f"{_AT}/a")],
    [_op("remove", f"{_AT}/missing")],
    [_op("remove", f"{_AT}/missing/x")],
    [_op("remove", f"{_AT}/a/b/d/1")],
    [_op("remove", f"{_AT}/a/b/d/-1")],
    [_op("remove", f"{_AT}/a/b/d/3")],
    [_op("remove", f"{_AT}/a/b/d/-4")],
    [_op("remove", f"{_AT}/a/b/d/-")],
    [_op("remove", f"{_AT}/list/0")],
    [_op("remove", f"{_AT}/none")],
    [_op("remove", "")],
    [_op("remove", "/metadata/labels/x")],
    [_op("replace", f"{_AT}/n", 6)],
    [_op("replace", f"{_AT}/missing", 6)],
    [_op("replace", f"{_AT}/missing/x", 6)],
    [_op("replace", f"{_AT}/none", 6)],
    [_op("replace", f"{_AT}/a/b/d/1", 6)],
    [_op("replace", f"{_AT}/a/b/d/-1", 6)],
    [_op("replace", f"{_AT}/a/b/d/3", 6)],
    [_op("replace", f"{_AT}/a/b/d/-", 6)],
    [_op("replace", f"{_AT}/a/b/d/x", 6)],
    [_op("replace", f"{_AT}/n")],
    [_op("replace", "", 5)],
    [_op("replace", "", [1])],
    [_op("move", f"{_AT}/moved", **{"from": f"{_AT}/a"})],
    [_op("move", f"{_AT}/a/b/moved", **{"from": f"{_AT}/n"})],
    [_op("move", f"{_AT}/a/b/d/0", **{"from": f"{_AT}/a/b/d/2"})],
    [_op("move", f"{_AT}/moved", **{"from": f"{_AT}/missing"})],
    [_op("move", f"{_AT}/moved", **{"from": f"{_AT}/missing/x"})],
    [_op("move", f"{_AT}/missing/x", **{"from": f"{_AT}/n"})],
    [_op("move", f"{_AT}/moved", **{"from": f"{_AT}/a/b/d/7"})],
    [_op("move", f"{_AT}/a/b", **{"from": f"{_AT}/a"})],
    [_op("move", f"{_AT}/moved")],
    [_op("copy", f"{_AT}/copied", **{"from": f"{_AT}/a"})],
    [_op("copy", f"{_AT}/a/b/d/-", **{"from": f"{_AT}/a/b"})],
    [_op("copy", f"{_AT}/copied", **{"from": f"{_AT}/missing"})],
    [_op("copy", f"{_AT}/copied", **{"from": f"{_AT}/missing/x"})],
    [_op("copy", f"{_AT}/copied", **{"from": f"{_AT}/a/b/d/7"})],
    [_op("copy", f"{_AT}/missing/x", **{"from": f"{_AT}/n"})],
    [_op("copy", f"{_AT}/a/b/d/9", **{"from": f"{_AT}/n"})],
    [_op("copy", f"{_AT}/copied")],
    [
        _op("copy", f"{_AT}/copied", **{"from": f"{_AT}/a"}),
        _op("add", f"{_AT}/copied/e", "new"),
    ],
    [_op("test", f"{_AT}/n", 5)],
    [_op("test", f"{_AT}/n", 5.0)],
    [_op("test", f"{_AT}/n", 6)],
    [_op("test", f"{_AT}/n", "5")],
    [_op("test", f"{_AT}/t", True)],
    [_op("test", f"{_AT}/t", 1)],
    [_op("test", f"{_AT}/r", 1.5)],
    [_op("test", f"{_AT}/a", {"e": "text", "b": {"d": [1, 2, 3], "c": 1}})],
    [_op("test", f"{_AT}/a", {"e": "text"})],
    [_op("test", f"{_AT}/a", 1)],
    [_op("test", f"{_AT}/a/b/d", [1, 2, 3])],
    [_op("test", f"{_AT}/a/b/d", [1, 2])],
    [_op("test", f"{_AT}/a/b/d", [3, 2, 1])],
    [_op("test", f"{_AT}/a/b/d/1", 2)],
    [_op("test", f"{_AT}/a/b/d/7", 2)],
    [_op("test", f"{_AT}/none", None)],
    [_op("test", f"{_AT}/none", 1)],
    [_op("test", f"{_AT}/missing", None)],
    [_op("test", f"{_AT}/missing")],
    [_op("test", f"{_AT}/missing", 1)],
    [_op("test", f"{_AT}/missing/x", 1)],
    [_op("test", f"{_AT}/n")],
    [_op("test", f"{_AT}/n", None)],
    [_op("test", f"{_AT}/empty", {})],
    [_op("test", f"{_AT}/list", [])],
    [_op("test", f"{_AT}/list", {})],
    [_op("test", f"{_AT}/empty", [])],
    [_op("test", "/metadata/name", "p")],
    [_op("test", "/metadata/name", "q"), _op("remove", f"{_AT}/a")],
    [_op("unknown", f"{_AT}/a", 1)],
    [{"path": f"{_AT}/a", "value": 1}],
    [{"op": None, "path": f"{_AT}/a", "value": 1}],
    [{"op": "add", "value": 1}],
    [{"op": "remove"}],
    [{"op": "replace", "value": 1}],
    [{"op": "test", "value": 1}],
    [{"op": "move", "from": f"{_AT}/a"}],
    [{"op": "copy", "from": f"{_AT}/a"}],
    [{"op": "add", "path": None, "value": 1}],
    [{"op": 5, "path": f"{_AT}/a"}],
    [{"op": "add", "path": 5, "value": 1}],
    [{"op": "add", "path": {"a": 1}, "value": 1}],
    [{"op": "move", "path": f"{_AT}/a", "from": True}],
    [{"op": "add", "path": f"{_AT}/new", "value": 1, "more": 2}],
    ["text"],
    [5],
    [None],
    [[]],
    {},
    {"op": "add"},
    "text",
    5,
    True,
    [_op("add", f"{_AT}/new", 1), _op("remove", f"{_AT}/new")],
    [_op("add", f"{_AT}/new", {}), _op("add", f"{_AT}/new/x", 1)],
    [_op("add", f"{_AT}/new", None), _op("add", f"{_AT}/new/x", 1)],
    [_op("add", f"{_AT}/new", [1]), _op("add", f"{_AT}/new/0", 0)],
)
_MERGE: tuple[Any, ...] = (
    {},
    {"a": 1},
    {"a": None},
    {"a": {"b": None}},
    {"a": {"b": {"c": None, "x": 1}}},
    {"new": {"x": None, "y": 1}},
    {"new": {"x": {"z": None}}},
    {"new": [{"x": None, "y": 1}, None]},
    {"f": [{"g": None}]},
    {"f": None},
    {"f": {"x": 1}},
    {"f": {"x": None}},
    {"a": [1, None, {"x": None}]},
    {"a": "text"},
    {"n": {"x": None, "y": 2}},
    {"n": []},
    {"none": {"x": None, "y": 1}},
    {"none": None},
    {"empty": {"x": None}},
    {"empty": []},
    {"missing": None},
    {"list": [[{"x": None}]]},
    {"html": None, "t": False},
)
_MERGE_ROOTS: tuple[Any, ...] = (
    {"spec": None},
    {"spec": {"any": None}},
    {"metadata": {"labels": {"a": "b"}}},
    {"metadata": None},
    [],
    [{"a": None}],
    "text",
    5,
    True,
)


async def ask(asked: Any) -> list[JSON]:
    """Each patch, tried dry."""
    told: list[JSON] = []
    body = {**THING.named("p"), "spec": {"any": copy.deepcopy(_ANY)}}
    told += await _tried(asked, THING, body, "json", _JSON)
    merges = [*({"spec": {"any": each}} for each in _MERGE), *_MERGE_ROOTS]
    told += await _tried(asked, THING, body, "merge", merges)
    told += await _tried(asked, THING, body, "strategic", [{"spec": {"text": "x"}}])
    for kind, spec, patches in strategic.cases():
        made = {**kind.named("p"), **spec}
        made["metadata"] = {**kind.named("p")["metadata"], **spec.get("metadata", {})}
        told += await _tried(asked, kind, made, "strategic", patches)
    return told


async def _tried(
    asked: Any, kind: Kind, body: JSON, verb: str, patches: Any
) -> list[JSON]:
    created = await asked.play(kind, "p", {"verb": "create", "body": body})
    assert created["code"] in (201, 409), created
    _, live = await asked.ask("GET", f"{kind.path}/p")
    told = []
    for patch in patches:
        step = {"verb": verb, "body": patch}
        played = await asked.play(kind, "p", step, dryRun="All")
        told.append({**played, "answer": _tidy(played["answer"])})
    return [{"kind": kind.name, "live": _tidy(live), "tried": told}]


def _tidy(answer: JSON) -> JSON:
    metadata = dict(answer.get("metadata") or {})
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        metadata.pop(name, None)
    return {**answer, "metadata": metadata}
