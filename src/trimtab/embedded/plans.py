"""Plans: how values of a type are told apart, compared and merged.

A plan is a ``Type`` reduced to what ownership needs and worked out once: which fields
are named, what is owned as a whole, what identifies an item of a list. It says the
same as the schema that the real server derives from OpenAPI for server-side apply.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET

from trimtab.embedded.fieldsets import LEAF, SELF, Tree, key_element, value_element
from trimtab.embedded.gotext import json_text, quoted
from trimtab.embedded.types import Type

MAP, LIST, SCALAR, ANY = "map", "list", "scalar", "any"

_SCALARS = {"string": "string", "integer": "numeric", "number": "numeric"}
_SCALARS["boolean"] = "boolean"
_STRINGS = ("", "byte")


class MalformedItem(ValueError):
    """An item of a list of type map or set that cannot be identified."""


class Plan(msgspec.Struct, eq=False, kw_only=True):
    """One node. Filled in two phases, as types may contain themselves."""

    kind: str
    """``map``, ``list``, ``scalar``, or ``any``: whatever the value is."""
    scalar: str = ""
    """``string``, ``numeric``, ``boolean``; empty for any scalar, ``any`` for more."""
    fields: dict[str, Plan] = {}
    element: Plan | None = None
    """Of items, and of keys that are not named; None if those are not allowed."""
    atomic: bool = False
    """Owned as a whole. An ``any`` that is atomic is so for maps too."""
    leaf: bool = False
    """Whether nothing below is ever told apart: a scalar, or atomic."""
    keys: tuple[tuple[str, Any], ...] = ()
    """What identifies an item, with what it is if left out; sorted by name."""
    declared: tuple[str, ...] = ()
    """The names of the keys as the schema has them."""
    loose: bool = False
    """Whether there is an ``any`` at or below, where True is not 1."""
    rigid: bool = False
    """Whether anything atomic is at or below."""


OPEN = Plan(kind=ANY, loose=True)
"""Of what no schema describes: maps are merged key by key, lists are atomic."""


@lru_cache(maxsize=1024)
def plan_of(type: Type) -> Plan:
    """The plan of a type; made once, while the type is in use."""
    made: dict[tuple[int, bool], Plan] = {}
    root = _made(type, made, is_open=False)
    _spread(list(made.values()))
    return root


def _made(type: Type, made: dict[tuple[int, bool], Plan], *, is_open: bool) -> Plan:
    """The plan of a node. What preserves unknown fields does so all the way down,
    except in the definitions of built-in types."""
    is_open = type.preserve_unknown or (is_open and not type.name)
    found = made.get((id(type), is_open))
    if found is None:
        found = made[id(type), is_open] = Plan(kind=_KINDS[type.shape])
        _fill(found, type, made, is_open=is_open)
    return found


_KINDS = {"object": MAP, "map": MAP, "list": LIST, "scalar": SCALAR, "any": ANY}


def _fill(
    plan: Plan, type: Type, made: dict[tuple[int, bool], Plan], *, is_open: bool
) -> None:
    plan.atomic = type.atomic
    plan.leaf = plan.kind == SCALAR or (type.atomic and plan.kind != ANY)
    plan.loose = plan.kind == ANY
    plan.rigid = type.atomic
    if plan.kind == SCALAR:
        plan.scalar = _scalar(type)
        return
    plan.fields = {
        name: _made(each, made, is_open=is_open) for name, each in type.fields.items()
    }
    if type.element is not None:
        plan.element = _made(type.element, made, is_open=is_open)
    elif plan.kind != MAP or is_open or not type.fields:
        plan.element = OPEN
    if plan.kind == LIST and type.list_type == "map":
        plan.declared = type.keys
        plan.keys = tuple((key, _default(type, key)) for key in sorted(type.keys))


def _scalar(type: Type) -> str:
    """A string with a format may be any scalar; an integer or string, anything."""
    if type.scalar == "int-or-string":
        return "" if type.format == "quantity" else "any"
    if type.scalar == "string" and type.format not in _STRINGS:
        return ""
    return _SCALARS.get(type.scalar, "")


def _default(type: Type, key: str) -> Any:
    field = type.element.fields.get(key) if type.element else None
    return UNSET if field is None or field.default is None else field.default


def _spread(plans: list[Plan]) -> None:
    """Carry what is true of a node to all above it, until nothing changes."""
    changed = True
    while changed:
        changed = False
        for plan in plans:
            for below in _below(plan):
                if below.loose > plan.loose or below.rigid > plan.rigid:
                    plan.loose = plan.loose or below.loose
                    plan.rigid = plan.rigid or below.rigid
                    changed = True


def _below(plan: Plan) -> Iterator[Plan]:
    yield from plan.fields.values()
    if plan.element is not None:
        yield plan.element


def element_of(item: Any, plan: Plan) -> str:
    """The path element of an item of a list of type map or set.

    Errors: `MalformedItem` in the words of the real server.
    """
    keys = plan.keys
    if not keys:
        if item is None or isinstance(item, (dict, list)):
            raise MalformedItem(_not_in_set(item))
        return value_element(item)
    if not isinstance(item, dict):
        what = "a null element" if item is None else "non-map elements"
        raise MalformedItem(f"associative list with keys may not have {what}")
    if len(keys) == 1:
        name, default = keys[0]
        pairs: list[Any] = [name, item.get(name, default)]
        if pairs[1] is UNSET:
            pairs.clear()
    else:
        pairs = []
        for name, default in keys:
            value = item.get(name, default)
            if value is not UNSET:
                pairs += (name, value)
    if not pairs:
        names = " ".join(map(quoted, plan.declared))
        raise MalformedItem(
            f"associative list with keys has an element that omits all key fields "
            f"[{names}] (and doesn't have default values for any key fields)"
        )
    try:
        return key_element(*pairs)
    except TypeError:  # a key that is itself a map or a list
        return f"k:{json_text(dict(zip(pairs[::2], pairs[1::2], strict=True)))}"


def _not_in_set(item: Any) -> str:
    if isinstance(item, list):
        return "not supported: associative list with lists as elements"
    what = "an explicit null" if item is None else "a map type"
    return f"associative list without keys has an element that's {what}"


def below(plan: Plan | None, element: str) -> Plan | None:
    """The plan below a path element; None where the schema says nothing."""
    if plan is None:
        return None
    if element[0] == "f":
        return plan.fields.get(element[2:]) or (
            None if plan.kind == LIST else plan.element
        )
    return plan.element if plan.kind == LIST else None


def with_named(tree: Tree, plan: Plan | None) -> Tree:
    """The set, and in it each named field that has members below.

    A named field is never a member by itself while it has contents, so this is what
    makes sets of whole values comparable.
    """
    if plan is None or plan.kind == SCALAR:
        return tree
    named: Tree = {}
    for element, node in tree.items():
        if node:
            node = with_named(node, below(plan, element))
            if SELF not in node and element[0] == "f" and element[2:] in plan.fields:
                node = {SELF: LEAF, **node}
        named[element] = node
    return named


def settled(tree: Tree, plan: Plan) -> Tree:
    """The set after a change of schema: of what is atomic now, no part is owned."""
    if not plan.rigid:
        return tree
    if plan.atomic:
        return LEAF
    changed: Tree | None = None
    for element, node in tree.items():
        inner = below(plan, element) if node else None
        if inner is None or inner is OPEN:
            continue
        rest = settled(node, inner)
        if rest is not node:
            changed = dict(tree) if changed is None else changed
            changed[element] = rest
    return tree if changed is None else changed
