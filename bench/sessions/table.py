"""The table: what was found of each program, beside the bar that ours is held to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import isinf

import msgspec


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that must not be above its bar."""

    what: str
    found: float
    bar: float
    unit: str = ""

    @property
    def passes(self) -> bool:
        return self.found <= self.bar

    @property
    def shown(self) -> str:
        if isinf(self.found):
            return "never seen"
        return f"{self.found:.4g} {self.unit}".rstrip()


class Column:
    """What was found of one program."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: dict[str, Row] = {}

    def row(self, what: str, found: float, bar: float, *, unit: str = "") -> None:
        """Keep a figure, and say it at once: the next one may take minutes."""
        made = Row(what=what, found=found, bar=bar, unit=unit)
        self.rows[what] = made
        print(f"{self.name}: {what}: {made.shown}", file=sys.stderr, flush=True)

    @property
    def failed(self) -> int:
        return sum(not each.passes for each in self.rows.values())


def table(title: str, columns: Sequence[Column]) -> str:
    """All columns as a page shows them; the first one is ours, and is judged."""
    ours, *others = columns
    names = " | ".join(each.name for each in columns)
    lines = [f"## {title}", "", f"| what | {names} | bar | |"]
    lines.append("|---" * (len(columns) + 3) + "|")
    for what, row in ours.rows.items():
        theirs = [
            each.rows[what].shown if what in each.rows else "–" for each in others
        ]
        cells = [what, row.shown, *theirs, f"≤ {row.bar:g} {row.unit}".rstrip()]
        lines.append(f"| {' | '.join(cells)} | {'pass' if row.passes else 'FAIL'} |")
    return "\n".join(lines)
