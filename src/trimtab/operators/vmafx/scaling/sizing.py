"""Which nodes of a set come and which go: pure, from what each of them does now."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import count, islice

import msgspec

MOST_AT_ONCE = 50
"""Pods that one look makes; the next look makes more."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One node of a set that is not to go yet."""

    name: str
    jobs: int = 0
    """How many it works on."""
    ready: bool = True
    current: bool = True
    """Whether it was made of the template as it is now."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done: names of pods."""

    make: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


def plan(
    set_name: str,
    members: Collection[Member],
    *,
    replicas: int,
    leaving: Collection[str] = (),
) -> Plan:
    """What brings a set to its size, and to its template.

    Guarantees: an idle node goes before a busy one, and of busy ones that which has
    less to do. Names of nodes that are still leaving are not used again. Nodes of an
    older template are replaced one at a time, when all others are there.
    """
    missing = replicas - len(members)
    if missing > 0:
        taken = {*leaving, *(each.name for each in members)}
        return Plan(make=tuple(_free(set_name, taken, min(missing, MOST_AT_ONCE))))
    going = sorted(members, key=_worth)
    if missing < 0:
        return Plan(remove=tuple(each.name for each in going[:-missing]))
    old = [each.name for each in going if not each.current]
    settled = not leaving and all(each.ready for each in members if each.current)
    return Plan(remove=tuple(old[:1]) if settled else ())


def _worth(each: Member) -> tuple[int, bool, bool, int, str]:
    """What it would cost to lose it; of equals, the newest name goes."""
    return (each.jobs, each.current, each.ready, -_number(each.name), each.name)


def _number(name: str) -> int:
    tail = name.rpartition("-")[2]
    return int(tail) if tail.isdecimal() else 0


def _free(set_name: str, taken: Collection[str], wanted: int) -> Iterable[str]:
    names = (f"{set_name}-{number}" for number in count())
    return islice((name for name in names if name not in taken), wanted)
