"""The history: what became of the last reconciles, for those who ask why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from trimtab.cache import Key
from trimtab.runtime.reconcile import Cause

SIZE = 1024
"""Objects whose last reconcile is remembered; the one that ran longest ago goes."""


class Reconciled(msgspec.Struct, frozen=True, gc=False):
    """One reconcile: why, how it ended, how long it took, what it sent."""

    causes: Sequence[Cause]
    outcome: str
    seconds: float
    writes: int
    ended: float
    """On the loop's clock."""
    error: str = ""


class Failed(msgspec.Struct, frozen=True, gc=False):
    """The failures of one object."""

    count: int
    error: str
    """What the last one said."""
    ended: float


class History:
    """The last reconcile of each object, and its failures, for ``SIZE`` objects."""

    def __init__(self) -> None:
        self._last: dict[Key, Reconciled] = {}
        self._failed: dict[Key, Failed] = {}

    def add(self, key: Key, reconciled: Reconciled) -> None:
        last = self._last
        last.pop(key, None)
        last[key] = reconciled
        if len(last) > SIZE:
            del last[next(iter(last))]
        # To try again is no failure: somebody else wrote first, or it is too early.
        if reconciled.error and reconciled.outcome != "retry":
            self._count(key, reconciled)

    def _count(self, key: Key, reconciled: Reconciled) -> None:
        before = self._failed.pop(key, None)
        count = before.count + 1 if before else 1
        self._failed[key] = Failed(count, reconciled.error, reconciled.ended)
        if len(self._failed) > SIZE:
            del self._failed[next(iter(self._failed))]

    def settled(self, key: Key) -> None:
        """There is nothing to do for an object any more: how it went last is over."""
        self._last.pop(key, None)

    def of(self, key: Key) -> Reconciled | None:
        return self._last.get(key)

    def failures(self, key: Key) -> Failed | None:
        """How often an object has failed since this process began, and why last."""
        return self._failed.get(key)


def told(reconciled: Reconciled, *, now: float, clock: datetime) -> dict[str, Any]:
    """The form in which ``/debug/why`` tells it."""
    return {
        "causes": [str(cause) for cause in reconciled.causes],
        "outcome": reconciled.outcome,
        "error": reconciled.error or None,
        "seconds": round(reconciled.seconds, 6),
        "writes": reconciled.writes,
        "secondsAgo": round(now - reconciled.ended, 3),
        "asked": clock.isoformat(timespec="seconds"),
    }
