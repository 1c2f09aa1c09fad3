"""Sharing: one copy of each text that many objects have, and of each small struct.

A decoder makes a new string for every value, and most of what is in a cluster is said
a thousand times over: phases, kinds, the values of labels, the types of conditions.
Before an object is kept, such texts are replaced by the copy that is there already,
structs of nothing but such values (a condition, an owner) are too, and whatever of the
object is as it was before by what was kept before.

Which fields repeat is found out, not declared: a field that has had too many different
values is no longer looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import is_
from types import UnionType
from typing import Any, Final, Literal, TypeAlias, Union, get_args, get_origin

import msgspec
from msgspec.structs import fields, force_setattr

from trimtab.api.resource import Metadata

Visit: TypeAlias = Callable[[Any, Any], Any]
"""Given a value and the one that it follows on, of the same type, or None: what to keep
in its place, which equals it."""

LONGEST: Final = 64
"""Letters of a text that is worth comparing; longer ones seldom repeat."""
COPIES: Final = 512
"""Different values that a field may have and still be one whose values repeat."""
SETS: Final = 2048
"""The same, of a field that holds several structs, such as all conditions."""
KEYS: Final = 64
"""Keys of a map, such as labels, that are told apart."""

# What names one object is never that of another; the namespace is shared elsewhere.
_UNIQUE: Final = frozenset(
    {"name", "generateName", "namespace", "uid", "resourceVersion"}
)


class Values:
    """The different values of one field, until there are too many of them."""

    __slots__ = ("_most", "copies", "repeat")

    def __init__(self, most: int = COPIES) -> None:
        self._most = most
        self.copies: dict[Any, Any] = {}
        self.repeat = True
        """Whether it is of use to look: False once ``most`` were different."""

    def add(self, value: Any) -> None:
        """Remember a value that is not among the copies."""
        if len(self.copies) == self._most:
            self.repeat = False
            self.copies = {}
        else:
            self.copies[value] = value


class Texts(Values):
    """The different texts of one field; long ones are passed over."""

    __slots__ = ()

    def add(self, text: str) -> None:
        if len(text) <= LONGEST:
            super().add(text)


def sharer(kind: type[msgspec.Struct]) -> Visit:
    """What makes an object of a kind share its parts with those before it.

    Given the state of the same object that was kept before, it shares all that has not
    changed with that: most of it is then compared, and not gone through.

    Assumptions: the object was just decoded and nobody else has it.
    """
    return _struct(kind, ()) or _nothing


def _nothing(value: Any, _: Any) -> Any:
    return value


def _struct(kind: type[msgspec.Struct], above: tuple[type, ...]) -> Visit | None:
    if kind in above:
        return None  # a class within itself; the outer levels are enough
    texts: list[tuple[str, Texts]] = []
    parts: list[tuple[str, Visit]] = []
    for name, inner in _fields(kind):
        if kind is Metadata and name in _UNIQUE:
            continue
        if inner is str:
            texts.append((name, Texts()))
        elif (visit := _part(inner, (*above, kind))) is not None:
            parts.append((name, visit))
    if not texts and not parts:
        return None

    def visit_struct(obj: Any, old: Any) -> Any:
        for name, known in texts:
            if known.repeat and (text := getattr(obj, name)):
                copy = known.copies.get(text)
                if copy is None:
                    known.add(text)
                elif copy is not text:
                    force_setattr(obj, name, copy)
        for name, visit in parts:
            if value := getattr(obj, name):
                before = None if old is None else getattr(old, name)
                kept = before if value == before else visit(value, before)
                if kept is not value:
                    force_setattr(obj, name, kept)
        return obj

    return visit_struct


def _part(inner: Any, above: tuple[type, ...]) -> Visit | None:
    """How to go into a value that is not a text; None if there is nothing to share."""
    if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
        return _within(inner, above)
    origin, arguments = get_origin(inner), get_args(inner)
    if origin is dict and arguments == (str, str):
        return _map()
    if origin in (list, tuple, Sequence) and arguments:
        item = _bare(arguments[0])
        if isinstance(item, type) and issubclass(item, msgspec.Struct):
            every = _items(_within(item, above))
            return _sets(every) if _is_simple(item) else every
    return None


def _within(kind: type[msgspec.Struct], above: tuple[type, ...]) -> Visit | None:
    """A struct that is part of an object: one copy for all, if it is that simple."""
    visit = _struct(kind, above)
    if not _is_simple(kind):
        return visit
    inside, known = visit or _nothing, Values()

    def visit_whole(value: Any, old: Any) -> Any:
        if not known.repeat:
            return inside(value, old)
        copy = known.copies.get(value)
        if copy is None:
            known.add(inside(value, old))
            return value
        return copy

    return visit_whole


def _is_simple(kind: type[msgspec.Struct]) -> bool:
    """Whether equal structs of a kind cannot be told apart, whatever is in them.

    Times can: the same moment may be written in two ways.
    """
    return kind.__struct_config__.frozen and all(
        inner in (str, int, bool) or get_origin(inner) is Literal
        for _, inner in _fields(kind)
    )


def _items(visit: Visit | None) -> Visit | None:
    if visit is None:
        return None

    def visit_items(items: Any, _: Any) -> Any:
        kept = [visit(item, None) for item in items]
        # Few of them have equals; a list that is as it was stays what it is.
        if all(map(is_, kept, items)):
            return items
        return kept if type(items) is list else tuple(kept)

    return visit_items


def _sets(visit: Visit | None) -> Visit:
    """Several simple structs: one tuple for all objects that have the same ones."""
    inside, known = visit or _nothing, Values(SETS)

    def visit_set(items: Any, _: Any) -> Any:
        if not known.repeat or type(items) is not tuple:
            return inside(items, None)
        kept = known.copies.get(items)
        if kept is None:
            kept = inside(items, None)
            known.add(kept)
        return kept

    return visit_set


def _map() -> Visit:
    by_key: dict[str, Texts] = {}

    def visit_map(values: dict[str, str], _: Any) -> Any:
        for key, text in values.items():
            known = by_key.get(key)
            if known is None:
                if len(by_key) >= KEYS:
                    continue
                known = by_key[key] = Texts()
            if known.repeat:
                copy = known.copies.get(text)
                if copy is None:
                    known.add(text)
                else:
                    values[key] = copy  # the key is there: nothing is moved
        return values

    return visit_map


# Every cache of a kind asks, and to find its types costs more than all the rest.
@lru_cache(maxsize=1024)
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    """The fields of a kind with their bare types."""
    return tuple((info.name, _bare(info.type)) for info in fields(kind))


def _bare(annotation: Any) -> Any:
    """A type without its notes and without None."""
    if hasattr(annotation, "__metadata__"):
        return _bare(annotation.__origin__)
    if get_origin(annotation) in (Union, UnionType):
        kept = [part for part in get_args(annotation) if part is not type(None)]
        return _bare(kept[0]) if len(kept) == 1 else annotation
    return annotation
