"""Limits: what the LimitRanges of a namespace add to a pod, and forbid it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from trimtab.api.quantity import Quantity

Plain = dict[str, Any]
NOTE = "kubernetes.io/limit-ranger"


def apply_limits(pod: Plain, ranges: Iterable[Plain]) -> list[str]:
    """Give a pod the defaults of the ranges; what it then still breaks, in words."""
    items = [
        item for each in ranges for item in (each.get("spec") or {}).get("limits") or ()
    ]
    of_containers = [item for item in items if item.get("type") == "Container"]
    notes = [
        note
        for key, what in (
            ("containers", "container"),
            ("initContainers", "init container"),
        )
        for container in pod["spec"].get(key) or ()
        for note in _defaulted(container, of_containers, what)
    ]
    if notes:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[NOTE] = "LimitRanger plugin set: " + "; ".join(notes)
    return list(_complaints(pod, items))


def _defaulted(container: Plain, items: Iterable[Plain], what: str) -> Iterator[str]:
    """Fill in what a container leaves open; what was set, for the annotation."""
    resources = container.setdefault("resources", {})
    for key, source in (("requests", "defaultRequest"), ("limits", "default")):
        given = resources.setdefault(key, {})
        added = []
        for item in items:
            for name, amount in sorted((item.get(source) or {}).items()):
                if name not in given:
                    given[name] = str(Quantity(amount))
                    added.append(name)
        if added:
            names = ", ".join(sorted(added))
            yield f"{names} {key[:-1]} for {what} {container['name']}"
    for key in ("requests", "limits"):
        if not resources[key]:
            del resources[key]


def _complaints(pod: Plain, items: Iterable[Plain]) -> Iterator[str]:
    for item in items:
        if item.get("type") == "Container":
            for container in pod["spec"].get("containers") or ():
                yield from _broken(item, container.get("resources") or {})
        elif item.get("type") == "Pod":
            yield from _broken(item, _sum(pod))


def _sum(pod: Plain) -> Plain:
    """What the containers of a pod take together."""
    total: dict[str, dict[str, Quantity]] = {"requests": {}, "limits": {}}
    for container in pod["spec"].get("containers") or ():
        for key, amounts in total.items():
            given = (container.get("resources") or {}).get(key) or {}
            for name, amount in given.items():
                value = Quantity(amount)
                amounts[name] = amounts[name] + value if name in amounts else value
    return total


def _broken(item: Plain, resources: Plain) -> Iterator[str]:
    """One sentence for each bound of a range that a pod or a container breaks."""
    kind = item["type"]
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, bound in sorted((item.get("min") or {}).items()):
        least = Quantity(bound)
        yield from _below(
            f"minimum {name} usage per {kind} is {least}", name, requests, least
        )
    for name, bound in sorted((item.get("max") or {}).items()):
        yield from _above(kind, name, Quantity(bound), requests, limits)
    for name, bound in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        yield from _ratio(kind, name, Quantity(bound), requests, limits)


def _below(text: str, name: str, given: Plain, least: Quantity) -> Iterator[str]:
    if name not in given:
        yield f"{text}.  No request is specified"
    elif Quantity(given[name]) < least:
        yield f"{text}, but request is {Quantity(given[name])}"


def _above(
    kind: str, name: str, most: Quantity, requests: Plain, limits: Plain
) -> Iterator[str]:
    text = f"maximum {name} usage per {kind} is {most}"
    if name not in limits:
        yield f"{text}.  No limit is specified"
    elif Quantity(limits[name]) > most:
        yield f"{text}, but limit is {Quantity(limits[name])}"
    elif name in requests and Quantity(requests[name]) > most:
        yield f"{text}, but request is {Quantity(requests[name])}"


def _ratio(
    kind: str, name: str, most: Quantity, requests: Plain, limits: Plain
) -> Iterator[str]:
    text = f"{name} max limit to request ratio per {kind} is {most}"
    if name not in requests or name not in limits:
        yield f"{text}, but no request is specified or request is 0"
        return
    asked = Fraction(Quantity(requests[name]).milli)
    if asked == 0:
        yield f"{text}, but no request is specified or request is 0"
        return
    ratio = Fraction(Quantity(limits[name]).milli) / asked
    if ratio > Fraction(most.milli, 1000):
        yield f"{text}, but provided ratio is {float(ratio):.6f}"
