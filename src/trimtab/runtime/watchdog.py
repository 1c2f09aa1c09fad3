"""The watchdog: names the handler that blocks the event loop.

A thread looks once a second whether the loop waits for something to do, and costs an
idle process nothing more. A loop that is busy is asked for a sign of life. When none
comes in time, the thread looks at what the loop is doing and says so in one sentence.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any, Final
from weakref import WeakKeyDictionary

from trimtab.runtime.metrics import Sample

INTERVAL: Final = 1.0
# A block is reported when it ends, with its whole length, or after so many limits.
PATIENCE: Final = 4.0

# Whose code is not the user's: Python's, ours, and what was installed.
FOREIGN: Final = (
    f"{os.path.dirname(os.__file__)}/",
    f"{os.path.dirname(os.path.dirname(os.path.realpath(__file__)))}/",
    "<frozen ",
)
INSTALLED: Final = "/site-packages/"

# Where the loop waits for something to do.
LOOP: Final = asyncio.BaseEventLoop._run_once.__code__  # type: ignore[attr-defined]

logger = logging.getLogger("trimtab.runtime.watchdog")


class Watchdog:
    """Watches the running loop for as long as its ``with`` block runs.

    Flow: a controller registers each of its worker tasks with a function that says
    what that task works on; ``running`` is for work in no such task. Both are asked
    only when the loop is blocked.

    Guarantees: one sentence for each time that the loop is blocked for longer than
    ``limit`` seconds and is asked meanwhile (a block of ``limit`` plus a second always
    is). When the block has been left, the thread has ended.

    Errors: none; a loop that is closed ends the thread.
    """

    def __init__(self, *, limit: float = 0.5) -> None:
        self.limit = limit
        self.running = ""
        """What the loop works on, when that is not a registered task."""
        self.lag = 0.0
        """Seconds that the loop took for its last sign of life; none while it waits."""
        self.blocked = 0.0
        """Seconds in all that it was found blocked."""
        self._tasks: WeakKeyDictionary[asyncio.Task[Any], Callable[[], str]] = (
            WeakKeyDictionary()
        )
        self._wake = threading.Event()
        self._answered = False
        self._stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._watched = 0

    def register(self, task: asyncio.Task[Any], describe: Callable[[], str]) -> None:
        """Let ``describe`` say what a task is working on: ``reconciler a of B c/d``."""
        self._tasks[task] = describe

    def samples(self) -> Iterator[Sample]:
        """For the metrics."""
        yield Sample("loop_lag_seconds", (), self.lag)
        yield Sample("loop_blocked_seconds", (), self.blocked)

    def __enter__(self) -> Watchdog:
        self._loop = asyncio.get_running_loop()
        self._watched = threading.get_ident()
        self._thread = threading.Thread(
            target=self._watch, name="trimtab-watchdog", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._thread is not None
        self._stopped = True
        self._wake.set()
        self._thread.join()

    def _watch(self) -> None:
        assert self._loop is not None
        while not self._sleeps(INTERVAL) and not self._loop.is_closed():
            if self._frame() is None:
                self.lag = 0.0
                continue
            self._answered = False
            posted = self._loop.time()
            try:
                self._loop.call_soon_threadsafe(self._answer, posted)
            except RuntimeError:
                return  # The loop is closed.
            if not self._waits(self.limit):
                self._episode(posted)

    def _answer(self, posted: float) -> None:
        """Runs on the loop."""
        assert self._loop is not None
        self.lag = self._loop.time() - posted
        self._answered = True
        self._wake.set()

    def _sleeps(self, seconds: float) -> bool:
        """Sleep, unless it is over; whether it is."""
        if not self._stopped:
            self._wake.clear()
            # Between the two lines a stop may have set what was cleared.
            if not self._stopped:
                self._wake.wait(seconds)
        return self._stopped

    def _waits(self, seconds: float | None) -> bool:
        """Wait for the sign of life or the end; whether either came."""
        self._wake.wait(seconds)
        return self._answered or self._stopped

    def _episode(self, posted: float) -> None:
        assert self._loop is not None
        sentence = self._look()
        over = self._waits(self.limit * (PATIENCE - 1))
        if sentence and not self._stopped:
            seconds = self.lag if over else self._loop.time() - posted
            logger.warning(sentence, seconds)
        self._waits(None)
        self.blocked += self.lag if self._answered else self._loop.time() - posted

    def _look(self) -> str:
        """The sentence, with a place for the seconds; empty if nobody is to blame."""
        frame = self._frame()
        if frame is None:
            # It waits for its turn on the processor, not for a handler.
            return ""
        place = _blamed(frame)
        where = f"{place.f_code.co_filename}:{place.f_lineno}"
        return (
            f"{self._who()} has blocked the event loop for %.1f s at "
            + f"{where} in {place.f_code.co_name}".replace("%", "%%")
            + "; make it async all the way, or a plain def, which runs in a thread."
        )

    def _frame(self) -> FrameType | None:
        """Where the loop's thread is; None if it only waits for something to do."""
        frame = sys._current_frames().get(self._watched)
        if frame is None or frame.f_back is None:
            return None
        # A handler may wait in a selector too, for a subprocess; the loop is the one
        # that calls its own from here.
        selects = frame.f_code.co_filename.endswith("/selectors.py")
        return None if selects and frame.f_back.f_code is LOOP else frame

    def _who(self) -> str:
        task = asyncio.current_task(self._loop)
        describe = self._tasks.get(task) if task is not None else None
        try:
            name = describe() if describe is not None else self.running
        except Exception:
            name = ""
        return (name or "Something").replace("%", "%%")


def _blamed(frame: FrameType) -> FrameType:
    """The innermost frame of the user's code; without any, the innermost of all."""
    found: FrameType | None = frame
    while found is not None:
        file = found.f_code.co_filename
        if not file.startswith(FOREIGN) and INSTALLED not in file:
            return found
        found = found.f_back
    return frame
