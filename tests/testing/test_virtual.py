"""Laws of virtual time in users' tests."""

from __future__ import annotations

import asyncio
import inspect
import random
import time
from datetime import UTC, datetime

import pytest

from trimtab.sim.loop import Stuck
from trimtab.testing import virtual_time


@virtual_time
async def test_an_hour_takes_no_time() -> None:
    began, wall = time.monotonic(), datetime.now(UTC)
    await asyncio.sleep(3600)
    assert time.monotonic() - began == pytest.approx(3600, abs=0.01)
    assert (datetime.now(UTC) - wall).total_seconds() == pytest.approx(3600, abs=0.01)


def test_the_order_is_that_of_the_seed() -> None:
    def order(seed: int) -> list[float]:
        @virtual_time(seed=seed)
        async def run() -> list[float]:
            seen: list[float] = [random.random()]
            start = asyncio.Event()

            async def one(number: int) -> None:
                await start.wait()
                seen.append(number)

            async with asyncio.TaskGroup() as group:
                for number in range(6):
                    group.create_task(one(number))
                await asyncio.sleep(0.1)
                start.set()
            return seen

        return run()

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(10)}) > 5


def test_a_test_in_virtual_time_is_a_plain_function_with_its_fixtures() -> None:
    @virtual_time
    async def run(tmp_path: str) -> None: ...

    assert not inspect.iscoroutinefunction(run)
    assert list(inspect.signature(run).parameters) == ["tmp_path"]


def test_waiting_for_what_never_comes_is_an_error() -> None:
    @virtual_time
    async def run() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck):
        run()
