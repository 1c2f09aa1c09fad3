"""Admission bindings: where policies are used, and what requests they are for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.validation import meta, texts, webhooks
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_ACTIONS: Final = ("Audit", "Deny", "Warn")
_CHANGING: Final = ("*", "CONNECT", "CREATE", "UPDATE")


def metadata(found: Found, obj: JSON) -> None:
    """Policies and bindings have the same names."""
    meta.created(
        found,
        obj["metadata"],
        namespaced=False,
        name=texts.subdomain,
        qualified=False,
    )


def match(found: Found, given: JSON, path: str) -> None:
    """Which requests are meant, by their resources and by labels."""
    policy = given.get("matchPolicy")
    if policy is None:
        found.required(f"{path}.matchPolicy")
    else:
        found.one_of(f"{path}.matchPolicy", policy, ("Equivalent", "Exact"))
    for field in ("namespaceSelector", "objectSelector"):
        meta.selector(found, given.get(field), f"{path}.{field}")
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(given.get(field) or ()):
            where, seen = f"{path}.{field}[{index}]", set[str]()
            for place, name in enumerate(rule.get("resourceNames") or ()):
                here = f"{where}.resourceNames[{place}]"
                found.each(here, name, texts.path_segment(name))
                if name in seen:
                    found.duplicate(here, name)
                seen.add(name)
            webhooks.rule(found, rule, where)


def only_changing(found: Found, given: JSON, path: str) -> None:
    """Nothing is changed on its way out."""
    for rule in given.get("resourceRules") or ():
        for operation in rule.get("operations") or ():
            where = f"{path}.resourceRules.operations"
            found.one_of(where, operation, _CHANGING)


def create_binding(found: Found, obj: JSON) -> None:
    """A binding of a validating policy."""
    metadata(found, obj)
    spec = obj["spec"]
    _binding(found, spec)
    _actions(found, spec.get("validationActions") or [], "spec.validationActions")


def update_binding(found: Found, obj: JSON, old: JSON) -> None:
    create_binding(found, obj)


def create_mutating_binding(found: Found, obj: JSON) -> None:
    metadata(found, obj)
    spec = obj["spec"]
    _binding(found, spec)
    if spec.get("matchResources") is not None:
        only_changing(found, spec["matchResources"], "spec.matchResources")


def update_mutating_binding(found: Found, obj: JSON, old: JSON) -> None:
    create_mutating_binding(found, obj)


def _binding(found: Found, spec: JSON) -> None:
    name = spec.get("policyName") or ""
    if not name:
        found.required("spec.policyName")
    else:
        found.each("spec.policyName", name, texts.subdomain(name))
    if spec.get("paramRef") is not None:
        _param(found, spec["paramRef"], "spec.paramRef")
    if spec.get("matchResources") is not None:
        match(found, spec["matchResources"], "spec.matchResources")


def _param(found: Found, given: JSON, path: str) -> None:
    name, selector = given.get("name") or "", given.get("selector")
    exclusive = "name and selector are mutually exclusive"
    if name:
        found.each(f"{path}.name", name, texts.path_segment(name))
        if selector is not None:
            found.forbidden(f"{path}.name", exclusive)
    if selector is not None:
        meta.selector(found, selector, f"{path}.selector")
        if name:
            found.forbidden(f"{path}.selector", exclusive)
    if not name and selector is None:
        found.required(path, "one of name or selector must be specified")
    action = given.get("parameterNotFoundAction") or ""
    found.choice(f"{path}.parameterNotFoundAction", action, ("Deny", "Allow"))


def _actions(found: Found, given: list[str], path: str) -> None:
    for index, action in enumerate(given):
        found.one_of(f"{path}[{index}]", action, _ACTIONS)
        if action in given[:index]:
            found.duplicate(f"{path}[{index}]", action)
    if {"Deny", "Warn"} <= set(given):
        detail = (
            "must not contain both Deny and Warn (repeating the same validation "
            "failure information in the API response and headers serves no purpose)"
        )
        found.invalid(path, given, detail)
    if not given:
        found.required(path, "at least one validation action is required")
