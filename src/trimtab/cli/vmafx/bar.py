"""A bar that shows how far something is, on one line of the terminal."""

from __future__ import annotations

import sys


class Bar:
    """How far it is, on the line that it leaves empty."""

    WIDTH = 40

    def __init__(self, unit: str = " frames") -> None:
        self._unit = unit

    def show(self, done: int, expected: int | None) -> None:
        """Draw it anew."""
        if expected is None:
            line = f"{done}{self._unit}"
        else:
            full = min(self.WIDTH, done * self.WIDTH // expected)
            line = f"{'█' * full:░<{self.WIDTH}} {done} of {expected}{self._unit}"
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take it away."""
        print("\r\033[K", end="", file=sys.stderr, flush=True)
