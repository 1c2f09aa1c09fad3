"""Fuzzing: random writes of several managers, the same ones to two servers."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import msgspec
from hypothesis import strategies as st

from tests.differential import normal, shapes
from tests.differential.fuzzed import Fuzzed
from tests.differential.normal import Numbers
from tests.differential.scenario import (
    AGENT,
    APPLY,
    GROUPS,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Run,
    compared,
    encode,
)
from tests.differential.shapes import Values
from tests.differential.wire import JSON, Plain, Wire

MANAGERS = ("alice", "bob", "tests")
NAMESPACE = "default"
MAPS = frozenset(
    "annotations binaryData data labels limits nodeSelector requests selector".split()
)
LISTS = ("args", "containers", "env", "externalIPs", "finalizers", "ports", "volumes")
TEXTS = frozenset({"args", "externalIPs", "finalizers"})
"""Those of them whose items have no keys."""
_names = itertools.count()

Write = dict[str, Any]


@st.composite
def histories(draw: st.DrawFn, kind: Fuzzed) -> list[Write]:
    """A few writes to one object, the first of which makes it."""
    writes = [draw(_firsts(kind))]
    writes += draw(st.lists(_writes(kind), min_size=1, max_size=4))
    return writes


def _firsts(kind: Fuzzed) -> Values:
    return st.fixed_dictionaries(
        {
            "how": st.sampled_from(["create", "apply"]),
            "manager": st.sampled_from(MANAGERS),
            "body": shapes.values(kind.schema, odd=False),
            "whole": st.just(True),
        }
    )


def _writes(kind: Fuzzed) -> Values:
    ways = ["apply", "apply", "apply", "merge", "json", "update"]
    if kind.strategic:
        ways += ["strategic", "strategic"]
    parts = ["", "", "", "status"] if kind.status else [""]
    return st.tuples(st.sampled_from(ways), st.sampled_from(parts)).flatmap(
        lambda drawn: _write(kind, *drawn)
    )


def _write(kind: Fuzzed, how: str, part: str) -> Values:
    schema = kind.schema
    if part:
        schema = {"type": "object", "properties": {"status": kind.status}}
    bodies = {
        "json": st.lists(_operations(schema), min_size=1, max_size=3),
        "strategic": _directed(shapes.values(schema, odd=False)),
    }
    return st.fixed_dictionaries(
        {
            "how": st.just(how),
            "part": st.just(part),
            "manager": st.sampled_from(MANAGERS),
            "force": st.booleans(),
            "whole": st.booleans(),
            "body": bodies.get(how, shapes.values(schema, odd=False)),
        }
    )


def _operations(schema: Plain) -> Values:
    paths = sorted(_paths(schema, ""))
    return st.fixed_dictionaries(
        {
            "op": st.sampled_from(
                ["add", "add", "add", "replace", "remove", "test", "copy", "move"]
            ),
            "path": st.sampled_from(paths),
            "from": st.sampled_from(paths),
        }
    ).flatmap(lambda made: _valued(schema, made))


def _valued(schema: Plain, made: Plain) -> Values:
    if made["op"] in ("copy", "move"):
        return st.just(made)
    made = {key: each for key, each in made.items() if key != "from"}
    if made["op"] == "remove":
        return st.just(made)
    value = shapes.values(_schema_at(schema, made["path"]))
    return value.map(lambda drawn: {**made, "value": drawn})


def _paths(schema: Plain, start: str) -> list[str]:
    """Places in an object of a schema, some of them in lists and maps."""
    found = []
    if "properties" in schema:
        for key, each in schema["properties"].items():
            found += [f"{start}/{key}", *_paths(each, f"{start}/{key}")]
    elif "additionalProperties" in schema:
        for key in ("a", "b"):
            inner = f"{start}/{key}"
            found += [inner, *_paths(schema["additionalProperties"], inner)]
    elif "items" in schema:
        found.append(f"{start}/-")
        for index in ("0", "1"):
            inner = f"{start}/{index}"
            found += [inner, *_paths(schema["items"], inner)]
    return found


def _schema_at(schema: Plain, path: str) -> Plain:
    for key in path.split("/")[1:]:
        if "properties" in schema:
            schema = schema["properties"][key]
        else:
            schema = schema.get("additionalProperties") or schema["items"]
    return schema


def _directed(values: Values) -> Values:
    """Merges with directives of the strategic merge here and there."""
    return st.tuples(values, st.integers(0, 2), st.randoms(use_true_random=False)).map(
        lambda drawn: _direct(copy.deepcopy(drawn[0]), drawn[1], drawn[2])
    )


def _direct(body: Any, count: int, random: Any) -> Any:
    for _ in range(count):
        place = random.choice(_objects(body))
        sort = random.randrange(4)
        lists = [key for key in LISTS if isinstance(place.get(key), list)]
        if sort == 0:
            place["$patch"] = random.choice(("delete", "replace", "merge"))
        elif sort == 1:
            place["$retainKeys"] = [key for key in place if not key.startswith("$")]
        elif lists and sort == 2:
            key = random.choice(lists)
            if key not in TEXTS or not any(map(_panics, place[key])):
                place[f"$setElementOrder/{key}"] = _order(place[key])
        elif lists:
            key = random.choice(lists)
            if not any(isinstance(each, dict) for each in place[key]):
                _delete_first(place, key)
    return body


def _panics(item: Any) -> bool:
    """Whether an item of a list without keys makes a real server panic when it puts
    the list in order: then it hangs up, and there is nothing to compare."""
    return item is None or isinstance(item, (dict, list))


def _delete_first(place: Plain, key: str) -> None:
    """Delete what a list has first. If it were added too, the real server would do
    one after the other in the order of a walk over a map, so by chance."""
    gone = place[key][:1]
    place[f"$deleteFromPrimitiveList/{key}"] = gone
    place[key] = [each for each in place[key] if each not in gone]


def _order(items: list[Any]) -> list[Any]:
    keys = ("name", "uid", "containerPort", "mountPath", "type", "ip", "port")
    made = []
    for item in reversed(items):
        if isinstance(item, dict):
            key = next((each for each in keys if each in item), None)
            made.append({key: item[key]} if key else item)
        else:
            made.append(item)
    return made


def _objects(value: Any) -> list[Plain]:
    found: list[Plain] = []
    if isinstance(value, dict):
        found.append(value)
        for key, each in value.items():
            if not key.startswith("$") and key not in MAPS:
                found += _objects(each)
    elif isinstance(value, list):
        for each in value:
            found += _objects(each)
    return found


class Pair:
    """Two servers that are asked the same."""

    def __init__(self, here: Wire, there: Wire) -> None:
        self.here, self.there = here, there
        self.requests = 0

    def differences(self, kind: Fuzzed, history: list[Write]) -> list[str]:
        """In words, where the servers differ in what they make of a history.

        They are asked twice then: a message may show managed fields, whose order is
        another where a second ends between two writes; and a write that comes before
        the last one is in the real server's cache may warn of what was there before.
        """
        return self._differences(kind, history, settled=False) and self._differences(
            kind, history, settled=True
        )

    def _differences(
        self, kind: Fuzzed, history: list[Write], *, settled: bool
    ) -> list[str]:
        name = f"f{next(_names)}"
        found = [
            _played(wire, kind, name, history, settled=settled)
            for wire in (self.here, self.there)
        ]
        self.requests += len(found[0])
        if kind.plural == "services":  # the addresses are few
            for wire in (self.here, self.there):
                _delete(wire, name)
        told = []
        for mine, theirs in zip(*found, strict=True):
            asked = mine.pop("asked"), theirs.pop("asked")
            if mine != theirs:
                told += [asked[0], *compared(mine, theirs, "")]
                break
        return told


def _delete(wire: Wire, name: str) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}/services/{name}"
    free = encode({"metadata": {"finalizers": None}})
    wire.send("PATCH", path, free, {"Content-Type": MERGE})
    wire.send("DELETE", path)


def _played(
    wire: Wire, kind: Fuzzed, name: str, history: list[Write], *, settled: bool
) -> list[Plain]:
    run = Run(wire, NAMESPACE)
    numbers = Numbers()
    told, live = [], None
    for write in history:
        method, target, body, media = _request(kind, name, write, live)
        reply = wire.send(
            method,
            target,
            encode(body),
            {"Content-Type": media, "Accept": JSON, "User-Agent": AGENT},
        )
        shown = f"{method} {target} {msgspec.json.encode(body).decode()}"
        told.append({"asked": shown, **normal.answer(reply, numbers)})
        if reply.status in (200, 201):
            live = reply.obj
        if settled:
            run.settle(f"{kind.plural}/{name}", reply)
    return told


def _request(
    kind: Fuzzed, name: str, write: Write, live: Plain | None
) -> tuple[str, str, Any, str]:
    group = GROUPS.get(kind.plural, "")
    root = f"/apis/{group}" if group else "/api"
    path = f"{root}/v1/namespaces/{NAMESPACE}/{kind.plural}"
    manager = f"fieldManager={write['manager']}"
    how, body = write["how"], copy.deepcopy(write["body"])
    part = "/status" if write.get("part") and live else ""
    if how == "create":
        return "POST", f"{path}?{manager}", _whole(kind, name, body), JSON
    target = f"{path}/{name}{part}?{manager}"
    if how == "apply":
        # A bare Pod is given an account, by a plugin that needs controllers.
        bare = live is None and kind.kind == "Pod"
        whole = (write["whole"] or bare) and not part
        intent = _whole(kind, name, body) if whole else body
        force = "&force=true" if write.get("force") else ""
        intent = _merged(kind.named(name), intent)
        return "PATCH", f"{target}{force}", intent, APPLY
    if how == "update":
        new = _merged(kind.named(name), _merged(copy.deepcopy(live or {}), body))
        if write["whole"]:
            new["metadata"].pop("managedFields", None)
        new["metadata"].pop("resourceVersion", None)
        if kind.plural in ("things",) and live:
            new["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        # Both are sent it in one order: of several mistakes the first is told.
        ordered = msgspec.json.encode(new, order="sorted")
        return "PUT", target, msgspec.json.decode(ordered), JSON
    media = {"merge": MERGE, "json": JSON_PATCH, "strategic": STRATEGIC}[how]
    return "PATCH", target, body, media


def _whole(kind: Fuzzed, name: str, body: Any) -> Plain:
    return _merged(_merged(kind.named(name), copy.deepcopy(kind.base)), body)


def _merged(base: Plain, body: Any) -> Plain:
    """One object laid over another; what is no object replaces."""
    if not isinstance(body, dict):
        return base
    for key, value in body.items():
        if key == "metadata" or isinstance(value, dict):
            held = base.get(key)
            base[key] = _merged(dict(held), value) if isinstance(held, dict) else value
        else:
            base[key] = value
    return base
