"""Compiling: from the text of an expression to a program that is called with values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trimtab.embedded.expressions import checking, parsing
from trimtab.embedded.expressions.building import Builder
from trimtab.embedded.expressions.checking import Scope
from trimtab.embedded.expressions.complaints import Complaint, ExpressionError
from trimtab.embedded.expressions.folding import constants
from trimtab.embedded.expressions.kinds import Type
from trimtab.embedded.expressions.nodes import Ident, Node
from trimtab.embedded.expressions.values import EvaluationError, OverBudget


class Program:
    """An expression that was read and checked, ready to be evaluated.

    Errors: ``ExpressionError`` when it cannot be read or its types do not fit;
    ``InstantiationError`` when a constant part of it has no value.
    """

    def __init__(self, source: str, scope: Scope) -> None:
        self.source = source
        try:
            self._prepare(scope)
        except RecursionError:
            # Python's own stack is shorter than what cel-go allows.
            deep = Complaint(-1, parsing.TOO_DEEP)
            raise ExpressionError(source, [deep]) from None

    def _prepare(self, scope: Scope) -> None:
        self.tree = parsing.parse(self.source)
        checking.check(self.source, self.tree, scope)
        names = {name: place for place, name in enumerate(scope.variables, 1)}
        known = constants(self.tree, Builder(names).built)
        builder = Builder(names, known)
        self._run = builder.built(self.tree)
        self._size = builder.size
        self._base = builder.cost

    @property
    def type(self) -> Type:
        return self.tree.type

    def uses(self, name: str) -> bool:
        """Whether the expression speaks of a variable."""
        return any(
            isinstance(each, Ident) and each.name == name for each in self.walk()
        )

    def walk(self) -> Iterator[Node]:
        return self.tree.walk()

    def evaluate(self, values: list[Any], *, budget: int) -> tuple[Any, int]:
        """The value, and what it cost; values are in the order of the scope's names.

        Errors: ``EvaluationError``, with its cost, when there is none; ``OverBudget``
        when it would cost more than the budget.
        """
        left = budget - self._base
        if left < 0:
            raise OverBudget
        frame = [left, *values, *[None] * (self._size - len(values) - 1)]
        try:
            value = self._run(frame)
        except EvaluationError as error:
            error.cost = budget - frame[0]
            raise
        except RecursionError:
            raise EvaluationError(parsing.TOO_DEEP) from None
        return value, budget - frame[0]
