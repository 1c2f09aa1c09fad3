"""Internal forms: values as messages print them, which is as Go holds them.

The real server validates its internal types, whose JSON has Go's own names and leaves
nothing out. Immutable fields and refused changes are shown so; a client that matches on
such a text finds the same one here.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from trimtab.embedded.builtin.shapes import go_order

_IN_SECURITY_CONTEXT: Final = (
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "shareProcessNamespace",
    "hostUsers",
)
_ZERO: Final = {"s": "", "i": 0, "b": False, "f": 0, "q": "0", "x": 0}


@lru_cache(maxsize=1)
def _facts() -> dict[str, list[tuple[str, str, str]]]:
    data = files(__package__).joinpath("data/internal.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, list[tuple[str, str, str]]])


def internal(shape: str, value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A value of a client's type, such as a ``core.PodSpec``, as Go's JSON has it."""
    if value is None:
        return None
    if shape == "core.PodSpec":
        value = _pod_spec(value)
    made: dict[str, Any] = {}
    for go_name, name, code in _facts()[shape]:
        if code[0] == "+":
            made |= go_order(code[1:], value.get(name) or {})
        else:
            made[go_name] = _value(code, value.get(name))
    return made


def _pod_spec(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Some fields that clients see in the spec are in the security context."""
    security = spec.get("securityContext")
    if security is None:
        return spec
    moved = {name: spec[name] for name in _IN_SECURITY_CONTEXT if name in spec}
    return {**spec, "securityContext": {**security, **moved}}


def _value(code: str, value: Any) -> Any:
    kind = code[0]
    if kind == "@":
        value = value or {}
        meta = code.startswith("@meta.")
        return go_order(code[1:], value) if meta else internal(code[1:], value)
    if value is None:
        return _ZERO.get(kind)
    if kind == "*":
        return _value(code[1:], value)
    if kind == "[":
        return [_value(code[1:], each) for each in value]
    if kind == "{":
        return {key: _value(code[1:], value[key]) for key in sorted(value)}
    return value


def difference(shape: str, old: Any, new: Any) -> str:
    """What changed from one value to another, as a unified diff of their JSON."""
    lines = difflib.unified_diff(
        _lines(internal(shape, old)), _lines(internal(shape, new)), n=3
    )
    # The first two lines name files, and there are none.
    return "".join(list(lines)[2:])


def _lines(value: Any) -> list[str]:
    """Indented JSON as Go has it, by lines; the last has an end of its own too."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=1).decode()
    for letter, escape in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(letter, escape)
    return [f"{line}\n" for line in text.split("\n")]
