"""Signals: SIGTERM and SIGINT ask for a stop; SIGINT a second time does not ask.

The handlers run between two instructions of the main thread, also while something
blocks the event loop: that is when somebody presses Ctrl-C for the second time.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Final

STOPPING: Final = (signal.SIGTERM, signal.SIGINT)
HARD_EXIT: Final = 128 + signal.SIGINT
FAREWELL: Final = b"Interrupted again: ending at once, nothing is cleaned up.\n"


class Signals:
    """Turns signals into a stop for as long as its ``with`` block runs.

    Flow: the first SIGTERM or SIGINT sets ``stopped`` and calls ``stop`` with the
    signal's name, on the loop. Later ones do nothing, but a second SIGINT ends the
    process at once with the exit code 130.

    Guarantees: ``stop`` is called at most once. Leaving the block restores the handlers
    that were there before.

    Assumptions: the loop runs in the main thread.

    Errors: ``RuntimeError`` in any other thread, where no signal arrives.
    """

    def __init__(self, stop: Callable[[str], None] | None = None) -> None:
        self.stopped = asyncio.Event()
        self._stop = stop
        self._interrupts = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Signals:
        self._loop = asyncio.get_running_loop()
        try:
            for number in STOPPING:
                self._previous[number] = signal.signal(number, self._received)
        except ValueError:
            raise RuntimeError(
                "Signals arrive only in the main thread; run the operator there, or"
                " without signals and stop it yourself."
            ) from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._previous:
            number, handler = self._previous.popitem()
            # None: it was not set from Python, and cannot be set again from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _received(self, number: int, frame: FrameType | None) -> None:
        """Runs in the main thread, in the middle of anything: it must not wait."""
        if number == signal.SIGINT:
            self._interrupts += 1
            if self._interrupts > 1:
                os.write(2, FAREWELL)
                os._exit(HARD_EXIT)
        if self._loop is not None and not self._loop.is_closed():
            name = signal.Signals(number).name
            self._loop.call_soon_threadsafe(self._ask, name)

    def _ask(self, name: str) -> None:
        if not self.stopped.is_set():
            self.stopped.set()
            if self._stop is not None:
                self._stop(name)
