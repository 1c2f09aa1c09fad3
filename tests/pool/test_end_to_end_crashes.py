"""Laws of the whole under crashes: nobody shares a worker, and nothing is left."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from random import Random

import pytest

from tests.kubelet.laptop import marked
from tests.pool.town import Town, town
from trimtab.pool.calling import NoReply
from trimtab.pool.client import HeldWorker, Pool
from trimtab.pool.kinds import TenantLedger
from trimtab.pool.requests import Refused
from trimtab.testing import Cluster
from trimtab.testing.waiting import eventually

TENANTS = ("acme", "blue")
LIMIT = 3
BUDGETS = {"spawn": 30, "activation": 10, "acquire": 3}


class Crowd:
    """Clients that want workers again and again, and check that each is theirs."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.asking = 0
        self.holding = dict.fromkeys(TENANTS, 0)
        self.most = dict.fromkeys(TENANTS, 0)
        self.served = 0
        self.cut_off = 0
        self.refused = 0
        self.stopping = False

    def __repr__(self) -> str:
        return str({name: told for name, told in vars(self).items() if name[0] != "_"})

    async def until(self, served: int) -> None:
        """Wait until so many uses went well."""
        try:
            await eventually(lambda: self.served >= served, within=60.0)
        except AssertionError as error:
            raise AssertionError(repr(self)) from error

    async def client(self, pool: Pool, tenant: str) -> None:
        while not self.stopping:
            self.asking += 1
            asking = True
            try:
                async with pool.acquire(tenant=tenant, wait=5.0) as worker:
                    self.asking, asking = self.asking - 1, False
                    self.holding[tenant] += 1
                    self.most[tenant] = max(self.most[tenant], self.holding[tenant])
                    try:
                        await self._use(worker)
                    finally:
                        self.holding[tenant] -= 1
            except Refused:
                self.refused += 1
            finally:
                self.asking -= asking

    async def _use(self, worker: HeldWorker) -> None:
        for _ in range(2):
            try:
                reply = await worker.call("POST", "/witness")
            except NoReply:
                self.cut_off += 1
                return
            assert reply.status == 200, reply.body
            seen = json.loads(reply.body)
            assert seen["checkout"] == worker.checkout
            assert seen["shared"] == 0
            await asyncio.sleep(self._random.uniform(0, 0.03))
        self.served += 1


async def nothing_is_left(here: Town) -> None:
    """No pods, secrets, living rows, or entries in ledgers."""
    await here.empty()

    async def look() -> bool:
        found = here.client.list(TenantLedger, namespace=here.namespace)
        return not any([each.status.entries async for each in found])

    await eventually(look, within=20.0, every=0.2)


@pytest.mark.simulation  # for its time: it runs where the real server does
@pytest.mark.timeout(180)
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
            for tenant in TENANTS:
                for pool in (one, two):
                    for _ in range(2):
                        group.create_task(crowd.client(pool, tenant))
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
@pytest.mark.timeout(180)
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
            for tenant in TENANTS:
                for _ in range(2):
                    group.create_task(crowd.client(pool, tenant))
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
