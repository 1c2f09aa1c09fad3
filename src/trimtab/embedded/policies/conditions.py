"""Conditions: the ``matchConditions`` of policies and webhooks.

All must hold; one that does not decides, whatever the others come to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trimtab.embedded.policies.activation import (
    PER_CONDITIONS,
    Activation,
    Exhausted,
)
from trimtab.embedded.policies.compiled import CONDITION, Expression, compiled
from trimtab.embedded.policies.environment import Environment
from trimtab.embedded.rbac.authorizer import joined


class Undecided(Exception):
    """Conditions of which it cannot be told whether they hold; the text says why."""


class Conditions:
    """Compiled conditions.

    ``variables`` are those of the policy; a webhook has none.
    """

    def __init__(
        self,
        expressions: Iterable[str],
        *,
        environment: Environment | None = None,
        variables: Mapping[str, Expression] | None = None,
    ) -> None:
        place = environment or Environment(params=False, composed=False)
        scope = place.scope()
        self._variables = variables or {}
        self._expressions = [compiled(each, scope, CONDITION) for each in expressions]

    def hold(self, values: Mapping[str, Any]) -> bool:
        """Whether all hold for a request, of which :class:`Subject` has the values.

        Errors: :class:`Undecided` if none is false and one has no value.
        """
        activation = Activation(values, self._variables, budget=PER_CONDITIONS)
        try:
            results = [activation.evaluate(each) for each in self._expressions]
        except Exhausted as error:
            raise Undecided(str(error)) from None
        if any(each.value is False for each in results):
            return False
        errors = [each.error for each in results if each.error]
        if errors:
            raise Undecided(joined(errors))
        return True
