"""Backoff and breaker: how long a key that fails waits, and when it is left alone."""

from __future__ import annotations

import math
from random import Random

import msgspec


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Pauses that grow with each failure in a row, up to a cap, a little shuffled."""

    first: float = 0.1
    """Seconds after the first failure."""
    factor: float = 2.0
    """Each next pause is so many times the one before."""
    cap: float = 300.0
    """No pause is longer."""
    jitter: float = 0.2
    """A pause is shortened by a random part of itself, at most this one, so that keys
    that failed together do not come back together."""

    def __post_init__(self) -> None:
        if not (0 < self.first <= self.cap < math.inf and 1 <= self.factor < math.inf):
            raise ValueError(
                f"a backoff from {self.first} to {self.cap} seconds by a factor of "
                f"{self.factor} does not grow; give 0 < first <= cap and factor >= 1"
            )
        if not 0 <= self.jitter <= 1:
            raise ValueError(
                f"a jitter of {self.jitter} is not a part of a pause; give 0 to 1"
            )

    def pause(self, failures: int, *, random: Random) -> float:
        """Seconds to wait after so many failures in a row, counted from one."""
        # Compared as logarithms: the power itself may be beyond any float.
        growth = (failures - 1) * math.log(self.factor)
        if growth >= math.log(self.cap / self.first):
            full = self.cap
        else:
            full = min(self.cap, self.first * self.factor ** (failures - 1))
        return full * (1.0 - self.jitter * random.random())


class Breaker(msgspec.Struct, frozen=True, kw_only=True):
    """When a key that keeps failing is left alone, and for how long.

    An *open* key is not brought back by ordinary changes, which a failing handler often
    makes itself. It gets one trial when the cooldown ends, or when it is woken.
    """

    failures: int = 10
    """So many failures in a row open it."""
    cooldown: float = 300.0
    """Seconds that it stays open."""

    def __post_init__(self) -> None:
        if self.failures < 1 or not 0 < self.cooldown < math.inf:
            raise ValueError(
                f"a breaker after {self.failures} failures for {self.cooldown} seconds "
                "breaks nothing; both must be positive"
            )
