"""Judging: what the expressions of a validating policy say of a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from trimtab.embedded.expressions.texts import SPACES
from trimtab.embedded.kinds import Plain
from trimtab.embedded.policies.activation import (
    PER_BINDING,
    Activation,
    Exhausted,
    Result,
)
from trimtab.embedded.policies.compiled import (
    ANNOTATION,
    ANYTHING,
    CONDITION,
    MESSAGE,
    Expression,
    compiled,
)
from trimtab.embedded.policies.conditions import Conditions, Undecided
from trimtab.embedded.policies.environment import Environment
from trimtab.embedded.policies.subject import shown

LONGEST_MESSAGE: Final = 5 * 1024


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One expression that must hold, and what is said if it does not."""

    expression: Expression
    message: str
    made: Expression | None
    """The expression that makes the message."""
    reason: str


class Annotation(msgspec.Struct, frozen=True, kw_only=True):
    """A note for the audit log; only what is wrong with it is ever seen here."""

    expression: Expression


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The expressions of a policy."""

    variables: Mapping[str, Expression]
    conditions: Conditions | None
    checks: tuple[Check, ...]
    annotations: tuple[Annotation, ...]


class Denial(msgspec.Struct, frozen=True, kw_only=True):
    """Why a policy says no."""

    message: str
    reason: str = ""
    audited: bool = False
    """Whether it counts whatever the binding does with denials."""


def variables_of(spec: Plain, environment: Environment) -> dict[str, Expression]:
    """The variables of a policy, each of which may speak of those before it."""
    found: dict[str, Expression] = {}
    for raw in spec.get("variables") or ():
        made = compiled(raw["expression"], environment.scope(), ANYTHING)
        environment.add(raw["name"], made.type)
        found[raw["name"]] = made
    return found


def conditions_of(
    spec: Plain, environment: Environment, variables: Mapping[str, Expression]
) -> Conditions | None:
    given = spec.get("matchConditions")
    if not given:
        return None
    texts = [each["expression"] for each in given]
    return Conditions(texts, environment=environment, variables=variables)


def rules_of(policy: Plain) -> Rules:
    """The expressions of a policy, compiled."""
    spec = policy["spec"]
    environment = Environment(params=bool(spec.get("paramKind")))
    variables = variables_of(spec, environment)
    scope = environment.scope()
    bare = environment.scope(authorizer=False)
    checks = []
    for raw in spec.get("validations") or ():
        made = raw.get("messageExpression")
        checks.append(
            Check(
                expression=compiled(raw["expression"], scope, CONDITION),
                message=raw.get("message") or "",
                made=compiled(made, bare, MESSAGE) if made else None,
                reason=raw.get("reason") or "Invalid",
            )
        )
    return Rules(
        variables=variables,
        conditions=conditions_of(spec, environment, variables),
        checks=tuple(checks),
        annotations=tuple(
            Annotation(expression=compiled(raw["valueExpression"], scope, ANNOTATION))
            for raw in spec.get("auditAnnotations") or ()
        ),
    )


def judged(
    rules: Rules, values: dict[str, Any], namespace: Plain | None, *, fails: bool
) -> list[Denial]:
    """What a policy denies of a request; errors count only if the policy says so."""
    try:
        if rules.conditions is not None and not rules.conditions.hold(values):
            return []
        seen = None if namespace is None else shown(namespace)
        values = {**values, "namespaceObject": seen}
        activation = Activation(values, rules.variables, budget=PER_BINDING)
        results = [activation.evaluate(each.expression) for each in rules.checks]
        found = list(_denials(rules, values, results, activation.left, fails=fails))
        return found + list(_annotation_errors(rules, values, fails=fails))
    except (Undecided, Exhausted) as error:
        return [Denial(message=str(error))] if fails else []


def _denials(
    rules: Rules,
    values: dict[str, Any],
    results: list[Result],
    left: int,
    *,
    fails: bool,
) -> Iterator[Denial]:
    texts, spent = _messages(rules, values, left)
    for check, result, text in zip(rules.checks, results, texts, strict=True):
        if result.error:
            if fails:
                yield Denial(message=result.error)
        elif spent:
            if fails:
                yield Denial(message=f"failed messageExpression: {spent}")
        elif result.value is not True:
            said = text or check.message.strip()
            said = said or f"failed expression: {check.expression.text.strip()}"
            yield Denial(message=said, reason=check.reason)


def _messages(rules: Rules, values: dict[str, Any], left: int) -> tuple[list[str], str]:
    """What the message expressions make, and that they cost too much, if they do.

    All are evaluated, whether their messages are wanted or not.
    """
    bare = {name: value for name, value in values.items() if "authorizer" not in name}
    activation = Activation(bare, rules.variables, budget=left)
    texts = []
    try:
        for check in rules.checks:
            result = Result()
            if check.made is not None:
                result = activation.evaluate(check.made)
            texts.append(_message(result.value))
    except Exhausted as error:
        return [""] * len(rules.checks), str(error)
    return texts, ""


def _message(value: Any) -> str:
    text = value.strip(SPACES) if isinstance(value, str) else ""
    usable = len(text.encode()) <= LONGEST_MESSAGE and "\n" not in text
    return text if usable else ""


def _annotation_errors(
    rules: Rules, values: dict[str, Any], *, fails: bool
) -> Iterator[Denial]:
    """What goes wrong in notes for the audit log, which is kept nowhere here."""
    if not rules.annotations:
        return
    bare = {name: value for name, value in values.items() if "authorizer" not in name}
    activation = Activation(bare, rules.variables, budget=PER_BINDING)
    for annotation in rules.annotations:
        result = activation.evaluate(annotation.expression)
        if result.error and fails:
            yield Denial(message=result.error, audited=True)
