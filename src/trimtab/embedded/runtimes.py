"""Runtimes: what a runtime class adds to the pods that name it."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from trimtab.api.quantity import Quantity

Plain = dict[str, Any]
MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
ALONE = (
    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
)


class Rejected(Exception):
    """A pod that does not go with its class; the text is the real server's."""


def apply_runtime(spec: Plain, runtime: Plain | None) -> None:
    """Give a pod's spec the overhead, the nodes and the tolerations of its class.

    Errors: :class:`Rejected` if the pod says something else.
    """
    fixed = ((runtime or {}).get("overhead") or {}).get("podFixed")
    given = spec.get("overhead")
    if fixed is None and "overhead" not in (runtime or {}):
        if given:
            raise Rejected(ALONE)
    elif given and _amounts(given) != _amounts(fixed or {}):
        raise Rejected(MISMATCH)
    elif fixed:
        spec["overhead"] = dict(fixed)
    scheduling = (runtime or {}).get("scheduling")
    if scheduling is not None:
        _select(spec, scheduling.get("nodeSelector") or {})
        added = deepcopy(scheduling.get("tolerations") or [])
        merged = merged_tolerations([*(spec.get("tolerations") or ()), *added])
        if merged:
            spec["tolerations"] = merged


def _amounts(given: Plain) -> dict[str, Quantity]:
    return {name: Quantity(value) for name, value in given.items()}


def _select(spec: Plain, wanted: dict[str, str]) -> None:
    if not wanted:
        return
    chosen = spec.setdefault("nodeSelector", {})
    for key, value in wanted.items():
        own = chosen.setdefault(key, value)
        if own != value:
            raise Rejected(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own}"
            )


def merged_tolerations(given: list[Plain]) -> list[Plain]:
    """Tolerations without those that another one covers; of equal ones the first."""
    merged: list[Plain] = []
    for index, each in enumerate(given):
        later = (other for other in given[index + 1 :] if other != each)
        if not _covered(each, merged) and not _covered(each, later):
            merged.append(each)
    return merged


def _covered(given: Plain, others: Iterable[Plain]) -> bool:
    return any(_covers(other, given) for other in others)


def _covers(whole: Plain, part: Plain) -> bool:
    """Whether one tolerates all that the other does."""
    if whole == part:
        return True
    everything = not whole.get("key") and whole.get("operator") == "Exists"
    if whole.get("key") != part.get("key") and not everything:
        return False
    effect = whole.get("effect")
    if effect and effect != part.get("effect"):
        return False
    seconds = whole.get("tolerationSeconds")
    if effect == "NoExecute" and seconds is not None:
        shorter = part.get("tolerationSeconds")
        if shorter is None or shorter > seconds:
            return False
    if whole.get("operator", "Equal") == "Exists":
        return True
    same = whole.get("value", "") == part.get("value", "")
    return part.get("operator") == "Equal" and same
