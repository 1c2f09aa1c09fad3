"""Subscribers: who is told of changes, each of them in order and without a gap.

A callback may itself write. The change that it makes waits until everybody has seen the
present one, so that all subscribers see the same order.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable

from trimtab.embedded.history import Change

logger = logging.getLogger(__name__)

Callback = Callable[[Change], None]


class Subscription:
    """One callback, and the last revision that it was shown."""

    __slots__ = ("callback", "seen")

    def __init__(self, callback: Callback, *, seen: int) -> None:
        self.callback = callback
        self.seen = seen


class Subscribers:
    """The subscriptions of one store, and the changes that are still to be told."""

    def __init__(self) -> None:
        # A dictionary for its order and for leaving it in one step.
        self._members: dict[Subscription, None] = {}
        self._owed: deque[Change] = deque()
        self._busy = False

    def add(self, callback: Callback, *, seen: int) -> Callable[[], None]:
        """Tell ``callback`` of what comes after revision ``seen``; returns its end."""
        member = Subscription(callback, seen=seen)
        self._members[member] = None

        def leave() -> None:
            self._members.pop(member, None)

        return leave

    def owe(self, changes: Iterable[Change]) -> None:
        """Changes to be told before the next one that is published."""
        self._owed.extend(changes)

    def publish(self, change: Change) -> None:
        """Tell everybody, after what is still owed; from within a callback: later."""
        self._owed.append(change)
        if self._busy:
            return
        self._busy = True
        try:
            # It goes when all have seen it, so an interrupt in between loses nothing:
            # the next change brings it to the others, and to nobody twice.
            while self._owed:
                self._tell(self._owed[0])
                self._owed.popleft()
        finally:
            self._busy = False

    def _tell(self, change: Change) -> None:
        for member in tuple(self._members):
            if member not in self._members or member.seen >= change.revision:
                continue
            member.seen = change.revision
            try:
                member.callback(change)
            except Exception:
                self._members.pop(member, None)
                logger.exception(
                    "A subscriber failed at revision %d and is told no more.",
                    change.revision,
                )
