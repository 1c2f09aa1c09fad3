"""Selectors of workloads: which pods are theirs, and that templates make such pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.shapes import go_order
from trimtab.embedded.builtin.validation import meta, podspec, texts
from trimtab.embedded.builtin.validation.problems import Found, sorted_map

JSON = Mapping[str, Any]

_MISMATCH: Final = "`selector` does not match template `labels`"


def printed(selector: JSON) -> dict[str, Any]:
    """A label selector as messages show it."""
    return go_order("meta.v1.LabelSelector", dict(selector))


def is_sound(selector: JSON) -> bool:
    """Whether a selector can be evaluated at all."""
    for expression in selector.get("matchExpressions") or ():
        values = expression.get("values") or ()
        wanted = expression["operator"] in ("In", "NotIn")
        known = wanted or expression["operator"] in ("Exists", "DoesNotExist")
        if not known or bool(values) != wanted or texts.key(expression["key"]):
            return False
        if any(texts.label_value(each) for each in values):
            return False
    pairs = (selector.get("matchLabels") or {}).items()
    return not any(texts.key(key) or texts.label_value(value) for key, value in pairs)


def selects(selector: JSON | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector selects these labels; no selector selects nothing."""
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(_meets(each, labels) for each in selector.get("matchExpressions") or ())


def _meets(expression: JSON, labels: Mapping[str, str]) -> bool:
    key, operator = expression["key"], expression["operator"]
    if operator == "In":
        return labels.get(key) in (expression.get("values") or ())
    if operator == "NotIn":
        return labels.get(key) not in (expression.get("values") or ())
    return bool((key in labels) == (operator == "Exists"))


def required(found: Found, spec: JSON, *, kind: str) -> bool:
    """A selector that is there, good and not empty; whether it can be used."""
    selector, path = spec.get("selector"), "spec.selector"
    if selector is None:
        found.required(path)
        return True
    meta.selector(found, selector, path)
    if not selector:
        found.invalid(path, {}, f"empty selector is invalid for {kind}")
    return is_sound(selector)


def template(found: Found, spec: JSON, *, kind: str) -> None:
    """A template whose pods the selector finds, and that run for ever."""
    given, selector = spec["template"], spec.get("selector")
    labels = given["metadata"].get("labels")
    if selector != {} and not selects(selector, labels or {}):
        path = "spec.template.metadata.labels"
        found.invalid(path, sorted_map(labels), _MISMATCH)
    podspec.template(found, given, "spec.template")
    forever(found, given["spec"], kind=kind)


def mismatch(found: Found, spec: JSON) -> None:
    """The template's labels are not what the selector finds."""
    selector, labels = spec.get("selector"), spec["template"]["metadata"].get("labels")
    sound = selector is None or is_sound(selector)
    if sound and not selects(selector, labels or {}):
        path = "spec.template.metadata.labels"
        found.invalid(path, sorted_map(labels), _MISMATCH)


def forever(found: Found, spec: JSON, *, kind: str) -> None:
    """Pods that are replaced when they end, so that they never end by themselves."""
    path, restart = "spec.template.spec", spec.get("restartPolicy", "")
    if restart != "Always":
        found.unsupported(f"{path}.restartPolicy", restart, ("Always",))
    if "activeDeadlineSeconds" in spec:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        found.forbidden(f"{path}.activeDeadlineSeconds", detail)
