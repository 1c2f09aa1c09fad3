"""Levels: what the labels of a namespace ask of its pods."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.embedded import status
from trimtab.embedded.podsecurity.checks import LATEST, checks
from trimtab.embedded.status import FieldProblem

PREFIX = "pod-security.kubernetes.io/"
LEVELS = ("privileged", "baseline", "restricted")
_is_version = re.compile(r"v1\.([0-9]|[1-9][0-9]*)").fullmatch


class Level(msgspec.Struct, frozen=True):
    """A level, as it is in a version."""

    name: str = "privileged"
    version: str = "latest"

    def __str__(self) -> str:
        return f"{self.name}:{self.version}"

    @property
    def rank(self) -> int:
        return LEVELS.index(self.name)

    def findings(
        self, meta: Mapping[str, Any], spec: Mapping[str, Any]
    ) -> list[tuple[str, str]]:
        """What a pod does that the level forbids: reasons, each with its detail."""
        minor = LATEST
        if self.version != "latest":
            minor = min(LATEST, int(self.version.removeprefix("v1.")))
        looks = checks(self.name, minor)
        return [found for look in looks if (found := look(meta, spec)) is not None]


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What is enforced in a namespace, and what is warned of."""

    enforce: Level = Level()
    warn: Level = Level()

    @property
    def is_nothing(self) -> bool:
        return self.enforce.name == self.warn.name == "privileged"


def policy_of(labels: Mapping[str, str]) -> tuple[Policy, list[FieldProblem]]:
    """The policy that labels say, and what is wrong with them."""
    problems: list[FieldProblem] = []
    enforce = _level(labels, "enforce", "restricted", problems)
    _level(labels, "audit", "privileged", problems)
    warn = _level(labels, "warn", "privileged", problems)
    named = f"{PREFIX}enforce" in labels and labels[f"{PREFIX}enforce"] in LEVELS
    if f"{PREFIX}warn" not in labels and named and enforce.rank > warn.rank:
        version = warn.version if f"{PREFIX}warn-version" in labels else enforce.version
        warn = Level(enforce.name, version)
    return Policy(enforce=enforce, warn=warn), problems


def _level(
    labels: Mapping[str, str], mode: str, otherwise: str, problems: list[FieldProblem]
) -> Level:
    name = labels.get(f"{PREFIX}{mode}", "privileged")
    if name not in LEVELS:
        detail = f"must be one of {', '.join(LEVELS)}"
        problems.append(_invalid(f"{PREFIX}{mode}", name, detail))
        name = otherwise
    version = labels.get(f"{PREFIX}{mode}-version", "latest")
    if version != "latest" and not _is_version(version):
        detail = 'must be "latest" or "v1.x"'
        problems.append(_invalid(f"{PREFIX}{mode}-version", version, detail))
        version = "latest"
    return Level(name, version)


def _invalid(label: str, value: str, detail: str) -> FieldProblem:
    return status.invalid(f"metadata.labels[{label}]", value, detail)
