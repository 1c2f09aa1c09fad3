"""Threads: where synchronous handlers run, so that they may block.

A handler in a thread reaches the loop through :func:`from_thread`. Its coroutines run
in the very task that awaits the handler: they have that task's budget and its context,
and are cancelled with it. When that task is gone, the thread is *revoked*: it cannot be
stopped, but whatever it asks of the loop from then on is refused.

The threads are daemons, unlike those of ``concurrent.futures``: a handler that hangs
must not keep a process from ending.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import ContextVar, copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, TypeVar

import msgspec

from trimtab.client.budget import remaining
from trimtab.client.errors import DeadlineExceeded, TrimtabError

T = TypeVar("T")

LIMIT: Final = 16

logger = logging.getLogger("trimtab.runtime.threads")

_job: ContextVar[_Job | None] = ContextVar("trimtab_thread_job", default=None)


class Revoked(TrimtabError):
    """The work that this thread was started for has been cancelled."""


class ThreadStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What the threads are doing."""

    threads: int
    """Threads that were started and wait or work."""
    working: int
    """Calls that have not ended, those included that nobody awaits any more."""


class _Call:
    """A coroutine that a thread wants to have run, and its outcome."""

    __slots__ = ("coroutine", "outcome")

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.coroutine = coroutine
        self.outcome: Future[Any] = Future()

    async def perform(self) -> None:
        """Run it here. Its errors are the thread's; a cancellation is also ours."""
        try:
            async with asyncio.timeout(remaining()) as limit:
                value = await self.coroutine
        except Exception as error:
            late = isinstance(error, TimeoutError) and limit.expired()
            self.outcome.set_exception(_spent() if late else error)
        except BaseException:
            self.outcome.set_exception(_revoked())
            raise
        else:
            self.outcome.set_result(value)

    def refuse(self) -> None:
        self.coroutine.close()
        self.outcome.set_exception(_revoked())


class _Job:
    """One call of a function in a thread. All but ``work`` runs on the loop."""

    __slots__ = (
        "_calls",
        "_context",
        "_function",
        "_wake",
        "gone",
        "loop",
        "outcome",
        "over",
    )

    def __init__(self, function: Callable[[], Any]) -> None:
        self.loop = asyncio.get_running_loop()
        self.outcome: Future[Any] = Future()
        self.over = False
        """Nobody awaits this any more; the thread reads it too."""
        self.gone = asyncio.Event()
        """Its thread has left it."""
        self._function = function
        self._calls: deque[_Call] = deque()
        self._wake = asyncio.Event()
        self._context = copy_context()
        self._context.run(_job.set, self)

    def work(self) -> None:
        """Run the function; this is the thread's part. It never raises."""
        if self.over:
            self.outcome.cancel()
            return
        try:
            self.outcome.set_result(self._context.run(self._function))
        except StopIteration as error:
            # A coroutine that raises it would seem to have returned.
            wrong = RuntimeError(f"A synchronous handler raised {error!r}.")
            wrong.__cause__ = error
            self.outcome.set_exception(wrong)
        except BaseException as error:
            self.outcome.set_exception(error)

    async def serve(self) -> Any:
        """Do what the thread asks for until it is done; its outcome."""
        try:
            while not self.outcome.done() or self._calls:
                await self._wake.wait()
                self._wake.clear()
                while self._calls:
                    await self._calls.popleft().perform()
            return self.outcome.result()
        finally:
            self.over = True
            while self._calls:
                self._calls.popleft().refuse()

    def ask(self, call: _Call) -> None:
        if self.over:
            call.refuse()
        else:
            self._calls.append(call)
            self._wake.set()

    def ended(self) -> None:
        self._wake.set()
        self.gone.set()
        failed = not self.outcome.cancelled() and self.outcome.exception()
        if self.over and failed:
            logger.info("A handler that was cancelled ended with %r.", failed)


class Threads:
    """At most ``limit`` threads, started when they are needed.

    Guarantees: a call that is cancelled before its thread began never begins. One that
    has begun goes on, revoked, and :meth:`drained` waits for its end. Context
    variables, the budget among them, are those of the caller.

    Assumptions: used by one loop.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads = 0
        self._working = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False
        self._lingering: set[_Job] = set()
        """Cancelled calls that are still waited for."""

    async def run(
        self, function: Callable[..., T], *args: Any, linger: bool = False
    ) -> T:
        """Call a function in a thread and await its outcome.

        With ``linger`` a call that is cancelled is revoked at once, but waited for; a
        second cancellation ends that, too.

        Errors: what the function raises; ``RuntimeError`` when this is closed.
        """
        if self._closed:
            raise RuntimeError("These threads are closed; nothing more runs in them.")
        job = _Job(partial(function, *args))
        self._working += 1
        self._idle.clear()
        if self._working > self._threads and self._threads < self.limit:
            self._start(job.loop)
        self._jobs.put(job)
        try:
            value: T = await job.serve()
            return value
        except asyncio.CancelledError:
            if linger and not self._closed:
                self._lingering.add(job)
                try:
                    await job.gone.wait()
                finally:
                    self._lingering.discard(job)
            raise

    async def drained(self) -> None:
        """Wait until no thread works, not even for somebody who has left."""
        await self._idle.wait()

    def close(self) -> None:
        """Take no more work; a thread ends as soon as it has none.

        Whoever waits for :meth:`drained`, or lingers, waits no more: what still runs is
        abandoned.
        """
        if not self._closed:
            self._closed = True
            self._idle.set()
            for job in self._lingering:
                job.gone.set()
            for _ in range(self._threads):
                self._jobs.put(None)

    def statistics(self) -> ThreadStatistics:
        return ThreadStatistics(threads=self._threads, working=self._working)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._threads += 1
        threading.Thread(
            target=self._work,
            args=(loop,),
            name=f"trimtab-handler-{self._threads}",
            daemon=True,
        ).start()

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """What a thread does all its life."""
        while (job := self._jobs.get()) is not None:
            job.work()
            try:
                loop.call_soon_threadsafe(self._ended, job)
            except RuntimeError:
                return  # The loop is closed: nobody is left to work for.
            # An idle thread must not keep the objects of its last handler.
            del job

    def _ended(self, job: _Job) -> None:
        self._working -= 1
        if not self._working:
            self._idle.set()
        job.ended()


def from_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop, for a synchronous handler, and wait for it.

    Guarantees: it ends when the budget of the handler's reconcile does.

    Errors: what the coroutine raises; :class:`~trimtab.client.DeadlineExceeded` when
    the budget is spent; :class:`Revoked` when the reconcile was cancelled; and
    ``RuntimeError`` anywhere but in a function that :meth:`Threads.run` runs.
    """
    job = _job.get()
    if job is None:
        coroutine.close()
        raise RuntimeError(
            "There is no synchronous handler here to wait for a coroutine: call this"
            " in the thread of one, and use await in an async def."
        )
    call = _Call(coroutine)
    try:
        job.loop.call_soon_threadsafe(job.ask, call)
    except RuntimeError:
        call.refuse()
    value: T = call.outcome.result()
    return value


def _revoked() -> Revoked:
    return Revoked(
        "The reconcile that this thread works for was cancelled; return from the"
        " handler, it runs again when it is due."
    )


def _spent() -> DeadlineExceeded:
    return DeadlineExceeded(
        "The budget of this reconcile is spent; give it more time, or do less in one"
        " reconcile."
    )
