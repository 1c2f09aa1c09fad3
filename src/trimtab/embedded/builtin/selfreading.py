"""Self-reading: values that Go's types read from JSON by themselves, and fail first.

Go's decoder remembers the first value that does not fit its field and reads on. A type
that reads itself (a quantity, a time, an integer or string) ends it at once, so what
such a one cannot read is told even if something else was wrong before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from trimtab.embedded.builtin.values import Mismatch, leaf

Fields = Callable[[str], Mapping[str, str]]
"""From the name of a struct to its fields, as ``data/shapes.json`` has them."""

SELVES: Final = frozenset("qxtud")


def first_problem(shape: str, value: Any, *, fields: Fields) -> Mismatch | None:
    """The first value of a struct, as it was sent, that a type could not read."""
    if not isinstance(value, dict):
        return None
    known = fields(shape)
    for key, item in value.items():
        code = known.get(key, "j")
        start, inlined, plain = ("", "", code)
        if code[0] == "~":
            start, inlined, plain = code.split("~")
        found = _problem(plain.lstrip("!?*"), item, fields)
        if found is not None:
            found.struct = found.struct or shape.rpartition(".")[2]
            found.path[:0] = [each for each in (start, inlined, key) if each]
            return found
    return None


def _problem(code: str, value: Any, fields: Fields) -> Mismatch | None:
    if value is None:
        return None
    if code[0] == "@":
        return first_problem(code[1:], value, fields=fields)
    if code[0] in "[{":
        inner = code[1:].lstrip("*")
        told = (_problem(inner, item, fields) for item in _items(code, value))
        return next((found for found in told if found is not None), None)
    if code[0] not in SELVES:
        return None
    try:
        leaf(code)(value)
    except Mismatch as problem:
        return problem
    return None


def _items(code: str, value: Any) -> Iterable[Any]:
    """What is in a list or a map, if it is what it should be."""
    if code[0] == "[":
        return value if isinstance(value, list) else ()
    return value.values() if isinstance(value, dict) else ()
