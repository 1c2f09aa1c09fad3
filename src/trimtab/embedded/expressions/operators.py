"""Operators: ``+``, ``<``, ``==``, ``[]`` and ``in``, for types known and unknown."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from trimtab.embedded.expressions.conversions import in_range, to_string
from trimtab.embedded.expressions.nodes import Call
from trimtab.embedded.expressions.values import (
    NONE,
    Duration,
    EvaluationError,
    MapList,
    NoSuchOverload,
    Optional,
    Record,
    SetList,
    Timestamp,
    Uint,
    checked,
    checked_uint,
    compare,
    contains,
    equal,
    kind_name,
)

Binary = Callable[[Any, Any], Any]


def _add_lists(one: list[Any], other: list[Any]) -> list[Any]:
    if isinstance(one, SetList):
        new: list[Any] = []
        for item in other:
            if not contains(one, item) and not contains(new, item):
                new.append(item)
        return SetList([*one, *new])
    if isinstance(one, MapList):
        merged = {one.key(item): item for item in one}
        merged.update({one.key(item): item for item in other})
        return MapList.of(list(merged.values()), one.keys)
    return [*one, *other]


def _quotient(one: int, other: int) -> int:
    if other == 0:
        raise EvaluationError("division by zero")
    sign = -1 if (one < 0) != (other < 0) else 1
    return checked(sign * (abs(one) // abs(other)))


def _rest(one: int, other: int) -> int:
    if other == 0:
        raise EvaluationError("modulus by zero")
    return -(abs(one) % abs(other)) if one < 0 else abs(one) % abs(other)


def _float_quotient(one: float, other: float) -> float:
    if other != 0:
        return one / other
    if one == 0 or math.isnan(one):
        return math.nan
    negative = (one < 0) != (math.copysign(1.0, other) < 0)
    return -math.inf if negative else math.inf


def _uint(operation: Binary) -> Binary:
    return lambda one, other: checked_uint(operation(int(one), int(other)))


def _span(nanos: int) -> Duration:
    return Duration(checked(nanos))


ARITHMETIC: Final[dict[tuple[str, type, type], Binary]] = {
    ("_+_", int, int): lambda one, other: checked(one + other),
    ("_-_", int, int): lambda one, other: checked(one - other),
    ("_*_", int, int): lambda one, other: checked(one * other),
    ("_/_", int, int): _quotient,
    ("_%_", int, int): _rest,
    ("_+_", float, float): lambda one, other: one + other,
    ("_-_", float, float): lambda one, other: one - other,
    ("_*_", float, float): lambda one, other: one * other,
    ("_/_", float, float): _float_quotient,
    ("_+_", Uint, Uint): _uint(lambda one, other: one + other),
    ("_-_", Uint, Uint): _uint(lambda one, other: one - other),
    ("_*_", Uint, Uint): _uint(lambda one, other: one * other),
    ("_/_", Uint, Uint): _uint(_quotient),
    ("_%_", Uint, Uint): _uint(_rest),
    ("_+_", str, str): lambda one, other: one + other,
    ("_+_", bytes, bytes): lambda one, other: one + other,
    ("_+_", Duration, Duration): lambda one, other: _span(one.nanos + other.nanos),
    ("_-_", Duration, Duration): lambda one, other: _span(one.nanos - other.nanos),
    ("_+_", Timestamp, Duration): lambda one, other: in_range(one.later(other.nanos)),
    ("_+_", Duration, Timestamp): lambda one, other: in_range(other.later(one.nanos)),
    ("_-_", Timestamp, Duration): lambda one, other: in_range(one.later(-other.nanos)),
    ("_-_", Timestamp, Timestamp): lambda one, other: _span(one.nanos - other.nanos),
}


def arithmetic(operator: str) -> Binary:
    """An operator for values of any type."""

    def apply(one: Any, other: Any) -> Any:
        known = ARITHMETIC.get((operator, type(one), type(other)))
        if known is not None:
            return known(one, other)
        if operator == "_+_" and isinstance(one, list) and isinstance(other, list):
            return _add_lists(one, other)
        raise NoSuchOverload

    return apply


def negated(value: Any) -> Any:
    if type(value) is int:
        return checked(-value)
    if type(value) is float:
        return -value
    raise NoSuchOverload


COMPARISONS: Final[dict[str, Binary]] = {
    "_<_": lambda one, other: compare(one, other, "_<_") < 0,
    "_<=_": lambda one, other: compare(one, other, "_<=_") <= 0,
    "_>_": lambda one, other: compare(one, other, "_>_") > 0,
    "_>=_": lambda one, other: compare(one, other, "_>=_") >= 0,
    "_==_": equal,
    "_!=_": lambda one, other: not equal(one, other),
}
# For two values of the same type that Python orders and compares as CEL does.
PLAIN_COMPARISONS: Final[dict[str, Binary]] = {
    "_<_": lambda one, other: one < other,
    "_<=_": lambda one, other: one <= other,
    "_>_": lambda one, other: one > other,
    "_>=_": lambda one, other: one >= other,
    "_==_": lambda one, other: one == other,
    "_!=_": lambda one, other: one != other,
}
PLAIN_KINDS: Final = frozenset(
    {"int", "string", "bool", "bytes", "timestamp", "duration"}
)


def key_text(key: Any) -> str:
    return to_string(key) if not isinstance(key, Record) else "map"


def look_up(container: Any, key: Any) -> Optional:
    """What a list has at an index, or a map under a key."""
    if isinstance(container, list):
        index = _index(key)
        found = 0 <= index < len(container)
        return Optional((container[index],)) if found else NONE
    if isinstance(container, Record):
        if not isinstance(key, str):
            raise NoSuchOverload
        return Optional((container.get(key),)) if container.has(key) else NONE
    if isinstance(container, dict):
        return Optional((container[key],)) if key in container else NONE
    return NONE


def _index(key: Any) -> int:
    if type(key) in (int, Uint):
        return int(key)
    if type(key) is not float:
        raise EvaluationError(f"unsupported index type '{kind_name(key)}' in list")
    if key != int(key):
        raise EvaluationError(f"unsupported index value {to_string(key)} in list")
    return int(key)


def index(container: Any, key: Any) -> Any:
    """``container[key]``."""
    if isinstance(container, Optional):
        return look_up(container.items[0], key) if container.items else NONE
    found = look_up(container, key)
    if found.items:
        return found.items[0]
    if isinstance(container, list):
        raise EvaluationError(f"index out of bounds: {key_text(key)}")
    raise EvaluationError(f"no such key: {key_text(key)}")


def optional_index(container: Any, key: Any) -> Optional:
    """``container[?key]``."""
    if isinstance(container, Optional):
        return look_up(container.items[0], key) if container.items else NONE
    return look_up(container, key)


def is_in(value: Any, container: Any) -> bool:
    """``value in container``."""
    if isinstance(container, list):
        return contains(container, value)
    if isinstance(container, Record):
        return isinstance(value, str) and container.has(value)
    if isinstance(container, dict):
        return value in container
    raise NoSuchOverload


def field(value: Any, name: str) -> Any:
    """``value.name``."""
    if type(value) is Record:
        return value.get(name)
    if isinstance(value, dict):
        if name in value:
            return value[name]
        raise EvaluationError(f"no such key: {name}")
    if isinstance(value, Optional):
        return optional_field(value, name)
    if isinstance(value, list):
        _index(name)
    getter = getattr(value, "get", None)
    if getter is not None:
        return getter(name)
    raise EvaluationError(f"no such key: {name}")


def has_field(value: Any, name: str) -> bool:
    """``has(value.name)``."""
    if type(value) is Record:
        return value.has(name)
    if isinstance(value, dict):
        return name in value
    if isinstance(value, Optional):
        return bool(value.items) and has_field(value.items[0], name)
    if isinstance(value, list):
        _index(name)
    has = getattr(value, "has", None)
    return has is not None and bool(has(name))


def optional_field(value: Any, name: str) -> Optional:
    """``value.?name``."""
    if isinstance(value, Optional):
        if not value.items:
            return NONE
        value = value.items[0]
    return Optional((field(value, name),)) if has_field(value, name) else NONE


def chosen(node: Call) -> Binary | None:
    """The function of an operator with two sides; the quickest that fits."""
    name = node.function
    if name in COMPARISONS:
        one, other = (each.type.kind for each in node.args)
        if one == other and one in PLAIN_KINDS:
            return PLAIN_COMPARISONS[name]
        return COMPARISONS[name]
    if name in ("_+_", "_-_", "_*_", "_/_", "_%_"):
        kinds: dict[str, type] = {"int": int, "double": float, "string": str}
        one, other = (each.type.kind for each in node.args)
        if one == other and one in kinds:
            return ARITHMETIC[name, kinds[one], kinds[one]]
        return arithmetic(name)
    return is_in if name == "@in" else None
