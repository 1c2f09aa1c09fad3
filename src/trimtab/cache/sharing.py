"""Sharing: one copy of each text that many objects have.

A decoder makes a new string for every value, and most of what is in a cluster is said
a thousand times over: phases, kinds, the values of labels, the types of conditions.
Before an object is kept, such texts are replaced by the copy that is there already,
and whatever of it is as it was before by what was kept before.

Which fields repeat is found out, not declared: a field that has had too many different
texts is no longer looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import UnionType
from typing import Any, Final, TypeAlias, Union, get_args, get_origin

import msgspec
from msgspec.structs import fields, force_setattr

from trimtab.api.resource import Metadata

Visit: TypeAlias = Callable[[Any, Any], None]
"""Given a value and the one that it follows on, of the same type, or None."""

LONGEST: Final = 64
"""Letters of a text that is worth comparing; longer ones seldom repeat."""
COPIES: Final = 512
"""Different texts that a field may have and still be one whose texts repeat."""
KEYS: Final = 64
"""Keys of a map, such as labels, that are told apart."""

# What names one object is never that of another; the namespace is shared elsewhere.
_UNIQUE: Final = frozenset(
    {"name", "generateName", "namespace", "uid", "resourceVersion"}
)


class Texts:
    """The different texts of one field, until there are too many of them."""

    __slots__ = ("copies", "repeat")

    def __init__(self) -> None:
        self.copies: dict[str, str] = {}
        self.repeat = True
        """Whether it is of use to look: False once ``COPIES`` texts were different."""

    def add(self, text: str) -> None:
        """Remember a text that is not among the copies."""
        if len(text) > LONGEST:
            return
        if len(self.copies) == COPIES:
            self.repeat = False
            self.copies = {}
        else:
            self.copies[text] = text


def sharer(kind: type[msgspec.Struct]) -> Visit:
    """What makes an object of a kind share its texts with those before it.

    Given the state of the same object that was kept before, it shares all that has not
    changed with that: most of it is then compared, and not gone through.

    Assumptions: the object was just decoded and nobody else has it.
    """
    return _struct(kind, ()) or _nothing


def _nothing(_: Any, __: Any) -> None:
    return None


def _struct(kind: type[msgspec.Struct], above: tuple[type, ...]) -> Visit | None:
    if kind in above:
        return None  # a class within itself; the outer levels are enough
    texts: list[tuple[str, Texts]] = []
    parts: list[tuple[str, Visit]] = []
    for info in fields(kind):
        if kind is Metadata and info.name in _UNIQUE:
            continue
        inner = _bare(info.type)
        if inner is str:
            texts.append((info.name, Texts()))
        elif (visit := _part(inner, (*above, kind))) is not None:
            parts.append((info.name, visit))
    if not texts and not parts:
        return None

    def visit_struct(obj: Any, old: Any) -> None:
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
                if value == before:
                    force_setattr(obj, name, before)
                else:
                    visit(value, before)

    return visit_struct


def _part(inner: Any, above: tuple[type, ...]) -> Visit | None:
    """How to go into a value that is not a text; None if there is nothing to share."""
    if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
        return _struct(inner, above)
    origin, arguments = get_origin(inner), get_args(inner)
    if origin is dict and arguments == (str, str):
        return _map()
    if origin in (list, tuple, Sequence) and arguments:
        item = _bare(arguments[0])
        if isinstance(item, type) and issubclass(item, msgspec.Struct):
            return _items(_struct(item, above))
    return None


def _items(visit: Visit | None) -> Visit | None:
    if visit is None:
        return None

    def visit_items(items: Any, _: Any) -> None:
        for item in items:
            visit(item, None)

    return visit_items


def _map() -> Visit:
    by_key: dict[str, Texts] = {}

    def visit_map(values: dict[str, str], _: Any) -> None:
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

    return visit_map


def _bare(annotation: Any) -> Any:
    """A type without its notes and without None."""
    if hasattr(annotation, "__metadata__"):
        return _bare(annotation.__origin__)
    if get_origin(annotation) in (Union, UnionType):
        kept = [part for part in get_args(annotation) if part is not type(None)]
        return _bare(kept[0]) if len(kept) == 1 else annotation
    return annotation
