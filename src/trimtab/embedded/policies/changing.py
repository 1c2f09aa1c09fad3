"""Changing: what the expressions of a mutating policy make of an object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import msgspec

from trimtab.embedded import status
from trimtab.embedded.checking import problems_of, summary
from trimtab.embedded.comparing import kind_of
from trimtab.embedded.conform import Mistyped
from trimtab.embedded.expressions.objects import Made, plain
from trimtab.embedded.expressions.values import EvaluationError
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.merging import merge
from trimtab.embedded.patches import PatchError, json_patch
from trimtab.embedded.plans import LIST, MAP, Plan, plan_of
from trimtab.embedded.policies.activation import (
    PER_BINDING,
    Activation,
    Exhausted,
)
from trimtab.embedded.policies.compiled import (
    CONFIGURATION,
    PATCH,
    Expression,
    compiled,
)
from trimtab.embedded.policies.conditions import Conditions
from trimtab.embedded.policies.environment import Environment
from trimtab.embedded.policies.judging import conditions_of, variables_of


class Unchanged(Exception):
    """A change that cannot be made; the text says why."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One mutation of a policy."""

    expression: Expression
    applied: bool
    """Whether it makes a configuration to apply, and not a patch."""


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """The expressions of a mutating policy."""

    variables: Mapping[str, Expression]
    conditions: Conditions | None
    changes: tuple[Change, ...]
    again: bool
    """Whether it is asked again if others change the object after it."""


def changes_of(policy: Plain) -> Changes:
    """The expressions of a policy, compiled."""
    spec = policy["spec"]
    environment = Environment(params=bool(spec.get("paramKind")))
    variables = variables_of(spec, environment)
    scope = environment.scope(patches=True)
    changes = []
    for raw in spec.get("mutations") or ():
        applied = raw.get("patchType") == "ApplyConfiguration"
        text = raw["applyConfiguration" if applied else "jsonPatch"]["expression"]
        made = compiled(text, scope, CONFIGURATION if applied else PATCH)
        changes.append(Change(expression=made, applied=applied))
    return Changes(
        variables=variables,
        conditions=conditions_of(spec, environment, variables),
        changes=tuple(changes),
        again=spec.get("reinvocationPolicy") == "IfNeeded",
    )


def changed(
    change: Change, variables: Mapping[str, Expression], values: Plain, kind: Kind
) -> Plain:
    """An object after a change, with its defaults; what was given stays as it was.

    Errors: :class:`Unchanged`; ``ApiProblem`` for what no object can be.
    """
    if change.expression.error:
        raise Unchanged(change.expression.error)
    activation = Activation(values, variables, budget=PER_BINDING)
    try:
        result = activation.evaluate(change.expression)
    except Exhausted as error:
        raise Unchanged(str(error)) from None
    if result.error:
        raise Unchanged(result.error)
    obj: Plain = values["object"]
    if change.applied:
        whole = _applied(result.value, obj, kind)
    else:
        whole = _patched(result.value, obj)
    made = deepcopy(whole)
    if kind.custom is None:
        _decode(made, whole, kind)
    kind.default(made)
    return made


def _decode(made: Plain, whole: Plain, kind: Kind) -> None:
    """Bring an object into the form of its kind, in place, as if it had been read."""
    try:
        unknown = kind.conform(made, lambda: deepcopy(whole))
    except Mistyped as problem:
        raise status.internal(str(problem)) from None
    if unknown:
        shown = ", ".join(f"unknown field {status.quoted(each)}" for each in unknown)
        raise status.internal(f"strict decoding error: {shown}")


def _applied(value: Made, obj: Plain, kind: Kind) -> Plain:
    _check_names(value)
    patch = plain(value)
    patch |= {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
    plan = plan_of(kind.type)
    said = "error applying patch"
    problems = problems_of(patch, plan)
    if problems:
        text = f"failed to convert patch object to typed object: {summary(problems)}"
        raise Unchanged(f"{said}: {text}")
    whole = list(_wholes(patch, plan, ""))
    if whole:
        text = f"may not mutate atomic arrays, maps or structs: {', '.join(whole)}"
        raise Unchanged(f"{said}: invalid ApplyConfiguration: {text}")
    merged: Plain = merge(obj, patch, plan)
    return merged


def _check_names(value: Made) -> None:
    wrong = value.misnamed()
    if wrong:
        raise Unchanged("type mismatch: " + "\n".join(wrong))


def _wholes(value: Any, plan: Plan, path: str) -> Iterator[str]:
    """Where a value sets what can only be set as a whole."""
    kind = kind_of(value, plan)
    if isinstance(value, dict) and kind == MAP:
        if plan.atomic:
            yield path
        for name in sorted(value):
            if name in plan.fields:
                yield from _wholes(value[name], plan.fields[name], f"{path}.{name}")
    elif isinstance(value, list) and kind == LIST:
        if plan.atomic:
            yield path
        for index, item in enumerate(value):
            if plan.element is not None:
                yield from _wholes(item, plan.element, f"{path}[{index}]")


def _patched(value: list[Made], obj: Plain) -> Plain:
    operations = [_operation(each) for each in value]
    try:
        made: Plain = json_patch(obj, operations)
    except PatchError as error:
        if "test failed" in error.detail:
            return obj
        raise Unchanged(f"JSON Patch: {error.detail}") from None
    return made


def _operation(patch: Made) -> Plain:
    fields = patch.fields
    made: Plain = {"op": fields.get("op", ""), "path": fields.get("path", "")}
    if fields.get("from"):
        made["from"] = fields["from"]
    if "value" in fields:
        value = fields["value"]
        if isinstance(value, Made):
            _check_names(value)
        try:
            made["value"] = plain(value)
        except EvaluationError as error:
            said = "JSONPath valueExpression evaluated to a type that could not"
            raise Unchanged(f"{said} marshal to JSON: {error}") from None
    return made
