"""Rolling: how many pods of each template the next step of a rollout has. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The pods of one template: how many are wished for, there, and available."""

    name: str
    wanted: int
    available: int = 0


def share(value: int | str | None, of: int, *, up: bool, usual: str = "25%") -> int:
    """A number of pods, given as such or as a percentage."""
    given = usual if value is None else value
    if isinstance(given, int):
        return given
    part = int(given.rstrip("%")) * of / 100
    return math.ceil(part) if up else math.floor(part)


def bounds(
    replicas: int, surge: int | str | None, unavailable: int | str | None
) -> tuple[int, int]:
    """How many pods may be extra, and how many missing; never both none."""
    extra = share(surge, replicas, up=True)
    missing = share(unavailable, replicas, up=False)
    return (extra, missing) if extra or missing else (0, 1)


def step(
    replicas: int, *, new: Group, olds: Sequence[Group], surge: int, missing: int
) -> dict[str, int]:
    """What each group should be scaled to now.

    Guarantees: all together never wish for more than ``replicas + surge``, unless they
    did before; no available pod is given up unless ``replicas - missing`` others are.
    """
    total = new.wanted + sum(each.wanted for each in olds)
    room = max(0, replicas + surge - total)
    grown = new.wanted
    if new.wanted > replicas:
        grown = replicas
    elif new.wanted < replicas:
        grown = min(replicas, new.wanted + room)
    targets = {new.name: grown}
    if grown != new.wanted:
        # One thing at a time: what is scaled down must know what is there.
        return {**targets, **{each.name: each.wanted for each in olds}}
    return {**targets, **_shrunk(replicas, new, olds, missing)}


def _shrunk(
    replicas: int, new: Group, olds: Sequence[Group], missing: int
) -> dict[str, int]:
    least = replicas - missing
    left = {each.name: each.wanted for each in olds}
    total = new.wanted + sum(left.values())
    budget = total - least - max(0, new.wanted - new.available)
    for each in olds:  # those that do not work are no loss
        broken = max(0, min(each.wanted - each.available, budget))
        left[each.name] -= broken
        budget -= broken
    spare = new.available + sum(each.available for each in olds) - least
    for each in olds:
        working = min(left[each.name], each.available)
        gone = max(0, min(working, spare, budget))
        left[each.name] -= gone
        spare -= gone
        budget -= gone
    return left
