"""JSON paths: the values that ``.spec.parts[?(@.weight>2)].name`` names in an object.

The notation is client-go's, without its templates. A key or an item that is not there
gives no value; a step that makes no sense for what it meets (an index into a map, an
index past the end) is an error, and so is a path that cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

Values = list[Any]
Step = Callable[[Values], Values]

_FIELD = re.compile(r"\.((?:[^.\[\]\\\s|(){}$@,]|\\.)*)")
_NAME = re.compile(r"(?:[^.\[\]\\\s|(){}$@,]|\\.)+")
_QUOTED_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?", re.ASCII)
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+?)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?", re.ASCII)
_ESCAPED = re.compile(r"\\(.)")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda one, other: one < other,
    ">": lambda one, other: one > other,
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<=": lambda one, other: one <= other,
    ">=": lambda one, other: one >= other,
}


class PathError(ValueError):
    """A path that cannot be read, or that makes no sense for an object."""


class Path:
    """A path that was read once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._steps = list(_steps(text))

    def find(self, value: Any) -> Values:
        """The values that the path names.

        Errors: ``PathError`` when a step makes no sense for the value that it meets.
        """
        found = [value]
        for step in self._steps:
            found = step(found)
        return found


@lru_cache(maxsize=1024)
def path(text: str) -> Path:
    """The path of a text. Errors: ``PathError`` when it cannot be read."""
    return Path(text)


def _steps(text: str) -> Iterator[Step]:
    at = 0
    while at < len(text):
        if text.startswith("[?(", at):
            end = _filter_end(text, at)
            yield _filter(text[at + 3 : end - 2])
            at = end
        elif text.startswith("..", at):
            yield _recursive
            name = _NAME.match(text, at + 2)
            if name:
                yield _field(_ESCAPED.sub(r"\1", name[0]))
            at = name.end() if name else at + 2
        elif text[at] == "[":
            end = text.find("]", at)
            if end < 0:
                raise PathError("unterminated array")
            yield from _bracketed(text[at + 1 : end])
            at = end + 1
        elif text[at] == ".":
            found = _FIELD.match(text, at)
            assert found is not None
            name_text = _ESCAPED.sub(r"\1", found[1])
            yield _wildcard if name_text == "*" else _field(name_text)
            at = found.end()
        elif text[at] in " @$":
            at += 1
        else:
            step, at = _constant(text, at)
            yield step


def _filter_end(text: str, at: int) -> int:
    """Where a filter ends: at the first ``)`` that is not quoted, and its ``]``."""
    quote = ""
    for place in range(at + 3, len(text)):
        letter = text[place]
        if letter in "\"'" and text[place - 1] != "\\":
            quote = "" if quote == letter else quote or letter
        elif letter == ")" and not quote:
            if text[place + 1 : place + 2] != "]":
                raise PathError("unclosed array expect ]")
            return place + 2
    raise PathError("unterminated filter")


def _constant(text: str, at: int) -> tuple[Step, int]:
    letter = text[at]
    if letter in "\"'":
        end = text.find(letter, at + 1)
        if end < 0:
            raise PathError("unterminated quoted string")
        value: Any = text[at + 1 : end]
        return _always(value), end + 1
    number = _NUMBER.match(text, at)
    if number:
        value = float(number[0]) if "." in number[0] else int(number[0])
        return _always(value), number.end()
    for word, meaning in (("true", True), ("false", False)):
        if text.startswith(word, at):
            return _always(meaning), at + len(word)
    raise PathError(f"unrecognized character in action: {letter!r}")


def _always(value: Any) -> Step:
    return lambda values: [value for _ in values]


def _field(name: str) -> Step:
    def step(values: Values) -> Values:
        return [
            each[name] for each in values if isinstance(each, dict) and name in each
        ]

    return step


def _wildcard(values: Values) -> Values:
    return [item for each in values for item in _contents(each)]


def _contents(value: Any) -> Values:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def _recursive(values: Values) -> Values:
    found: Values = []
    for each in values:
        inner = _contents(each)
        if inner:
            found.append(each)
            found += _recursive(inner)
    return found


def _bracketed(text: str) -> Iterator[Step]:
    if text == "*":
        text = ":"
    parts = text.split(",")
    if len(parts) > 1:
        branches = [list(_bracketed(part.strip())) for part in parts]
        yield _union(branches)
        return
    quoted = _QUOTED_KEY.fullmatch(text)
    if quoted:
        # The key is read as a path itself, so a dot in it needs a backslash here too.
        yield from _steps(f".{quoted[1]}")
        return
    found = _SLICE.fullmatch(text)
    if found is None:
        raise PathError(f"invalid array index {text}")
    yield _slice(found)


def _union(branches: list[list[Step]]) -> Step:
    def step(values: Values) -> Values:
        found: Values = []
        for branch in branches:
            reached = values
            for each in branch:
                reached = each(reached)
            found += reached
        return found

    return step


def _slice(found: re.Match[str]) -> Step:
    start = int(found[1]) if found[1] else None
    single = found[2] is None
    stop = int(found[2][1:]) if found[2] and found[2] != ":" else None
    stride = int(found[3][1:]) if found[3] and found[3] != ":" else 1

    def step(values: Values) -> Values:
        results: Values = []
        for each in values:
            if each is None:
                continue
            if not isinstance(each, list):
                raise PathError("it is not array or slice")
            length = len(each)
            low = start or 0
            low += length if low < 0 else 0
            high = length if stop is None else stop
            high += length if high < 0 else 0
            if single:
                high = low + 1
            if low == high:
                return results
            if not 0 <= low < length or not 0 <= high <= length or low > high:
                raise PathError(f"array index out of bounds: index {low}")
            results += each[low:high:stride]
        return results

    return step


def _filter(text: str) -> Step:
    compared = _COMPARISON.fullmatch(text)
    if compared is None:
        inner = list(_steps(text))
        return lambda values: [item for item in _items(values) if _reach(inner, item)]
    left, right = list(_steps(compared[1])), list(_steps(compared[3]))
    operator = _OPERATORS.get(compared[2])
    if operator is None:
        raise PathError(f"unrecognized filter operator {compared[2]}")
    compare = operator

    def step(values: Values) -> Values:
        found = []
        for item in _items(values):
            one, other = _reach(left, item), _reach(right, item)
            if len(one) > 1 or len(other) > 1:
                raise PathError("can only compare one element at a time")
            if one and other and _compare(compare, one[0], other[0]):
                found.append(item)
        return found

    return step


def _items(values: Values) -> Iterator[Any]:
    for each in values:
        if not isinstance(each, list):
            raise PathError("it is not array or slice and cannot be filtered")
        yield from each


def _reach(steps: list[Step], value: Any) -> Values:
    values = [value]
    for step in steps:
        values = step(values)
    return values


def _compare(operator: Callable[[Any, Any], bool], one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        raise PathError("incompatible types for comparison")
    return operator(one, other)
