"""Laws of the loop: virtual time, seeded choices, and the promises of asyncio kept."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine
from contextvars import copy_context
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.sim.hosts import HOST, Host
from trimtab.sim.loop import Refused, SimLoop, Stuck, simulate

ROOT = Path(__file__).parents[2]
SEEDS = range(30)


def orders(main: Callable[[SimLoop], Coroutine[Any, Any, list[int]]]) -> set[Any]:
    return {tuple(simulate(main, seed=seed)) for seed in SEEDS}


def test_an_hour_of_sleep_takes_no_time() -> None:
    async def main(loop: SimLoop) -> float:
        began = loop.time()
        await asyncio.sleep(3600)
        return loop.time() - began

    assert simulate(main, seed=1) == pytest.approx(3600, abs=0.01)


def test_tasks_that_could_go_on_do_so_in_an_order_of_the_seed() -> None:
    async def main(loop: SimLoop) -> list[int]:
        seen: list[int] = []
        start = asyncio.Event()

        async def one(number: int) -> None:
            await start.wait()
            seen.append(number)

        async with asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(one(number))
            await asyncio.sleep(1)
            start.set()
        return seen

    found = orders(main)
    assert len(found) > 10
    assert found == orders(main)


def test_plain_callbacks_keep_their_order() -> None:
    async def main(loop: SimLoop) -> list[int]:
        seen: list[int] = []
        waiting = [asyncio.ensure_future(asyncio.sleep(0)) for _ in range(5)]
        for number in range(10):
            loop.call_soon(seen.append, number)
        await asyncio.gather(*waiting)
        await asyncio.sleep(1)
        return seen

    assert orders(main) == {tuple(range(10))}


@given(st.integers(), st.lists(st.booleans(), min_size=2, max_size=6))
@settings(max_examples=30, deadline=None)
def test_the_callbacks_of_one_future_keep_their_order(
    seed: int, tasks: list[bool]
) -> None:
    async def main(loop: SimLoop) -> list[int]:
        seen: list[int] = []
        future = loop.create_future()

        def note(number: int, _: Any) -> None:
            seen.append(number)

        async def wait(number: int) -> None:
            await future
            seen.append(number)

        async with asyncio.TaskGroup() as group:
            for number, is_task in enumerate(tasks):
                if is_task:
                    group.create_task(wait(number))
                    await asyncio.sleep(0.1)
                else:
                    future.add_done_callback(partial(note, number))
            future.set_result(None)
        return seen

    assert simulate(main, seed=seed) == list(range(len(tasks)))


def test_a_task_that_could_go_on_is_not_starved_by_callbacks() -> None:
    async def main(loop: SimLoop) -> bool:
        over = asyncio.Event()

        def again() -> None:
            if not over.is_set():
                loop.call_soon(again)

        again()
        await asyncio.sleep(0.001)
        over.set()
        return True

    assert all(simulate(main, seed=seed) for seed in range(5))


def test_cancelling_a_group_ends_its_tasks_in_the_order_of_their_making() -> None:
    async def main(loop: SimLoop) -> list[int]:
        seen: list[int] = []

        async def one(number: int) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                seen.append(number)

        async def all_of_them() -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(300):
                    group.create_task(one(number))

        task = asyncio.ensure_future(all_of_them())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        return seen

    assert simulate(main, seed=1) == simulate(main, seed=1)


def test_work_of_an_executor_is_a_step_of_the_simulation() -> None:
    async def main(loop: SimLoop) -> tuple[int, float]:
        began = loop.time()
        value = await asyncio.to_thread(pow, 2, 10)
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(None, divmod, 1, 0)
        return value, loop.time() - began

    value, took = simulate(main, seed=1)
    assert value == 1024
    assert 0 < took < 1


def test_a_loop_in_which_nothing_can_happen_says_so() -> None:
    async def main(loop: SimLoop) -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck, match="waited for"):
        simulate(main, seed=1)


async def _connect() -> None:
    await asyncio.open_connection("example.com", 80)


async def _listen() -> None:
    await asyncio.start_server(lambda reader, writer: None, port=0)


async def _program() -> None:
    await asyncio.create_subprocess_exec("true")


async def _name() -> None:
    await asyncio.get_running_loop().getaddrinfo("example.com", 80)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (_connect, "create_connection"),
        (_listen, "create_server"),
        (_program, "subprocess_exec"),
        (_name, "getaddrinfo"),
    ],
)
def test_what_leaves_the_process_is_refused_by_name(
    call: Callable[[], Coroutine[Any, Any, None]], name: str
) -> None:
    with pytest.raises(Refused, match=f"loop.{name} does not exist in a simulation"):
        simulate(lambda loop: call(), seed=1)


def test_a_buried_host_makes_no_step_more_and_the_others_go_on() -> None:
    from contextvars import copy_context
    from random import Random

    async def main(loop: SimLoop) -> list[str]:
        seen: list[str] = []
        hosts = [Host(name, random=Random(1)) for name in ("a", "b")]
        begun = []

        async def live(name: str) -> None:
            try:
                while True:
                    await asyncio.sleep(1)
                    seen.append(name)
            finally:
                seen.append(f"{name} cleans up")

        for host in hosts:
            context = copy_context()
            context.run(HOST.set, host)
            begun.append(loop.begin(live(host.name), context=context))
        await asyncio.sleep(2.5)
        loop.bury(hosts[0])
        await asyncio.sleep(2)
        seen.append("end")
        loop.bury(hosts[1])
        return seen[: seen.index("end")]

    seen = simulate(main, seed=1)
    assert seen.count("a") == 2
    assert seen.count("b") == 4
    assert "a cleans up" not in seen


def test_garbage_and_generators_end_at_the_same_step_each_time() -> None:
    async def main(loop: SimLoop) -> list[int]:
        ended: list[int] = []

        async def numbers() -> AsyncIterator[int]:
            try:
                while True:
                    yield 1
            finally:
                ended.append(loop.steps)

        for _ in range(3):
            async for _ in numbers():
                break
        assert not gc.isenabled()
        await asyncio.sleep(1)
        return ended

    assert simulate(main, seed=1) == simulate(main, seed=1) != []


def digest(*options: str, hash_seed: int) -> str:
    environ = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, "-m", "tests.sim.crowd", *options]
    return subprocess.run(
        command, env=environ, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def test_the_same_seed_gives_the_same_steps_in_every_process() -> None:
    """600 tasks; another order of sets of text; after imports of something else."""
    first = digest("5", hash_seed=1)
    assert len(first.strip()) == 64
    assert first == digest("5", "imports", hash_seed=2)
    assert first != digest("6", hash_seed=1)


def test_an_answer_that_comes_for_the_dead_is_no_failure() -> None:
    heard: list[Any] = []

    async def main(loop: SimLoop) -> None:
        loop.set_exception_handler(lambda _, context: heard.append(context))
        host, context = Host("dead", random=Random(1)), copy_context()
        context.run(HOST.set, host)
        answer = loop.create_future()

        async def wait() -> None:
            await answer

        waiting = loop.begin(wait(), context=context)
        await asyncio.sleep(1)
        loop.bury(host)
        assert not waiting.done()
        answer.set_exception(OSError("It came too late."))

    simulate(main, seed=1)
    assert heard == []


def test_nobody_is_warned_of_what_the_dead_had_not_begun() -> None:
    async def main(loop: SimLoop) -> None:
        host = Host("a", random=Random(1))
        context = copy_context()
        context.run(HOST.set, host)
        task = loop.begin(asyncio.sleep(1), context=context)
        loop.bury(host)
        await asyncio.sleep(1)
        assert not task.done()

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        simulate(main, seed=1)
    assert heard == []
