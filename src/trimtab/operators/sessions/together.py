"""Together: coroutines that run at once, and end with the first error of one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
U = TypeVar("U")


async def together(*work: Coroutine[Any, Any, object]) -> None:
    """Have all of it done.

    Errors: the first one, as it is; what was under way then is broken off.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(each)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def both(
    one: Coroutine[Any, Any, T], other: Coroutine[Any, Any, U]
) -> tuple[T, U]:
    """What two things come to; errors as of :func:`together`."""
    try:
        async with asyncio.TaskGroup() as group:
            first, second = group.create_task(one), group.create_task(other)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return first.result(), second.result()
