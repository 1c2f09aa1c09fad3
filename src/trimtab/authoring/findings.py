"""Findings: what differs between two definitions, and which objects feel it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

import msgspec

Level: TypeAlias = Literal["breaks", "loses", "changes", "differs"]
"""How bad a difference is. ``breaks``: something is refused that was accepted.
``loses``: data goes. ``changes``: the same words mean something else. ``differs``:
nobody is harmed."""

Touch: TypeAlias = Literal["", "invalid", "pruned", "value"]
"""What is looked for in stored objects: a part that is invalid, one that is dropped,
or one that has a certain value."""

HARMFUL: Final = frozenset({"breaks", "loses", "changes"})
NAMED: Final = 5
"""Objects that a finding names; it counts them all."""

_INDEX = re.compile(r"\[\d+\]")


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One difference between what is deployed and what the classes say."""

    path: str
    """``v1 spec.tier``: the version, and the field; lists are ``[]``, maps ``{}``."""
    level: Level
    what: str
    touch: Touch = ""
    effect: str = ""
    """What becomes of the objects that it touches, after their number."""
    value: Any = msgspec.UNSET

    @property
    def field(self) -> str:
        return self.path.partition(" ")[2]


class Objects:
    """How many objects, and the first few of them by name."""

    def __init__(self) -> None:
        self.count = 0
        self.names: list[str] = []

    def add(self, name: str) -> None:
        self.count += 1
        if len(self.names) < NAMED:
            self.names.append(name)

    def __str__(self) -> str:
        more = self.count - len(self.names)
        return ", ".join(self.names) + (f" and {more} more" if more else "")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A difference with the stored objects that it concerns."""

    difference: Difference
    objects: Objects
    stored: int

    @property
    def harmful(self) -> bool:
        """Whether somebody loses something; a field that no object has harms none."""
        level = self.difference.level
        if level == "loses" and self.difference.touch == "pruned":
            return self.objects.count > 0
        return level in HARMFUL

    def lines(self) -> Iterator[str]:
        difference = self.difference
        yield f"{difference.level:<8}{difference.path}: {difference.what}"
        if self.objects.count:
            yield (
                f"{'':<8}{self.objects.count} of {self.stored} stored objects "
                f"{difference.effect}: {self.objects}"
            )
        elif difference.touch and difference.level in HARMFUL:
            yield f"{'':<8}none of {self.stored} stored objects is concerned"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that differs for one CRD."""

    name: str
    deployed: bool
    stored: int
    findings: tuple[Finding, ...]

    @property
    def same(self) -> bool:
        return self.deployed and not self.findings

    @property
    def harmful(self) -> bool:
        return any(finding.harmful for finding in self.findings)

    def lines(self) -> Iterator[str]:
        if not self.deployed:
            yield f"{self.name} is not deployed; trimtab crd prints it for kubectl."
        elif self.same:
            yield f"{self.name} is deployed as the classes say."
        else:
            many = len(self.findings)
            things = "difference" if many == 1 else "differences"
            harm = sum(finding.harmful for finding in self.findings)
            yield f"{self.name}: {many} {things}, {harm or 'none'} harmful."
            for finding in self.findings:
                yield from (f"  {line}" for line in finding.lines())


def general(field: str) -> str:
    """The path of a field as differences write it: any index is ``[]``."""
    return _INDEX.sub("[]", field)


def covers(path: str, field: str) -> bool:
    """Whether a difference at ``path`` is about ``field``; ``{}`` is any key."""
    ours, theirs = _tokens(path), _tokens(field)
    return len(ours) == len(theirs) and all(
        one in ("{}", other) for one, other in zip(ours, theirs, strict=True)
    )


def _tokens(path: str) -> list[str]:
    return re.findall(r"\{\}|\[\]|[^.\[\]{}]+", path)


def values_at(obj: Any, path: str) -> Iterator[Any]:
    """The values of an object at a path of a difference."""
    found = [obj]
    for token in _tokens(path):
        if token == "[]":
            found = [item for each in found if isinstance(each, list) for item in each]
            continue
        maps = [each for each in found if isinstance(each, dict)]
        if token == "{}":
            found = [value for each in maps for value in each.values()]
        else:
            found = [each[token] for each in maps if token in each]
    yield from found
