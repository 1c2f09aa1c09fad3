"""Ratcheting: a part of an object that was bad before, and is unchanged, may stay bad.

A new and an old value are walked side by side. Where an item of a list cannot be found
again in the old list, the walk has no old value there and everything counts as new.
"""

from __future__ import annotations

from typing import Any

from trimtab.embedded.gotext import quoted
from trimtab.embedded.schemas import Schema


def same(one: Any, other: Any) -> bool:
    """Deep equality that tells 1, 1.0 and True apart."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            same(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def key_of(keys: tuple[str, ...], item: Any) -> str | None:
    """What identifies an item of a list of type map; None when it has no key."""
    if not isinstance(item, dict):
        return None
    parts = []
    for key in keys:
        value = item.get(key)
        if isinstance(value, str):
            parts.append(quoted(value))
        elif isinstance(value, (bool, int, float)):
            parts.append(f"{type(value).__name__} {value}")
        else:
            return None
    return "\0".join(parts)


def by_key(schema: Schema, items: Any) -> dict[str, Any]:
    """The items of a list of type map; the first of those with the same key."""
    found: dict[str, Any] = {}
    if schema.type == "array" and schema.list_type == "map" and schema.keys:
        for item in items or ():
            key = key_of(schema.keys, item)
            if key is not None:
                found.setdefault(key, item)
    return found


class Pair:
    """A value, what it was before, and the schema of both."""

    __slots__ = ("_children", "_equal", "_keyed", "new", "old", "schema")

    def __init__(self, new: Any, old: Any, schema: Schema) -> None:
        self.new = new
        self.old = old
        self.schema = schema
        self._equal: bool | None = None
        self._keyed: dict[str, Any] | None = None
        self._children: dict[str | int, Pair | None] = {}

    def key(self, name: str) -> Pair | None:
        """The value under a key, if both have it and it has a schema."""
        if name not in self._children:
            self._children[name] = self._of_key(name)
        return self._children[name]

    def _of_key(self, name: str) -> Pair | None:
        if not isinstance(self.old, dict) or not isinstance(self.new, dict):
            return None
        schema = self.schema.child(name)
        if schema is None or name not in self.old or name not in self.new:
            return None
        return Pair(self.new[name], self.old[name], schema)

    def index(self, place: int) -> Pair | None:
        """The item at a place, if the old list has one with the same key."""
        if place not in self._children:
            self._children[place] = self._of_index(place)
        return self._children[place]

    def _of_index(self, place: int) -> Pair | None:
        schema = self.schema
        if not isinstance(self.old, list) or not isinstance(self.new, list):
            return None
        if schema.list_type != "map" or schema.items is None:
            return None
        if self._keyed is None:
            self._keyed = by_key(schema, self.old)
        key = key_of(schema.keys, self.new[place])
        found = self._keyed.get(key) if key is not None else None
        return None if found is None else Pair(self.new[place], found, schema.items)

    def unchanged(self) -> bool:
        """Whether the value is what it was, as far as that can be told."""
        if self._equal is None:
            self._equal = self._compare()
        return self._equal

    def _compare(self) -> bool:
        new, old = self.new, self.old
        if isinstance(new, list) and isinstance(old, list):
            if len(new) != len(old):
                return False
            if self.schema.list_type != "map":
                return same(new, old)
            pairs = (self.index(place) for place in range(len(new)))
            return all(pair is not None and pair.unchanged() for pair in pairs)
        if isinstance(new, dict) and isinstance(old, dict):
            if len(new) != len(old):
                return False
            pairs = (self.key(name) for name in new)
            return all(pair is not None and pair.unchanged() for pair in pairs)
        return same(new, old)
