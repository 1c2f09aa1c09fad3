"""The trace: what happened, for the digest in short and for a reader in sentences."""

from __future__ import annotations

from collections import Counter, deque
from typing import Final

from trimtab.sim.loop import SimLoop

KEPT: Final = 400
"""The last lines that a failure shows come from so many."""


class Trace:
    """The last lines of one run, and counts of all of it."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.lines: deque[str] = deque(maxlen=KEPT)
        self.calls = 0
        self.faults: Counter[str] = Counter()

    def say(self, who: str, what: str) -> None:
        """Something worth reading."""
        line = f"{self._loop.time():10.3f} s  {who:<12} {what}"
        self._loop.tell(line)
        self.lines.append(line)

    def note(self, who: str, what: str) -> None:
        """A word for the reader that is no part of the digest: a log line."""
        self.lines.append(f"{self._loop.time():10.3f} s  {who:<12}   {what}")

    def call(self, who: str, what: str) -> None:
        """A call that reached the server; part of the digest only."""
        self.calls += 1
        self._loop.tell(f"{who} {what}")

    def fault(self, who: str, kind: str, what: str) -> None:
        self.faults[kind] += 1
        self.say(who, f"*** {kind}: {what}")
