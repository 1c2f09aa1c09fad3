"""Laws of handing out, between replicas that race, with real workers in real pods."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.pool.core_site import Site, site_with_node
from trimtab.pool.kinds import Limits, Tenant
from trimtab.pool.replica import Replica
from trimtab.pool.requests import Full, Grant, Never, NotNow, NotYours
from trimtab.pool.states import State
from trimtab.testing import Cluster, eventually

# They take seconds each, so they are not for every run.
pytestmark = [pytest.mark.cluster, pytest.mark.simulation]


class Round:
    """Holders that acquire and release by any of the replicas, and what they saw."""

    def __init__(self, site: Site, *replicas: Replica) -> None:
        self.site = site
        self.replicas = replicas
        self.using: Counter[str] = Counter()
        self.had: Counter[str] = Counter()
        self.tenants: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def play(self, number: int, tenant: str) -> None:
        allocator = self.replicas[number % len(self.replicas)].allocator
        holder = f"holder-{number}"
        grant = await allocator.acquire(
            self.site.request(tenant, holder=holder, wait=30.0)
        )
        self.using[grant.worker] += 1
        self.tenants[tenant] += 1
        self.most[tenant] = max(self.most[tenant], self.tenants[tenant])
        assert self.using[grant.worker] == 1, "two holders have one worker"
        self.had[grant.worker] += 1
        await asyncio.sleep(0)
        self.using[grant.worker] -= 1
        self.tenants[tenant] -= 1
        other = self.replicas[(number + 1) % len(self.replicas)].allocator
        key = (grant.namespace, grant.worker)
        await other.release(grant.checkout, holder=holder, worker=key)


async def test_no_worker_has_two_holders_and_no_limit_is_exceeded_in_a_race(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with site_with_node(cluster, namespace, tmp_path) as site:
        tenants = [Tenant(name="capped", limits=Limits(workers=1))]
        await site.pool(minIdle=0, maxWorkers=3, idleTTL=60, tenants=tenants)
        async with site.replica("a") as one, site.replica("b") as other:
            played = Round(site, one, other)
            async with asyncio.TaskGroup() as group:
                for number in range(12):
                    tenant = ("capped", "free")[number % 3 == 0]
                    group.create_task(played.play(number, tenant))
            assert played.had.total() == 12
            assert played.most["capped"] == 1
            rows = await site.workers()
            assert all(each.status.state is not State.HOT for each in rows)
            assert len(await site.living()) <= 3

            async def nothing_counts() -> bool:
                assert await site.entries("capped") == []
                return True

            await eventually(nothing_counts)


async def test_every_way_to_be_refused_and_to_give_up(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with site_with_node(cluster, namespace, tmp_path) as site:
        tenants = [
            Tenant(name="none", limits=Limits(workers=0)),
            Tenant(name="one", limits=Limits(workers=1)),
        ]
        await site.pool(minIdle=1, maxWorkers=1, idleTTL=60, tenants=tenants)
        async with site.replica() as replica:
            allocator = replica.allocator
            with pytest.raises(Never, match="no shape"):
                await allocator.acquire(site.request(shape="huge"))
            with pytest.raises(Never, match="There is no WorkerPool"):
                await allocator.acquire(site.request(pool=(namespace, "other")))
            with pytest.raises(Never, match="below one worker"):
                await allocator.acquire(site.request("none"))

            await site.until(1, State.IDLE)
            grant = await allocator.acquire(site.request("one"))
            with pytest.raises((Full, NotNow)):
                await allocator.acquire(site.request("one", wait=0.2))
            with pytest.raises(NotNow, match="No worker of pool was free"):
                await allocator.acquire(site.request("two", wait=0.2))
            with pytest.raises(NotYours):
                await allocator.release(grant.checkout, holder="somebody else")

            await _one_who_gives_up_is_parked_for_the_next(site, allocator, grant)


async def _one_who_gives_up_is_parked_for_the_next(
    site: Site, allocator: object, grant: Grant
) -> None:
    from trimtab.pool.allocator import Allocator

    assert isinstance(allocator, Allocator)
    waiting = asyncio.ensure_future(
        allocator.acquire(site.request("one", holder="gone", wait=30.0))
    )
    await asyncio.sleep(0.1)
    await allocator.release(grant.checkout, holder="me")
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await site.until(1, State.HOT_IDLE)
    with pytest.raises(NotYours):
        await allocator.release(grant.checkout, holder="me")
    again = await allocator.acquire(site.request("one", wait=10.0))
    assert again.worker == grant.worker
    await allocator.drain((again.namespace, again.worker))
    (draining,) = await site.living(State.DRAINING)
    assert draining.status.checkout is not None
    await allocator.release(again.checkout, holder="me")
    await site.until(0, State.DRAINING)


async def test_what_a_dead_holder_had_is_ended_and_what_a_living_one_has_is_not(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with site_with_node(cluster, namespace, tmp_path) as site:
        await site.pool(minIdle=2, maxWorkers=3, idleTTL=60)
        async with site.replica("a") as one, site.replica("b") as other:
            await site.until(2, State.IDLE)
            dead = await one.allocator.acquire(site.request(holder="dead"))
            alive = await one.allocator.acquire(site.request(holder="alive", wait=10))

            async def renewed() -> bool:
                await other.allocator.renew("alive", [alive.checkout])
                rows = {each.metadata.name: each for each in await site.workers()}
                state = rows[dead.worker].status.state
                assert rows[alive.worker].status.state is State.HOT
                assert state in (State.RETIRED, State.LOST), state
                return True

            await eventually(renewed, within=20.0, every=0.2)
            (ended,) = [
                each
                for each in await site.workers()
                if each.metadata.name == dead.worker
            ]
            assert ended.status.retireReason == "holder-dead"
            assert ended.status.epoch > dead.epoch
            await other.allocator.release(alive.checkout, holder="alive")
