"""Laws of the whole while its certificates change: nobody notices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import SystemRandom

import pytest

from tests.pool.crowd import BUDGETS, Crowd
from tests.pool.town import LEASE, Town, town
from trimtab import Client, load
from trimtab.api.kinds import Secret
from trimtab.client.calling import Caller, NoReply, Place
from trimtab.pool import secrets
from trimtab.pool.gateway.service import Service, ServiceOptions
from trimtab.pool.keyring import authority_name
from trimtab.pool.parts import PoolOptions
from trimtab.pool.rotating import FOLLOWED_BEFORE, NEXT
from trimtab.pool.secrets import AUTHORITY, AUTHORITY_LIFETIME, Authority
from trimtab.testing import Cluster
from trimtab.testing.waiting import eventually

AGO = secrets.LIFETIME - timedelta(days=5)
"""What was certified then is to be renewed now."""
PERIOD = 0.1
"""So that certificates are looked at every six seconds."""


class Clock:
    """The time of a gateway, which is some days ago until it is told otherwise."""

    def __init__(self) -> None:
        self.behind = AGO

    def __call__(self) -> datetime:
        return datetime.now(UTC) - self.behind


@asynccontextmanager
async def gateway(here: Town, clock: Clock) -> AsyncIterator[str]:
    """A gateway in this process, with a clock of its own; its address."""

    def connect() -> Client:
        return Client(load(kubeconfig=here.cluster.kubeconfig))

    options = PoolOptions(
        lease_namespace=here.namespace,
        namespaces=(here.namespace,),
        lease_seconds=LEASE,
        grace=1.0,
        period=PERIOD,
    )
    async with connect() as client, asyncio.TaskGroup() as group:
        service = Service(
            client,
            connect=connect,
            options=ServiceOptions(pool=options, port=0),
            random=SystemRandom(),
            now=clock,
        )
        running = group.create_task(service.run())
        await service.ready.wait()
        yield f"https://127.0.0.1:{service.port}"
        service.stop()
        await running


async def certify(here: Town) -> Authority:
    """Give a pool an authority that is to be followed, and has been for a while."""
    now = datetime.now(UTC)
    made = Authority.make("old", now=now - AUTHORITY_LIFETIME + FOLLOWED_BEFORE / 2)
    meta = {"name": authority_name("sql"), "namespace": here.namespace}
    secret: dict[str, object] = {"apiVersion": "v1", "kind": "Secret"}
    await here.client.create({**secret, "metadata": meta, "data": made.data()})
    return made


async def shows(here: Town, worker: str, authority: bytes) -> bool:
    """Whether a worker shows a certificate of this very authority."""
    rows = {each.metadata.name: each.status for each in await here.workers()}
    caller = Caller()
    place = Place(
        host=rows[worker].address,
        port=rows[worker].port or 0,
        name=worker,
        ca=authority,
    )
    try:
        return (await caller.call(place, "GET", "/healthz", within=5.0)).status == 200
    except NoReply:
        return False
    finally:
        await caller.close()


@pytest.mark.simulation  # for its time: it runs where the real server does
@pytest.mark.timeout(400)
async def test_certificates_and_their_authority_change_and_nobody_notices(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    crowd, clock = Crowd(8), Clock()
    often = {"refresh": 0.5, "housekeeping": 0.5}
    async with town(cluster, namespace, tmp_path, **often) as here:
        old = await certify(here)
        await here.make(
            *("sql", "--reload", "0.2"),
            minIdle=1,
            maxWorkers=2,
            idleTTL=600,
            budgets=BUDGETS,
        )
        async with gateway(here, clock) as url:
            await here.until("sql", idle=1)
            held = await secret(here, authority_name("sql"))
            assert held.data[AUTHORITY] == old.pem, "the old one signs"
            following = held.data[NEXT]
            async with await here.connect("sql", url) as pool:
                async with asyncio.TaskGroup() as group:
                    crowd.enter(group, pool)
                    await crowd.until(10)
                    # Another may just be on its way, and show nothing yet.
                    before = {
                        each.metadata.name
                        for each in await here.workers()
                        if each.status.address
                    }
                    name = min(before)
                    assert await shows(here, name, old.pem)
                    clock.behind = timedelta(0)
                    await eventually(
                        lambda: shows(here, name, following), within=60.0, every=0.3
                    )
                    await crowd.until(crowd.served + 10)
                    crowd.stopping = True
            after = {each.metadata.name for each in await here.workers()}
            assert after >= before, "no worker had to go"
            assert (crowd.refused, crowd.cut_off) == (0, 0)


async def secret(here: Town, name: str) -> Secret:
    return await here.client.get(Secret, name, namespace=here.namespace)
