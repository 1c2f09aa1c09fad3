"""Activation: the values that the expressions of a policy are evaluated with.

Variables are expressions too, and are evaluated when they are looked at, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from trimtab.embedded.expressions.values import EvaluationError, OverBudget
from trimtab.embedded.gotext import quoted
from trimtab.embedded.policies.compiled import Expression

PER_CALL: Final = 1_000_000
PER_BINDING: Final = 10_000_000
PER_CONDITIONS: Final = 2_500_000
_CANCELLED: Final = "operation cancelled: actual cost limit exceeded"


class Exhausted(Exception):
    """Expressions that cost more than they may, all of them together."""

    def __init__(self) -> None:
        super().__init__(
            "validation failed due to running out of cost budget, no further "
            "validation rules will be run"
        )


class Result(msgspec.Struct, frozen=True):
    """What an expression came to: a value, or why there is none."""

    value: Any = None
    error: str = ""


class Activation:
    """One evaluation of a policy's expressions over one request."""

    def __init__(
        self,
        values: Mapping[str, Any],
        variables: Mapping[str, Expression],
        *,
        budget: int,
    ) -> None:
        self._values = {**values, "variables": _Variables(self, variables)}
        self.left = budget
        self._spent = 0

    def evaluate(self, expression: Expression) -> Result:
        """The value of an expression, within the budget.

        Errors: :class:`Exhausted`.
        """
        if expression.program is None:
            return Result(error=f"compilation error: {expression.error}")
        error = ""
        value, cost = None, 0
        try:
            value, cost = self._run(expression)
        except EvaluationError as reason:
            cost = reason.cost
            error = f"expression '{expression.text}' resulted in error: {reason}"
        self._spend(self._spent)
        self._spent = 0
        self._spend(cost)
        return Result(value, error)

    def _spend(self, cost: int) -> None:
        if cost > self.left:
            raise Exhausted
        self.left -= cost

    def _run(self, expression: Expression) -> tuple[Any, int]:
        assert expression.program is not None, "only what compiled is run"
        given = [self._values.get(name) for name in expression.names]
        try:
            return expression.program.evaluate(given, budget=PER_CALL)
        except OverBudget:
            cancelled = EvaluationError(_CANCELLED)
            cancelled.cost = PER_CALL + 1
            raise cancelled from None

    def variable(self, name: str, expression: Expression) -> Any:
        """The value of a variable; what it costs is counted with who looks at it."""
        said = f"composited variable {quoted(name)} fails to"
        if expression.program is None:
            raise EvaluationError(f"{said} compile: {expression.error}")
        try:
            value, cost = self._run(expression)
        except EvaluationError as error:
            self._spent += error.cost
            raise EvaluationError(f"{said} evaluate: {error}") from None
        self._spent += cost
        return value


class _Variables:
    """The variables of a policy, by name."""

    cel_name = "kubernetes.variables"

    def __init__(
        self, activation: Activation, variables: Mapping[str, Expression]
    ) -> None:
        self._activation = activation
        self._expressions = variables
        self._known: dict[str, Any] = {}

    def has(self, name: str) -> bool:
        return name in self._expressions

    def get(self, name: str) -> Any:
        if name not in self._expressions:
            raise EvaluationError(f"no such key: {name}")
        if name not in self._known:
            try:
                expression = self._expressions[name]
                self._known[name] = self._activation.variable(name, expression)
            except EvaluationError as error:
                self._known[name] = error
        value = self._known[name]
        if isinstance(value, EvaluationError):
            raise value
        return value
