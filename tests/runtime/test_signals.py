"""Laws of signals, with real signals to a real process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from trimtab.runtime.signals import FAREWELL, HARD_EXIT, STOPPING, Signals


@pytest.mark.parametrize("number", STOPPING, ids=lambda number: number.name)
async def test_the_first_signal_asks_for_a_stop_once(number: signal.Signals) -> None:
    asked: list[str] = []
    with Signals(asked.append) as signals:
        assert not signals.stopped.is_set()
        os.kill(os.getpid(), number)
        await asyncio.wait_for(signals.stopped.wait(), 5)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0)
    assert asked == [number.name]


async def test_the_handlers_from_before_are_restored() -> None:
    before = [signal.getsignal(number) for number in STOPPING]
    with Signals():
        assert [signal.getsignal(number) for number in STOPPING] != before
    assert [signal.getsignal(number) for number in STOPPING] == before


async def test_a_thread_that_gets_no_signals_is_told_so() -> None:
    async def enter() -> None:
        with Signals():
            pass

    with pytest.raises(RuntimeError, match="only in the main thread"):
        await asyncio.to_thread(asyncio.run, enter())


BLOCKED = """
import asyncio, time
from trimtab.runtime.signals import Signals

async def main():
    with Signals():
        print("ready", flush=True)
        while True:
            time.sleep(60)

asyncio.run(main())
"""


def test_a_second_interrupt_ends_a_process_whose_loop_is_blocked() -> None:
    command = [sys.executable, "-c", textwrap.dedent(BLOCKED)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
    assert process.returncode == HARD_EXIT
    assert errors == FAREWELL
