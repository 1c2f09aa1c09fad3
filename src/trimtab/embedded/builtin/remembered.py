"""Remembering: a bounded cache for checks of texts that many objects have.

Only short texts are remembered. A client can send megabytes in a name, and a cache of
those would be a leak that it fills at will.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, TypeVar

T = TypeVar("T")

_LONGEST: Final = 256
_MOST: Final = 8192


def remembered(function: Callable[[str], T]) -> Callable[[str], T]:
    """The same function, which answers again what it was asked before."""
    again = lru_cache(maxsize=_MOST)(function)

    @wraps(function)
    def answer(text: str) -> T:
        return again(text) if len(text) <= _LONGEST else function(text)

    return answer
