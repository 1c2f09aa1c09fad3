"""List types: items that may not stand twice in lists that are sets or maps."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from trimtab.embedded import status
from trimtab.embedded.gotext import json_text
from trimtab.embedded.schemas import Schema
from trimtab.embedded.status import FieldProblem

Finder = Callable[[Any, str, list[FieldProblem]], None]


def finder_of(schema: Schema) -> Finder | None:
    """What adds the duplicates in a value to a list; None if there can be none."""
    inner = {
        name: (finder_of(child), f".{name}")
        for name, child in schema.properties.items()
    }
    named = [(name, each, mark) for name, (each, mark) in inner.items() if each]
    other = finder_of(schema.additional) if schema.additional is not None else None
    items = finder_of(schema.items) if schema.items is not None else None
    own = _own(schema)
    if not named and other is None and items is None and own is None:
        return None

    def find(value: Any, path: str, found: list[FieldProblem]) -> None:
        if type(value) is dict:
            if other is not None:
                for key, item in value.items():
                    other(item, f"{path}[{key}]", found)
            for name, each, mark in named:
                if name in value:
                    each(value[name], path + mark if path else name, found)
        elif type(value) is list:
            if own is not None:
                own(value, path, found)
            if items is not None:
                for index, item in enumerate(value):
                    items(item, f"{path}[{index}]", found)

    return find


def _own(schema: Schema) -> Finder | None:
    if schema.list_type == "set":
        return _in_set
    if schema.list_type == "map":
        return _in_map(schema.keys)
    return None


def _in_set(value: list[Any], path: str, found: list[FieldProblem]) -> None:
    if _plainly_distinct(value):
        return
    for index in repeated(value):
        found.append(status.duplicate(f"{path}[{index}]", value[index]))


def _plainly_distinct(values: list[Any]) -> bool:
    """Whether texts are all different; False where that takes a closer look."""
    for each in values:
        if type(each) is not str:
            return False
    return len(set(values)) == len(values)


def _distinct_by(items: list[Any], keys: tuple[str, ...]) -> bool:
    """Whether objects differ in keys that are texts and numbers, at a glance."""
    seen = set()
    for item in items:
        if type(item) is not dict:
            return False
        key = tuple([item.get(name) for name in keys])
        for part in key:
            if type(part) is not str and type(part) is not int:
                return False
        seen.add(key)
    return len(seen) == len(items)


def _in_map(keys: tuple[str, ...]) -> Finder:
    def find(value: list[Any], path: str, found: list[FieldProblem]) -> None:
        if _distinct_by(value, keys):
            return
        for index, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                detail = "must be an object for an array of list-type map"
                found.append(status.invalid(f"{path}[{index}]", item, detail))
                return
        if len(value) < 2:
            return
        identities = [
            {key: item[key] for key in keys if key in item} if item else {}
            for item in value
        ]
        for index in repeated(identities):
            found.append(status.duplicate(f"{path}[{index}]", identities[index]))

    return find


def repeated(items: list[Any]) -> list[int]:
    """The place of the second of each group of equal items."""
    if len(items) < 2:
        return []
    seen: dict[Hashable, int] = {}
    places = []
    for index, item in enumerate(items):
        key = _identity(item)
        count = seen.get(key, 0)
        seen[key] = count + 1
        if count == 1:
            places.append(index)
    return places


def _identity(item: Any) -> Hashable:
    """Equal for equal items, and only for those; 1, 1.0 and True are three."""
    if isinstance(item, (dict, list)):
        return (dict, json_text(item))
    return (type(item), item)
