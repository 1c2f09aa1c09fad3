"""Sequences: the functions for lists, sets and optional values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Any, Final

from trimtab.embedded.expressions.values import (
    NONE,
    Duration,
    EvaluationError,
    NoSuchOverload,
    Optional,
    Uint,
    checked,
    checked_uint,
    compare,
    contains,
    equal,
)

_BY_ORDER: Final = cmp_to_key(compare)
_SUMMED: Final = (int, Uint, float, Duration)


def size(value: Any) -> int:
    return len(value.raw) if hasattr(value, "raw") else len(value)


def is_sorted(items: list[Any]) -> bool:
    return all(compare(one, other) <= 0 for one, other in pairwise(items))


def largest(items: list[Any]) -> Any:
    if not items:
        raise EvaluationError("max called on empty list")
    return max(items, key=_BY_ORDER)


def smallest(items: list[Any]) -> Any:
    if not items:
        raise EvaluationError("min called on empty list")
    return min(items, key=_BY_ORDER)


def total(items: list[Any]) -> Any:
    if not items:
        return 0
    first = items[0]
    if type(first) not in _SUMMED or any(
        type(each) is not type(first) for each in items
    ):
        raise NoSuchOverload("sum(list)")
    if isinstance(first, Duration):
        return Duration(checked(sum(each.nanos for each in items)))
    if isinstance(first, float):
        return float(sum(items))
    return checked_uint(sum(items)) if isinstance(first, Uint) else checked(sum(items))


def index_of(items: list[Any], value: Any) -> int:
    for index, item in enumerate(items):
        if equal(item, value):
            return index
    return -1


def last_index_of(items: list[Any], value: Any) -> int:
    for index in range(len(items) - 1, -1, -1):
        if equal(items[index], value):
            return index
    return -1


def slice_list(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        text = f"cannot slice({start}, {end}), negative indexes not supported"
        raise EvaluationError(text)
    if start > end:
        text = "start index must be less than or equal to end index"
        raise EvaluationError(f"cannot slice({start}, {end}), {text}")
    if end > len(items):
        text = f"cannot slice({start}, {end}), list is length {len(items)}"
        raise EvaluationError(text)
    return items[start:end]


def flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        if isinstance(item, list) and depth > 0:
            flat += flatten(item, depth - 1)
        else:
            flat.append(item)
    return flat


def numbers_until(count: int) -> list[int]:
    return list(range(count))


def distinct(items: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for item in items:
        if not contains(kept, item):
            kept.append(item)
    return kept


def sort(items: list[Any]) -> list[Any]:
    return sort_by(items, items)


def sort_by(items: list[Any], keys: list[Any]) -> list[Any]:
    if not isinstance(keys, list) or len(items) != len(keys):
        raise NoSuchOverload
    if len({type(key) for key in keys}) > 1:
        raise EvaluationError("list elements must have the same type")
    order = sorted(range(len(items)), key=lambda index: _BY_ORDER(keys[index]))
    return [items[index] for index in order]


def sets_contain(items: list[Any], parts: list[Any]) -> bool:
    return all(contains(items, part) for part in parts)


def _non_zero(value: Any) -> Optional:
    empty = value is None or (hasattr(value, "__len__") and len(value) == 0)
    zero = isinstance(value, (int, float)) and value == 0
    return NONE if empty or zero or value == Duration(0) else of(value)


def of(value: Any) -> Optional:
    return Optional((value,))


def unwrap(items: list[Optional]) -> list[Any]:
    return [each.items[0] for each in items if each.items]


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "size": size,
    "isSorted": is_sorted,
    "max": largest,
    "min": smallest,
    "sum": total,
    "indexOf": index_of,
    "lastIndexOf": last_index_of,
    "slice": slice_list,
    "flatten": flatten,
    "lists.range": numbers_until,
    "reverse": lambda items: items[::-1],
    "distinct": distinct,
    "sort": sort,
    "@sortByAssociatedKeys": sort_by,
    "first": lambda items: of(items[0]) if items else NONE,
    "last": lambda items: of(items[-1]) if items else NONE,
    "sets.contains": sets_contain,
    "sets.equivalent": lambda one, other: (
        sets_contain(one, other) and sets_contain(other, one)
    ),
    "sets.intersects": lambda one, other: any(contains(other, each) for each in one),
    "optional.of": of,
    "optional.ofNonZeroValue": _non_zero,
    "optional.none": lambda: NONE,
    "value": lambda held: held.value,
    "hasValue": lambda held: bool(held.items),
    "or": lambda held, other: held if held.items else other,
    "orValue": lambda held, other: held.items[0] if held.items else other,
    "optional.unwrap": unwrap,
    "unwrapOpt": unwrap,
}
