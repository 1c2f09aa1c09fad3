"""Laws of the threads in which synchronous handlers run."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextvars import ContextVar

import pytest

from trimtab.client import DeadlineExceeded, budget, remaining
from trimtab.runtime.threads import Revoked, Threads, from_thread
from trimtab.testing.waiting import eventually

word: ContextVar[str] = ContextVar("word", default="")


def living() -> list[str]:
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith("trimtab-handler")]


@pytest.fixture
async def threads() -> AsyncIterator[Threads]:
    """Four threads, all of which are gone afterwards."""
    threads = Threads(limit=4)
    yield threads
    await asyncio.wait_for(threads.drained(), 10)
    threads.close()
    await eventually(lambda: not living())


async def test_the_outcome_of_a_function_is_that_of_the_call(threads: Threads) -> None:
    assert await threads.run(divmod, 7, 3) == (2, 1)
    with pytest.raises(ZeroDivisionError):
        await threads.run(divmod, 7, 0)


async def test_a_function_runs_in_another_thread(threads: Threads) -> None:
    assert await threads.run(threading.get_ident) != threading.get_ident()


async def test_context_variables_are_carried_over_and_not_back(
    threads: Threads,
) -> None:
    def change() -> str:
        seen = word.get()
        word.set("theirs")
        return seen

    word.set("ours")
    assert await threads.run(change) == "ours"
    assert word.get() == "ours"


async def test_threads_are_bounded_and_used_again(threads: Threads) -> None:
    barrier = threading.Barrier(4)
    running = highest = 0
    counting = threading.Lock()

    def work() -> None:
        nonlocal running, highest
        with counting:
            running += 1
            highest = max(highest, running)
        barrier.wait(10)
        with counting:
            running -= 1
        barrier.wait(10)

    async with asyncio.TaskGroup() as group:
        for _ in range(12):
            group.create_task(threads.run(work))
    assert highest == 4
    assert threads.statistics().threads == len(living()) == 4


async def test_one_call_after_the_other_needs_one_thread(threads: Threads) -> None:
    for _ in range(5):
        await threads.run(int)
    assert threads.statistics().threads == 1


async def test_a_cancelled_call_that_began_is_waited_for(threads: Threads) -> None:
    began, go_on = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        go_on.wait(10)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(threads.run(work))
        await eventually(began.is_set)
        task.cancel()
    drained = asyncio.wait_for(threads.drained(), 0.05)
    with pytest.raises(TimeoutError):
        await drained
    assert threads.statistics().working == 1
    go_on.set()
    await asyncio.wait_for(threads.drained(), 10)
    assert threads.statistics().working == 0


async def test_a_cancelled_call_that_did_not_begin_never_does() -> None:
    threads = Threads(limit=1)
    go_on, ran = threading.Event(), threading.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(threads.run(go_on.wait, 10))
        waiting = group.create_task(threads.run(ran.set))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        go_on.set()
    await threads.drained()
    assert not ran.is_set()
    threads.close()
    await eventually(lambda: not living())


async def test_a_handler_can_wait_for_the_loop(threads: Threads) -> None:
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return number * 2

    def work() -> int:
        return from_thread(double(from_thread(double(1))))

    assert await threads.run(work) == 4


async def test_what_a_handler_asks_for_runs_in_the_task_that_awaits_it(
    threads: Threads,
) -> None:
    async def here() -> tuple[object, float | None]:
        return asyncio.current_task(), remaining()

    with budget(50):
        task, left = await threads.run(lambda: from_thread(here()))
    assert task is asyncio.current_task()
    assert left is not None
    assert 0 < left <= 50


async def test_errors_of_the_loop_are_the_handlers(threads: Threads) -> None:
    async def fail() -> None:
        raise KeyError("shop")

    def work() -> str:
        try:
            from_thread(fail())
        except KeyError as error:
            return str(error)
        return "nothing was raised"

    assert await threads.run(work) == "'shop'"


async def test_the_budget_ends_what_a_handler_waits_for(threads: Threads) -> None:
    def work() -> None:
        from_thread(asyncio.Event().wait())

    with budget(0.05), pytest.raises(DeadlineExceeded, match="budget"):
        await threads.run(work)


async def test_a_timeout_of_its_own_stays_a_timeout(threads: Threads) -> None:
    async def late() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await threads.run(lambda: from_thread(late()))


async def test_a_handler_that_outlives_its_reconcile_is_refused(
    threads: Threads, caplog: pytest.LogCaptureFixture
) -> None:
    raised: list[BaseException] = []
    written: list[str] = []
    asked, go_on = threading.Event(), threading.Event()

    async def write() -> None:
        asked.set()
        await asyncio.Event().wait()
        written.append("no")

    def work() -> None:
        for _ in range(2):
            try:
                from_thread(write())
            except Revoked as error:
                raised.append(error)
            go_on.wait(10)
        raise ValueError("afterwards")

    caplog.set_level("INFO")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(threads.run(work))
        await eventually(asked.is_set)
        task.cancel()
    go_on.set()
    await threads.drained()
    assert [type(error) for error in raised] == [Revoked, Revoked]
    assert written == []
    assert "ValueError('afterwards')" in caplog.text


async def test_there_is_nothing_to_wait_for_outside_of_a_handler() -> None:
    with pytest.raises(RuntimeError, match="no synchronous handler here"):
        from_thread(asyncio.sleep(0))


async def test_an_iterators_end_is_an_error_like_others(threads: Threads) -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await threads.run(next, iter(()))


async def test_nothing_runs_after_the_end() -> None:
    threads = Threads()
    threads.close()
    with pytest.raises(RuntimeError, match="closed"):
        await threads.run(int)


async def test_an_idle_thread_keeps_nothing_of_its_last_handler(
    threads: Threads,
) -> None:
    import gc
    import weakref

    class Thing:
        pass

    thing = Thing()
    gone = weakref.ref(thing)
    await threads.run(repr, thing)
    del thing
    await threads.run(int)
    gc.collect()
    assert gone() is None


def test_a_handler_that_hangs_does_not_keep_a_process_alive() -> None:
    code = """
import asyncio, threading
from trimtab.runtime.threads import Threads

async def main():
    try:
        await asyncio.wait_for(Threads().run(threading.Event().wait), 0.05)
    except TimeoutError:
        print("left")

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("left\n", "")
