"""Rule words: messages, reasons and paths of rules, which need no compiling."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from trimtab.embedded import fieldpaths, status
from trimtab.embedded.schemas import RULES
from trimtab.embedded.status import FieldProblem
from trimtab.embedded.structural import unsupported

Plain = Mapping[str, Any]

_REASONS: Final = (
    *("FieldValueDuplicate", "FieldValueForbidden"),
    *("FieldValueInvalid", "FieldValueRequired"),
)
_LINES = re.compile("[\n\r]+")


def rule_words(raw: Plain, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the rules of a schema, apart from what they compute."""
    for index, rule in enumerate(raw.get(RULES) or ()):
        yield from _one_rule(raw, rule, f"{path}.{RULES}[{index}]")


def _one_rule(raw: Plain, rule: Plain, path: str) -> Iterator[FieldProblem]:
    text, message = rule.get("rule") or "", rule.get("message") or ""
    said = message.strip()
    if not text.strip():
        yield status.required(f"{path}.rule", "rule is not specified")
    elif message and not said:
        detail = "must be non-empty if specified"
        yield status.invalid(f"{path}.message", message, detail)
    elif _LINES.search(said):
        detail = "must not contain line breaks"
        yield status.invalid(f"{path}.message", message, detail)
    elif _LINES.search(text.strip()) and not said:
        detail = "message must be specified if rule contains line breaks"
        yield status.required(f"{path}.message", detail)
    expression = rule.get("messageExpression") or ""
    if expression and not expression.strip():
        detail = "messageExpression must be non-empty if specified"
        yield status.required(f"{path}.messageExpression", detail)
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        yield status.not_supported(f"{path}.reason", reason, _REASONS)
    yield from _rule_field(raw, rule.get("fieldPath") or "", f"{path}.fieldPath")


def _rule_field(raw: Plain, field: str, path: str) -> Iterator[FieldProblem]:
    if not field:
        return
    if not field.strip():
        yield status.invalid(path, field, "must be non-empty if specified")
    if _LINES.search(field):
        yield status.invalid(path, field, "must not contain line breaks")
    if unsupported(raw):
        return
    try:
        fieldpaths.resolve(field, raw)
    except fieldpaths.FieldPathError:
        yield status.invalid(path, field, "must be a valid path")
