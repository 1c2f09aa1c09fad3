"""Budgets shorten, end, and belong to the task that has them."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.client import budget, remaining
from trimtab.client.budget import without_budget

seconds = st.floats(-1.0, 1000.0)


def test_without_a_budget_nothing_remains_to_tell() -> None:
    assert remaining() is None


@given(st.lists(seconds, min_size=1, max_size=6))
def test_the_shortest_of_nested_budgets_holds(nested: list[float]) -> None:
    async def inside(left: list[float]) -> None:
        if not left:
            found = remaining()
            assert found is not None
            expected = max(0.0, min(nested))
            assert expected - 1.0 <= found <= expected
            return
        with budget(left[0]):
            await inside(left[1:])

    asyncio.run(inside(nested))


async def test_a_budget_ends_with_its_block() -> None:
    with budget(10):
        with budget(1):
            pass
        left = remaining()
        assert left is not None
        assert 5 < left <= 10
    with pytest.raises(KeyError), budget(10):
        raise KeyError
    assert remaining() is None


async def test_what_remains_shrinks_and_is_never_negative() -> None:
    with budget(0.05):
        first = remaining()
        await asyncio.sleep(0.06)
        assert first is not None
        assert first > 0
        assert remaining() == 0.0


async def test_a_budget_is_inherited_by_tasks_and_hidden_from_others() -> None:
    inside, outside = asyncio.Event(), asyncio.Event()

    async def other() -> float | None:
        await inside.wait()
        found = remaining()
        outside.set()
        return found

    stranger = asyncio.ensure_future(other())
    with budget(10):
        child = asyncio.ensure_future(other())
        inside.set()
        await outside.wait()
        inherited = await child
    assert inherited is not None
    assert await stranger is None


def test_a_budget_needs_a_loop_whose_time_it_is() -> None:
    with pytest.raises(RuntimeError), budget(1):
        pass


async def test_a_task_that_outlives_its_starter_has_none_of_its_budget() -> None:
    async def left() -> float | None:
        return remaining()

    async with asyncio.TaskGroup() as group:
        with budget(5.0):
            inherits = group.create_task(left())
            outlives = group.create_task(left(), context=without_budget())
            here = remaining()
    assert inherits.result() is not None
    assert outlives.result() is None
    assert here is not None
