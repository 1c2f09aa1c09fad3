"""Duplicates: fields that a body has more than once.

Decoders keep the last of them, so they are found by what is missing: an object that is
encoded again has as many quotes as the text that it came from, or something was lost.
Only then is the text read once more, with all of its pairs.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.embedded import jsontext
from trimtab.embedded.gotext import quoted
from trimtab.embedded.types import Type


class Pairs(list[tuple[str, Any]]):
    """An object of JSON with every pair that was written."""


def pairs_of(body: bytes, value: Any) -> Any:
    """The same value with all of its pairs; None if there are no duplicates.

    Flow: ``value`` is what ``body`` was decoded to.
    """
    # An escaped quote is one quote in either text, unless it is written in digits.
    counts = (msgspec.json.encode(value).count(b'"'), body.count(b'"'))
    if counts[0] == counts[1] and b"\\u0022" not in body:
        return None
    found = jsontext.pairs(body, Pairs)
    return found if untyped(found) else None


def untyped(value: Any, path: str = "") -> list[str]:
    """The paths of all duplicates, each once, in the order of the text."""
    found: dict[str, None] = {}
    _untyped(value, path, found)
    return list(found)


def _untyped(value: Any, path: str, found: dict[str, None]) -> None:
    if isinstance(value, Pairs):
        seen = set()
        for key, item in value:
            inner = f"{path}.{key}" if path else key
            if key in seen:
                found[inner] = None
            seen.add(key)
            _untyped(item, inner, found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _untyped(item, f"{path}[{index}]", found)


def typed(type: Type, value: Pairs) -> tuple[list[str], dict[str, Any]]:
    """What a strict decoder says of a built-in object, and what it reads.

    A struct or map that is written twice is filled twice: what the second leaves out
    is still there from the first.
    """
    found: dict[str, None] = {}
    read = _filled(type, value, {}, "", found)
    return list(found), read


def _filled(
    type: Type, value: Pairs, into: dict[str, Any], path: str, found: dict[str, None]
) -> dict[str, Any]:
    seen = set()
    for key, item in value:
        inner = f"{path}.{key}" if path else key
        child = type.fields.get(key) if type.shape == "object" else type.element
        if child is None and not type.preserve_unknown:
            found[f"unknown field {quoted(inner)}"] = None
        elif key in seen:
            found[f"duplicate field {quoted(inner)}"] = None
        seen.add(key)
        into[key] = _read(child, item, into.get(key), inner, found)
    return into


def _read(
    type: Type | None, value: Any, before: Any, path: str, found: dict[str, None]
) -> Any:
    """A value of some type; what has none is kept as it is, and not looked into."""
    if type is None or type.shape in ("any", "scalar"):
        return plain(value)
    if isinstance(value, Pairs) and type.shape in ("object", "map"):
        into = before if isinstance(before, dict) else {}
        return _filled(type, value, into, path, found)
    if isinstance(value, list) and type.shape == "list":
        return [
            _read(type.element, item, None, f"{path}[{index}]", found)
            for index, item in enumerate(value)
        ]
    return plain(value)


def plain(value: Any) -> Any:
    """A value as decoders read it: the last of each pair counts."""
    if isinstance(value, Pairs):
        return {key: plain(item) for key, item in value}
    return [plain(each) for each in value] if isinstance(value, list) else value
