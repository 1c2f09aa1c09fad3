"""Comparing: which fields a value has, and which of them changed between two values.

Two different notions of "has" are at work, as in the real server. What somebody
*applies* is the leaves: a named field with contents is not a member. What an update
*adds* is every field that was not there, named or not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from trimtab.embedded.fieldsets import LEAF, SELF, Tree, ordered, union, with_self
from trimtab.embedded.plans import ANY, LIST, MAP, OPEN, SCALAR, Plan, element_of

_Found = tuple[Tree | None, Tree | None, Tree | None]
_MODIFIED: _Found = (None, LEAF, None)


class Comparison(NamedTuple):
    """What differs between two values; no field is in more than one of the sets."""

    removed: Tree
    modified: Tree
    added: Tree


def same(one: Any, other: Any, plan: Plan) -> bool:
    """Whether two values are equal. To Python, True is 1; to JSON it is not."""
    if one is other:
        return True
    if one != other:
        return False
    return not plan.loose or _same(one, other)


def _same(one: Any, other: Any) -> bool:
    """Of two values that are equal to Python."""
    if isinstance(one, dict):
        return all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return all(map(_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool)


def kind_of(value: Any, plan: Plan) -> str:
    """What the value is to the plan: a map, a list or a scalar."""
    if plan.kind != ANY:
        return plan.kind
    if value is None or isinstance(value, dict):
        return MAP
    return LIST if isinstance(value, list) else SCALAR


def is_atomic(kind: str, plan: Plan) -> bool:
    """Whether a value of that kind is owned as a whole."""
    return plan.atomic or kind == SCALAR or (kind == LIST and plan.kind == ANY)


def fields_of(value: Any, plan: Plan) -> Tree:
    """The set of the fields that an applied value has.

    Errors: `MalformedItem`.
    """
    return _fields(value, plan) or {}


def _fields(value: Any, plan: Plan) -> Tree | None:
    """The node of a value; None if it has no members."""
    kind = kind_of(value, plan)
    if is_atomic(kind, plan):
        return LEAF
    if not value:
        return None
    return _map_fields(value, plan) if kind == MAP else _list_fields(value, plan)


def _map_fields(value: dict[str, Any], plan: Plan) -> Tree | None:
    tree: Tree = {}
    named = plan.fields
    for name in sorted(value):
        inner = named.get(name)
        contents = value[name]
        below = inner or plan.element or OPEN
        node = LEAF if below.leaf else _fields(contents, below)
        if contents is None or contents == {} or inner is None:
            tree["f:" + name] = with_self(node or LEAF)
        elif node is not None:
            tree["f:" + name] = node
    return tree or None


def _list_fields(value: list[Any], plan: Plan) -> Tree:
    inner = plan.element or OPEN
    tree: Tree = {}
    for item in value:
        element = element_of(item, plan)
        if element in tree:  # items that cannot be told apart are owned together
            tree[element] = LEAF
        else:
            tree[element] = with_self(_fields(item, inner) or LEAF)
    return ordered(tree) if len(tree) > 1 else tree


def filled(value: Any, plan: Plan) -> Tree:
    """The node of a value that was not there before, or is no longer there.

    Errors: `MalformedItem`.
    """
    kind = kind_of(value, plan)
    if is_atomic(kind, plan) or not value:
        return LEAF
    tree: Tree = {SELF: LEAF}
    if kind == MAP:
        named, other = plan.fields, plan.element or OPEN
        for name in sorted(value):
            inner = named.get(name, other)
            tree["f:" + name] = LEAF if inner.leaf else filled(value[name], inner)
        return tree
    inner = plan.element or OPEN
    for item in value:
        element = element_of(item, plan)
        tree[element] = LEAF if element in tree else filled(item, inner)
    return ordered(tree) if len(tree) > 2 else tree


def compare(before: Any, after: Any, plan: Plan) -> Comparison:
    """What changed from one object to another.

    Errors: `MalformedItem`.
    """
    if same(before, after, plan):
        return Comparison({}, {}, {})
    removed, modified, added = _compare(before, after, plan)
    return Comparison(removed or {}, modified or {}, added or {})


def _compare(before: Any, after: Any, plan: Plan) -> _Found:
    """Of two values that are there and differ."""
    kind, other = kind_of(before, plan), kind_of(after, plan)
    found = _compare_as(kind, before, after, plan)
    if kind == other:
        return found
    # A value without a schema that became another kind of value is both: what it was
    # is gone, and what it is has changed.
    more = _compare_as(other, before, after, plan)
    return (
        _joined(found[0], more[0]),
        _joined(found[1], more[1]),
        _joined(found[2], more[2]),
    )


def _joined(one: Tree | None, other: Tree | None) -> Tree | None:
    if one is None or other is None:
        return other if one is None else one
    return union(one, other) if one and other else with_self(one or other)


def _compare_as(kind: str, before: Any, after: Any, plan: Plan) -> _Found:
    if is_atomic(kind, plan):
        return _MODIFIED
    of: Any = dict if kind == MAP else list
    one: Any = before if isinstance(before, of) else of()
    other: Any = after if isinstance(after, of) else of()
    if not one and not other:
        return _MODIFIED
    if kind == MAP:
        return _compare_maps(one, other, plan)
    return _compare_lists(one, other, plan)


def _compare_maps(before: dict[str, Any], after: dict[str, Any], plan: Plan) -> _Found:
    removed: Tree = {}
    modified: Tree = {}
    added: Tree = {}
    named, unnamed = plan.fields, plan.element or OPEN
    for name, value in after.items():
        inner = named.get(name, unnamed)
        if name not in before:
            added["f:" + name] = LEAF if inner.leaf else filled(value, inner)
            continue
        old = before[name]
        if old is value or (old == value and (not inner.loose or _same(old, value))):
            continue
        if inner.leaf:
            modified["f:" + name] = LEAF
        else:
            _put("f:" + name, _compare(old, value, inner), removed, modified, added)
    for name, old in before.items():
        if name not in after:
            inner = named.get(name, unnamed)
            removed["f:" + name] = LEAF if inner.leaf else filled(old, inner)
    return _found(removed, modified, added)


def _put(
    element: str, found: _Found, removed: Tree, modified: Tree, added: Tree
) -> None:
    for node, tree in zip(found, (removed, modified, added), strict=True):
        if node is not None:
            tree[element] = node


def _found(removed: Tree, modified: Tree, added: Tree) -> _Found:
    return (
        (ordered(removed) if len(removed) > 1 else removed) or None,
        (ordered(modified) if len(modified) > 1 else modified) or None,
        (ordered(added) if len(added) > 1 else added) or None,
    )


def _compare_lists(before: list[Any], after: list[Any], plan: Plan) -> _Found:
    removed: Tree = {}
    modified: Tree = {}
    added: Tree = {}
    old, new = _items(before, plan), _items(after, plan)
    inner = plan.element or OPEN
    for element, items in new.items():
        olds = old.get(element, ())
        if len(items) > 1 or len(olds) > 1:
            found = _compare_duplicates(olds, items, inner)
        elif not olds:
            added[element] = filled(items[0], inner)
            continue
        elif same(olds[0], items[0], inner):
            continue
        else:
            found = _compare(olds[0], items[0], inner)
        _put(element, found, removed, modified, added)
    for element, items in old.items():
        if element not in new:
            removed[element] = LEAF if len(items) > 1 else filled(items[0], inner)
    return _found(removed, modified, added)


def _items(values: list[Any], plan: Plan) -> dict[str, list[Any]]:
    items: dict[str, list[Any]] = {}
    for value in values:
        items.setdefault(element_of(value, plan), []).append(value)
    return items


def _compare_duplicates(
    before: list[Any] | tuple[()], after: list[Any], plan: Plan
) -> _Found:
    """Items that cannot be told apart are one field, which has no contents."""
    if len(before) > 1 and len(after) > 1:
        return (None, None, None) if same(before, after, OPEN) else _MODIFIED
    if len(before) > 1:
        return LEAF, None, filled(after[0], plan)
    return filled(before[0], plan) if before else None, None, LEAF
