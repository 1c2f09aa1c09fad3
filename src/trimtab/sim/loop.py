"""The loop: asyncio in virtual time, where chance with a seed decides who goes next.

Time stands while anything can run, and then jumps to the next timer. Of the tasks that
could go on, a seeded choice picks one. What asyncio promises is kept: callbacks given
to ``call_soon`` run in their order, and so do the callbacks of one future. The same
seed and the same code give the same steps, in any process; :meth:`SimLoop.digest` is
the proof.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import logging
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context
from heapq import heapify, heappop, heappush
from random import Random
from typing import Any, Final, TypeVar

from trimtab.client.errors import TrimtabError
from trimtab.sim.handles import SimHandle, SimTimer
from trimtab.sim.hosts import HOST, Host
from trimtab.sim.ordered import OrderedWeakSet, SimFuture, SimTask
from trimtab.sim.refusals import REFUSED, refusing
from trimtab.sim.refusals import Refused as Refused

T = TypeVar("T")

STEP: Final = 2e-5
"""Seconds that a step costs: a loop that never waits gets nowhere, but in time."""
COLLECT: Final = 100_000
"""Steps between two collections of cyclic garbage, which finalizers follow."""
CHUNK: Final = 4096
WAKEUP: Final = "task_wakeup"
BUILTIN: Final = type(len)
OUR_OWN: Final = (SimFuture, SimTask)
# Timers that were cancelled stay in the heap until they are more than this, and half.
CANCELLED: Final = 256


class Stuck(TrimtabError):
    """Nothing can ever happen any more."""


class SimLoop(asyncio.BaseEventLoop):
    """An event loop whose time and whose choices are its own.

    Guarantees: plain callbacks keep their order, and so do those of one future. A task
    that could go on does so after finitely many steps. No step of a host runs after
    :meth:`bury`.

    Errors: :class:`Stuck` when nothing is ready and no timer is left;
    :class:`Refused` for sockets, pipes, subprocesses, signals and name lookups.
    """

    def __init__(self, seed: int | str) -> None:
        super().__init__()
        self.steps = 0
        self._moment = 0.0
        self._random = Random(f"loop {seed}")
        self._chance = self._random.random
        self._plain: deque[asyncio.Handle] = deque()
        self._wakeups: list[asyncio.Handle] = []
        """Tasks that could go on, each because of one future that has one callback."""
        self._waking: dict[Any, asyncio.Handle] = {}
        """The same, by that future."""
        self._last: Any = None
        """The future whose callback was scheduled last."""
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._cancelled = 0
        self._numbers = 0
        self._tasks = OrderedWeakSet()
        self._graves: list[SimTask] = []
        self._buried: set[Host] = set()
        self._paused: dict[Host, list[asyncio.Handle]] = {}
        """What hosts that stand still have to do when they go on."""
        self._digest = hashlib.sha256()
        self._told: list[Any] = []
        self._collects = COLLECT
        self._asyncgens = OrderedWeakSet()

    # Time and order

    def time(self) -> float:
        return self._moment

    def pass_time(self, seconds: float) -> None:
        """Somebody held the whole loop up for so long."""
        self._moment += max(0.0, seconds)

    def call_soon(  # type: ignore[override]
        self,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.Handle:
        if self._closed:  # type: ignore[attr-defined]
            self._check_closed()  # type: ignore[attr-defined]
        handle = SimHandle(callback, args, self, context)
        self._put(handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]
        self,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.Handle:
        # Threads of a simulation run one at a time: see trimtab.sim.threads.
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._moment + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        if self._closed:  # type: ignore[attr-defined]
            self._check_closed()  # type: ignore[attr-defined]
        timer = SimTimer(when, callback, args, self, context)
        if self._buried and self._is_buried(timer):
            timer.cancel()
            return timer
        self._numbers += 1
        heappush(self._timers, (when, self._numbers, timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        self._cancelled += 1
        if self._cancelled > CANCELLED and self._cancelled * 2 > len(self._timers):
            self._keep(lambda timer: not timer.cancelled())

    def _keep(self, wanted: Callable[[asyncio.TimerHandle], bool]) -> None:
        self._timers = [each for each in self._timers if wanted(each[2])]
        heapify(self._timers)
        self._cancelled = 0

    def _put(self, handle: asyncio.Handle) -> None:
        if self._buried and self._is_buried(handle):
            handle.cancel()
            return
        callback: Any = handle._callback  # type: ignore[attr-defined]
        args: Any = handle._args
        about = args[0] if len(args) == 1 and _is_future(args[0]) else None
        before, self._last = self._last, about
        if about is None:
            self._plain.append(handle)
            return
        if before is not about and _is_wakeup(callback):
            self._wakeups.append(handle)
            self._waking[about] = handle
            return
        # A future with several callbacks: their order is promised.
        first = self._waking.pop(about, None)
        if first is not None:
            self._wakeups.remove(first)
            self._plain.append(first)
        self._plain.append(handle)

    def _take(self) -> asyncio.Handle:
        wakeups = self._wakeups
        if not wakeups or (self._plain and self._chance() < 0.5):
            return self._plain.popleft()
        place = int(self._chance() * len(wakeups)) if len(wakeups) > 1 else 0
        handle, last = wakeups[place], wakeups.pop()
        if place < len(wakeups):
            wakeups[place] = last
        self._waking.pop(handle._args[0], None)
        return handle

    def _run_once(self) -> None:
        while not self._stopping:  # type: ignore[attr-defined]
            timers = self._timers
            if (timers and timers[0][0] <= self._moment) or not (
                self._plain or self._wakeups
            ):
                self._ripen()
            # Most of the time one thing can be done, and nothing has to be chosen.
            handle = self._take() if self._wakeups else self._plain.popleft()
            if handle._cancelled:
                continue
            if self._paused and self._sleeps(handle):
                continue
            self._moment += STEP
            self.steps += 1
            self._tell(handle)
            try:
                handle._context.run(handle._callback, *handle._args)  # type: ignore[attr-defined]
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                self._failed(handle, error)
            if self.steps >= self._collects:
                self._collects += COLLECT
                gc.collect()

    def _ripen(self) -> None:
        """Move timers that are due to the ready; let time pass if nothing is."""
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heappop(timers)
            self._cancelled -= 1
        if not self._plain and not self._wakeups:
            if not timers:
                raise Stuck("Nothing is left that could happen; what is waited for?")
            self._moment = max(self._moment, timers[0][0])
        while timers and timers[0][0] <= self._moment:
            _, _, timer = heappop(timers)
            timer._scheduled = False  # type: ignore[attr-defined]
            if timer.cancelled():
                self._cancelled -= 1
            else:
                self._last = None
                self._plain.append(timer)

    def _failed(self, handle: asyncio.Handle, error: BaseException) -> None:
        message = f"Exception in callback {handle!r}"
        told = {"message": message, "exception": error, "handle": handle}
        self.call_exception_handler(told)

    # What happened

    def _tell(self, handle: asyncio.Handle) -> None:
        callback: Any = handle._callback  # type: ignore[attr-defined]
        told = self._told
        if _is_wakeup(callback):
            told.append(callback.__self__.number)
        else:
            told.append(getattr(callback, "__qualname__", ""))
        if len(told) >= CHUNK:
            self._flush()

    def tell(self, text: str) -> None:
        """Make something else a part of what the digest is of."""
        self._told.append(text)

    def _flush(self) -> None:
        self._told.append(self._moment)
        self._digest.update(repr(self._told).encode())
        self._told.clear()

    def digest(self) -> str:
        """The SHA-256 of every step so far, and of all that was told."""
        self._flush()
        return self._digest.hexdigest()

    # Tasks and hosts

    def create_future(self) -> asyncio.Future[Any]:
        self._numbers += 1
        future = SimFuture(loop=self)
        future.number = self._numbers
        return future

    def create_task(  # type: ignore[override]
        self,
        coro: Any,
        *,
        name: str | None = None,
        context: Context | None = None,
        **more: Any,
    ) -> asyncio.Task[Any]:
        return self.begin(coro, name=name, context=context)

    def begin(
        self, coro: Any, *, name: str | None = None, context: Context | None = None
    ) -> SimTask:
        """Start a task; a process of the world is one that no group holds."""
        self._check_closed()  # type: ignore[attr-defined]
        self._numbers += 1
        number = self._numbers
        task = SimTask(
            coro,
            number=number,
            loop=self,
            name=name or f"task {number}",
            context=context,
        )
        self._tasks.add(task)
        return task

    def tasks_of(self, host: Host) -> list[SimTask]:
        """The tasks of a host that have not ended, the oldest first."""
        return [each for each in self._tasks if each.host is host and not each.done()]

    def bury(self, host: Host) -> None:
        """End a host as a power cut does: not one more step of it, no clean-up.

        Its tasks stay as they are: a frame that was closed would run its ``finally``.
        """
        host.alive = False
        self._buried.add(host)
        for task in self.tasks_of(host):
            task.bury()
            self._graves.append(task)
        plain = [each for each in self._plain if not self._is_buried(each)]
        self._plain = deque(plain)
        self._wakeups = [each for each in self._wakeups if not self._is_buried(each)]
        self._waking = {each._args[0]: each for each in self._wakeups}
        self._keep(lambda timer: not timer.cancelled() and not self._is_buried(timer))

    def pause(self, host: Host) -> None:
        """Let a host stand still, as SIGSTOP does, until :meth:`resume`."""
        self._paused.setdefault(host, [])

    def is_paused(self, host: Host) -> bool:
        return host in self._paused

    def resume(self, host: Host) -> None:
        for handle in self._paused.pop(host, ()):
            self._put(handle)

    def _sleeps(self, handle: asyncio.Handle) -> bool:
        waiting = self._paused.get(handle._context.get(HOST))  # type: ignore[attr-defined]
        if waiting is None:
            return False
        waiting.append(handle)
        return True

    def _is_buried(self, handle: asyncio.Handle) -> bool:
        return handle._context.get(HOST) in self._buried  # type: ignore[attr-defined]

    # Threads, and what there is not

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Call it here, a moment later: a thread that nobody interrupts."""
        future: asyncio.Future[T] = self.create_future()
        self.call_later(self._random.uniform(0, 0.01), _perform, future, func, args)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There is none."""

    def _write_to_self(self) -> None:
        """Nobody waits for anything outside."""

    def _process_events(self, event_list: Any) -> None:
        """There are none."""


def _is_future(value: Any) -> bool:
    return type(value) in OUR_OWN or asyncio.isfuture(value)


def _is_wakeup(callback: Any) -> bool:
    return type(callback) is BUILTIN and callback.__name__ == WAKEUP


def _perform(
    future: asyncio.Future[Any], function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    if future.cancelled():
        return
    try:
        value = function(*args)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(value)


def _dispose(loop: SimLoop) -> None:
    """Let go of what dead hosts left half-done; nobody wants to hear its last words."""
    before, sys.unraisablehook = sys.unraisablehook, lambda _: None
    disabled = logging.root.manager.disable
    logging.disable()
    # An answer that came for the dead is an exception that nobody has retrieved.
    loop.set_exception_handler(lambda loop, context: None)
    try:
        loop._graves.clear()
        loop._plain.clear()
        loop._wakeups.clear()
        loop._waking.clear()
        loop._timers.clear()
        gc.collect()
    finally:
        sys.unraisablehook = before
        logging.disable(disabled)


for _name in REFUSED:
    setattr(SimLoop, _name, refusing(_name))


def _nothing(loop: SimLoop) -> AbstractContextManager[None]:
    return nullcontext()


def simulate(
    main: Callable[[SimLoop], Coroutine[Any, Any, T]],
    *,
    seed: int | str,
    within: Callable[[SimLoop], AbstractContextManager[None]] = _nothing,
) -> T:
    """Run a coroutine on a loop of its own, to its end; the loop is closed then.

    ``within`` stands around all that the loop does, also after the coroutine's end:
    what is due at that very moment still happens.

    Guarantees: cyclic garbage is collected at fixed steps only, and whatever was there
    before is left out of it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    gc.freeze()
    loop = SimLoop(seed)
    try:
        asyncio.set_event_loop(loop)
        with within(loop):
            return loop.run_until_complete(main(loop))
    finally:
        asyncio.set_event_loop(None)
        loop.close()
        _dispose(loop)
        gc.unfreeze()
        if was_enabled:
            gc.enable()
