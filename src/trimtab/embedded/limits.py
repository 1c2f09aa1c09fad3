"""Limits: what the LimitRanges of a namespace add to a pod, and forbid it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from trimtab.api.quantity import Quantity
from trimtab.embedded.builtin.podresources import aggregate

Plain = dict[str, Any]
NOTE = "kubernetes.io/limit-ranger"


def apply_limits(pod: Plain, ranges: Iterable[Plain]) -> list[str]:
    """Give a pod the defaults of the ranges; what breaks the first that is broken."""
    known = [(each.get("spec") or {}).get("limits") or () for each in ranges]
    for items in known:
        _apply_defaults(pod, [item for item in items if item["type"] == "Container"])
    for items in known:
        if complaints := list(_complaints(pod, items)):
            return complaints
    return []


def claim_complaints(claim: Plain, ranges: Iterable[Plain]) -> list[str]:
    """What a volume claim breaks, in words; only what it asks for counts."""
    spec = claim.get("spec") or {}
    requests = (spec.get("resources") or {}).get("requests") or {}
    for each in ranges:
        complaints = [
            text
            for item in (each.get("spec") or {}).get("limits") or ()
            if item["type"] == "PersistentVolumeClaim"
            for text in _claim_bounds(item, requests)
        ]
        if complaints:
            return complaints
    return []


def _claim_bounds(item: Plain, requests: Plain) -> Iterator[str]:
    for name, bound in sorted((item.get("min") or {}).items()):
        yield from _below(item["type"], name, _quantity(bound), requests, {})
    for name, bound in sorted((item.get("max") or {}).items()):
        most = _quantity(bound)
        text = f"maximum {name} usage per {item['type']} is {most}"
        if name not in requests:
            yield f"{text}.  No request is specified"
        elif _quantity(requests[name]) > most:
            yield f"{text}, but request is {_quantity(requests[name])}"


def _apply_defaults(pod: Plain, items: Sequence[Plain]) -> None:
    notes = [
        note
        for key, what in (
            ("containers", "container"),
            ("initContainers", "init container"),
        )
        for container in pod["spec"].get(key) or ()
        for note in _defaulted(container, items, what)
    ]
    if notes:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[NOTE] = "LimitRanger plugin set: " + "; ".join(notes)


def _quantity(value: Any) -> Quantity:
    return value if isinstance(value, Quantity) else Quantity(value)


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
    spec = pod["spec"]
    for item in items:
        if item["type"] == "Container":
            for key in ("containers", "initContainers"):
                for container in spec.get(key) or ():
                    yield from _broken(item, container.get("resources") or {})
        elif item["type"] == "Pod":
            total = {key: _total(spec, key) for key in ("requests", "limits")}
            yield from _broken(item, total)


def _total(spec: Plain, key: str) -> dict[str, Quantity]:
    """What the containers of a pod take together, unless it says so itself."""
    given = (spec.get("resources") or {}).get(key) or {}
    own = {name: _quantity(amount) for name, amount in given.items()}
    return {**aggregate(spec, key), **own}


def _broken(item: Plain, resources: Plain) -> Iterator[str]:
    """One sentence for each bound of a range that a pod or a container breaks."""
    kind = item["type"]
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, bound in sorted((item.get("min") or {}).items()):
        yield from _below(kind, name, _quantity(bound), requests, limits)
    for name, bound in sorted((item.get("max") or {}).items()):
        yield from _above(kind, name, _quantity(bound), requests, limits)
    for name, bound in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        yield from _ratio(kind, name, _quantity(bound), requests, limits)


def _below(
    kind: str, name: str, least: Quantity, requests: Plain, limits: Plain
) -> Iterator[str]:
    text = f"minimum {name} usage per {kind} is {least}"
    if name not in requests:
        yield f"{text}.  No request is specified"
    elif _quantity(requests[name]) < least:
        yield f"{text}, but request is {_quantity(requests[name])}"
    elif name in limits and _quantity(limits[name]) < least:
        yield f"{text}, but limit is {_quantity(limits[name])}"


def _above(
    kind: str, name: str, most: Quantity, requests: Plain, limits: Plain
) -> Iterator[str]:
    text = f"maximum {name} usage per {kind} is {most}"
    if name not in limits:
        yield f"{text}.  No limit is specified"
    elif _quantity(limits[name]) > most:
        yield f"{text}, but limit is {_quantity(limits[name])}"
    elif name in requests and _quantity(requests[name]) > most:
        yield f"{text}, but request is {_quantity(requests[name])}"


def _ratio(
    kind: str, name: str, most: Quantity, requests: Plain, limits: Plain
) -> Iterator[str]:
    text = f"{name} max limit to request ratio per {kind} is {most}"
    asked = Fraction(_quantity(requests.get(name, 0)).milli)
    if asked == 0:
        yield f"{text}, but no request is specified or request is 0"
        return
    limit = Fraction(_quantity(limits.get(name, 0)).milli)
    if limit == 0:
        yield f"{text}, but no limit is specified or limit is 0"
        return
    ratio = limit / asked
    if ratio > Fraction(most.milli, 1000):
        yield f"{text}, but provided ratio is {float(ratio):.6f}"
