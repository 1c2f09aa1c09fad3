"""Laws of the whole under crashes: nobody shares a worker, and nothing is left."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.kubelet.laptop import marked
from tests.pool.crowd import BUDGETS, Crowd, nothing_is_left
from tests.pool.town import town
from trimtab.testing import Cluster
from trimtab.testing.waiting import eventually

LIMIT = 3


@pytest.mark.simulation  # for its time: it runs where the real server does
@pytest.mark.timeout(400)
async def test_a_gateway_killed_in_mid_acquire_leaks_nothing_and_nobody_shares(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    crowd = Crowd(5)
    limits = {"workers": LIMIT}
    async with town(cluster, namespace, tmp_path) as here:
        await here.make(
            "sql", minIdle=2, maxWorkers=5, idleTTL=1, limits=limits, budgets=BUDGETS
        )
        first, second = await asyncio.gather(here.open(), here.open())
        await here.until("sql", idle=2)
        one = await here.connect("sql", first, second, seed=1)
        two = await here.connect("sql", second, first, seed=2)
        async with one, two, asyncio.TaskGroup() as group:
            crowd.enter(group, one, two)
            await crowd.until(20)
            await eventually(lambda: crowd.asking > 2, every=0.001)
            await first.kill()
            await crowd.until(crowd.served + 20)
            crowd.stopping = True
        assert max(crowd.most.values()) <= LIMIT
        assert min(crowd.most.values()) >= 1
        await here.want("sql", minIdle=0)
        await nothing_is_left(here)
        assert await second.stop() == 0
        seen = here.witnessed()
        assert not [each for each in seen if each["event"] == "shared"]
        assert sum(each["event"] == "serve" for each in seen) >= 2 * crowd.served


@pytest.mark.simulation  # for its time: it runs where the real server does
@pytest.mark.timeout(400)
async def test_killed_workers_and_a_restarted_server_leave_nothing_and_nobody_shares(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    crowd = Crowd(6)
    async with town(cluster, namespace, tmp_path) as here:
        await here.make("sql", minIdle=1, maxWorkers=4, idleTTL=1, budgets=BUDGETS)
        first, second = await asyncio.gather(here.open(), here.open())
        await here.until("sql", idle=1)
        pool = await here.connect("sql", seed=3)
        async with pool, asyncio.TaskGroup() as group:
            crowd.enter(group, pool)
            await crowd.until(10)
            for uid in await here.pods():
                for pid in marked(uid):
                    os.kill(pid, signal.SIGKILL)
            await crowd.until(crowd.served + 5)
            await here.cluster.restart_apiserver()
            await crowd.until(crowd.served + 5)
            assert await first.stop() == 0, "it hands over"
            await crowd.until(crowd.served + 5)
            crowd.stopping = True
        await here.want("sql", minIdle=0)
        await nothing_is_left(here)
        assert await second.stop() == 0
        assert not [each for each in here.witnessed() if each["event"] == "shared"]


@pytest.mark.simulation  # for its time: it runs where the real server does
@pytest.mark.timeout(400)
async def test_a_leader_that_is_killed_is_followed_and_leaves_nothing(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    crowd = Crowd(7)
    async with town(cluster, namespace, tmp_path) as here:
        await here.make("sql", minIdle=2, maxWorkers=5, idleTTL=1, budgets=BUDGETS)
        await asyncio.gather(here.open(), here.open())
        await here.until("sql", idle=2)
        async with await here.connect("sql", seed=4) as pool:
            async with asyncio.TaskGroup() as group:
                crowd.enter(group, pool)
                await crowd.until(10)
                fallen = await here.led()
                await fallen.kill()
                heir = await here.led()
                assert heir is not fallen
                await crowd.until(crowd.served + 20)
                crowd.stopping = True
        await here.until("sql", idle=2)  # the heir keeps it warm
        await here.want("sql", minIdle=0)
        await nothing_is_left(here)
        assert await heir.stop() == 0
        assert not await here.traces()
        assert not [each for each in here.witnessed() if each["event"] == "shared"]
