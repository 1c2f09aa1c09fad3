"""The queue for workers that wait: a thin asynchronous shell around :class:`Queue`.

A fixed number of long-lived workers call :meth:`WorkQueue.get` in a loop. There is no
task per item, one timer for the next due time and none while nobody waits, and each
entry that becomes available wakes one worker.
"""

from __future__ import annotations

import asyncio
from collections import deque

from trimtab.runtime.lanes import Entry
from trimtab.runtime.queue import CHANGE, Queue, QueueStatistics, Waiting
from trimtab.runtime.reconcile import Cause, Key


class QueueClosed(Exception):
    """The queue hands out nothing more: the worker that asked can end."""


class WorkQueue:
    """A queue on the running loop's clock. Make it inside of that loop.

    Guarantees: an entry is handed to one worker. A ``get`` that is cancelled while it
    waits takes nothing with it: what it was woken for goes to the next worker.
    """

    def __init__(self, queue: Queue) -> None:
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time
        self._queue = queue
        self._closed = False
        # Workers that wait, the longest first; those woken leave at once.
        self._waiters: deque[asyncio.Future[None]] = deque()
        # Woken, and not yet run: each will take one of the ready entries.
        self._woken = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(
        self,
        key: Key,
        *,
        due: float | None = None,
        priority: int = CHANGE,
        cause: Cause | None = None,
        wake: bool = False,
    ) -> None:
        """Ask for work on a key, at once or at ``due``; see :meth:`Queue.add`."""
        self._queue.add(
            key, now=self._time(), due=due, priority=priority, cause=cause, wake=wake
        )
        if self._waiters:
            self._notify()

    def done(self, key: Key, *, after: float | None = None) -> None:
        """The work on a key ended well; see :meth:`Queue.done`."""
        self._queue.done(key, now=self._time(), after=after)
        if self._waiters:
            self._notify()

    def failed(self, key: Key, *, after: float | None = None) -> float:
        """The work on a key failed; see :meth:`Queue.failed`."""
        pause = self._queue.failed(key, now=self._time(), after=after)
        if self._waiters:
            self._notify()
        return pause

    def forget(self, key: Key) -> None:
        """The object of a key is gone; see :meth:`Queue.forget`."""
        self._queue.forget(key)

    async def get(self) -> Entry:
        """The next entry, as soon as one is due; then call ``done`` or ``failed``.

        Errors: :class:`QueueClosed` once the queue is closed, also when it was not yet
        closed as the wait began.
        """
        while not self._closed:
            if (entry := self.poll()) is not None:
                return entry
            await self._wait()
        raise QueueClosed("the queue is closed: nothing more is handed out")

    def poll(self) -> Entry | None:
        """What :meth:`get` would return without waiting; None if it would wait."""
        return None if self._closed else self._queue.take(self._time())

    def close(self) -> None:
        """Hand out nothing more. What is being worked on can still be ended."""
        self._closed = True
        self._disarm()
        while self._waiters:
            self._wake()

    @property
    def closed(self) -> bool:
        return self._closed

    def __len__(self) -> int:
        return len(self._queue)

    def statistics(self) -> QueueStatistics:
        """What the queue holds; see :meth:`Queue.statistics`."""
        return self._queue.statistics(self._time())

    def waiting(self, key: Key) -> Waiting:
        """What waits for a key; see :meth:`Queue.waiting`."""
        return self._queue.waiting(key)

    async def _wait(self) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        self._arm()
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():  # woken, and cancelled before it could run
                self._woken -= 1
                self._notify()
            elif waiter in self._waiters:
                self._waiters.remove(waiter)
            raise
        self._woken -= 1

    def _notify(self) -> None:
        """Wake a waiting worker for each ready entry that nobody is on the way to."""
        ready = self._queue.ripen(self._time())
        while self._waiters and self._woken < ready:
            self._wake()
        self._arm()

    def _wake(self) -> None:
        waiter = self._waiters.popleft()
        if not waiter.done():  # else it was cancelled, and is about to hear of it
            self._woken += 1
            waiter.set_result(None)

    def _arm(self) -> None:
        """One timer, at the next due time, as long as somebody waits for it."""
        due = self._queue.next_due() if self._waiters else None
        if self._timer is not None and self._timer.when() == due:
            return
        self._disarm()
        if due is not None and not self._closed:
            self._timer = self._loop.call_at(due, self._ring)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        self._notify()
