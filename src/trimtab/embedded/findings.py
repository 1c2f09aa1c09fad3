"""Findings: the mistakes in a value, before they are told to anybody."""

from __future__ import annotations

from typing import Any

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """One mistake. A finding without a name is about no field in particular."""

    text: str
    name: str | None = None
    kind: str = "invalid"
    value: Any = ""
    limit: int = 0
    allowed: tuple[Any, ...] = ()


class Result:
    """The mistakes in one value, each text once, and how many checks it passed."""

    __slots__ = ("findings", "passed")

    def __init__(self) -> None:
        self.findings: dict[str, Finding] = {}
        self.passed = 0

    def add(self, finding: Finding) -> None:
        self.findings.setdefault(finding.text, finding)

    def merge(self, other: Result) -> None:
        for finding in other.findings.values():
            self.add(finding)
        self.passed += other.passed

    def unplaced(self, text: str) -> None:
        """Add a mistake that is about no field in particular."""
        self.add(Finding(text))
