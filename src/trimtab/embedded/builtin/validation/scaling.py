"""Autoscalers: how many pods a workload should have, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.api.quantity import Quantity
from trimtab.embedded.builtin.validation import meta, resources, texts
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_SOURCES: Final = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "External": "external",
    "ContainerResource": "containerResource",
}
_TYPES: Final = tuple(sorted(_SOURCES))
_ORDER: Final = ("object", "external", "pods", "resource", "containerResource")
_MISSING: Final = "must populate information for the given metric source"
_ONLY: Final = "must populate the given metric source only"
_LONGEST_WINDOW: Final = 3600
_LONGEST_PERIOD: Final = 1800


def create(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    _spec(found, obj["spec"], None)


def update(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    _spec(found, obj["spec"], old["spec"])


def _spec(found: Found, spec: JSON, old: JSON | None) -> None:
    least, most = spec.get("minReplicas"), spec["maxReplicas"]
    bound = 0 if old is not None and old.get("minReplicas") == 0 else 1
    if least is not None and least < bound:
        detail = f"must be greater than or equal to {bound}"
        found.invalid("spec.minReplicas", least, detail)
    if most == 0:
        found.required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        found.invalid("spec.maxReplicas", most, "must be greater than or equal to 1")
    if least is not None and most < least:
        detail = "must be greater than or equal to `minReplicas`"
        found.invalid("spec.maxReplicas", most, detail)
    target = spec["scaleTargetRef"]
    same = old is not None and all(
        old["scaleTargetRef"].get(each) == target.get(each)
        for each in ("apiVersion", "kind")
    )
    core = same or target["kind"] == "ReplicationController"
    _reference(found, target, "spec.scaleTargetRef", core=core, loose=same)
    percentage = spec.get("targetCPUUtilizationPercentage")
    if percentage is not None and percentage < 1:
        path = "spec.metrics[0].resource.target.averageUtilization"
        found.invalid(path, percentage, "must be greater than 0")
    for index, metric in enumerate(spec.get("metrics") or ()):
        _metric(found, metric, f"spec.metrics[{index}]")
    kinds = {metric["type"] for metric in spec.get("metrics") or ()}
    if least == 0 and not kinds & {"Object", "External"}:
        detail = (
            "must specify at least one Object or External metric to support scaling "
            "to zero replicas"
        )
        found.forbidden("spec.metrics", detail)
    behaviour = spec.get("behavior") or {}
    for field in ("scaleUp", "scaleDown"):
        if field in behaviour:
            _rules(found, behaviour[field], f"spec.behavior.{field}")


def _reference(
    found: Found, given: JSON, path: str, *, core: bool, loose: bool = False
) -> None:
    for field in ("kind", "name"):
        value = given[field]
        if not value:
            found.required(f"{path}.{field}")
        else:
            found.each(f"{path}.{field}", value, texts.path_segment(value))
    version = given.get("apiVersion", "")
    if loose:
        return
    if version.count("/") > 1:
        detail = f"unexpected GroupVersion string: {version}"
        found.invalid(f"{path}.apiVersion", version, detail)
    elif not core and not version.partition("/")[1]:
        detail = "apiVersion must specify API group"
        found.invalid(f"{path}.apiVersion", version, detail)


def _rules(found: Found, rules: JSON, path: str) -> None:
    window, where = (
        rules.get("stabilizationWindowSeconds"),
        "stabilizationWindowSeconds",
    )
    if window is not None and window < 0:
        detail = "must be greater than or equal to zero"
        found.invalid(f"{path}.{where}", window, detail)
    if window is not None and window > _LONGEST_WINDOW:
        detail = f"must be less than or equal to {_LONGEST_WINDOW}"
        found.invalid(f"{path}.{where}", window, detail)
    policy = rules.get("selectPolicy")
    if policy is not None:
        found.one_of(f"{path}.selectPolicy", policy, ("Disabled", "Max", "Min"))
    policies = rules.get("policies") or ()
    if not policies:
        found.required(f"{path}.policies", "must specify at least one Policy")
    for index, each in enumerate(policies):
        _policy(found, each, f"{path}.policies[{index}]")
    tolerance = rules.get("tolerance")
    if tolerance is not None and Quantity(tolerance) < resources.ZERO:
        found.invalid(f"{path}.tolerance", tolerance, texts.NEGATIVE)


def _policy(found: Found, given: JSON, path: str) -> None:
    found.one_of(f"{path}.type", given["type"], ("Percent", "Pods"))
    found.positive(f"{path}.value", given["value"])
    period = given["periodSeconds"]
    found.positive(f"{path}.periodSeconds", period)
    if period > _LONGEST_PERIOD:
        detail = f"must be less than or equal to {_LONGEST_PERIOD}"
        found.invalid(f"{path}.periodSeconds", period, detail)


def _metric(found: Found, metric: JSON, path: str) -> None:
    kind = metric["type"]
    if not kind:
        found.required(f"{path}.type", "must specify a metric source type")
    found.one_of(f"{path}.type", kind, _TYPES)
    present = [each for each in _ORDER if each in metric]
    if present:
        _source(found, present[0], metric[present[0]], f"{path}.{present[0]}")
    expected = _SOURCES.get(kind, "")
    if not expected:
        found.unsupported(f"{path}.type", kind, _TYPES)
    elif expected not in metric:
        found.required(f"{path}.{expected}", _MISSING)
    if len(present) != 1:
        for each in present:
            if each != expected:
                found.forbidden(f"{path}.{each}", _ONLY)


def _source(found: Found, kind: str, given: JSON, path: str) -> None:
    target, where = given["target"], f"{path}.target"
    if kind == "object":
        described = given["describedObject"]
        _reference(found, described, f"{path}.describedObject", core=True)
    if kind in ("object", "external", "pods"):
        _identifier(found, given["metric"], f"{path}.metric")
    else:
        _resource(found, kind, given, path)
    _target(found, target, where)
    value, average = target.get("value"), target.get("averageValue")
    utilization = target.get("averageUtilization")
    if kind == "object" and value is None and average is None:
        detail = "must set either a target value or averageValue"
        found.required(f"{where}.averageValue", detail)
    elif kind == "pods" and average is None:
        detail = "must specify a positive target averageValue"
        found.required(f"{where}.averageValue", detail)
    elif kind == "external":
        _external(found, value, average, where)
    elif kind in ("resource", "containerResource"):
        _raw_or_share(found, utilization, average, where)


def _external(found: Found, value: Any, average: Any, path: str) -> None:
    if value is None and average is None:
        detail = "must set either a target value for metric or a per-pod target"
        found.required(f"{path}.averageValue", detail)
    if value is not None and average is not None:
        detail = "may not set both a target value for metric and a per-pod target"
        found.forbidden(f"{path}.value", detail)


def _raw_or_share(found: Found, share: Any, average: Any, path: str) -> None:
    if share is None and average is None:
        detail = "must set either a target raw value or a target utilization"
        found.required(f"{path}.averageUtilization", detail)
    if share is not None and average is not None:
        detail = "may not set both a target raw value and a target utilization"
        found.forbidden(f"{path}.averageValue", detail)


def _resource(found: Found, kind: str, given: JSON, path: str) -> None:
    name = given["name"]
    if not name:
        found.required(f"{path}.name", "must specify a resource name")
    elif kind == "containerResource":
        found.each(f"{path}.name", name, resources.container_resource_name(name))
    if kind != "containerResource":
        return
    container = given["container"]
    if not container:
        found.required(f"{path}.container", "must specify a container")
    else:
        found.each(f"{path}.container", container, texts.label(container))


def _identifier(found: Found, given: JSON, path: str) -> None:
    name = given["name"]
    if not name:
        found.required(f"{path}.name", "must specify a metric name")
    else:
        found.each(f"{path}.name", name, texts.path_segment(name))


def _target(found: Found, target: JSON, path: str) -> None:
    kind = target["type"]
    if not kind:
        found.required(f"{path}.type", "must specify a metric target type")
    if kind not in ("Utilization", "Value", "AverageValue"):
        detail = "must be either Utilization, Value, or AverageValue"
        found.invalid(f"{path}.type", kind, detail)
    for field in ("value", "averageValue"):
        value = target.get(field)
        if value is not None and Quantity(value) <= resources.ZERO:
            found.invalid(f"{path}.{field}", value, "must be positive")
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        found.invalid(f"{path}.averageUtilization", share, "must be greater than 0")


def status_update(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    for field in ("currentReplicas", "desiredReplicas"):
        found.not_negative(f"status.{field}", obj["status"].get(field))
