"""Resources of pods: what all containers of one ask for together, and its class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.api.quantity import Quantity

JSON = Mapping[str, Any]
Totals = dict[str, Quantity]

_COMPUTE: Final = ("cpu", "memory")
_ZERO: Final = Quantity(0)


def aggregate(spec: JSON, field: str) -> Totals:
    """The requests or limits of all containers of a pod.

    Those that run side by side add up; those that run one after the other, before the
    rest, count for the largest of them together with what already runs beside it.
    """
    total: Totals = {}
    for each in spec.get("containers") or ():
        _add(total, _of(each, field))
    beside: Totals = {}
    most: Totals = {}
    for each in spec.get("initContainers") or ():
        asked = _of(each, field)
        if each.get("restartPolicy") == "Always":
            _add(total, asked)
            _add(beside, asked)
            asked = dict(beside)
        else:
            asked = dict(asked)
            _add(asked, beside)
        _most(most, asked)
    _most(total, most)
    return total


def _of(container: JSON, field: str) -> Totals:
    given = (container.get("resources") or {}).get(field) or {}
    return {name: Quantity(value) for name, value in given.items()}


def _add(total: Totals, more: Totals) -> None:
    for name, value in more.items():
        total[name] = total[name] + value if name in total else value


def _most(total: Totals, other: Totals) -> None:
    for name, value in other.items():
        if name not in total or value > total[name]:
            total[name] = value


def quality(spec: JSON) -> str:
    """The class of a pod: how soon it has to go when a node runs short."""
    own = spec.get("resources")
    if own is not None:
        parts = [own]
    else:
        kinds = ("containers", "initContainers")
        parts = [each["resources"] for kind in kinds for each in spec.get(kind) or ()]
    if not any(parts):
        return "BestEffort"
    requests: Totals = {}
    limits: Totals = {}
    guaranteed = True
    for part in parts:
        _count(part.get("requests"), requests)
        if _count(part.get("limits"), limits) < len(_COMPUTE):
            guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _count(given: JSON | None, total: Totals) -> int:
    """Add up CPU and memory that are asked for; how many of the two there were."""
    found = 0
    for name in _COMPUTE:
        if given and name in given:
            value = Quantity(given[name])
            if value > _ZERO:
                found += 1
                total[name] = total[name] + value if name in total else value
    return found
