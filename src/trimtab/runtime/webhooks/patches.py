"""Patches: what a function changed of an object, put onto what the server sent.

A class names some fields of a kind, the server sends all of them. A change is what
differs between the typed object before and after; :func:`merged` makes that change in
the whole object, and :func:`difference` says it as a JSON Patch. Nothing that the class
does not name is ever touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Plain = dict[str, Any]

IDENTITIES = ("name", "key", "type", "id", "uid", "mountPath", "containerPort", "ip")
"""What tells the items of a list apart, in this order, where all have one."""


def merged(whole: Any, before: Any, after: Any) -> Any:
    """``whole``, changed as ``before`` was changed into ``after``.

    ``before`` is a view of ``whole``: it may lack fields, have defaults in the place of
    absent ones, and spell values differently.

    Guarantees: what ``before`` does not have stays, also within the items of a list
    that were moved; what did not change keeps its spelling, or stays absent. A view of
    the result is ``after``. Nothing is changed in place.
    """
    if same(before, after):
        return whole
    if isinstance(before, dict) and isinstance(after, dict):
        return _merged_maps(whole if isinstance(whole, dict) else {}, before, after)
    if isinstance(before, list) and isinstance(after, list):
        return _merged_lists(whole if isinstance(whole, list) else [], before, after)
    return after


def _merged_maps(whole: Plain, before: Plain, after: Plain) -> Plain:
    made = dict(whole)
    for key in before.keys() - after.keys():
        left = None
        if isinstance(before[key], dict) and isinstance(whole.get(key), dict):
            # It became empty, or was unset; what is unknown in it is not ours.
            left = merged(whole[key], before[key], {})
        if left:
            made[key] = left
        else:
            made.pop(key, None)
    for key, value in after.items():
        if key not in before:
            is_map = isinstance(value, dict)
            made[key] = merged(whole.get(key, {}), {}, value) if is_map else value
        elif not same(before[key], value):
            made[key] = merged(whole.get(key), before[key], value)
    return made


def _merged_lists(whole: list[Any], before: list[Any], after: list[Any]) -> list[Any]:
    field = _identity(before)
    behind = _behind(whole, before, field)
    made = []
    for item, position in zip(after, _matches(before, after, field), strict=True):
        if position is None or behind[position] is None:
            made.append(item)
        else:
            made.append(merged(behind[position], before[position], item))
    return made


def _identity(items: Sequence[Any]) -> str | None:
    """The field that tells the items of a list apart, if there is one."""
    if not items or not all(isinstance(each, dict) for each in items):
        return None
    for field in IDENTITIES:
        values = [each.get(field) for each in items]
        plain = all(isinstance(each, str | int) for each in values)
        if plain and len(set(values)) == len(values):
            return field
    return None


def _behind(
    whole: Sequence[Any], before: Sequence[Any], field: str | None
) -> list[Any]:
    """For each item of the view, the item of the whole that it is a view of."""
    if field is not None:
        found = {
            each[field]: each
            for each in whole
            if isinstance(each, dict) and isinstance(each.get(field), str | int)
        }
        return [found.get(each[field]) for each in before]
    return list(whole) if len(whole) == len(before) else [None] * len(before)


def _matches(
    before: Sequence[Any], after: Sequence[Any], field: str | None
) -> list[int | None]:
    """For each item, the position that it had before; None if it is new."""
    if field is not None:
        positions = {each[field]: i for i, each in enumerate(before)}
        return [
            positions.get(each.get(field)) if isinstance(each, dict) else None
            for each in after
        ]
    left = dict(enumerate(before))
    found: list[int | None] = [None] * len(after)
    # Those that did not change first: they may have moved.
    for i, item in enumerate(after):
        for position, other in left.items():
            if same(item, other):
                found[i] = position
                del left[position]
                break
    for i in range(len(after)):
        if found[i] is None and left.pop(i, None) is not None:
            found[i] = i
    return found


def difference(before: Any, after: Any, path: str = "") -> Iterator[Plain]:
    """The JSON Patch that makes ``after`` of ``before``; empty if they are the same."""
    if same(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() - after.keys():
            yield {"op": "remove", "path": f"{path}/{_escaped(key)}"}
        for key, value in after.items():
            where = f"{path}/{_escaped(key)}"
            if key in before:
                yield from difference(before[key], value, where)
            else:
                yield {"op": "add", "path": where, "value": value}
    elif _are_lists(before, after) and len(before) == len(after):
        for i, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from difference(one, other, f"{path}/{i}")
    else:
        yield {"op": "replace", "path": path, "value": after}


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; unlike Python's, true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            same(value, other[key]) for key, value in one.items()
        )
    if _are_lists(one, other):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _are_lists(one: Any, other: Any) -> bool:
    return isinstance(one, list) and isinstance(other, list)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
