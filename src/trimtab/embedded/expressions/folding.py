"""Folding: the parts of an expression that are known before it runs.

cel-go computes constants when it makes a program of an expression. What fails then is
a mistake in the expression, not in what it is asked about; and a constant costs nothing
when the program runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trimtab.embedded.expressions.kinds import DYN, Type
from trimtab.embedded.expressions.looping import Run
from trimtab.embedded.expressions.nodes import (
    Call,
    Entries,
    Ident,
    Items,
    Literal,
    Node,
    Select,
)
from trimtab.embedded.expressions.values import EvaluationError
from trimtab.embedded.patterns import PatternError, compiled

_CONVERSIONS: Final = frozenset(
    "bool bytes double duration dyn int string timestamp type uint".split()
)
_PATTERNS: Final = frozenset({"matches", "find", "findAll"})
_PLENTY: Final = 2**63


class InstantiationError(ValueError):
    """A constant part of an expression that has no value; the text says why."""

    type: Type = DYN
    """What the whole expression would be."""


def constants(tree: Node, compile: Callable[[Node], Run]) -> frozenset[int]:
    """The ids of the nodes of a tree whose values are known.

    Errors: ``InstantiationError`` if one of them has none.
    """
    folder = _Folder(compile)
    try:
        folder.visit(tree)
    except InstantiationError as error:
        error.type = tree.type
        raise
    return frozenset(folder.known)


class _Folder:
    def __init__(self, compile: Callable[[Node], Run]) -> None:
        self._compile = compile
        self.known: set[int] = set()

    def visit(self, node: Node) -> bool:
        """Whether a node is constant; those below it are looked at too."""
        parts = [self.visit(part) for part in node.parts()]
        if self._constant(node, all(parts)):
            self.known.add(id(node))
            return True
        if isinstance(node, Call) and node.function in _PATTERNS:
            self._pattern(node)
        return False

    def _constant(self, node: Node, parts: bool) -> bool:
        if isinstance(node, Literal):
            return True
        if isinstance(node, (Ident, Select)):
            return node.type.kind == "type" and not getattr(node, "test", False)
        if isinstance(node, (Items, Entries)):
            return parts
        if not isinstance(node, Call):
            return False
        if node.function == "@in" and node.args[1].type.kind == "list":
            items = node.args[1]
            return isinstance(items, Items) and not items.items
        if node.function in _CONVERSIONS and len(node.args) == 1 and parts:
            self._value(node)
            return True
        return False

    def _value(self, node: Node) -> Any:
        try:
            return self._compile(node)([_PLENTY])
        except EvaluationError as error:
            raise InstantiationError(str(error)) from None

    def _pattern(self, node: Call) -> None:
        index = 1 if len(node.operands) > 1 else 0
        pattern = node.operands[index]
        if id(pattern) not in self.known:
            return
        value = self._value(pattern)
        try:
            if isinstance(value, str):
                compiled(value)
        except PatternError as error:
            raise InstantiationError(str(error)) from None
