"""Policies: disruption budgets, priorities, leases and runtime classes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.internal import internal
from trimtab.embedded.builtin.validation import meta, resources, scheduling, texts
from trimtab.embedded.builtin.validation.problems import Found
from trimtab.embedded.builtin.validation.workloads import at_most_all, int_or_percent

JSON = Mapping[str, Any]

_HIGHEST: Final = 1_000_000_000
_SYSTEM: Final = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}


def create_budget(found: Found, obj: JSON) -> None:
    _budget(found, obj["spec"])
    # No rule for its name but those for every object.
    if not found:
        meta.common(found, obj["metadata"], namespaced=True)


def update_budget(found: Found, obj: JSON, old: JSON) -> None:
    _budget(found, obj["spec"])


def _budget(found: Found, spec: JSON) -> None:
    if "minAvailable" in spec and "maxUnavailable" in spec:
        shown = internal("policy.PodDisruptionBudgetSpec", spec)
        detail = "minAvailable and maxUnavailable cannot be both set"
        found.invalid("spec", shown, detail)
    for field in ("minAvailable", "maxUnavailable"):
        if field in spec:
            int_or_percent(found, spec[field], f"spec.{field}")
            at_most_all(found, spec[field], f"spec.{field}")
    meta.selector(found, spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None:
        allowed = ("AlwaysAllow", "IfHealthyBudget")
        found.one_of("spec.unhealthyPodEvictionPolicy", policy, allowed)


def status_budget(found: Found, obj: JSON, old: JSON) -> None:
    status = obj["status"]
    conditions(found, status.get("conditions") or [], "status.conditions")
    for field in ("disruptionsAllowed", "currentHealthy", "desiredHealthy"):
        found.not_negative(f"status.{field}", status.get(field))
    found.not_negative("status.expectedPods", status.get("expectedPods"))


_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_is_reason = re.compile(_REASON, re.ASCII).fullmatch


def conditions(found: Found, given: list[JSON], path: str) -> None:
    """Conditions in the common form."""
    seen: set[str] = set()
    for index, each in enumerate(given):
        where, kind = f"{path}[{index}]", each["type"]
        if kind in seen:
            found.duplicate(f"{where}.type", kind)
        seen.add(kind)
        found.each(f"{where}.type", kind, texts.key(kind))
        statuses = ("False", "True", "Unknown")
        found.one_of(f"{where}.status", each["status"], statuses)
        generation = each.get("observedGeneration", 0)
        if generation < 0:
            detail = "must be greater than or equal to zero"
            found.invalid(f"{where}.observedGeneration", generation, detail)
        if not each["lastTransitionTime"]:
            found.required(f"{where}.lastTransitionTime")
        _reason(found, each["reason"], f"{where}.reason")
        if len(each["message"]) > 32768:
            found.too_long(f"{where}.message", 32768)


def _reason(found: Found, reason: str, path: str) -> None:
    if not reason:
        found.required(path)
        return
    if not _is_reason(reason):
        found.invalid(
            path,
            reason,
            "a condition reason must start with alphabetic character, optionally "
            "followed by a string of alphanumeric characters or '_,:', and must end "
            "with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
            "'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for "
            f"validation is '{_REASON}')",
        )
    if len(reason) > 1024:
        found.too_long(path, 1024)


def create_priority(found: Found, obj: JSON) -> None:
    metadata = obj["metadata"]
    meta.created(found, metadata, namespaced=False, name=texts.subdomain)
    name = metadata.get("name", "")
    if name.startswith("system-"):
        _system_priority(found, obj, name)
    elif obj["value"] > _HIGHEST:
        detail = f"maximum allowed value of a user defined priority is {_HIGHEST}"
        found.forbidden("value", detail)
    policy = obj.get("preemptionPolicy")
    if policy is not None:
        allowed = ("PreemptLowerPriority", "Never")
        found.choice("preemptionPolicy", policy, allowed)


def _system_priority(found: Found, obj: JSON, name: str) -> None:
    known = _SYSTEM.get(name)
    if known is None:
        reason = f"{name} is not a known system priority class"
    elif obj["value"] != known:
        reason = f"value of {name} PriorityClass must be {known}"
    elif obj.get("globalDefault"):
        reason = f"globalDefault of {name} PriorityClass must be false"
    else:
        return
    found.forbidden(
        "metadata.name",
        "priority class names with 'system-' prefix are reserved for system use only. "
        f"error: {reason}",
    )


def update_priority(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    if obj["value"] != old["value"]:
        found.forbidden("value", "may not be changed in an update.")
    field = "preemptionPolicy"
    found.immutable(field, obj.get(field), old.get(field))


def create_lease(found: Found, obj: JSON) -> None:
    metadata, name = obj["metadata"], texts.subdomain
    meta.created(found, metadata, namespaced=True, name=name, qualified=False)
    _lease(found, obj["spec"])


def update_lease(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"], qualified=False)
    _lease(found, obj["spec"])


def _lease(found: Found, spec: JSON) -> None:
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        found.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    found.not_negative("spec.leaseTransitions", spec.get("leaseTransitions"))


def create_runtime_class(found: Found, obj: JSON) -> None:
    metadata, name = obj["metadata"], texts.subdomain
    meta.created(found, metadata, namespaced=False, name=name, qualified=False)
    handler = obj["handler"]
    if not handler:
        found.required("handler")
    else:
        found.each("handler", handler, texts.label(handler))
    if "overhead" in obj:
        limits = {"limits": obj["overhead"].get("podFixed")}
        resources.requirements(found, limits, "overhead")
    placement = obj.get("scheduling") or {}
    meta.labels(found, placement.get("nodeSelector"), "scheduling.nodeSelector")
    tolerations = placement.get("tolerations")
    scheduling.tolerations(found, tolerations, "scheduling.tolerations")


def update_runtime_class(found: Found, obj: JSON, old: JSON) -> None:
    create_runtime_class(found, obj)
    meta.updated(found, obj["metadata"], old["metadata"], qualified=False)
    found.immutable("handler", obj["handler"], old["handler"])
