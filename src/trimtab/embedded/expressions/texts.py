"""Texts: the functions for strings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from trimtab.embedded.expressions import conversions
from trimtab.embedded.expressions.values import (
    Duration,
    EvaluationError,
    NoSuchOverload,
    Record,
    Timestamp,
    TypeName,
    Uint,
    entries,
    kind_name,
)
from trimtab.embedded.gotext import quoted
from trimtab.embedded.patterns import PatternError, compiled

_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_CLAUSE = re.compile(r"%(?:%|(?:\.(\d*))?(.?))", re.DOTALL)
_QUOTED: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def matches(text: str, pattern: str) -> bool:
    try:
        return compiled(pattern).search(text) is not None
    except PatternError as error:
        raise EvaluationError(str(error)) from None


def _expression(pattern: str) -> re.Pattern[str]:
    try:
        return compiled(pattern)
    except PatternError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


def find(text: str, pattern: str) -> str:
    found = _expression(pattern).search(text)
    return found[0] if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [each[0] for each in _expression(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return text.find(part, offset) if offset < len(text) else -1


def last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if offset is None:
        return len(text) if not part else text.rfind(part)
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return text.rfind(part, 0, offset + len(part)) if offset < len(text) else -1


def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, limit)


def split(text: str, mark: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    parts = text.split(mark) if mark else list(text)
    if limit < 0 or len(parts) <= limit:
        return parts
    return [*parts[: limit - 1], mark.join(parts[limit - 1 :])]


def substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if end is not None and start > last:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {last}")
    for index in (start, last):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:last]


def join(items: list[str], mark: str = "") -> str:
    if not all(isinstance(each, str) for each in items):
        raise NoSuchOverload
    return mark.join(items)


def quote(text: str) -> str:
    return '"' + "".join(_QUOTED.get(letter, letter) for letter in text) + '"'


def format_text(text: str, args: list[Any]) -> str:
    """``%s`` and its like, each replaced with the next argument."""
    used = 0

    def clause(found: re.Match[str]) -> str:
        nonlocal used
        if found[0] == "%%":
            return "%"
        if used >= len(args):
            raise EvaluationError(f"index {used} out of range")
        if not found[2]:
            raise EvaluationError("unexpected end of string")
        used += 1
        try:
            return _clause(found[2], found[1], args[used - 1])
        except _Unformatted as error:
            raise EvaluationError(f"error during formatting: {error}") from None

    return _CLAUSE.sub(clause, text)


class _Unformatted(Exception):
    """A value that a clause does not take."""


def _clause(letter: str, precision: str | None, value: Any) -> str:
    if letter not in _CLAUSES:
        said = f'unrecognized formatting clause "{letter}"'
        raise EvaluationError(f"could not parse formatting clause: {said}")
    places = int(precision) if precision else 6
    return _CLAUSES[letter](value, places)


def _shown(value: Any, places: int) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_member(each) for each in value)}]"
    if isinstance(value, (dict, Record)):
        pairs = sorted((_member(key), _member(item)) for key, item in entries(value))
        return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"
    if value is None:
        return "null"
    if isinstance(value, TypeName):
        return value.name
    plain = (bool, int, float, str, bytes, Timestamp, Duration)
    if not isinstance(value, plain):
        raise _Unformatted(
            "string clause can only be used on strings, bools, bytes, ints, doubles, "
            "maps, lists, types, durations, and timestamps, was given "
            f"{kind_name(value)}"
        )
    return conversions.to_string(value)


def _member(value: Any) -> str:
    """An item of a list or a map, as it could stand in an expression."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bytes):
        return f"b{quoted(value.decode(errors='replace'))}"
    if isinstance(value, float):
        return f"{value:.6f}"
    if isinstance(value, Timestamp):
        return f'timestamp("{conversions.to_string(value)}")'
    if isinstance(value, Duration):
        return f'duration("{conversions.to_string(value)}")'
    if isinstance(value, TypeName):
        return f"type({value.name})"
    return _shown(value, 6)


def _whole(value: Any, *, bools: bool = False) -> int:
    if type(value) in (int, Uint) or (bools and isinstance(value, bool)):
        return int(value)
    raise _Unformatted


def _decimal(value: Any, places: int) -> str:
    try:
        return str(_whole(value))
    except _Unformatted:
        text = "decimal clause can only be used on integers, was given"
        raise _Unformatted(f"{text} {kind_name(value)}") from None


def _floating(letter: str, name: str) -> Callable[[Any, int], str]:
    def clause(value: Any, places: int) -> str:
        if value in ("NaN", "Infinity", "-Infinity"):
            value = float(value)
        if not isinstance(value, float):
            text = f"{name} clause can only be used on doubles, was given"
            raise _Unformatted(f"{text} {kind_name(value)}")
        return f"{value:.{places}{letter}}"

    return clause


def _based(letter: str, text: str, *, bools: bool) -> Callable[[Any, int], str]:
    def clause(value: Any, places: int) -> str:
        try:
            return format(_whole(value, bools=bools), letter)
        except _Unformatted:
            raise _Unformatted(f"{text}, was given {kind_name(value)}") from None

    return clause


def _hex(letter: str) -> Callable[[Any, int], str]:
    whole = _based(
        letter,
        "only integers, byte buffers, and strings can be formatted as hex",
        bools=False,
    )

    def clause(value: Any, places: int) -> str:
        if isinstance(value, str):
            value = value.encode()
        if isinstance(value, bytes):
            return value.hex().upper() if letter == "X" else value.hex()
        return whole(value, places)

    return clause


_CLAUSES: Final[dict[str, Callable[[Any, int], str]]] = {
    "s": _shown,
    "d": _decimal,
    "f": _floating("f", "fixed-point"),
    "e": _floating("e", "scientific"),
    "b": _based("b", "only integers and bools can be formatted as binary", bools=True),
    "o": _based("o", "octal clause can only be used on integers", bools=False),
    "x": _hex("x"),
    "X": _hex("X"),
}

FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "contains": lambda text, part: part in text,
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "matches": matches,
    "find": find,
    "findAll": find_all,
    "charAt": char_at,
    "indexOf": index_of,
    "lastIndexOf": last_index_of,
    "lowerAscii": lambda text: text.translate(_LOWER),
    "upperAscii": lambda text: text.translate(_UPPER),
    "replace": replace,
    "split": split,
    "substring": substring,
    "trim": str.strip,
    "format": format_text,
    "strings.quote": quote,
    "join": join,
}
