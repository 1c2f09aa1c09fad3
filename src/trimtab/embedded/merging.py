"""Merging: one value laid over another by their plan, and fields taken out of a value.

Nothing is removed by a merge; the order of list items is the live one's, unless the
applied list disagrees about items that both have. Results share what they can with
the values they were made of.
"""

from __future__ import annotations

from typing import Any

from trimtab.embedded.comparing import is_atomic, kind_of
from trimtab.embedded.fieldsets import SELF, Tree
from trimtab.embedded.plans import LIST, MAP, OPEN, Plan, element_of


def merge(live: Any, applied: Any, plan: Plan) -> Any:
    """The live value with the applied one laid over it; both are there.

    Errors: `MalformedItem`.
    """
    kind = kind_of(applied, plan)
    if is_atomic(kind, plan) or not (live or applied):
        return applied
    of: Any = dict if kind == MAP else list
    if not isinstance(live, of) or not live:
        return applied
    if not applied:  # null or empty says nothing about the contents that are there
        return live
    if kind == MAP:
        return _merge_maps(live, applied, plan)
    return _merge_lists(live, applied, plan)


def _merge_maps(
    live: dict[str, Any], applied: dict[str, Any], plan: Plan
) -> dict[str, Any]:
    merged = dict(live)
    named, unnamed = plan.fields, plan.element or OPEN
    for name, value in applied.items():
        if name in merged:
            merged[name] = merge(merged[name], value, named.get(name, unnamed))
        else:
            merged[name] = value
    return merged


def _merge_lists(live: list[Any], applied: list[Any], plan: Plan) -> list[Any]:
    """Items of both, each once.

    Items that only one side has stay where they are next to their neighbours. Items
    that both have are in the applied order: a live one that is not the next of these
    waits until its turn comes.
    """
    inner = plan.element or OPEN
    places = [element_of(item, plan) for item in live]
    wanted = {element_of(item, plan): item for item in applied}
    # What occurs twice cannot be merged with: the applied item takes its place.
    own: dict[str, Any] = {}
    for element, item in zip(places, live, strict=True):
        own[element] = None if element in own else item
    shared = [element for element in wanted if element in own]
    merged: list[Any] = []
    done: set[str] = set()
    left, right, order = 0, 0, list(wanted)

    def take(element: str) -> None:
        nonlocal right
        done.add(element)
        item = wanted[element]
        has = element in own
        merged.append(merge(own[element], item, inner) if has else item)
        right += 1
        if shared and shared[0] == element:
            del shared[0]

    while left < len(places) or right < len(order):
        if left < len(places):
            element = places[left]
            if right < len(order):
                if element == order[right]:
                    take(element)
                    left += 1
                    continue
                if element in wanted and shared and shared[0] != element:
                    left += 1
                    continue
            if element not in wanted:
                merged.append(live[left])
                left += 1
                continue
            if element in done:
                left += 1
        if right < len(order):
            take(order[right])
    return merged


def remove(value: Any, fields: Tree, plan: Plan) -> Any:
    """The value without these fields; null if nothing of a map or list is left."""
    return _taken(value, fields, plan, keep=False)


def extract(value: Any, fields: Tree, plan: Plan) -> Any:
    """Only these fields of the value."""
    return _taken(value, fields, plan, keep=True)


def _taken(value: Any, fields: Tree, plan: Plan, *, keep: bool) -> Any:
    kind = kind_of(value, plan)
    if kind not in (MAP, LIST):
        return value
    of: Any = dict if kind == MAP else list
    if not isinstance(value, of):
        return None
    if not value or is_atomic(kind, plan):
        return value if keep else None
    if kind == MAP:
        return _taken_from_map(value, fields, plan, keep=keep) or None
    return _taken_from_list(value, fields, plan, keep=keep) or None


def _taken_from_map(
    value: dict[str, Any], fields: Tree, plan: Plan, *, keep: bool
) -> dict[str, Any]:
    left: dict[str, Any] = {}
    for name, contents in value.items():
        node = fields.get("f:" + name)
        if node is None:
            if not keep:
                left[name] = contents
            continue
        inner = plan.fields.get(name) or plan.element or OPEN
        if not node or SELF in node:
            if keep:
                left[name] = _taken(contents, fields, inner, keep=True)
        else:
            left[name] = _taken(contents, node, inner, keep=keep)
    return left


def _taken_from_list(
    value: list[Any], fields: Tree, plan: Plan, *, keep: bool
) -> list[Any]:
    left: list[Any] = []
    inner = plan.element or OPEN
    for item in value:
        node = fields.get(element_of(item, plan))
        is_member = node is not None and (not node or SELF in node)
        if is_member and not keep:
            continue
        if node and (len(node) > 1 or SELF not in node):
            left.append(_taken(item, node, inner, keep=keep))
        elif is_member or not keep:
            left.append(item)
    return left
