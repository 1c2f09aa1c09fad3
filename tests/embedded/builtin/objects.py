"""Objects of built-in kinds with anything in them that the types allow."""

from __future__ import annotations

import json
from importlib.resources import files
from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.embedded.builtin.recorded import JSON

SHAPES: dict[str, dict[str, str]] = json.loads(
    files("trimtab.embedded.builtin").joinpath("data/shapes.json").read_text()
)
WORDS = (
    "|a|A b|x.y/z|a-b|None|0|10.0.0.5|fd00::1|10.0.0.0/8|Always|Never|ClusterIP|"
    "NodePort|LoadBalancer|ExternalName|Exists|In|NotIn|Equal|RollingUpdate|Recreate|"
    "Indexed|Container|Pod|TCP|Deployment|apps/v1|25%|*|kubernetes.io/tls|Localhost|"
    "Resource|Prefix|https://a.b|*/5 * * * *|linux|windows|ClientIP|Bound|é\n"
).split("|")
VALUES: dict[str, tuple[Any, ...]] = {
    "s": tuple(WORDS),
    "i": (0, 1, -1, 80, 30000, 70000, 2**31 - 1),
    "b": (True, False),
    "f": (1.5,),
    "y": ("", "AAEC"),
    "q": ("1", "0", "-1", "1500m", "1Gi", "0.0001", 5),
    "x": (0, 80, "http", "25%", "", -1),
    "t": ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5+01:00"),
    "u": ("2026-01-02T03:04:05.000001Z",),
    "d": ("1m",),
    "j": (None, {}, {"a": 1}, 5),
}
KEYS = ("a", "b c", "cpu", "memory", "storage", "x.com/y", "limits.cpu")
ODD: tuple[Any, ...] = (None, True, 7, -1.5, "text", [], {}, [None], {"a": None})


def _value(code: str, choose: Random, depth: int) -> Any:
    code = code.lstrip("!?*").rpartition("~")[2].lstrip("!?*")
    if choose.random() < 0.02:
        return None
    if code[0] in VALUES:
        return choose.choice(VALUES[code[0]])
    if code[0] == "[":
        return [_value(code[1:], choose, depth) for _ in range(choose.randrange(3))]
    if code[0] == "{":
        count = choose.randrange(3)
        return {
            choose.choice(KEYS): _value(code[1:], choose, depth) for _ in range(count)
        }
    return made(code[1:], choose, depth + 1)


def made(shape: str, choose: Random, depth: int = 0) -> JSON:
    """Something of a type, less and less the deeper it goes."""
    likely = (0.8, 0.75, 0.5, 0.5, 0.3, 0.3, 0.1)[min(depth, 6)]
    return {
        name: _value(code, choose, depth)
        for name, code in SHAPES[shape].items()
        if name != "managedFields" and choose.random() < likely
    }


def spoiled(value: Any, choose: Random) -> Any:
    """The same with something of another type in one place."""
    if isinstance(value, dict) and value and choose.random() < 0.9:
        key = choose.choice(sorted(value))
        return {**value, key: spoiled(value[key], choose)}
    if isinstance(value, list) and value and choose.random() < 0.9:
        index = choose.randrange(len(value))
        return [*value[:index], spoiled(value[index], choose), *value[index + 1 :]]
    return choose.choice(ODD)


randoms = st.integers(0, 2**32 - 1).map(Random)
