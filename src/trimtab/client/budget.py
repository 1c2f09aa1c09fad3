"""Budgets: how much time the surrounding work has left, inherited by every call in it.

``with budget(60):`` says that what happens inside may take a minute in all. A call
inside it that names no deadline of its own gets what is left; nested budgets can only
shorten. Times are the running loop's clock, so that a simulation can own it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ends: ContextVar[float | None] = ContextVar("trimtab_budget_ends", default=None)


@contextmanager
def budget(seconds: float) -> Iterator[None]:
    """Give the work inside ``seconds`` from now, or less if it already has less."""
    ends = asyncio.get_running_loop().time() + seconds
    outer = _ends.get()
    token = _ends.set(ends if outer is None else min(ends, outer))
    try:
        yield
    finally:
        _ends.reset(token)


def remaining() -> float | None:
    """Seconds left of the surrounding budget (never negative); None without one."""
    ends = _ends.get()
    if ends is None:
        return None
    return max(0.0, ends - asyncio.get_running_loop().time())
