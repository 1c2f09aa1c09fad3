"""What programs around other people's informers share; the standard library only."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path


class Reporter:
    """Answers the suite on standard input and output; see ``subjects.py``."""

    def __init__(self, snapshot: Callable[[], dict[str, str]]) -> None:
        self._snapshot = snapshot
        self.added: Counter[str] = Counter()
        self.deleted: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._last: set[str] = set()

    def sample(self) -> dict[str, str]:
        """For an informer that tells nobody: compare what it has with a moment ago."""
        with self._lock:
            have = self._snapshot()
            self.added.update(have.keys() - self._last)
            self.deleted.update(self._last - have.keys())
            self._last = set(have)
            return have

    def serve(self, *, sampled: bool = False) -> None:
        """Answer until the suite hangs up."""
        for line in sys.stdin:
            if line.strip() == "reset":
                Path("/proc/self/clear_refs").write_text("5")
                answer: object = {}
            else:
                answer = {
                    "snapshot": self.sample() if sampled else self._snapshot(),
                    "added": dict(self.added),
                    "deleted": dict(self.deleted),
                    "rss": _memory("VmRSS"),
                    "peak": _memory("VmHWM"),
                }
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def _memory(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0
