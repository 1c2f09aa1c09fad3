"""Match conditions: which requests a policy or a webhook is for, as expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.embedded.builtin.validation import texts
from trimtab.embedded.builtin.validation.problems import Found
from trimtab.embedded.policies.compiled import CONDITION, Expression, compiled
from trimtab.embedded.policies.environment import Environment

JSON = Mapping[str, Any]


def conditions(found: Found, given: Sequence[JSON], path: str, *, params: bool) -> None:
    """``matchConditions``, of policies and of webhooks; they know no variables."""
    if not given:
        return
    if len(given) > 64:
        found.too_many(path, len(given), 64)
    scope = Environment(params=params, composed=False).scope()
    names: set[str] = set()
    for index, condition in enumerate(given):
        where = f"{path}[{index}]"
        name = condition.get("name") or ""
        text = (condition.get("expression") or "").strip()
        if not text:
            found.required(f"{where}.expression")
        else:
            made = compiled(text, scope, CONDITION)
            told(found, made, f"{where}.expression")
        if not name:
            found.required(f"{where}.name")
            continue
        found.each(f"{where}.name", name, texts.key(name))
        if name in names:
            found.duplicate(f"{where}.name", name)
        names.add(name)


def told(
    found: Found, made: Expression, path: str, *, shown: str | None = None
) -> None:
    """What is wrong with an expression, if anything is."""
    if not made.error:
        return
    if made.internal:
        found.internal(path, made.error)
    else:
        found.invalid(path, made.text if shown is None else shown, made.error)
