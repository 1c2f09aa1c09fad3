"""Laws of the watchdog, with loops that are really blocked."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import subprocess
import sys
import threading
import time

import pytest

from trimtab.runtime import watchdog as module
from trimtab.runtime.watchdog import Watchdog
from trimtab.testing.waiting import eventually


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INTERVAL", 0.01)


def block(seconds: float) -> None:
    time.sleep(seconds)


BLOCKS_AT = inspect.getsourcelines(block)[1] + 1


def sentences(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What is said of this file; a busy machine may say more, of Python's own."""
    said = [record.getMessage() for record in caplog.records]
    return [sentence for sentence in said if f" at {__file__}:" in sentence]


async def ticked(dog: Watchdog) -> None:
    """Waits until the loop has given a sign of life from now on."""
    dog.lag = -1.0
    await eventually(lambda: dog.lag >= 0.0, every=0.005)


async def test_a_block_is_told_once_with_who_where_and_how_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Watchdog(limit=0.1) as dog:
        dog.running = "reconciler website of Website default/shop"
        await ticked(dog)
        block(0.3)
        await eventually(lambda: dog.blocked > 0)
        await ticked(dog)
    (sentence,) = sentences(caplog)
    assert re.fullmatch(
        r"reconciler website of Website default/shop has blocked the event loop for"
        rf" \d+\.\d s at {re.escape(__file__)}:{BLOCKS_AT} in block; make it async all"
        r" the way, or a plain def, which runs in a thread\.",
        sentence,
    )
    assert 0.2 < dog.blocked < 30.0


async def test_the_task_that_blocks_is_the_one_that_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def worker(dog: Watchdog, name: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        dog.register(task, lambda: f"reconciler {name} at 100 %")
        await ticked(dog)
        if name == "b":
            block(0.3)

    with Watchdog(limit=0.1) as dog:
        async with asyncio.TaskGroup() as group:
            for name in "abc":
                group.create_task(worker(dog, name))
        await eventually(lambda: dog.blocked > 0)
    (sentence,) = sentences(caplog)
    assert sentence.startswith("reconciler b at 100 % has blocked")


async def test_a_long_block_is_told_while_it_lasts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = threading.Event()

    class Hears(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.set()

    heard = Hears()
    module.logger.addHandler(heard)
    try:
        with Watchdog(limit=0.05) as dog:
            await ticked(dog)
            # Nothing but the sentence itself ends this block.
            assert told.wait(10)
            await eventually(lambda: dog.blocked > 0)
    finally:
        module.logger.removeHandler(heard)
    (sentence,) = sentences(caplog)
    # The wait was in Python's own code; the line to blame is the one above, here.
    assert sentence.startswith("Something has blocked")


async def test_a_handler_that_waits_for_a_subprocess_is_not_a_loop_that_waits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Watchdog(limit=0.05) as dog:
        await ticked(dog)
        command = [sys.executable, "-c", "import time; time.sleep(0.3)"]
        subprocess.run(command, check=True, capture_output=True)
        await eventually(lambda: dog.blocked > 0)
    assert len(sentences(caplog)) == 1


async def test_a_loop_that_moves_is_never_blamed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Watchdog(limit=5.0) as dog:
        for _ in range(5):
            await ticked(dog)
    assert sentences(caplog) == []
    assert dog.blocked == 0.0


async def test_a_description_that_fails_costs_only_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails() -> str:
        raise KeyError("shop")

    with Watchdog(limit=0.05) as dog:
        task = asyncio.current_task()
        assert task is not None
        dog.register(task, fails)
        await ticked(dog)
        block(0.2)
        await eventually(lambda: dog.blocked > 0)
    (sentence,) = sentences(caplog)
    assert sentence.startswith("Something has blocked")


async def test_it_tells_the_metrics() -> None:
    with Watchdog() as dog:
        await ticked(dog)
        values = {sample.family: sample.value for sample in dog.samples()}
    assert values == {"loop_lag_seconds": dog.lag, "loop_blocked_seconds": 0.0}


async def test_its_thread_ends_with_it_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "INTERVAL", 3600.0)
    with Watchdog() as dog:
        thread = dog._thread
        assert thread is not None
        assert thread.is_alive()
    assert not thread.is_alive()


def test_a_loop_that_is_closed_ends_the_thread() -> None:
    dog = Watchdog(limit=0.05)

    async def enter() -> None:
        dog.__enter__()

    asyncio.run(enter())
    thread = dog._thread
    assert thread is not None
    thread.join(10)
    assert not thread.is_alive()
