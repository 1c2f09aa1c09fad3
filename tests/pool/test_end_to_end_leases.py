"""Laws of the whole where a gateway cannot renew: it stops before others may reap."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.pool.crowd import BUDGETS, nothing_is_left
from tests.pool.limited import Limited, limited
from tests.pool.town import LEASE, Door, Town, town
from trimtab.api.kinds import Lease
from trimtab.pool.client import Lost, Pool
from trimtab.pool.kinds import LABEL_ROLE
from trimtab.pool.requests import Refused
from trimtab.testing import Cluster
from trimtab.testing.waiting import eventually


class Renewals:
    """When a gateway was last seen to renew, by our own clock."""

    def __init__(self, here: Town, door: Door) -> None:
        self._here = here
        self._door = door
        self._last = ""
        self.at = 0.0

    async def follow(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            sent = clock()
            found = self._here.client.list(
                Lease, namespace=self._here.namespace, labels=f"{LABEL_ROLE}=replica"
            )
            async for each in found:
                revision = each.metadata.resourceVersion
                ours = self._door.is_called(each.spec.holderIdentity or "")
                if ours and revision != self._last:
                    # Others saw it after this; so they wait for longer than we do.
                    self._last, self.at = revision, sent
            await asyncio.sleep(0.05)


async def last_grant(pool: Pool) -> float:
    """Have workers for as long as there are any; when the last one was handed out."""
    clock, last = asyncio.get_running_loop().time, 0.0
    while True:
        try:
            async with pool.acquire(tenant="acme", wait=0.2):
                last = clock()
        except Refused:
            return last


@pytest.mark.simulation  # for its time: it runs where the real server does
@pytest.mark.timeout(400)
async def test_a_gateway_that_cannot_renew_stops_before_others_may_reap(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with (
        town(cluster, namespace, tmp_path) as here,
        limited(here, tmp_path) as account,
    ):
        await here.make("sql", minIdle=2, maxWorkers=4, idleTTL=1, budgets=BUDGETS)
        blocked = await here.open(kubeconfig=account.kubeconfig)
        other = await here.open()
        await here.until("sql", idle=2)
        one = await here.connect("sql", blocked, seed=1)
        two = await here.connect("sql", other, seed=2)
        async with one, two:
            await cut_off(here, account, blocked, one)
            async with two.acquire(tenant="blue") as worker:
                assert (await worker.call("POST", "/witness")).status == 200
            await account.may_renew()
            await eventually(lambda: serves(one), within=30.0, every=0.2)
        await here.want("sql", minIdle=0)
        await nothing_is_left(here)
        assert await blocked.stop() == 0
        assert await other.stop() == 0
        assert not await here.traces()
        assert not [each for each in here.witnessed() if each["event"] == "shared"]


async def cut_off(here: Town, account: Limited, blocked: Door, pool: Pool) -> None:
    """Refuse a gateway its Lease: what it has handed out ends, and nothing follows."""
    renewals = Renewals(here, blocked)
    async with asyncio.TaskGroup() as group:
        following = group.create_task(renewals.follow())
        async with pool.acquire(tenant="acme") as held:
            await account.may_not_renew()
            last = await last_grant(pool)
            assert renewals.at < last < renewals.at + LEASE
            await eventually(held.lost.is_set, within=30.0)
            with pytest.raises(Lost):
                await held.call("POST", "/witness")
        following.cancel()
    # Nobody renews for its holder: the others take the worker, a grace later.
    await eventually(lambda: is_over(here, held.name), within=30.0, every=0.2)


async def is_over(here: Town, name: str) -> bool:
    return not any(
        each.metadata.name == name and each.status.checkout is not None
        for each in await here.workers()
    )


async def serves(pool: Pool) -> bool:
    try:
        async with pool.acquire(tenant="acme", wait=0.2):
            return True
    except Refused:
        return False
