"""Tasks, futures and weak sets whose order is that of their making, in every process.

``TaskGroup`` and ``asyncio.wait`` keep sets. A set of objects that hash by address is
walked in another order each time, so that cancelling it ends in another order, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from inspect import CORO_CREATED, getcoroutinestate, iscoroutine
from typing import Any
from weakref import ref

from trimtab.sim.hosts import HOST, Host


class SimFuture(asyncio.Future[Any]):
    """A future that hashes by its number, which the loop gives it."""

    __slots__ = ("number",)
    number: int

    def __hash__(self) -> int:
        return self.number


class SimTask(asyncio.Task[Any]):
    """A task that hashes by its number and knows its host."""

    __slots__ = ("host", "number")

    def __init__(self, coro: Any, *, number: int, context: Any, **more: Any) -> None:
        # First: making a task puts it into a set, which asks for its hash.
        self.number = number
        found = HOST.get() if context is None else context.get(HOST)
        self.host: Host | None = found
        super().__init__(coro, context=context, **more)

    def __hash__(self) -> int:
        return self.number

    def bury(self) -> None:
        """Its host is no more: it stays as it is, and nobody is told when it is let go.

        What has not taken a step yet is closed: it has nothing to clean up, and Python
        would warn of a coroutine that was never awaited.
        """
        self._log_destroy_pending = False
        work = self.get_coro()
        if iscoroutine(work) and getcoroutinestate(work) == CORO_CREATED:
            work.close()


class OrderedWeakSet:
    """What :class:`weakref.WeakSet` is, in the order in which things were added."""

    def __init__(self) -> None:
        self._members: dict[int, ref[Any]] = {}

    def add(self, item: Any) -> None:
        key = id(item)
        self._members[key] = ref(item, lambda _: self._members.pop(key, None))

    def discard(self, item: Any) -> None:
        self._members.pop(id(item), None)

    def clear(self) -> None:
        self._members.clear()

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Any]:
        found = (each() for each in tuple(self._members.values()))
        return (each for each in found if each is not None)
