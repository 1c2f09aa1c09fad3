"""The queue for workers that wait: each entry wakes one of them, and none is lost."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from trimtab.runtime import Breaker, Entry, Queue, QueueClosed, WorkQueue
from trimtab.testing import eventually


def work_queue() -> WorkQueue:
    return WorkQueue(Queue(random=Random(7), breaker=Breaker(failures=1000)))


async def turns(count: int = 5) -> None:
    """Let everything that can run do so."""
    for _ in range(count):
        await asyncio.sleep(0)


async def worker(queue: WorkQueue, seen: list[Entry], busy: set[object]) -> None:
    random = Random(len(seen))
    while True:
        try:
            entry = await queue.get()
        except QueueClosed:
            return
        assert entry.key not in busy
        busy.add(entry.key)
        await asyncio.sleep(0)
        busy.remove(entry.key)
        seen.append(entry)
        if random.random() < 0.2:
            queue.failed(entry.key, after=0.001)
        else:
            queue.done(entry.key)


async def test_an_entry_is_handed_to_a_waiting_worker() -> None:
    queue = work_queue()
    async with asyncio.TaskGroup() as group:
        worker = group.create_task(queue.get())
        await turns()
        queue.add(("a", "x"))
        assert (await worker).key == ("a", "x")


async def test_a_delayed_entry_comes_when_it_is_due_and_not_before() -> None:
    queue = work_queue()
    clock = asyncio.get_running_loop().time
    due = clock() + 0.05
    async with asyncio.TaskGroup() as group:
        worker = group.create_task(queue.get())
        await turns()
        queue.add(("a", "later"), due=clock() + 600)
        queue.add(("a", "x"), due=due)
        assert (await worker).key == ("a", "x")
    assert clock() >= due


async def test_one_entry_wakes_one_worker() -> None:
    queue = work_queue()
    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(queue.get()) for _ in range(10)]
        await turns()
        queue.add(("a", "x"))
        queue.add(("a", "y"))
        assert len(queue._waiters) == 8
        await turns()
        assert sum(worker.done() for worker in workers) == 2
        for worker in workers:
            worker.cancel()


async def test_a_cancelled_wait_loses_nothing() -> None:
    queue = work_queue()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(queue.get())
        second = group.create_task(queue.get())
        await turns()
        queue.add(("a", "x"))  # wakes the first
        first.cancel()  # before it could run
        assert (await second).key == ("a", "x")
    assert first.cancelled()
    assert queue._woken == 0


async def test_a_worker_that_gave_up_is_not_woken() -> None:
    queue = work_queue()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await queue.get()
    assert not queue._waiters
    queue.add(("a", "x"))
    assert (await queue.get()).key == ("a", "x")


async def test_no_timer_runs_while_nobody_waits() -> None:
    queue = work_queue()
    queue.add(("a", "x"), due=asyncio.get_running_loop().time() + 600)
    assert queue._timer is None
    async with asyncio.TaskGroup() as group:
        group.create_task(worker(queue, [], set()))
        await turns()
        assert queue._timer is not None
        queue.close()
    assert queue._timer is None


async def test_a_closed_queue_ends_its_workers_and_lets_them_finish() -> None:
    queue = work_queue()
    queue.add(("a", "x"))
    queue.add(("a", "y"))
    entry = await queue.get()
    queue.close()
    with pytest.raises(QueueClosed, match="nothing more"):
        await queue.get()
    queue.done(entry.key)
    assert queue.statistics().working == 0
    assert len(queue) == 1
    assert queue.closed


async def test_every_key_is_served_by_workers_that_come_and_go() -> None:
    queue = work_queue()
    seen: list[Entry] = []
    busy: set[object] = set()
    random = Random(7)
    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(worker(queue, seen, busy))
        for number in range(300):
            queue.add((str(number % 7), str(number)))
            waiting = group.create_task(queue.get())
            await turns(random.randrange(3))
            waiting.cancel()
            if waiting.done() and not waiting.cancelled():
                queue.failed(waiting.result().key, after=0.0)
        await eventually(lambda: {e.key[1] for e in seen} >= set(map(str, range(300))))
        await eventually(lambda: len(queue) == 0)
        queue.close()
    assert queue.statistics().working == 0
