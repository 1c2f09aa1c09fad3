"""A deadline for what a task does, again and again, at the price of one timer.

A worker reconciles thousands of objects in the time that one of them may take. A timer
for each would cost more than most of the work; this one looks, when it is due, how long
the present piece of work has, and comes back later.
"""

from __future__ import annotations

import asyncio
from typing import Any


class Deadline:
    """Cancels a task when a piece of its work takes too long.

    Flow: ``begins(seconds)`` before each piece of work and ``ends()`` after it,
    whatever became of it. ``ends`` says whether time was up: then a ``CancelledError``
    was thrown into the work, which it may have swallowed, and the task is no longer
    being cancelled, unless by somebody else as well.

    Assumptions: both are called by the task itself. A timer only runs while the task
    waits, so what it throws arrives within the work.
    """

    __slots__ = ("_due", "_loop", "_passed", "_task", "_timer")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task
        self._loop = task.get_loop()
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._passed = False

    def begins(self, seconds: float) -> None:
        self._due = self._loop.time() + seconds
        if self._timer is None or self._timer.when() > self._due:
            self.close()
            self._timer = self._loop.call_at(self._due, self._look)

    def ends(self) -> bool:
        """The work is over; whether its time was up before."""
        self._due = None
        if not self._passed:
            return False
        self._passed = False
        self._task.uncancel()
        return True

    def close(self) -> None:
        """No timer is left behind."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if self._due is None:
            return  # nothing is under way; the next work makes a new timer
        if self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._look)
        else:
            self._passed = True
            self._task.cancel()
