"""Values: what expressions compute with, beyond what Python has already.

Booleans, integers, floats, texts, bytes, lists, maps and null are Python's. An object
of a custom kind stays the plain dict that it is, behind a :class:`Record` that knows
which fields it has; only the fields that an expression looks at are ever converted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import total_ordering
from typing import Any, Final

import msgspec

Wrap = Callable[[Any], Any]

LARGEST: Final = 2**63 - 1
SMALLEST: Final = -(2**63)


class EvaluationError(Exception):
    """An expression that has no value for what it was given; the text says why."""

    cost = 0
    """What finding that out has cost."""


class NoSuchOverload(EvaluationError):
    """A function that was called with what it does not take."""

    def __init__(self, call: str = "") -> None:
        super().__init__(f"no such overload: {call}" if call else "no such overload")


class OverBudget(Exception):
    """An evaluation that would cost more than it may."""


class Uint(int):
    """An integer without a sign."""

    __slots__ = ()


@total_ordering
class Timestamp(msgspec.Struct, frozen=True, gc=False, eq=False):
    """An instant, in nanoseconds since 1970; the same one in every time zone."""

    nanos: int
    offset: int = 0
    """The seconds that its time zone is ahead, which only its text shows."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanos == other.nanos

    def __lt__(self, other: Timestamp) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def later(self, nanos: int) -> Timestamp:
        """The instant so much later, in the same time zone."""
        return Timestamp(self.nanos + nanos, self.offset)


class Duration(msgspec.Struct, frozen=True, gc=False, order=True):
    """A length of time in nanoseconds."""

    nanos: int


class Optional(msgspec.Struct, frozen=True):
    """Something that may be there: no items, or one."""

    items: tuple[Any, ...] = ()

    @property
    def value(self) -> Any:
        if not self.items:
            raise EvaluationError("optional.none() dereference")
        return self.items[0]


NONE: Final = Optional()


class TypeName(msgspec.Struct, frozen=True, gc=False):
    """A type as a value, which ``type(x)`` gives."""

    name: str


class Shape(msgspec.Struct, eq=False):
    """What is known of a kind of object.

    ``fields`` is by the name that expressions use: the name in the object, and what
    makes a value of what stands there.
    """

    fields: Mapping[str, tuple[str, Wrap | None]]
    names: Mapping[str, str]
    """From the name in the object to that in expressions."""


class Record:
    """An object of a custom kind."""

    __slots__ = ("raw", "shape")

    def __init__(self, raw: dict[str, Any], shape: Shape) -> None:
        self.raw = raw
        self.shape = shape

    def has(self, field: str) -> bool:
        known = self.shape.fields.get(field)
        return known is not None and self.raw.get(known[0]) is not None

    def get(self, field: str) -> Any:
        known = self.shape.fields.get(field)
        if known is not None:
            value = self.raw.get(known[0])
            if value is not None:
                return value if known[1] is None else known[1](value)
        raise EvaluationError(f"no such key: {field}")

    def keys(self) -> list[str]:
        names = self.shape.names
        return [names[each] for each in self.raw if each in names]

    def equals(self, other: Any) -> bool:
        """Field by field; a field that nobody knows counts as plain data."""
        if not isinstance(other, Record):
            return False
        if len(self.raw) != len(other.raw):
            return False
        for name, value in self.raw.items():
            field = self.shape.names.get(name)
            if field is not None:
                if self.has(field) != other.has(field):
                    return False
                if self.has(field) and not equal(self.get(field), other.get(field)):
                    return False
            elif name in other.raw and value != other.raw[name]:
                return False
        return True


class SetList(list[Any]):
    """A list of type set: its order does not matter, and adding adds what is new."""


class MapList(list[Any]):
    """A list of type map: items are found by their keys, whatever their order."""

    keys: tuple[str, ...] = ()

    @staticmethod
    def of(items: list[Any], keys: tuple[str, ...]) -> MapList:
        made = MapList(items)
        made.keys = keys
        return made

    def key(self, item: Any) -> Any:
        raw = item.raw if isinstance(item, Record) else item
        return tuple((type(raw.get(key)), raw.get(key)) for key in self.keys)

    def equals(self, other: list[Any]) -> bool:
        mine = {self.key(item): item for item in self}
        return len(self) == len(other) and all(
            self.key(item) in mine and equal(mine[self.key(item)], item)
            for item in other
        )


_NUMBERS: Final = frozenset({int, Uint, float})
KINDS: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null",
    Timestamp: "timestamp",
    Duration: "duration",
    list: "list",
    SetList: "list",
    MapList: "list",
    dict: "map",
    Record: "map",
    Optional: "optional_type",
    TypeName: "type",
}


def equal(one: Any, other: Any) -> bool:
    """Whether two values are the same; values of different types are not."""
    kind, with_kind = type(one), type(other)
    if kind in _NUMBERS and with_kind in _NUMBERS:
        return bool(one == other)
    if isinstance(one, list):
        return isinstance(other, list) and _lists_equal(one, other)
    if kind is Record:
        return bool(one.equals(other))
    if kind is dict:
        return with_kind is dict and _maps_equal(one, other)
    if kind is Optional and with_kind is Optional:
        return len(one.items) == len(other.items) and all(
            map(equal, one.items, other.items)
        )
    return kind is with_kind and bool(one == other)


def _lists_equal(one: list[Any], other: list[Any]) -> bool:
    if len(one) != len(other):
        return False
    if isinstance(one, MapList):
        return one.equals(other)
    if isinstance(one, SetList):
        return all(contains(one, item) for item in other)
    return all(map(equal, one, other))


def _maps_equal(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    if len(one) != len(other):
        return False
    return all(key in other and equal(value, other[key]) for key, value in one.items())


def contains(items: list[Any], value: Any) -> bool:
    """Whether a list has an item that equals a value."""
    return any(equal(item, value) for item in items)


def compare(one: Any, other: Any, operator: str = "") -> int:
    """-1, 0 or 1; an error if the two have no order."""
    kind, with_kind = type(one), type(other)
    mixed = kind in _NUMBERS and with_kind in _NUMBERS
    if not mixed and (kind is not with_kind or kind not in _ORDERED):
        unordered = kind not in _NUMBERS and kind not in _ORDERED
        raise NoSuchOverload(operator if unordered else "")
    if one != one or other != other:
        raise EvaluationError("NaN values cannot be ordered")
    return int(one > other) - int(one < other)


_ORDERED: Final = frozenset({bool, str, bytes, Timestamp, Duration})


def checked(value: int) -> int:
    """The value, if it is an integer of 64 bits."""
    if SMALLEST <= value <= LARGEST:
        return value
    raise EvaluationError("integer overflow")


def checked_uint(value: int) -> Uint:
    if 0 <= value < 2**64:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


_LONG_NAMES: Final = {
    "duration": "google.protobuf.Duration",
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
}


def kind_name(value: Any) -> str:
    """The name of a value's type, as ``type(x)`` prints it."""
    kind = KINDS.get(type(value)) or str(getattr(type(value), "cel_name", "dyn"))
    return _LONG_NAMES.get(kind, kind)


def names(value: Any) -> Iterator[Any]:
    """The keys of a map."""
    yield from value.keys()


def entries(value: Any) -> Iterator[tuple[Any, Any]]:
    """The keys and values of a map."""
    if isinstance(value, Record):
        for key in names(value):
            yield key, value.get(key) if value.has(key) else None
    else:
        yield from value.items()
