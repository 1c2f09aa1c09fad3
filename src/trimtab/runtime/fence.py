"""Fences: whether a leader may still write, by its own clock, asking nobody.

One fence is one term of leadership. Whoever writes asks it before each call, with the
seconds that the call may take: what is sent then has ended before another replica can
lead. A fence that was revoked stays so, whatever becomes of this replica: a handler in
a thread that outlives its leader's term holds the fence of that term.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from trimtab.client.errors import TrimtabError


class NotLeader(TrimtabError):
    """This replica leads no more, or not for as long as the call may take."""


class Fence:
    """Closed from its deadline on, and for ever once it is revoked.

    Assumptions: ``clock`` is monotonic and may be read from any thread.
    """

    __slots__ = ("_clock", "_deadline", "_revoked")

    def __init__(self, clock: Callable[[], float], *, deadline: float) -> None:
        self._clock = clock
        self._deadline = deadline
        self._revoked = ""
        """Why it is closed for ever; empty while it is not."""

    def __repr__(self) -> str:
        return f"Fence({'valid' if self.valid else self._revoked or 'expired'})"

    @property
    def valid(self) -> bool:
        """Whether this replica leads at this moment."""
        return not self._revoked and self._clock() < self._deadline

    def check(self, seconds: float) -> None:
        """Raise :class:`NotLeader` unless a call of so many seconds ends in time.

        Guarantees: what is sent right after this, and is over after ``seconds``, is
        over before another replica's fence opens. A process that is stopped between
        this and the sending can be late: see the limits of leadership.
        """
        if self._revoked:
            raise NotLeader(
                f"This replica does not lead any more ({self._revoked}), so nothing is "
                "written; leave it to the replica that leads now."
            )
        left = self._deadline - self._clock()
        if seconds >= left:
            raise NotLeader(
                f"The lease runs out in {max(left, 0.0):.3g} s and the call may take "
                f"{seconds:.3g} s, so it is not made; it will be when the lease has "
                "been renewed."
            )

    def extend(self, deadline: float) -> None:
        """The lease was renewed; a deadline never moves back."""
        self._deadline = max(self._deadline, deadline)

    def revoke(self, why: str) -> None:
        """Close it for ever; the first reason is the one that is told."""
        assert self is not ALWAYS, "there is no election whose end could close it"
        self._revoked = self._revoked or why


ALWAYS = Fence(lambda: 0.0, deadline=math.inf)
"""For work that needs no leader: open, and nobody can close it."""
