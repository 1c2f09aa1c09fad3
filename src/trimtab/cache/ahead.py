"""Reading ahead: a task that runs beside a block of work and never outlives it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


@asynccontextmanager
async def ahead(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Run ``work`` beside the block; its result is there when the block is left.

    Flow: ``work`` gets its first turn before the block begins, so that a request of it
    is on its way while the block keeps the loop busy.
    Errors: the first one, of either; the other is cancelled.
    """
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            await asyncio.sleep(0)
            yield task
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
