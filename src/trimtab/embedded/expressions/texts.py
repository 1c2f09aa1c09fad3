"""Texts: the functions for strings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from trimtab.embedded.expressions import formatting
from trimtab.embedded.expressions.values import EvaluationError, NoSuchOverload
from trimtab.embedded.patterns import PatternError, compiled

_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
SPACES: Final = (
    "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""What Go counts as space, which is a little less than what Python does."""
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
        raise NoSuchOverload("join(list)" if not mark else "join(list, string)")
    return mark.join(items)


def quote(text: str) -> str:
    return '"' + "".join(_QUOTED.get(letter, letter) for letter in text) + '"'


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
    "trim": lambda text: text.strip(SPACES),
    "format": formatting.format_text,
    "strings.quote": quote,
    "join": join,
}
