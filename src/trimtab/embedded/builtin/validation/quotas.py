"""Quotas: what a namespace may use in all, and what a single object may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.api.quantity import Quantity
from trimtab.embedded.builtin.validation import meta, resources, texts
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_SCOPES: Final = frozenset(
    "Terminating NotTerminating BestEffort NotBestEffort PriorityClass "
    "VolumeAttributesClass CrossNamespacePodAffinity".split()
)
_COMPUTE: Final = frozenset(
    "cpu memory limits.cpu limits.memory requests.cpu requests.memory".split()
)
_ALONE: Final = (
    "BestEffort",
    "NotBestEffort",
    "Terminating",
    "NotTerminating",
    "CrossNamespacePodAffinity",
)
_PAIRS: Final = (
    {"BestEffort", "NotBestEffort"},
    {"Terminating", "NotTerminating"},
)
_MISFIT: Final = "unsupported scope applied to resource"


def create_quota(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    _quota_spec(found, obj["spec"])
    _quota_status(found, obj["status"])


def update_quota(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    _quota_spec(found, obj["spec"])
    new, before = obj["spec"].get("scopes"), old["spec"].get("scopes")
    if set(new or ()) != set(before or ()):
        found.invalid("spec.scopes", new, texts.IMMUTABLE)


def status_quota(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    _quota_status(found, obj["status"])


def _amounts(found: Found, given: Mapping[str, str] | None, path: str) -> None:
    for name, value in (given or {}).items():
        where = f"{path}[{name}]"
        found.each(where, name, resources.quota_resource_name(name))
        resources.amount(found, name, value, where)


def _quota_status(found: Found, status: JSON) -> None:
    for field in ("hard", "used"):
        _amounts(found, status.get(field), f"status.{field}")


def _quota_spec(found: Found, spec: JSON) -> None:
    _amounts(found, spec.get("hard"), "spec.hard")
    hard = sorted(spec.get("hard") or ())
    scopes = spec.get("scopes") or []
    for scope in scopes:
        if scope not in _SCOPES:
            found.invalid("spec.scopes", scopes, "unsupported scope")
        for name in hard:
            if resources.is_quota(name) and not _fits(scope, name):
                found.invalid("spec.scopes", scopes, _MISFIT)
    for pair in _PAIRS:
        if pair <= set(scopes):
            found.invalid("spec.scopes", scopes, "conflicting scopes")
    if "scopeSelector" in spec:
        _selector(found, spec, hard)


def _fits(scope: str, name: str) -> bool:
    if scope == "BestEffort":
        return name == "pods"
    if scope == "VolumeAttributesClass":
        return name in ("persistentvolumeclaims", "requests.storage")
    return scope not in _SCOPES or name == "pods" or name in _COMPUTE


def _selector(found: Found, spec: JSON, hard: list[str]) -> None:
    path = "spec.scopeSelector.matchExpressions"
    expressions = spec["scopeSelector"].get("matchExpressions") or ()
    for each in expressions:
        scope = each["scopeName"]
        if scope not in _SCOPES:
            found.invalid(f"{path}.scopeName", scope, "unsupported scope")
        for name in hard:
            if resources.is_quota(name) and not _fits(scope, name):
                found.invalid(path, _printed(expressions), _MISFIT)
        _operator(found, each, path)
    names = {each["scopeName"] for each in expressions}
    for pair in _PAIRS:
        if pair <= names:
            found.invalid(path, spec.get("scopes"), "conflicting scopes")


def _printed(expressions: Any) -> JSON:
    return {
        "MatchExpressions": [
            {
                "ScopeName": each["scopeName"],
                "Operator": each["operator"],
                "Values": each.get("values"),
            }
            for each in expressions
        ]
    }


def _operator(found: Found, each: JSON, path: str) -> None:
    operator, values = each["operator"], each.get("values") or []
    if each["scopeName"] in _ALONE and operator != "Exists":
        detail = (
            "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
            "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
            "ResourceQuotaScopeNotBestEffort or "
            "ResourceQuotaScopeCrossNamespacePodAffinity"
        )
        found.invalid(f"{path}.operator", operator, detail)
    if operator in ("In", "NotIn"):
        if not values:
            detail = (
                "must be at least one value when `operator` is 'In' or 'NotIn' for "
                "scope selector"
            )
            found.required(f"{path}.values", detail)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = (
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for "
                "scope selector"
            )
            found.invalid(f"{path}.values", values, detail)
    else:
        found.invalid(f"{path}.operator", operator, "not a valid selector operator")


def create_limits(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    seen: set[str] = set()
    for index, limit in enumerate(obj["spec"]["limits"] or ()):
        path, kind = f"spec.limits[{index}]", limit["type"]
        _limit_type(found, kind, f"{path}.type")
        if kind in seen:
            found.duplicate(f"{path}.type", kind)
        seen.add(kind)
        _limit(found, limit, path)


def update_limits(found: Found, obj: JSON, old: JSON) -> None:
    create_limits(found, obj)


def _limit_type(found: Found, kind: str, path: str) -> None:
    if problems := texts.key(kind):
        found.each(path, kind, problems)
    elif "/" not in kind and kind not in ("Pod", "Container", "PersistentVolumeClaim"):
        detail = "must be a standard limit type or fully qualified"
        found.invalid(path, kind, detail)


def _limit(found: Found, limit: JSON, path: str) -> None:
    kind = limit["type"]
    containers = kind in ("Pod", "Container")
    check = resources.container_resource_name if containers else resources.resource_name
    for field in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
        if field == "maxLimitRequestRatio" and kind == "PersistentVolumeClaim":
            _claim_limit(found, limit, path)
        if kind == "Pod" and field.startswith("default"):
            if limit.get(field):
                detail = "may not be specified when `type` is 'Pod'"
                found.forbidden(f"{path}.{field}", detail)
            continue
        for name in limit.get(field) or ():
            found.each(f"{path}.{field}[{name}]", name, check(name))
    names = {
        name
        for field in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
        for name in limit.get(field) or ()
    }
    for name in sorted(names):
        _compare(found, limit, name, path)


def _claim_limit(found: Found, limit: JSON, path: str) -> None:
    if "storage" in (limit.get("min") or ()) or "storage" in (limit.get("max") or ()):
        return
    detail = (
        "either minimum or maximum storage value is required, but neither was provided"
    )
    found.required(f"{path}.limits", detail)


def _compare(found: Found, limit: JSON, name: str, path: str) -> None:
    """The bounds of one resource are in order."""

    def of(field: str) -> Quantity | None:
        if limit["type"] == "Pod" and field.startswith("default"):
            return None
        value = (limit.get(field) or {}).get(name)
        return None if value is None else Quantity(value)

    least, most, default = of("min"), of("max"), of("default")
    request, ratio = of("defaultRequest"), of("maxLimitRequestRatio")
    for low, high, field, shown, words in (
        (least, most, "min", least, ("min", "max")),
        (least, request, "defaultRequest", request, ("min", "default request")),
        (request, most, "defaultRequest", request, ("default request", "max")),
        (
            request,
            default,
            "defaultRequest",
            request,
            ("default request", "default limit"),
        ),
        (least, default, "default", least, ("min", "default")),
        (default, most, "default", most, ("default", "max")),
    ):
        if low is not None and high is not None and low > high:
            detail = f"{words[0]} value {low} is greater than {words[1]} value {high}"
            found.invalid(f"{path}.{field}[{name}]", str(shown), detail)
    if ratio is not None:
        _ratio(found, ratio, least, most, f"{path}.maxLimitRequestRatio[{name}]")
    both = default is not None and request is not None
    if both and default != request and not resources.overcommits(name):
        detail = (
            f"default value {default} must equal to defaultRequest value {request} "
            f"in {name}"
        )
        found.invalid(f"{path}.defaultRequest[{name}]", str(request), detail)


def _ratio(
    found: Found,
    ratio: Quantity,
    least: Quantity | None,
    most: Quantity | None,
    path: str,
) -> None:
    if ratio < Quantity(1):
        found.invalid(path, str(ratio), f"ratio {ratio} is less than 1")
    if least and most is not None:
        limit = float(most.fraction) / float(least.fraction)
        if float(ratio.fraction) > limit:
            detail = f"ratio {ratio} is greater than max/min = {limit:f}"
            found.invalid(path, str(ratio), detail)
