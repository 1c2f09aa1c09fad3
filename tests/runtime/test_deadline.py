"""A deadline: one timer for many pieces of work, none of which outlives its time."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from trimtab.runtime.deadline import Deadline
from trimtab.testing import virtual_time


def deadline() -> Deadline:
    task = asyncio.current_task()
    assert task is not None
    return Deadline(task)


async def test_work_that_takes_too_long_is_cancelled() -> None:
    mine = deadline()
    mine.begins(0.01)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(10)
    assert mine.ends()
    await asyncio.sleep(0)  # and the task goes on


@virtual_time
async def test_each_piece_of_work_has_its_own_time() -> None:
    mine = deadline()
    for _ in range(5):
        mine.begins(0.05)
        await asyncio.sleep(0.02)
        assert not mine.ends()
    mine.close()


async def test_a_shorter_time_is_not_held_up_by_the_timer_of_a_longer_one() -> None:
    mine = deadline()
    mine.begins(60)
    assert not mine.ends()
    mine.begins(0.01)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(10)
    assert mine.ends()


async def test_work_that_swallows_its_end_leaves_the_task_as_it_was() -> None:
    mine = deadline()
    task = asyncio.current_task()
    assert task is not None
    mine.begins(0.01)
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(10)
    assert mine.ends()
    assert task.cancelling() == 0


async def test_who_is_cancelled_by_somebody_else_as_well_stays_cancelled() -> None:
    task = asyncio.current_task()
    assert task is not None
    mine = deadline()
    mine.begins(0.01)
    try:
        await asyncio.sleep(10)
    except asyncio.CancelledError:
        task.cancel()
    assert mine.ends()
    assert task.cancelling() == 1
    task.uncancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(0)  # what was asked for arrives


async def test_nothing_is_left_behind() -> None:
    loop = asyncio.get_running_loop()
    mine = deadline()
    mine.begins(60)
    mine.ends()
    mine.close()
    scheduled = getattr(loop, "_scheduled")  # noqa: B009
    assert all(each.cancelled() for each in scheduled)
