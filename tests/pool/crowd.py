"""A crowd: clients that want workers again and again, and see that each is theirs."""

from __future__ import annotations

import asyncio
import json
from random import Random

from tests.pool.town import Town
from trimtab.client.calling import NoReply
from trimtab.pool.client import HeldWorker, Pool
from trimtab.pool.kinds import TenantLedger
from trimtab.pool.requests import Refused
from trimtab.testing.waiting import eventually

TENANTS = ("acme", "blue")
BUDGETS = {"spawn": 60, "activation": 10, "acquire": 3}


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

    def enter(self, group: asyncio.TaskGroup, *pools: Pool) -> None:
        """Let two clients of each tenant come to each of these."""
        for tenant in TENANTS:
            for pool in pools:
                for _ in range(2):
                    group.create_task(self.client(pool, tenant))

    async def until(self, served: int) -> None:
        """Wait until so many uses went well."""
        try:
            await eventually(lambda: self.served >= served, within=120.0)
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
    """No pods, secrets, rows, Leases, or entries in ledgers."""
    await here.empty()

    async def look() -> bool:
        found = here.client.list(TenantLedger, namespace=here.namespace)
        entries = [each.status.entries async for each in found]
        return not any(entries) and not await here.traces()

    try:
        await eventually(look, within=30.0, every=0.2)
    except AssertionError as error:
        raise AssertionError(f"{await here.traces()}\n{here.log()}") from error
