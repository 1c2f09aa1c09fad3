"""Rules: what a role allows, and which rules cover which others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from trimtab.embedded.gotext import quoted
from trimtab.embedded.rbac.attributes import Attributes

ALL = "*"

Names = tuple[str, ...]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Some verbs on some resources, or on some paths."""

    verbs: Names = ()
    groups: Names = ()
    resources: Names = ()
    names: Names = ()
    paths: Names = ()

    def allows(self, asked: Attributes) -> bool:
        """Whether this rule by itself lets somebody do what they ask for."""
        if asked.verb not in self.verbs and ALL not in self.verbs:
            return False
        if not asked.is_resource:
            return any(_path_covers(each, asked.path) for each in self.paths)
        if asked.group not in self.groups and ALL not in self.groups:
            return False
        if self.names and asked.name not in self.names:
            return False
        return self._has_resource(asked)

    def _has_resource(self, asked: Attributes) -> bool:
        found = self.resources
        if asked.full_resource in found or ALL in found:
            return True
        return bool(asked.subresource) and f"*/{asked.subresource}" in found

    def covers(self, other: Rule) -> bool:
        """Whether this rule allows all that another allows, which is a single one."""
        return (
            _has_all(self.verbs, other.verbs)
            and _has_all(self.groups, other.groups)
            and all(_resource_covers(self.resources, each) for each in other.resources)
            and (not self.names or _within(other.names, self.names))
            and all(
                any(_path_covers(mine, each) for mine in self.paths)
                for each in other.paths
            )
        )

    def singles(self) -> Iterator[Rule]:
        """Rules of one verb on one thing, that together allow the same."""
        named: list[Names] = [(each,) for each in self.names] or [()]
        for group in self.groups:
            for resource in self.resources:
                for verb in self.verbs:
                    for names in named:
                        yield Rule(
                            verbs=(verb,),
                            groups=(group,),
                            resources=(resource,),
                            names=names,
                        )
        for path in self.paths:
            for verb in self.verbs:
                yield Rule(verbs=(verb,), paths=(path,))

    def __str__(self) -> str:
        parts = (
            ("APIGroups", self.groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.paths),
            ("ResourceNames", self.names),
            ("Verbs", self.verbs),
        )
        return "{" + ", ".join(f"{k}:{listed(v)}" for k, v in parts if v) + "}"


FULL_AUTHORITY = (
    Rule(verbs=(ALL,), groups=(ALL,), resources=(ALL,)),
    Rule(verbs=(ALL,), paths=(ALL,)),
)


def rules_of(found: Iterable[dict[str, Any]] | None) -> tuple[Rule, ...]:
    """The rules of a role."""
    return tuple(
        Rule(
            verbs=tuple(each.get("verbs") or ()),
            groups=tuple(each.get("apiGroups") or ()),
            resources=tuple(each.get("resources") or ()),
            names=tuple(each.get("resourceNames") or ()),
            paths=tuple(each.get("nonResourceURLs") or ()),
        )
        for each in found or ()
    )


def uncovered(held: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """What is allowed by the rules that are wanted and by none of those held."""
    return [
        single
        for rule in wanted
        for single in rule.singles()
        if not any(each.covers(single) for each in held)
    ]


def described(rules: Iterable[Rule]) -> str:
    """Single rules on a line each; those that differ in their verb are one."""
    lines = set()
    verbs: dict[Rule, list[str]] = {}
    for rule in rules:
        if rule.resources:
            rest = msgspec.structs.replace(rule, verbs=())
            verbs.setdefault(rest, []).extend(rule.verbs)
        else:
            lines.add(str(rule))
    for rest, found in verbs.items():
        lines.add(str(msgspec.structs.replace(rest, verbs=tuple(found))))
    return "\n".join(sorted(lines))


def listed(texts: Iterable[str]) -> str:
    """A list of strings as Go's ``%q`` prints it."""
    return "[" + " ".join(map(quoted, texts)) + "]"


def _has_all(held: Names, wanted: Names) -> bool:
    return ALL in held or all(each in held for each in wanted)


def _within(names: Names, held: Names) -> bool:
    """Whether there are names, and all of them are held."""
    return bool(names) and all(each in held for each in names)


def _resource_covers(held: Names, wanted: str) -> bool:
    if ALL in held or wanted in held:
        return True
    _, slash, subresource = wanted.partition("/")
    return bool(slash) and f"*/{subresource}" in held


def _path_covers(held: str, wanted: str) -> bool:
    return held == wanted or (
        held.endswith(ALL) and wanted.startswith(held.rstrip(ALL))
    )
