"""Hosts: whose machine a piece of simulated work runs on, and what that machine gives.

A host has a wall clock that may be wrong, a chance of its own, and an end. Which host a
callback belongs to is in its context, so that whatever a replica starts, however deep,
is still that replica's.
"""

from __future__ import annotations

from contextvars import ContextVar
from random import Random

BOOTED = 1_750_000_000.0
"""The wall clock of a host without skew when the loop's clock shows zero."""


class Host:
    """One machine, from its start to its end; a restart is another host."""

    __slots__ = ("alive", "name", "random", "refused", "skew", "uptime")

    def __init__(
        self, name: str, *, random: Random, skew: float = 0.0, uptime: float = 0.0
    ) -> None:
        self.name = name
        self.random = random
        """What ``random``, ``secrets``, ``uuid`` and ``os.urandom`` draw from."""
        self.skew = skew
        """Seconds that its wall clock is ahead of the truth."""
        self.uptime = uptime
        """What its monotonic clock shows when the loop's shows zero."""
        self.alive = True
        self.refused: list[str] = []
        """What it asked for that no simulation has, by name."""

    def __repr__(self) -> str:
        return f"Host({self.name})"

    def wall(self, now: float) -> float:
        """Its wall clock, in seconds since 1970, when the loop's clock shows this."""
        return BOOTED + now + self.skew


HOST: ContextVar[Host | None] = ContextVar("trimtab_sim_host", default=None)
"""The host of the running callback; None outside of any simulation."""
