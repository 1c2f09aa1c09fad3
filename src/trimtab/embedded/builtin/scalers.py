"""Scalers: an autoscaler of the first version as one of the second, and back.

The first one has a field for the use of processors; other metrics, conditions and the
behaviour are JSON in annotations there, in words of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

Plain = dict[str, Any]

_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
METRICS, STATUSES = f"{_PREFIX}metrics", f"{_PREFIX}current-metrics"
CONDITIONS, BEHAVIOUR = f"{_PREFIX}conditions", f"{_PREFIX}behavior"
NOTES: Final = frozenset(
    {
        *(METRICS, STATUSES, CONDITIONS, BEHAVIOUR),
        *(f"{_PREFIX}scale-down-tolerance", f"{_PREFIX}scale-up-tolerance"),
    }
)
"""The annotations that stand for fields."""
UTILIZATION: Final = 80
_SOURCES: Final = ("object", "pods", "resource", "containerResource", "external")
_CPU: Final = "cpu"


def drop_notes(meta: Plain) -> None:
    """Take away the annotations that only the first version has."""
    notes = meta.get("annotations")
    if notes and NOTES & notes.keys():
        kept = {key: value for key, value in notes.items() if key not in NOTES}
        meta["annotations"] = kept
        if not kept:
            del meta["annotations"]


def to_first(obj: Plain) -> Plain:
    """An autoscaler of the second version in the first."""
    drop_notes(obj["metadata"])
    spec, status = obj["spec"], obj.get("status") or {}
    metrics = spec.pop("metrics", None) or []
    current = status.pop("currentMetrics", None) or []
    behaviour, conditions = spec.pop("behavior", None), status.pop("conditions", None)
    used = [each for each in metrics if _is_processor(each)]
    if used:
        target = used[0]["resource"]["target"]
        spec["targetCPUUtilizationPercentage"] = target["averageUtilization"]
    for each in current:
        if _is_processor(each, "current"):
            usage = each["resource"]["current"]["averageUtilization"]
            status["currentCPUUtilizationPercentage"] = usage
    notes = {
        METRICS: [_first(each, "target") for each in metrics if each not in used],
        STATUSES: [_first(each, "current") for each in current],
        BEHAVIOUR: _go_behaviour(behaviour) if behaviour is not None else None,
        CONDITIONS: [_ordered(each) for each in conditions or ()],
    }
    told = {key: _json(value) for key, value in notes.items() if value}
    if told:
        meta = obj["metadata"]
        meta["annotations"] = {**(meta.get("annotations") or {}), **told}
    return obj


def to_second(obj: Plain) -> Plain:
    """An autoscaler of the first version in the second."""
    spec, status = obj["spec"], obj.setdefault("status", {})
    notes = obj["metadata"].get("annotations") or {}
    wanted = spec.pop("targetCPUUtilizationPercentage", None)
    used = status.pop("currentCPUUtilizationPercentage", None)
    metrics = _each(notes.get(METRICS), lambda each: _second(each, "target")) or []
    if wanted is not None or not metrics:
        percent = UTILIZATION if wanted is None else wanted
        metrics.append(_processor("target", {"type": "Utilization"}, percent))
    spec["metrics"] = metrics
    behaviour = _read(notes.get(BEHAVIOUR))
    if isinstance(behaviour, dict) and any(behaviour.values()):
        spec["behavior"] = _plain_behaviour(behaviour)
    statuses = _each(notes.get(STATUSES), lambda each: _second(each, "current"))
    if statuses is not None:
        status["currentMetrics"] = statuses
    elif used is not None:
        status["currentMetrics"] = [_processor("current", {}, used)]
    conditions = _each(notes.get(CONDITIONS), dict)
    if conditions is not None:
        status["conditions"] = conditions
    drop_notes(obj["metadata"])
    return obj


def keep_notes(obj: Plain, old: Plain, *, subresource: str = "") -> None:
    """Keep, of the first version, the annotations that are part of what is kept: of
    the spec if the status is written, and the other way round."""
    kept = (METRICS, BEHAVIOUR) if subresource else (STATUSES, CONDITIONS)
    notes = dict(obj["metadata"].get("annotations") or {})
    before = old["metadata"].get("annotations") or {}
    for each in kept:
        notes.pop(each, None)
        if each in before:
            notes[each] = before[each]
    obj["metadata"].pop("annotations", None)
    if notes:
        obj["metadata"]["annotations"] = notes


def _ordered(condition: Plain) -> Plain:
    order = ("type", "status", "lastTransitionTime", "reason", "message")
    return {key: condition[key] for key in order if key in condition}


def _is_processor(metric: Plain, field: str = "target") -> bool:
    """Whether it is what the first version has a field for."""
    resource = metric.get("resource")
    if metric["type"] != "Resource" or resource is None or resource["name"] != _CPU:
        return False
    return resource[field].get("averageUtilization") is not None


def _processor(field: str, value: Plain, percent: int) -> Plain:
    value = {**value, "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": _CPU, field: value}}


def _first(metric: Plain, field: str) -> Plain:
    """A metric in the words of the first version, in the order of its struct."""
    made: Plain = {"type": metric["type"]}
    for source in _SOURCES:
        if source in metric:
            told = _told(source, metric[source], field)
            made[source] = {key: each for key, each in told.items() if each is not None}
    return made


def _told(source: str, given: Plain, field: str) -> Plain:
    amount, metric = given[field], given.get("metric") or {}
    value, mean = amount.get("value"), amount.get("averageValue")
    name, selector = metric.get("name", ""), metric.get("selector")
    if source == "object":
        told = {"target": _reference(given["describedObject"]), "metricName": name}
        return {
            **told,
            f"{field}Value": value or "0",
            "selector": selector,
            "averageValue": mean,
        }
    if source == "pods":
        average = f"{field}AverageValue"
        return {"metricName": name, average: mean or "0", "selector": selector}
    if source == "external":
        told = {"metricName": name, "metricSelector": selector}
        least = "0" if field == "current" else None
        told[f"{field}Value"] = value or least
        return {**told, f"{field}AverageValue": mean}
    told = {"name": given["name"]}
    told[f"{field}AverageUtilization"] = amount.get("averageUtilization")
    told[f"{field}AverageValue"] = mean or ("0" if field == "current" else None)
    return {**told, "container": given.get("container")}


def _reference(given: Plain) -> Plain:
    order = ("kind", "name", "apiVersion")
    return {key: given[key] for key in order if given.get(key)}


def _second(metric: Plain, field: str) -> Plain:
    """A metric in the words of the second version."""
    made: Plain = {"type": metric.get("type", "")}
    for source in _SOURCES:
        if isinstance(metric.get(source), dict):
            made[source] = _meant(source, metric[source], field)
    return made


def _meant(source: str, given: Plain, field: str) -> Plain:
    mean = given.get("averageValue" if source == "object" else f"{field}AverageValue")
    value, percent = given.get(f"{field}Value"), given.get(f"{field}AverageUtilization")
    amount: Plain = {}
    if field == "target":
        if source == "object" and mean is not None and value in ("0", 0):
            value = None
        amount["type"] = _sort(source, value, mean, percent)
    parts = {"value": value, "averageValue": mean, "averageUtilization": percent}
    amount |= {key: each for key, each in parts.items() if each is not None}
    if source in ("resource", "containerResource"):
        kept: Plain = {k: given[k] for k in ("name", "container") if k in given}
        return {**kept, field: amount}
    selector = given.get("metricSelector" if source == "external" else "selector")
    metric = {"name": given.get("metricName", "")}
    made = {"metric": metric | ({"selector": selector} if selector else {})}
    if source == "object":
        made["describedObject"] = given.get("target") or {}
    return {**made, field: amount}


def _sort(source: str, value: Any, mean: Any, percent: Any) -> str:
    if source == "object":
        return "Value" if mean is None else "AverageValue"
    if source == "external":
        return "AverageValue" if value is None else "Value"
    return "AverageValue" if percent is None else "Utilization"


def _go_behaviour(given: Plain) -> Plain:
    """The behaviour as the real server's own structs print, which have no names in
    JSON."""
    made: Plain = {}
    for go, name in (("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")):
        rules = given.get(name)
        made[go] = None if rules is None else _go_rules(rules)
    return made


def _go_rules(rules: Plain) -> Plain:
    policies = [
        {"Type": each["type"], "Value": each["value"], "PeriodSeconds": seconds}
        for each in rules.get("policies") or ()
        if (seconds := each["periodSeconds"]) is not None
    ]
    return {
        "StabilizationWindowSeconds": rules.get("stabilizationWindowSeconds"),
        "SelectPolicy": rules.get("selectPolicy"),
        "Policies": policies or None,
        "Tolerance": rules.get("tolerance"),
    }


def _plain_behaviour(given: Plain) -> Plain:
    made: Plain = _lowered({key: each for key, each in given.items() if each})
    return made


def _lowered(value: Any) -> Any:
    if isinstance(value, list):
        return [_lowered(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key[:1].lower() + key[1:]: _lowered(each)
        for key, each in value.items()
        if each is not None
    }


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _read(text: str | None) -> Any:
    try:
        return None if text is None else msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


def _each(text: str | None, make: Callable[[Plain], Plain]) -> list[Plain] | None:
    """What an annotation lists; None if there is none that can be read."""
    found = _read(text)
    if not isinstance(found, list) or not all(isinstance(e, dict) for e in found):
        return None
    return [make(each) for each in found]
