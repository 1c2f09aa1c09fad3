"""Nodes: the tree of an expression, each with the place in the text it stands at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from trimtab.embedded.expressions.kinds import DYN, Type


class Node(msgspec.Struct, eq=False, kw_only=True):
    """A part of an expression; ``type`` is set by checking."""

    at: int
    type: Type = DYN
    height: int = 0
    """How many calls, fields and choices are in each other here."""

    def parts(self) -> Iterator[Node]:
        """The nodes directly below."""
        return iter(())

    def walk(self) -> Iterator[Node]:
        """This node and every one below."""
        yield self
        for part in self.parts():
            yield from part.walk()


class Literal(Node, kw_only=True):
    """A constant; ``type`` is known from the start."""

    value: Any


class Ident(Node, kw_only=True):
    """A variable or the name of a type."""

    name: str


class Select(Node, kw_only=True):
    """A field of a value, or (``test``) whether it is there."""

    operand: Node
    field: str
    test: bool = False

    def parts(self) -> Iterator[Node]:
        yield self.operand


class Call(Node, kw_only=True):
    """A function or an operator; ``target`` is what a method is called on."""

    function: str
    target: Node | None = None
    args: list[Node]
    overloads: list[Any] = []

    def parts(self) -> Iterator[Node]:
        if self.target is not None:
            yield self.target
        yield from self.args

    @property
    def operands(self) -> list[Node]:
        """The target, if there is one, and the arguments."""
        return [self.target, *self.args] if self.target is not None else self.args


class Items(Node, kw_only=True):
    """A list that is written out; ``optional`` items stand there only if they have a
    value."""

    items: list[Node]
    optional: frozenset[int] = frozenset()

    def parts(self) -> Iterator[Node]:
        yield from self.items


class Entry(msgspec.Struct, eq=False):
    """A key and its value."""

    key: Node
    value: Node
    optional: bool = False


class Entries(Node, kw_only=True):
    """A map that is written out."""

    entries: list[Entry]

    def parts(self) -> Iterator[Node]:
        for entry in self.entries:
            yield entry.key
            yield entry.value


class Message(Node, kw_only=True):
    """An object that is written out, ``Name{field: value}``."""

    name: str
    fields: list[str]
    marks: list[int]
    """Where the sign after each field stands."""
    values: list[Node]
    optional: frozenset[int] = frozenset()
    """Those that are there only if their value has something in it."""

    def parts(self) -> Iterator[Node]:
        yield from self.values


class Fold(Node, kw_only=True):
    """A loop over a range that makes one value: what macros such as ``all`` become."""

    range: Node
    var: str
    var2: str = ""
    accu: str = "@result"
    init: Node
    condition: Node
    step: Node
    result: Node

    def parts(self) -> Iterator[Node]:
        yield from (self.range, self.init, self.condition, self.step, self.result)

    @property
    def is_binding(self) -> bool:
        """Whether it goes round no time, and only names a value."""
        empty = isinstance(self.range, Items) and not self.range.items
        never = isinstance(self.condition, Literal) and self.condition.value is False
        return empty and never and self.accu != "@result"

    @property
    def uses_accu(self) -> bool:
        """Whether the result speaks of what was made."""
        return any(
            isinstance(each, Ident) and each.name == self.accu
            for each in self.result.walk()
        )


class Bad(Node):
    """A part that could not be read."""


def qualified(node: Node) -> str:
    """The dotted name that a chain of fields could be; empty if it is none."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test:
        head = qualified(node.operand)
        return f"{head}.{node.field}" if head else ""
    return ""
