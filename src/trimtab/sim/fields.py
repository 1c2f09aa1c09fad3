"""Fields: the part of an object that one manager wrote, by the server's own account."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.sim.server import Plain


def owned(value: Any, fields: Plain) -> Any:
    """The part of a value that a set of fields (FieldsV1) names."""
    if not fields or not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        items = [_item(value, each) for each in fields if each.startswith("k:")]
        named = [each for each in fields if each.startswith("k:")]
        return [
            owned(item, fields[name])
            for item, name in zip(items, named, strict=True)
            if item is not None
        ] or value
    return {
        name[2:]: owned(value[name[2:]], each)
        for name, each in fields.items()
        if name.startswith("f:") and name[2:] in value
    }


def _item(items: list[Any], name: str) -> Any:
    """The item of a list that has these keys."""
    keys = msgspec.json.decode(name[2:])
    for each in items:
        if all(each.get(key) == value for key, value in keys.items()):
            return each
    return None


def merge(into: Plain, more: Plain) -> None:
    """Put one part of an object into another."""
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            merge(into[name], value)
        else:
            into[name] = value
