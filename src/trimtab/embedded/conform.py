"""Conforming: an object as the real server's decoder would have read it.

A built-in kind is decoded into a struct there: fields that the struct does not have are
gone (and reported, if the client wants to know), null is absent, an empty list or map
that nobody requires is absent, and a value of another type ends it all.
"""

from __future__ import annotations

from typing import Any

from trimtab.embedded.gotext import json_text
from trimtab.embedded.patches import json_kind
from trimtab.embedded.types import Type

GO_SCALARS = {
    ("integer", "int32"): "int32",
    ("integer", "int64"): "int64",
    ("number", "double"): "float64",
    ("boolean", ""): "bool",
    ("string", "byte"): "[]uint8",
}
PYTHON_SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "int-or-string": (int, str, float),
}


LIMITS = {"int32": 2**31, "int64": 2**63}


class Mistyped(Exception):
    """A value that the kind's struct has no room for, in the decoder's words."""


class _Mistyped(Mistyped):
    """With its place, from which the decoder leaves out keys and positions."""

    def __init__(self, text: str, struct: str, path: str, type: str) -> None:
        super().__init__(text)
        self.text = text
        self.struct = struct
        self.path = path
        self.type = type

    def __str__(self) -> str:
        path = "".join(part.split("]")[-1] for part in self.path.split("["))
        return (
            f"json: cannot unmarshal {self.text} into Go struct field "
            f"{self.struct}.{path} of type {self.type}"
        )


def conform(type: Type, obj: dict[str, Any]) -> list[str]:
    """Make an object conform, in place; the paths of what was dropped, in order."""
    unknown: list[str] = []
    _object(type, obj, "", unknown)
    return unknown


def _object(type: Type, value: dict[str, Any], path: str, unknown: list[str]) -> None:
    fields = type.fields
    for key in list(value):
        child = fields.get(key)
        item = value[key]
        if child is None:
            if not type.preserve_unknown:
                unknown.append(f"{path}{key}")
                del value[key]
            continue
        if item is None:
            del value[key]
            continue
        shape = child.shape
        if shape == "scalar":
            _scalar(child, item, type, f"{path}{key}")
        elif shape == "object":
            if not isinstance(item, dict):
                raise _mistyped(item, type, f"{path}{key}", child)
            _object(child, item, f"{path}{key}.", unknown)
        elif shape != "any":
            _container(child, item, type, f"{path}{key}", unknown)
            if not item and key not in type.required:
                del value[key]


def _container(
    type: Type, value: Any, parent: Type, path: str, unknown: list[str]
) -> None:
    element = type.element
    assert element is not None, "a list or a map has elements"
    if type.shape == "list":
        if not isinstance(value, list):
            raise _mistyped(value, parent, path, type)
        for index, item in enumerate(value):
            _element(element, item, parent, f"{path}[{index}]", unknown)
    else:
        if not isinstance(value, dict):
            raise _mistyped(value, parent, path, type)
        # A value that is no object is said to be wrong in the map, whatever its key.
        named = element.shape == "object"
        for key, item in value.items():
            inner = f"{path}.{key}" if named else path
            try:
                _element(element, item, parent, inner, unknown)
            except _Mistyped as problem:
                problem.path = path + problem.path.removeprefix(inner)
                raise


def _element(
    type: Type, value: Any, parent: Type, path: str, unknown: list[str]
) -> None:
    if value is None or type.shape == "any":
        return
    if type.shape == "scalar":
        _scalar(type, value, parent, path)
    elif type.shape == "object":
        if not isinstance(value, dict):
            raise _mistyped(value, parent, path, type)
        _object(type, value, f"{path}.", unknown)
    else:
        _container(type, value, parent, path, unknown)


def _scalar(type: Type, value: Any, parent: Type, path: str) -> None:
    fits = isinstance(value, PYTHON_SCALARS[type.scalar])
    if isinstance(value, bool) and type.scalar != "boolean":
        fits = False
    if fits and type.format in LIMITS and isinstance(value, int):
        limit = LIMITS[type.format]
        fits = -limit <= value < limit
    if not fits:
        raise _mistyped(value, parent, path, type)


def _mistyped(value: Any, parent: Type, path: str, type: Type) -> Mistyped:
    text = json_kind(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and type.scalar in ("integer", "number"):
        text = f"number {json_text(float(value))}"
    struct = parent.name.rpartition(".")[2]
    return _Mistyped(text, struct, path, _go_type(type))


def _go_type(type: Type) -> str:
    if type.shape == "scalar":
        known = GO_SCALARS.get((type.scalar, type.format))
        return known or ("bool" if type.scalar == "boolean" else type.scalar)
    if type.shape == "object":
        parts = type.name.split(".")
        return ".".join(parts[-2:]) if len(parts) > 1 else "object"
    element = _go_type(type.element) if type.element is not None else "interface {}"
    return f"[]{element}" if type.shape == "list" else f"map[string]{element}"
