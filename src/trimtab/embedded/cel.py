"""Rules: the ``x-kubernetes-validations`` of a schema, compiled once, judged often.

Rules may stand on any node; those on items of lists and on values of maps are judged
for each. A rule that speaks of ``oldSelf`` is judged only where the old object has a
value that belongs to the new one, unless it says that it can do without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from trimtab.embedded import fieldpaths, status
from trimtab.embedded.declarations import Declaration, declared, escaped, scope_of
from trimtab.embedded.expressions.checking import Scope
from trimtab.embedded.expressions.compiling import Program
from trimtab.embedded.expressions.complaints import ExpressionError
from trimtab.embedded.expressions.folding import InstantiationError
from trimtab.embedded.expressions.kinds import optional_of
from trimtab.embedded.expressions.texts import SPACES
from trimtab.embedded.expressions.values import (
    NONE,
    EvaluationError,
    NoSuchOverload,
    Optional,
    OverBudget,
)
from trimtab.embedded.ratcheting import Pair, by_key, key_of
from trimtab.embedded.schemas import Schema
from trimtab.embedded.status import FieldProblem

PER_RULE: Final = 1_000_000
PER_OBJECT: Final = 10_000_000
_LONGEST_MESSAGE: Final = 5 * 1024
_EXHAUSTED: Final = (
    "validation failed due to running out of cost budget, no further validation rules "
    "will be run"
)


class Rule:
    """One rule of one node.

    Errors: ``ExpressionError`` when the rule or its message cannot be compiled.
    """

    def __init__(self, raw: Mapping[str, Any], schema: Schema, scope: Scope) -> None:
        self.raw = raw
        self.text = (raw.get("rule") or "").strip()
        self.optional_old = bool(raw.get("optionalOldSelf"))
        self.program = Program(raw.get("rule") or "", scope)
        self.uses_old = self.program.uses("oldSelf")
        expression = raw.get("messageExpression")
        self.message = Program(expression, scope) if expression else None
        self.said = (raw.get("message") or "").strip()
        self.field = self._field(schema)

    def _field(self, schema: Schema) -> str:
        given = self.raw.get("fieldPath")
        return fieldpaths.resolve(given, schema.raw)[0] if given else ""

    @property
    def name(self) -> str:
        """What messages call the rule."""
        return self.said or self.text


def scopes(declaration: Declaration) -> tuple[Scope, Scope]:
    """What rules may speak of: with a certain, and with an optional old value."""
    structs = scope_of(declaration)
    type = declaration.type
    return (
        Scope({"self": type, "oldSelf": type}, structs),
        Scope({"self": type, "oldSelf": optional_of(type)}, structs),
    )


def rules_of(schema: Schema, *, root: bool = True) -> Rules | None:
    """The rules on a schema and below it; None if there are none."""
    if not any(each.rules for each in schema.walk()):
        return None
    return _node(schema, declared(schema, root=root))


def _node(schema: Schema, declaration: Declaration | None) -> Rules | None:
    if declaration is None:
        return None
    properties = {}
    for name, child in schema.properties.items():
        inner = declaration.fields.get(escaped(name))
        if not escaped(name):
            inner = declared(child, root=child.embedded)
        below = _node(child, inner)
        if below is not None:
            properties[name] = below
    items = _node(schema.items, declaration.element) if schema.items else None
    additional = schema.additional
    values = _node(additional, declaration.element) if additional else None
    if not (schema.rules or properties or items or values):
        return None
    return Rules(schema, declaration, properties, items, values)


class _Old(msgspec.Struct, frozen=True):
    """What a value was, and how far it can be told that it is unchanged."""

    value: Any
    pair: Pair | None
    above: Pair | None = None
    """The nearest pair above, where there is no pair for the value itself."""

    def unchanged(self) -> bool:
        pair = self.pair if self.pair is not None else self.above
        return pair is not None and pair.unchanged()

    def key(self, name: str, value: Any) -> _Old:
        if self.pair is None:
            return _Old(value, None, self.above)
        if self.above is None and name in ("apiVersion", "kind"):
            return _Old(value, None)
        return _Old(value, self.pair.key(name), self.pair)

    def index(self, place: int, value: Any) -> _Old:
        if self.pair is None:
            return _Old(value, None, self.above)
        return _Old(value, self.pair.index(place), self.pair)


class _Judging:
    """One judgement: what was found so far, and the budget that is left."""

    def __init__(self, warnings: list[str]) -> None:
        self.found: list[FieldProblem] = []
        self.warnings = warnings
        self.left = PER_OBJECT

    def add(self, path: str, value: Any, detail: str) -> None:
        self.found.append(status.invalid(path or "<nil>", value, detail))

    def stop(self) -> None:
        self.left = -1


class Rules:
    """The rules of a node and of those below it."""

    def __init__(
        self,
        schema: Schema,
        declaration: Declaration,
        properties: Mapping[str, Rules],
        items: Rules | None,
        values: Rules | None,
    ) -> None:
        self._schema = schema
        self._wrap = declaration.wrap
        self._properties = properties
        self._items = items
        self._values = values
        self._plain = schema.type not in ("object", "array")
        self._rules: list[Rule] = []
        self._broken = ""
        sure, maybe = scopes(declaration)
        for raw in schema.rules:
            scope = maybe if raw.get("optionalOldSelf") else sure
            try:
                self._rules.append(Rule(raw, schema, scope))
            except (
                ExpressionError,
                InstantiationError,
                fieldpaths.FieldPathError,
            ) as error:
                # A definition with such a rule is refused, so only a damaged file
                # or a newer server's definition gets here.
                self._broken = f"rule compile error: {error}"

    def problems(
        self,
        value: Any,
        old: Any,
        pair: Pair | None,
        *,
        path: str = "",
        warnings: list[str] | None = None,
    ) -> list[FieldProblem]:
        """What the rules say against a value; ``old`` is None for a new one.

        What they say against a part that is unchanged is only a warning.

        Guarantees: no rule costs more than ``PER_RULE``, all together no more than
        ``PER_OBJECT``; past that the value is refused.
        """
        judging = _Judging([] if warnings is None else warnings)
        self._judge(judging, path, value, _Old(old, pair))
        return judging.found

    def _judge(self, judging: _Judging, path: str, value: Any, old: _Old) -> None:
        if value is None or judging.left < 0:
            return
        if self._broken:
            judging.add(path, self._schema.type, self._broken)
        if self._rules:
            self._judge_here(judging, path, value, old)
        if isinstance(value, dict):
            self._judge_map(judging, path, value, old)
        elif isinstance(value, list) and self._items is not None:
            self._judge_list(judging, path, value, old)

    def _judge_map(
        self, judging: _Judging, path: str, value: dict[str, Any], old: _Old
    ) -> None:
        before = old.value if isinstance(old.value, dict) else {}
        if self._values is not None:
            for key, item in value.items():
                inner = old.key(key, before.get(key))
                self._values._judge(judging, f"{path}[{key}]", item, inner)
        for key, rules in self._properties.items():
            if key in value:
                inner = old.key(key, before.get(key))
                where = f"{path}.{key}" if path else key
                rules._judge(judging, where, value[key], inner)

    def _judge_list(
        self, judging: _Judging, path: str, value: list[Any], old: _Old
    ) -> None:
        assert self._items is not None
        before: dict[str, Any] = {}
        if isinstance(old.value, list):
            before = by_key(self._schema, old.value)
        for index, item in enumerate(value):
            key = key_of(self._schema.keys, item) if before else None
            found = before.get(key) if key is not None else None
            inner = old.index(index, found)
            self._items._judge(judging, f"{path}[{index}]", item, inner)

    def _judge_here(self, judging: _Judging, path: str, value: Any, old: _Old) -> None:
        if judging.left == 0:
            judging.add(path, self._schema.type, _EXHAUSTED)
            judging.stop()
            return
        try:
            wrap = self._wrap
            held = value if wrap is None else wrap(value)
            had = None
            if old.value is not None and any(rule.uses_old for rule in self._rules):
                had = old.value if wrap is None else wrap(old.value)
        except EvaluationError as error:
            for rule in self._rules:
                self._failed(judging, path, rule, error)
            return
        for rule in self._rules:
            if judging.left < 0:
                return
            if rule.uses_old and old.value is None and not rule.optional_old:
                continue
            self._judge_rule(judging, path, value, old, rule, [held, had])

    def _judge_rule(
        self,
        judging: _Judging,
        path: str,
        value: Any,
        old: _Old,
        rule: Rule,
        values: list[Any],
    ) -> None:
        if rule.optional_old:
            values = [values[0], NONE if values[1] is None else Optional((values[1],))]
        try:
            holds, cost = rule.program.evaluate(values, budget=PER_RULE)
            judging.left -= cost
            if judging.left < 0:
                judging.add(path, self._schema.type, _EXHAUSTED)
                return
        except OverBudget:
            cancelled = (
                "'operation cancelled: actual cost limit exceeded': no further "
                "validation rules will be run due to call cost exceeds limit for rule: "
                f"{rule.name}"
            )
            short = judging.left <= PER_RULE
            judging.add(path, self._schema.type, _EXHAUSTED if short else cancelled)
            judging.stop()
            return
        except EvaluationError as error:
            judging.left -= error.cost
            if judging.left < 0:
                judging.add(path, self._schema.type, _EXHAUSTED)
            else:
                self._failed(judging, path, rule, error)
            return
        if holds is not True:
            refusal = self._refusal(judging, path, value, rule, values)
            if not rule.uses_old and old.unchanged():
                judging.warnings.append(str(refusal))
            else:
                judging.found.append(refusal)

    def _failed(
        self, judging: _Judging, path: str, rule: Rule, error: EvaluationError
    ) -> None:
        detail = f"{error} evaluating rule: {rule.name}"
        if isinstance(error, NoSuchOverload):
            detail = (
                f"'{error}': call arguments did not match a supported operator, "
                f"function or macro signature for rule: {rule.name}"
            )
        judging.add(path, self._schema.type, detail)

    def _refusal(
        self, judging: _Judging, path: str, value: Any, rule: Rule, values: list[Any]
    ) -> FieldProblem:
        detail = _message(judging, rule, values)
        where = path
        if rule.field:
            where = f"{path}.{rule.field}" if path else rule.field
        where = where or "<nil>"
        reason = rule.raw.get("reason")
        if reason == "FieldValueForbidden":
            return status.forbidden_value(where, detail)
        if reason == "FieldValueRequired":
            return status.required(where, detail)
        if reason == "FieldValueDuplicate":
            if self._plain:
                return status.duplicate(where, value)
            return FieldProblem(where, reason, "Duplicate value")
        if self._plain:
            return status.invalid(where, value, detail)
        return FieldProblem(where, "FieldValueInvalid", f"Invalid value: {detail}")


def _message(judging: _Judging, rule: Rule, values: list[Any]) -> str:
    """What a broken rule says: what its expression makes, or what is written."""
    if rule.message is not None:
        try:
            made, cost = rule.message.evaluate(values, budget=PER_RULE)
            judging.left -= cost
            text = made.strip(SPACES) if isinstance(made, str) else ""
            if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE:
                return text
        except (EvaluationError, OverBudget):
            pass
    return rule.said or f"failed rule: {rule.text}"
