"""Field sets: which fields of an object somebody owns, as managedFields has them.

A set is kept in the very form in which it is written, ``FieldsV1``: a tree of
dictionaries whose keys are path elements (``f:name``, ``k:{"name":"web"}``, ``v:3``,
``i:0``). A node without children is a member; a node with children is a member too if
it has the key ``.``. So nothing is parsed and nothing is written on the way between a
stored object and the algebra here, and an equal element is an equal string.

Trees are never changed once they are made: operations share what stays the same, and
return the very tree they were given where nothing happened to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from trimtab.embedded.gotext import json_text, number, quoted

Tree: TypeAlias = dict[str, Any]
"""Path element to tree. At the root, an empty tree is the empty set."""
Path: TypeAlias = tuple[str, ...]
"""Path elements from the root down."""

LEAF: Tree = {}
"""A member without children. Shared by all; nobody writes into it."""
SELF = "."


class MalformedFields(ValueError):
    """What is not a set in the form ``FieldsV1``."""


@lru_cache(maxsize=8192, typed=True)
def key_element(*pairs: Any) -> str:
    """The element of a list's item: names of its keys and values in turn, sorted."""
    names, values = pairs[::2], pairs[1::2]
    inner = (
        f"{json_text(n)}:{json_text(v)}" for n, v in zip(names, values, strict=True)
    )
    return f"k:{{{','.join(inner)}}}"


@lru_cache(maxsize=8192, typed=True)
def value_element(value: Any) -> str:
    """The element of a scalar in a set."""
    return f"v:{json_text(value)}"


@lru_cache(maxsize=8192)
def element_text(element: str) -> str:
    """An element as it stands in messages: ``.name``, ``[name="web"]``, ``[=3]``."""
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return f".{rest}"
    if kind == "i:":
        return f"[{rest}]"
    found = msgspec.json.decode(rest)
    if kind == "v:":
        return f"[={_value_text(found)}]"
    return f"[{','.join(f'{key}={_value_text(found[key])}' for key in sorted(found))}]"


def path_text(path: Path) -> str:
    """A path as it stands in messages: ``.spec.containers[name="web"].image``."""
    return "".join(map(element_text, path))


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(float(value))  # the real server reads stored keys as floats
    if isinstance(value, dict):
        return "".join(f"{key}={_value_text(value[key])}" for key in sorted(value))
    if isinstance(value, list):
        return f"[{','.join(map(_value_text, value))}]"
    return json_text(value)


@lru_cache(maxsize=8192)
def _order(element: str) -> tuple[int, Any]:
    """The place of an element among its siblings: fields, keys, values, indexes."""
    kind, rest = element[:2], element[2:]
    if kind == "k:":
        found = msgspec.json.decode(rest)
        return 1, tuple((name, _value_order(found[name])) for name in sorted(found))
    if kind == "v:":
        return 2, _value_order(msgspec.json.decode(rest))
    if kind == "i:":
        return 3, int(rest)
    return (0, rest) if kind == "f:" else (-1, rest)


def _value_order(value: Any) -> tuple[int, Any]:
    """Numbers before strings before booleans before lists before maps before null."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, (int, float)):
        return 0, value
    if isinstance(value, str):
        return 1, value
    if isinstance(value, list):
        return 3, [_value_order(each) for each in value]
    if isinstance(value, dict):
        return 4, [(name, _value_order(value[name])) for name in sorted(value)]
    return 5, 0


def ordered(tree: Tree) -> Tree:
    """The same tree with its elements in the order in which the real server writes."""
    keys = sorted(tree)
    if keys and keys[-1][0] != "f":
        keys.sort(key=_order)
    return {key: tree[key] for key in keys}


def union(one: Tree, other: Tree) -> Tree:
    """What is in either."""
    if not one or one is other:
        return other
    joined, grown = dict(one), False
    for element, node in other.items():
        mine = joined.get(element)
        if mine is None:
            joined[element] = node
            grown = True
        elif mine is not node:
            joined[element] = _union_node(mine, node)
    return ordered(joined) if grown else joined


def _union_node(one: Tree, other: Tree) -> Tree:
    if one and other:
        return union(one, other)
    return with_self(one or other)


def with_self(node: Tree) -> Tree:
    """The node as a member."""
    return node if not node or SELF in node else {SELF: LEAF, **node}


def difference(one: Tree, other: Tree) -> Tree:
    """What is in ``one`` only. A parent does not take its children along."""
    return _less(one, other, _difference_node)


def _less(one: Tree, other: Tree, left_of: Callable[[Tree, Tree], Tree | None]) -> Tree:
    """``one`` with what is left of each node that ``other`` has as well."""
    left: Tree | None = None
    for element, node in other.items():
        mine = one.get(element)
        if mine is None:
            continue
        rest = left_of(mine, node)
        if rest is mine:
            continue
        if left is None:
            left = dict(one)
        if rest is None:
            del left[element]
        else:
            left[element] = rest
    return one if left is None else left


def _difference_node(one: Tree, other: Tree) -> Tree | None:
    if not one:
        return None if not other or SELF in other else one
    if not other:
        if SELF not in one:
            return one
        return {element: one[element] for element in one if element != SELF}
    rest = difference(one, other)
    return rest if rest is one else _node(rest)


def _node(tree: Tree) -> Tree | None:
    """What a tree of an element's own entries is as a node; None if it is nothing."""
    if not tree:
        return None
    return LEAF if len(tree) == 1 and SELF in tree else tree


def intersection(one: Tree, other: Tree) -> Tree:
    """What is in both."""
    both: Tree = {}
    for element, node in one.items():
        theirs = other.get(element)
        if theirs is None:
            continue
        shared = _intersection_node(node, theirs)
        if shared is not None:
            both[element] = shared
    return both


def _intersection_node(one: Tree, other: Tree) -> Tree | None:
    if not one or not other:
        more = one or other
        return LEAF if not more or SELF in more else None
    return _node(intersection(one, other))


def without(one: Tree, other: Tree) -> Tree:
    """What is in ``one`` but not in ``other`` nor below any member of it."""
    return _less(one, other, _without_node)


def _without_node(one: Tree, other: Tree) -> Tree | None:
    if not other or SELF in other:
        return None
    return _node(without(one, other)) if one else one


def leaves(tree: Tree) -> Tree:
    """The members that have no members below them."""
    return {
        element: leaves(node) if node else node
        for element, node in tree.items()
        if element != SELF
    }


def paths(tree: Tree, above: Path = ()) -> Iterator[Path]:
    """Every member: of each node first its own, then those of its children."""
    for element, node in tree.items():
        if element != SELF and (not node or SELF in node):
            yield (*above, element)
    for element, node in tree.items():
        if node:
            yield from paths(node, (*above, element))


def has(tree: Tree, path: Path) -> bool:
    """Whether the path is a member. Nobody owns the whole object."""
    node: Tree | None = tree
    for element in path:
        node = node.get(element) if node else None
        if node is None:
            return False
    return bool(path) and (not node or SELF in node)


def insert(tree: Tree, path: Path) -> Tree:
    """The set with one more member."""
    added: Tree = LEAF
    for element in reversed(path):
        added = {element: added}
    return union(tree, added)


def read(raw: Any) -> Tree:
    """A set that a client sent, in its canonical form.

    Elements of kinds that are not known are left out.

    Errors: `MalformedFields`.
    """
    if not isinstance(raw, dict):
        raise MalformedFields(f"expected an object, got {json_text(raw)}")
    return ordered(
        {
            element: _read_node(node)
            for name, node in raw.items()
            if name != SELF and (element := _read_element(name))
        }
    )


def _read_node(raw: Any) -> Tree:
    if raw is None:
        return LEAF
    inner = read(raw)
    return {SELF: LEAF, **inner} if inner and SELF in raw else inner or LEAF


def _read_element(name: str) -> str:
    kind, rest = name[:2], name[2:]
    if len(kind) < 2:
        raise MalformedFields("key must be 2 characters long:")
    if kind[1] != ":":
        raise MalformedFields(f"missing colon: {name}")
    try:
        if kind == "k:":
            found = msgspec.json.decode(rest, type=dict[str, Any])
            inner = (f"{json_text(n)}:{json_text(found[n])}" for n in sorted(found))
            return f"k:{{{','.join(inner)}}}"
        if kind == "v:":
            return f"v:{json_text(msgspec.json.decode(rest))}"
        if kind == "i:":
            return f"i:{int(rest)}"
    except ValueError as problem:
        raise MalformedFields(f"{name}: {problem}") from problem
    return name if kind == "f:" else ""


class FieldSet:
    """A set of fields as a value, for those who do not count microseconds."""

    __slots__ = ("tree",)

    def __init__(self, tree: Tree | None = None) -> None:
        """From a tree in canonical form; what a client sent goes through `from_v1`."""
        self.tree: Tree = tree or {}

    @classmethod
    def of(cls, members: Iterable[Path]) -> FieldSet:
        """The set of these paths."""
        tree: Tree = {}
        for path in members:
            tree = insert(tree, path) if path else tree
        return cls(tree)

    @classmethod
    def named(cls, *members: str) -> FieldSet:
        """The set of these fields, each written as ``metadata.labels``."""
        return cls.of(tuple(f"f:{name}" for name in m.split(".")) for m in members)

    @classmethod
    def from_v1(cls, raw: Any) -> FieldSet:
        """From what ``fieldsV1`` holds.

        Errors: `MalformedFields`.
        """
        return cls(read(raw))

    def to_v1(self) -> Tree:
        """What ``fieldsV1`` holds."""
        return self.tree

    def __or__(self, other: FieldSet) -> FieldSet:
        return FieldSet(union(self.tree, other.tree))

    def __sub__(self, other: FieldSet) -> FieldSet:
        return FieldSet(difference(self.tree, other.tree))

    def __and__(self, other: FieldSet) -> FieldSet:
        return FieldSet(intersection(self.tree, other.tree))

    def without(self, other: FieldSet) -> FieldSet:
        """As a difference, and what lies below the other's members goes too."""
        return FieldSet(without(self.tree, other.tree))

    def leaves(self) -> FieldSet:
        """The members that have no members below them."""
        return FieldSet(leaves(self.tree))

    def __contains__(self, path: Path) -> bool:
        return has(self.tree, path)

    def __iter__(self) -> Iterator[Path]:
        return paths(self.tree)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return bool(self.tree)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self.tree == other.tree

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"FieldSet({', '.join(map(path_text, self))})"
