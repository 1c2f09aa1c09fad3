"""Tables of autoscalers: what is measured, and what it should be."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from trimtab.embedded.builtin.printers.cells import (
    NONE,
    UNKNOWN,
    UNSET,
    Plain,
    Printer,
    Row,
    count,
    created,
    part,
    printer,
)

_AT_MOST: Final = 2
_UTILIZATION: Final = 80  # percent of the processor, if an autoscaler does not say
_SOURCES: Final = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _autoscaler(obj: Plain, now: datetime) -> Row:
    spec, status = part(obj, "spec"), part(obj, "status")
    target, least = part(spec, "scaleTargetRef"), spec.get("minReplicas")
    return [
        obj["metadata"]["name"],
        f"{target.get('kind') or ''}/{target.get('name') or ''}",
        _metrics(*_measures(obj, spec, status)),
        UNSET if least is None else str(least),
        count(spec.get("maxReplicas")),
        count(status.get("currentReplicas")),
        created(obj, now),
    ]


def _measures(
    obj: Plain, spec: Plain, status: Plain
) -> tuple[list[Plain], list[Plain]]:
    """What is wanted and what is. The first version knew of processor time only.

    Other metrics are in its annotations, in an order that they do not have for the
    server; of an object that has such, the second version is to be shown.
    """
    if obj.get("apiVersion") != "autoscaling/v1":
        return spec.get("metrics") or [], status.get("currentMetrics") or []
    wanted = spec.get("targetCPUUtilizationPercentage")
    used = status.get("currentCPUUtilizationPercentage")
    return (
        [_processor("target", _UTILIZATION if wanted is None else wanted)],
        [] if used is None else [_processor("current", used)],
    )


def _processor(role: str, utilization: int) -> Plain:
    values = {"averageUtilization": utilization}
    return {"type": "Resource", "resource": {"name": "cpu", role: values}}


def _metrics(specs: list[Plain], statuses: list[Plain]) -> str:
    if not specs:
        return NONE
    shown = ", ".join(
        _metric(each, statuses[index] if index < len(statuses) else {})
        for index, each in enumerate(specs[:_AT_MOST])
    )
    more = len(specs) - _AT_MOST
    return f"{shown} + {more} more..." if more > 0 else shown


def _metric(spec: Plain, status: Plain) -> str:
    source = _SOURCES.get(spec.get("type") or "")
    if source is None:
        return "<unknown type>"
    given, found = part(spec, source), status.get(source)
    target = part(given, "target")
    current = None if found is None else part(found, "current")
    if source in ("resource", "containerResource"):
        return f"{given.get('name') or ''}: {_resource(target, current)}"
    if source == "pods":
        return f"{_quantity(current, 'averageValue')}/{target.get('averageValue')}"
    if target.get("averageValue") is None:
        return f"{_quantity(current, 'value')}/{target.get('value')}"
    known = current is not None and current.get("averageValue") is not None
    shown = _quantity(current, "averageValue") if known else UNKNOWN
    return f"{shown}/{target['averageValue']} (avg)"


def _resource(target: Plain, current: Plain | None) -> str:
    if target.get("averageValue") is not None:
        return f"{_quantity(current, 'averageValue')}/{target['averageValue']}"
    used = _percentage(current or {}, UNKNOWN)
    return f"{used}/{_percentage(target, '<auto>')}"


def _percentage(values: Plain, unknown: str) -> str:
    value = values.get("averageUtilization")
    return unknown if value is None else f"{value}%"


def _quantity(values: Plain | None, name: str) -> str:
    """A measured quantity. One that was left out prints as Go prints a null pointer."""
    if values is None:
        return UNKNOWN
    value: Any = values.get(name)
    return "<nil>" if value is None else str(value)


PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("autoscaling", "HorizontalPodAutoscaler"): printer(
        "Name/name, Reference, Targets, MinPods, MaxPods, Replicas, Age", _autoscaler
    ),
}
