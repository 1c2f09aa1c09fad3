"""Budgets: how much time the surrounding work has left, inherited by every call in it.

``with budget(60):`` says that what happens inside may take a minute in all. A call
inside it that names no deadline of its own gets what is left; nested budgets can only
shorten. Times are the running loop's clock, so that a simulation can own it.
"""

from __future__ import annotations

import asyncio
from contextvars import Context, ContextVar, copy_context
from types import TracebackType

_ends: ContextVar[float | None] = ContextVar("trimtab_budget_ends", default=None)


class budget:  # it reads as the verb that it is
    """Give the work inside ``seconds`` from now, or less if it already has less."""

    # A class: a generator would cost a controller more than the rest of its turn.
    __slots__ = ("_seconds", "_token")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        ends = asyncio.get_running_loop().time() + self._seconds
        outer = _ends.get()
        self._token = _ends.set(ends if outer is None else min(ends, outer))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _ends.reset(self._token)


def remaining() -> float | None:
    """Seconds left of the surrounding budget (never negative); None without one."""
    ends = _ends.get()
    if ends is None:
        return None
    return max(0.0, ends - asyncio.get_running_loop().time())


def without_budget() -> Context:
    """The present context without its budget, for a task that outlives its starter.

    A task inherits the budget of whoever starts it. What it starts in turn inherits the
    rest, so a chain of tasks would have less and less time, down to none for ever.
    """
    context = copy_context()
    context.run(_ends.set, None)
    return context
