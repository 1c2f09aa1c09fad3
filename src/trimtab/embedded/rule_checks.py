"""Rule checks: whether the rules of a schema compile, and what they cost at most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trimtab.embedded import goschema, status
from trimtab.embedded.cel import scopes
from trimtab.embedded.declarations import (
    LARGEST_REQUEST,
    Declaration,
    declared,
    escaped,
)
from trimtab.embedded.expressions.checking import Scope
from trimtab.embedded.expressions.compiling import Program
from trimtab.embedded.expressions.complaints import ExpressionError
from trimtab.embedded.expressions.costs import estimate
from trimtab.embedded.expressions.folding import InstantiationError
from trimtab.embedded.schemas import RULES, Schema, schema_of
from trimtab.embedded.status import FieldProblem

_NO_TYPE: Final = (
    "internal error: failed to construct type information for x-kubernetes-validations "
    "rules: unable to convert structural schema to CEL declarations"
)


_PER_RULE: Final = 10_000_000
_PER_SCHEMA: Final = 100_000_000
_LARGEST: Final = 2**64 - 1
_HINT: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where "
    "arrays, maps, and strings are declared)"
)


class _Total:
    """What all rules of a schema cost together, and which of them cost most."""

    def __init__(self) -> None:
        self.cost = 0
        self.expensive: list[tuple[int, str]] = []

    def add(self, path: str, cost: int) -> None:
        self.cost = min(self.cost + cost, _LARGEST)
        if cost >= _PER_SCHEMA // 100:
            self.expensive.append((cost, path))
            self.expensive.sort(key=lambda each: -each[0])
            del self.expensive[4:]


class Context:
    """A node of a schema whose rules are checked, and what is known of its values."""

    def __init__(
        self,
        schema: Schema,
        declaration: Declaration | None,
        *,
        trusted: bool,
        total: _Total,
        occurrences: int | None = 1,
        whole: bool = False,
    ) -> None:
        self._schema = schema
        self._declaration = declaration
        self._trusted = trusted
        self._total = total
        self._occurrences = occurrences
        self._whole = whole or schema.embedded

    @classmethod
    def of_root(cls, raw: Mapping[str, Any], *, trusted: bool) -> Context:
        schema = schema_of(raw)
        declaration = declared(schema, root=True)
        return cls(schema, declaration, trusted=trusted, total=_Total(), whole=True)

    def _child(
        self, schema: Schema | None, inner: Declaration | None
    ) -> Context | None:
        if schema is None:
            return None
        if inner is None:
            inner = declared(schema, root=schema.embedded)
        each, times = _most_elements(self._schema), self._occurrences
        bounded = None if each is None or times is None else times * each
        return Context(
            schema,
            inner,
            trusted=self._trusted,
            total=self._total,
            occurrences=bounded,
        )

    def property(self, name: str) -> Context | None:
        held = self._declaration.fields if self._declaration else {}
        return self._child(self._schema.properties.get(name), held.get(escaped(name)))

    def items(self) -> Context | None:
        held = self._declaration.element if self._declaration else None
        return self._child(self._schema.items, held)

    def additional(self) -> Context | None:
        held = self._declaration.element if self._declaration else None
        return self._child(self._schema.additional, held)

    def rule_problems(self, path: str, unrelated: str) -> Iterator[FieldProblem]:
        """What is wrong with the rules that stand on this node."""
        if self._declaration is None:
            text = f"Internal error: {_NO_TYPE}"
            yield FieldProblem(f"{path}.{RULES}", "InternalError", text)
            return
        # By itself, so that messages do not name where it stands.
        alone = declared(self._schema, root=self._whole)
        sure, maybe = scopes(alone or self._declaration)
        for index, raw in enumerate(self._schema.rules):
            scope = maybe if raw.get("optionalOldSelf") else sure
            where = f"{path}.{RULES}[{index}]"
            yield from self._one(raw, scope, where, unrelated)

    def _one(
        self, raw: Mapping[str, Any], scope: Scope, path: str, unrelated: str
    ) -> Iterator[FieldProblem]:
        text = raw.get("rule") or ""
        program, mistake = _compiled(text, scope, "bool")
        if program is not None:
            cost = self._cost(program, repeated=True)
            yield from self._dear(f"{path}.rule", cost, "estimated rule cost")
        else:
            yield status.invalid(f"{path}.rule", goschema.rule(raw), mistake)
        if program is not None:
            yield from self._message(raw, scope, path)
        uses_old = program is not None and program.uses("oldSelf")
        if uses_old and unrelated:
            detail = (
                "oldSelf cannot be used on the uncorrelatable portion of the schema "
                f"within {unrelated}"
            )
            yield status.invalid(f"{path}.rule", text, detail)
        elif not uses_old and raw.get("optionalOldSelf") is not None:
            detail = "may not be set if oldSelf is not used in rule"
            where = f"{path}.optionalOldSelf"
            yield status.invalid(where, raw["optionalOldSelf"], detail)

    def _message(
        self, raw: Mapping[str, Any], scope: Scope, path: str
    ) -> Iterator[FieldProblem]:
        text = raw.get("messageExpression")
        if not text:
            return
        where = f"{path}.messageExpression"
        program, mistake = _compiled(text, scope, "string")
        if program is None:
            yield status.invalid(where, goschema.rule(raw), mistake)
            return
        cost = self._cost(program, repeated=False)
        yield from self._dear(where, cost, "estimated messageExpression cost")

    def _cost(self, program: Program, *, repeated: bool) -> int:
        assert self._declaration is not None
        cost = estimate(program.tree, self._declaration)
        times = self._occurrences if repeated else 1
        if times is None:
            times = LARGEST_REQUEST // (self._declaration.smallest + 1)
        return min(cost * times, _LARGEST)

    def _dear(self, path: str, cost: int, what: str) -> Iterator[FieldProblem]:
        self._total.add(path, cost)
        if cost > _PER_RULE and not self._trusted:
            yield status.forbidden_value(path, _over(what, cost, _PER_RULE))

    def total_problems(self, path: str) -> Iterator[FieldProblem]:
        """Rules that cost too much, all of them together."""
        if self._total.cost <= _PER_SCHEMA:
            return
        for _, where in self._total.expensive:
            detail = (
                "contributed to estimated rule cost total exceeding cost limit for "
                "entire OpenAPIv3 schema"
            )
            yield status.forbidden_value(where, detail)
        what = f"{RULES} estimated rule cost total for entire OpenAPIv3 schema"
        detail = _over(what, self._total.cost, _PER_SCHEMA)
        yield status.forbidden_value(path, detail)


def _compiled(text: str, scope: Scope, wanted: str) -> tuple[Program | None, str]:
    """A rule or a message, or why it is none."""
    message = "messageExpression " if wanted == "string" else ""
    program, mistake = None, ""
    try:
        program = Program(text, scope)
        found = program.type
    except ExpressionError as error:
        return None, f"{message}compilation failed: {error}"
    except InstantiationError as error:
        found = error.type
        mistake = f"{message or 'program '}instantiation failed: {error}"
    if found.kind != wanted:
        what = message.strip() or "cel expression"
        return None, f"{what} must evaluate to a {wanted}"
    return program, mistake


def _over(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = f"{factor:.1f}x"
    if factor > 100:
        shown = "more than 100x"
    elif factor < 1.5:
        shown = f"{factor:f}x"
    return f"{what} exceeds budget by factor of {shown} {_HINT}"


def _most_elements(schema: Schema) -> int | None:
    """How often what a node contains may occur in it; None if nothing bounds that."""
    if schema.type == "object" and schema.open:
        bound = schema.max_properties
    elif schema.type == "array":
        bound = schema.max_items
    else:
        return 1
    return None if bound is None else max(0, bound)
