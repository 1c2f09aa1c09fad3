"""Threads of a simulation: plain functions that may block, one at a time.

A handler that is a plain ``def`` needs a stack of its own, so it has a real thread; but
either the thread runs or the loop does, never both. The thread runs until it asks
something of the loop or ends; the loop stands meanwhile. So the order of everything is
the loop's.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from trimtab.runtime import threads
from trimtab.runtime.threads import Threads
from trimtab.sim.provided import real_start, running_loop

T = TypeVar("T")


class _Baton:
    """Whose turn it is; it looks to a job like its loop.

    Invariant: the loop's thread waits in :meth:`lend` whenever the other runs.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._back = threading.Semaphore(0)

    def lend(self) -> None:
        """In the loop's thread: the other one runs now; return when it waits."""
        self._back.acquire()

    def give_back(self) -> None:
        """In the other thread: it waits, or has ended."""
        self._back.release()

    def call_soon_threadsafe(self, ask: Callable[..., Any], call: Any) -> None:
        # Its answer lets the thread run on: whoever gives it waits for the thread.
        call.outcome.add_done_callback(lambda _: self.lend())
        self._loop.call_soon(ask, call)
        self.give_back()


class SimThreads(Threads):
    """:class:`Threads` in lock step with the loop."""

    async def run(
        self, function: Callable[..., T], *args: Any, linger: bool = False
    ) -> T:
        if self._closed:
            raise RuntimeError("These threads are closed; nothing more runs in them.")
        job = threads._Job(partial(function, *args))
        loop, baton = running_loop(), _Baton(job.loop)
        job.loop = baton  # type: ignore[assignment]
        self._working += 1
        self._idle.clear()
        loop.call_later(loop._random.uniform(0, 0.005), self._begin, job, baton)
        try:
            value: T = await job.serve()
            return value
        except asyncio.CancelledError:
            if linger and not self._closed:
                await job.gone.wait()
            raise

    def _begin(self, job: threads._Job, baton: _Baton) -> None:
        thread = threading.Thread(
            target=self._perform, args=(job, baton), name="simulated", daemon=True
        )
        real_start(thread)
        baton.lend()

    def _perform(self, job: threads._Job, baton: _Baton) -> None:
        job.work()
        running = baton._loop
        running.call_soon_threadsafe(self._ended, job)
        baton.give_back()
