"""Failures: what a Job does about pods that fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.validation import texts
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES: Final = ("False", "True", "Unknown")


def policy(found: Found, spec: JSON, path: str) -> None:
    """What is done about pods that fail, by how they failed."""
    rules, pod = spec["podFailurePolicy"]["rules"] or (), spec["template"]["spec"]
    if len(rules) > 20:
        found.too_many(f"{path}.rules", len(rules), 20)
    names = {
        each["name"]
        for kind in ("containers", "initContainers")
        for each in pod.get(kind) or ()
    }
    for index, rule in enumerate(rules):
        where = f"{path}.rules[{index}]"
        _action(found, rule["action"], spec, f"{where}.action")
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
        if codes is not None:
            _exit_codes(found, codes, names, f"{where}.onExitCodes")
        if conditions:
            _conditions(found, conditions, f"{where}.onPodConditions")
        if codes is not None and conditions:
            detail = "specifying both OnExitCodes and OnPodConditions is not supported"
            found.wrong(where, detail)
        if codes is None and not conditions:
            detail = "specifying one of OnExitCodes and OnPodConditions is required"
            found.wrong(where, detail)


def _listed(values: tuple[str, ...]) -> str:
    return "valid values: [" + " ".join(f'"{each}"' for each in values) + "]"


def _action(found: Found, action: str, spec: JSON, path: str) -> None:
    if not action:
        found.required(path, _listed(_ACTIONS))
    elif action == "FailIndex":
        if "backoffLimitPerIndex" not in spec:
            detail = "requires the backoffLimitPerIndex to be set"
            found.invalid(path, action, detail)
    else:
        found.one_of(path, action, _ACTIONS)


def _conditions(found: Found, given: list[JSON], path: str) -> None:
    if len(given) > 20:
        found.too_many(path, len(given), 20)
    for index, pattern in enumerate(given):
        where, kind = f"{path}[{index}]", pattern["type"]
        found.each(f"{where}.type", kind, texts.key(kind))
        status = pattern.get("status", "")
        if not status:
            found.required(f"{where}.status", _listed(_STATUSES))
        else:
            found.one_of(f"{where}.status", status, _STATUSES)


def _exit_codes(found: Found, given: JSON, names: set[str], path: str) -> None:
    operator, name = given["operator"], given.get("containerName")
    if not operator:
        found.required(f"{path}.operator", _listed(("In", "NotIn")))
    else:
        found.one_of(f"{path}.operator", operator, ("In", "NotIn"))
    if name is not None and name not in names:
        detail = (
            "must be one of the container or initContainer names in the pod template"
        )
        found.invalid(f"{path}.containerName", name, detail)
    values = given["values"] or []
    if not values:
        found.invalid(
            f"{path}.values", given["values"], "at least one value is required"
        )
    elif len(values) > 255:
        found.too_many(f"{path}.values", len(values), 255)
    for index, value in enumerate(values):
        where = f"{path}.values[{index}]"
        if operator == "In" and value == 0:
            found.invalid(where, value, "must not be 0 for the In operator")
        if value in values[:index]:
            found.duplicate(where, value)
    if values != sorted(values):
        found.invalid(f"{path}.values", values, "must be ordered")
