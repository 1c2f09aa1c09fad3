"""Lint rules of our own: bug classes that are refused where they are written.

Each module but `source` is one rule; its first sentence says which. A finding is a line
`path:line: why, and what to do instead`. There is no comment that turns a rule off: the
places where a rule does not hold are listed in the rule itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from hack.lints import caches, clients, clock, locks, tasks
from hack.lints.source import Finding, Rule, Source

RULES: dict[str, Rule] = {
    "caches": caches.check,
    "clients": clients.check,
    "clock": clock.check,
    "locks": locks.check,
    "tasks": tasks.check,
}


def check(path: str, text: str) -> Iterator[Finding]:
    """What every rule finds in one file; `path` is relative to the repository."""
    source = Source(path, text)
    for rule in RULES.values():
        yield from rule(source)
