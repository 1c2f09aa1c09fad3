"""Guards: whether the surrounding work may still write, asked before every write.

``with guarded(check):`` says that whatever is written inside, by whichever client, is
first put to ``check``. A leader's work is guarded by its lease: once that may have
passed to somebody else, nothing inside can write any more, wherever in it the call is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Guard: TypeAlias = Callable[[float], float]
"""Given the seconds that a write may take; the seconds it gets, or raises."""

_guard: ContextVar[Guard | None] = ContextVar("trimtab_guard", default=None)


@contextmanager
def guarded(check: Guard) -> Iterator[None]:
    """Put every write inside to ``check``, and to the guards that surround it."""
    outer = _guard.get()
    token = _guard.set(check if outer is None else lambda each: check(outer(each)))
    try:
        yield
    finally:
        _guard.reset(token)


def allowed(seconds: float) -> float:
    """How long a write that would like ``seconds`` may take; raises if not at all."""
    guard = _guard.get()
    return seconds if guard is None else guard(seconds)
