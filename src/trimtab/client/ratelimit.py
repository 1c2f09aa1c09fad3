"""A client-side rate limit: so many requests a second, with a burst. Off by default.

The server's own fairness is the better limit; this one is for servers without it.
"""

from __future__ import annotations

import math


class RateLimit:
    """A token bucket, as a line of places in time that callers take in turn."""

    def __init__(self, *, per_second: float, burst: int) -> None:
        if per_second <= 0 or burst < 1:
            raise ValueError(
                f"a rate limit of {per_second} requests a second and bursts of {burst} "
                "lets nothing through; both must be positive"
            )
        self._interval = 1.0 / per_second
        self._ahead = self._interval * (burst - 1)
        self._next = float("-inf")

    def reserve(self, now: float, *, ends: float = math.inf) -> float | None:
        """Take the next place and say how many seconds from ``now`` it lies.

        None, and nothing is taken, if it does not lie before ``ends``: else callers
        that gave up long ago would hold the places of those who come after them.
        """
        place = max(self._next, now - self._ahead)
        delay = max(0.0, place - now)
        if now + delay >= ends:
            return None
        self._next = place + self._interval
        return delay
