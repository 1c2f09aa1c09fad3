"""Indexes: from a value to the keys of the objects that have it.

A value that one object has costs one slot of a map; only from the second object on is
there a bucket. That is most owners, and most of what an index would otherwise weigh.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from trimtab.cache.changes import Key, path_getter

OWNER: Final = "owner"
"""The name of the index that :func:`owner` makes."""

# A slot in the table of a bucket, and its part of what every table costs.
_SHARED: Final = 48

log = logging.getLogger(__name__)


class Index(msgspec.Struct, frozen=True):
    """A name, and which values an object is found by.

    Assumptions: ``values`` is a pure function of the object; the values that an object
    was entered under are those that it is taken out from. One that raises finds the
    object by nothing, and says so in the log.
    """

    name: str
    values: Callable[[Any], Iterable[str]]
    counted: tuple[str, ...] = ()
    """Values whose objects are counted in metrics. A closed set: each is a series."""


def owner() -> Index:
    """Objects by the uid of each of their owners: what ``Store.children`` reads."""
    return Index(OWNER, _owners)


def _owners(obj: Any) -> tuple[str, ...]:
    references = obj.metadata.ownerReferences
    if not references:
        return ()
    if len(references) == 1:
        return (references[0].uid,)
    return tuple(reference.uid for reference in references)


def label(key: str) -> Index:
    """Objects by the value of a label, under the name ``label:KEY``."""

    def values(obj: Any) -> tuple[str, ...]:
        value = obj.metadata.labels.get(key)
        return () if value is None else (value,)

    return Index(f"label:{key}", values)


def field(path: str) -> Index:
    """Objects by a field such as ``spec.nodeName``, under the name ``field:PATH``.

    An absent or empty field is not indexed. A list is indexed by each of its items;
    what is not a text, by its text.
    """
    get = path_getter(path)

    def values(obj: Any) -> tuple[str, ...]:
        value = get(obj)
        if value is None or value == "":
            return ()
        if isinstance(value, str):
            return (value,)
        items = value if isinstance(value, list | tuple | set | frozenset) else (value,)
        return tuple(map(str, items))

    return Index(f"field:{path}", values)


class Buckets:
    """The entries of one index.

    Invariant: a value maps to the one key that has it, or to the keys in the order they
    came; never to nothing.
    """

    __slots__ = ("_buckets", "_shared", "_values", "_warned", "index")

    def __init__(self, index: Index) -> None:
        self.index = index
        self._values = index.values
        self._buckets: dict[str, Key | dict[Key, None]] = {}
        self._shared = 0
        """How many keys there are in buckets of more than one."""
        self._warned = False

    def values(self, obj: Any) -> tuple[str, ...]:
        """What an object is found by; nothing where the index cannot read it."""
        try:
            found = self._values(obj)
            return found if type(found) is tuple else tuple(found)
        except Exception:
            if not self._warned:
                self._warned = True
                log.exception("The index %s cannot read %s.", self.index.name, obj)
            return ()

    def insert(self, key: Key, obj: Any) -> None:
        """Enter an object that is not in the index yet."""
        table = self._buckets
        for value in self.values(obj):
            held = table.setdefault(value, key)
            if held is not key:
                self._join(value, held, key)

    def move(self, key: Key, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        """Find a key by other values than before."""
        if before != after:
            self._discard(key, before)
            for value in after:
                self._join(value, self._buckets.setdefault(value, key), key)

    def _join(self, value: str, held: Key | dict[Key, None], key: Key) -> None:
        """Enter a key under a value that another key has."""
        if type(held) is dict:
            self._shared += key not in held
            held[key] = None
        elif held != key:
            self._buckets[value] = {cast(Key, held): None, key: None}
            self._shared += 2

    def _discard(self, key: Key, values: tuple[str, ...]) -> None:
        for value in values:
            held = self._buckets.get(value)
            if held == key:
                del self._buckets[value]
            elif type(held) is dict and key in held:
                del held[key]
                self._shared -= 1
                if len(held) == 1:
                    self._buckets[value] = next(iter(held))
                    self._shared -= 1

    def keys(self, value: str) -> Collection[Key]:
        """The keys of the objects that have this value, in the order they came."""
        held = self._buckets.get(value)
        if held is None:
            return ()
        return held.keys() if type(held) is dict else (cast(Key, held),)

    def bytes(self) -> int:
        """What the tables weigh, about."""
        return sys.getsizeof(self._buckets) + _SHARED * self._shared

    def contents(self) -> Mapping[str, frozenset[Key]]:
        """All of it, for whoever checks it."""
        return {value: frozenset(self.keys(value)) for value in self._buckets}

    def __len__(self) -> int:
        return len(self._buckets)
