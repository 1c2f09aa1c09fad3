"""Parts: optional pieces of an object, from which random writes are put together.

A part is a path and a maker of values for it. Domains are small, so that writers meet:
the same field set to the same value by two, or to another one.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

JSON = dict[str, Any]
Path = tuple[str, ...]
Maker = Callable[[Random], Any]
Parts = Mapping[Path, Maker]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_GONE = object()


def one_of(*values: Any) -> Maker:
    return lambda random: copy.deepcopy(random.choice(values))


def some_of(makers: Mapping[str, Maker], *, least: int = 0) -> Maker:
    """A map with some of these keys."""

    def make(random: Random) -> JSON:
        names = random.sample(sorted(makers), random.randint(least, len(makers)))
        return {name: makers[name](random) for name in names}

    return make


def several(*makers: Maker, least: int = 0) -> Maker:
    """A list with a value of some of these makers, in any order."""

    def make(random: Random) -> list[Any]:
        chosen = random.sample(makers, random.randint(least, len(makers)))
        return [each(random) for each in chosen]

    return make


def put(target: JSON, path: Path, value: Any) -> None:
    """Set a value, making or replacing whatever is in the way."""
    for name in path[:-1]:
        if not isinstance(target.get(name), dict):
            target[name] = {}
        target = target[name]
    target[path[-1]] = value


def drop(target: JSON, path: Path) -> None:
    """Remove a value if it is there."""
    for name in path[:-1]:
        target = target.get(name) or {}
        if not isinstance(target, dict):
            return
    target.pop(path[-1], None)


def get(target: Any, path: Path) -> Any:
    """The value there, or ``_GONE``."""
    for name in path:
        if not isinstance(target, dict) or name not in target:
            return _GONE
        target = target[name]
    return target


def choose(random: Random, parts: Parts, most: int) -> list[Path]:
    """Some paths, the longer ones last, so that they are put into the shorter."""
    count = random.randint(1, min(most, len(parts)))
    return sorted(random.sample(list(parts), count), key=len)


def filled(random: Random, parts: Parts, base: JSON, most: int = 6) -> JSON:
    """The base with some parts."""
    made = copy.deepcopy(base)
    for path in choose(random, parts, most):
        put(made, path, parts[path](random))
    return made


def changed(random: Random, parts: Parts, live: JSON) -> JSON:
    """The live object with some parts set anew and some removed."""
    made = copy.deepcopy(live)
    for path in choose(random, parts, 4):
        if random.random() < 0.3:
            drop(made, path)
        else:
            put(made, path, parts[path](random))
    return made


def merge_patch(random: Random, parts: Parts) -> JSON:
    """A patch that sets some parts and removes others."""
    made: JSON = {}
    for path in choose(random, parts, 3):
        put(made, path, None if random.random() < 0.3 else parts[path](random))
    return made


def json_patch(random: Random, parts: Parts, live: JSON) -> list[JSON]:
    """Operations on some parts, each of which applies."""
    operations: list[JSON] = []
    document = copy.deepcopy(live)
    for path in choose(random, parts, 3):
        for depth in range(1, len(path)):
            if not isinstance(get(document, path[:depth]), dict):
                operations.append(_operation("add", path[:depth], {}))
                put(document, path[:depth], {})
        there = get(document, path) is not _GONE
        if there and random.random() < 0.4:
            operations.append(_operation("remove", path))
            drop(document, path)
        else:
            value = parts[path](random)
            operations.append(_operation("replace" if there else "add", path, value))
            put(document, path, value)
    return operations


def _operation(kind: str, path: Path, value: Any = _GONE) -> JSON:
    names = (name.replace("~", "~0").replace("/", "~1") for name in path)
    operation = {"op": kind, "path": "/" + "/".join(names)}
    return operation if value is _GONE else {**operation, "value": value}


def remembered(intent: JSON) -> str:
    """What kubectl's client-side apply writes into its annotation."""
    return json.dumps(intent, separators=(",", ":"), sort_keys=True) + "\n"
