"""The whole life of a worker: spawned, handed out, parked, handed out again, ended."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random, SystemRandom

import pytest

from tests.pool.core_site import Site, site, site_with_node, wall
from trimtab.client import Client, load
from trimtab.client.calling import Caller
from trimtab.pool import allocator
from trimtab.pool.httpcalls import HttpCalls
from trimtab.pool.keyring import SecretKeyring
from trimtab.pool.replica import Replica
from trimtab.pool.requests import NotNow, Unavailable
from trimtab.pool.states import Source, State
from trimtab.testing import Cluster, eventually

pytestmark = pytest.mark.cluster


async def test_a_worker_lives_from_its_spawn_to_its_end(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with site_with_node(cluster, namespace, tmp_path) as site:
        await site.pool(minIdle=1, maxWorkers=2, idleTTL=1)
        async with site.replica() as replica:
            await site.until(1, State.IDLE)
            grant = await replica.allocator.acquire(site.request())
            assert grant.source is Source.IDLE
            (hot,) = await site.living(State.HOT)
            assert hot.status.tenant == "acme"
            assert hot.status.epoch == grant.epoch == 1
            await replica.allocator.release(grant.checkout, holder="me")

            again = await replica.allocator.acquire(site.request())
            assert (again.source, again.worker) == (Source.HOT_IDLE, grant.worker)
            assert again.epoch == 2
            await replica.allocator.release(again.checkout, holder="me")
            await site.until(1)
            await site.until(1, State.IDLE)

            async def only_the_idle_one() -> bool:
                assert len(await site.entries()) == 1
                assert len(await site.leftovers()) == 2
                return True

            await eventually(only_the_idle_one)


async def nothing_is_left(here: Site) -> bool:
    assert await here.living() == []
    assert await here.leftovers() == []
    assert await here.entries() == []
    return True


async def test_a_replica_that_stops_leaves_nothing_half_made(
    cluster: Cluster, namespace: str
) -> None:
    async with site(cluster, namespace) as here:
        await here.pool(minIdle=2, maxWorkers=2)
        async with here.replica() as replica:
            await here.until(2, State.SPAWNING)
        await eventually(lambda: nothing_is_left(here))
        reasons = {each.status.retireReason for each in await here.workers()}
        assert reasons == {"spawn-failed"}
        with pytest.raises(Unavailable, match="hands out nothing"):
            await replica.allocator.acquire(here.request())


async def test_a_spawn_that_fails_gives_its_slot_back_at_once(
    cluster: Cluster, namespace: str
) -> None:
    async with site(cluster, namespace) as here:
        nothing = {"spec": {"containers": [{"name": "main"}], "hostname": "_"}}
        await here.pool(template=nothing, maxWorkers=1)
        async with here.replica() as replica:
            with pytest.raises(NotNow):
                await replica.allocator.acquire(here.request(wait=0.5))
            await eventually(lambda: nothing_is_left(here))
            (ended, *_) = await here.workers()
            assert ended.status.state is State.RETIRED


async def test_of_a_crowd_the_first_are_served_first_and_nobody_is_refused(
    cluster: Cluster,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(allocator, "CLAIMS", 1)
    served: list[int] = []
    async with site_with_node(cluster, namespace, tmp_path) as site:
        await site.pool(minIdle=3, maxWorkers=3)
        async with site.replica() as replica:
            await site.until(3, State.IDLE)

            async def one(number: int) -> None:
                await replica.allocator.acquire(site.request())
                served.append(number)

            await asyncio.gather(*map(one, range(3)))
            assert served == [0, 1, 2]
            assert len(await site.workers()) == len(await site.living(State.HOT)) == 3


async def test_a_replica_stops_although_it_never_got_to_see_anything(
    cluster: Cluster, tmp_path: Path
) -> None:
    config, address = tmp_path / "kubeconfig", cluster.server.rpartition(":")[0]
    text = cluster.kubeconfig.read_text()
    config.write_text(text.replace(cluster.server, f"{address}:1"))
    async with Client(load(kubeconfig=config)) as client:
        made = Replica(
            client,
            calls=HttpCalls(Caller()),
            keyring=SecretKeyring(client, now=wall, random=SystemRandom()),
            options=Site(client, cluster, "nowhere").options(),
            random=Random(1),
            now=wall,
            connect=lambda: Client(load(kubeconfig=config)),
        )
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            running = group.create_task(made.run())
            await asyncio.wait([running], timeout=0.3)
            made.stop()
    assert not made.ready.is_set()
