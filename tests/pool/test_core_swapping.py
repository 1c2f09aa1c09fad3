"""Laws of swapping and of accounts, on a server: of several writers one wins."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from tests.pool.core_site import SMALL, Site, site
from trimtab.api import Quantity
from trimtab.client import Client, load
from trimtab.pool import templates, transitions
from trimtab.pool.accounts import Accounts
from trimtab.pool.kinds import (
    Checkout,
    LedgerEntry,
    Limits,
    Worker,
    WorkerPool,
    WorkerStatus,
)
from trimtab.pool.requests import Full
from trimtab.pool.states import Operation, Origin, Outcome, State
from trimtab.pool.swapping import Rows, Stale
from trimtab.pool.transitions import Impossible
from trimtab.testing import Cluster

pytestmark = pytest.mark.cluster

NOW = datetime(2026, 1, 2, tzinfo=UTC)


class Desk:
    """Rows on the cluster, and what was counted and seen."""

    def __init__(self, client: Client) -> None:
        self.counted: Counter[Outcome] = Counter()
        self.seen: list[Worker] = []
        self.gone: list[Worker] = []
        self.rows = Rows(
            client, saw=self.seen.append, gone=self.gone.append, count=self._count
        )

    def _count(self, operation: Operation, outcome: Outcome, origin: Origin) -> None:
        self.counted[outcome] += 1

    async def swap(self, worker: Worker, status: WorkerStatus) -> Worker:
        return await self.rows.swap(
            worker, status, operation=Operation.CLAIM, origin=Origin.ACQUIRE
        )


async def idle(made: Site, desk: Desk, pool: WorkerPool, name: str = "w") -> Worker:
    """A row that anybody may claim."""
    row = templates.row(pool, SMALL, name=name, spawner="a")
    worker = await made.client.create(row)
    worker = await desk.swap(worker, transitions.spawned(worker, owner="a"))
    status = transitions.ready(worker, owner="a", address="h", port=1, at=NOW)
    return await desk.swap(worker, status)


def claim(worker: Worker, name: str) -> WorkerStatus:
    checkout = Checkout(id=name, holder=f"holder of {name}", since=NOW)
    return transitions.claim(worker, tenant="t", checkout=checkout, owner=name)


async def test_of_many_who_claim_a_worker_one_gets_it(
    cluster: Cluster, namespace: str
) -> None:
    async with site(cluster, namespace) as made:
        desk = Desk(made.client)
        worker = await idle(made, desk, await made.pool())
        results = await asyncio.gather(
            *(desk.swap(worker, claim(worker, f"c{n}")) for n in range(6)),
            return_exceptions=True,
        )
        (won,) = [each for each in results if isinstance(each, Worker)]
        assert sum(isinstance(each, Stale) for each in results) == 5
        assert (await desk.rows.read(worker)).status == won.status
        assert desk.counted == {Outcome.WRITTEN: 3, Outcome.STALE: 5}


async def test_what_a_step_takes_away_is_gone_on_the_server(
    cluster: Cluster, namespace: str
) -> None:
    async with site(cluster, namespace) as made:
        desk = Desk(made.client)
        worker = await idle(made, desk, await made.pool())
        hot = await desk.swap(worker, claim(worker, "c"))
        assert hot.status.idleSince is None
        parked = await desk.swap(hot, transitions.park(hot, checkout="c", at=NOW))
        whole = await made.client.get(Worker.__resource__, "w", namespace=namespace)
        assert "checkout" not in whole["status"]
        assert whole["status"]["idleSince"] == "2026-01-02T00:00:00Z"
        assert parked.status.epoch == 1
        assert parked.status.state is State.HOT_IDLE


async def test_a_step_is_taken_on_what_others_wrote_if_it_is_still_ours(
    cluster: Cluster, namespace: str
) -> None:
    async with site(cluster, namespace) as made:
        desk = Desk(made.client)
        worker = await idle(made, desk, await made.pool())
        hot = await desk.swap(worker, claim(worker, "c"))
        await desk.swap(hot, transitions.fence(hot))

        def park(row: Worker) -> WorkerStatus:
            return transitions.park(row, checkout="c", at=NOW)

        parked = await desk.rows.step(
            hot, park, operation=Operation.PARK, origin=Origin.RELEASE
        )
        assert (parked.status.state, parked.status.epoch) == (State.HOT_IDLE, 2)
        with pytest.raises(Impossible):
            await desk.rows.step(
                hot, park, operation=Operation.PARK, origin=Origin.RELEASE
            )


async def test_another_row_of_the_same_name_is_not_written(
    cluster: Cluster, namespace: str
) -> None:
    async with site(cluster, namespace) as made:
        desk = Desk(made.client)
        pool = await made.pool()
        worker = await idle(made, desk, pool)
        await made.client.delete(Worker, "w", namespace=namespace)
        with pytest.raises(Stale, match="gone"):
            await desk.swap(worker, claim(worker, "c"))
        await idle(made, desk, pool)
        with pytest.raises(Stale):
            await desk.swap(worker, claim(worker, "c"))
        assert desk.gone == [worker]


# Accounts


@asynccontextmanager
async def accounts(cluster: Cluster) -> AsyncIterator[tuple[Accounts, Client]]:
    """One replica's accounts, with a client of its own."""
    async with Client(load(kubeconfig=cluster.kubeconfig)) as client:
        async with asyncio.TaskGroup() as group:
            yield Accounts(client, group=group, freed=lambda *_: None), client


def entry(name: str) -> LedgerEntry:
    return LedgerEntry(checkout=name, worker=f"of {name}", cpu=Quantity("1"))


def patches(client: Client) -> int:
    requests = client.statistics().requests
    return sum(count for (verb, _), count in requests.items() if verb == "patch")


async def test_a_limit_holds_between_replicas_that_race_for_it(
    cluster: Cluster, namespace: str
) -> None:
    async with site(cluster, namespace) as made:
        pool = await made.pool(limits=Limits(workers=5))
        async with accounts(cluster) as (one, _), accounts(cluster) as (other, _):
            wishes = [
                replica.enter(pool, "t", entry(f"{number}-{place}"))
                for number in range(12)
                for place, replica in enumerate((one, other))
            ]
            results = await asyncio.gather(*wishes, return_exceptions=True)
            refused = [each for each in results if isinstance(each, Full)]
            assert {each.limit for each in refused} == {"workers"}
            assert len(refused) == 24 - 5 == len([e for e in results if e is not None])
            held = await made.entries("t")
            assert len(held) == 5
            await asyncio.gather(
                *(replica.leave(pool, "t", held) for replica in (one, other))
            )
            assert await made.entries("t") == []


async def test_the_wishes_of_a_tenant_that_come_together_are_one_write(
    cluster: Cluster, namespace: str
) -> None:
    async with site(cluster, namespace) as made:
        pool = await made.pool(limits=Limits(cpu=Quantity("50")))
        async with accounts(cluster) as (mine, client):
            await mine.enter(pool, "t", entry("first"))
            before = patches(client)
            await asyncio.gather(
                *(mine.enter(pool, "t", entry(f"c{n}")) for n in range(20))
            )
            assert patches(client) - before <= 2
            assert len(await made.entries("t")) == 21


async def test_who_leaves_by_another_replica_is_gone_although_it_did_not_know(
    cluster: Cluster, namespace: str
) -> None:
    async with site(cluster, namespace) as made:
        pool = await made.pool(limits=Limits(workers=1))
        async with accounts(cluster) as (one, _), accounts(cluster) as (other, _):
            await other.enter(pool, "t", entry("before"))
            await other.leave(pool, "t", ["before"])
            await one.enter(pool, "t", entry("c"))
            await other.leave(pool, "t", ["c"])
            assert await made.entries("t") == []
            await one.enter(pool, "t", entry("d"))
            with pytest.raises(Full, match="all that workers allows"):
                await other.enter(pool, "t", entry("e"))


async def test_a_tenant_without_limits_has_no_ledger(
    cluster: Cluster, namespace: str
) -> None:
    async with site(cluster, namespace) as made:
        pool = await made.pool()
        async with accounts(cluster) as (mine, client):
            await mine.enter(pool, "t", entry("c"))
            await mine.leave(pool, "t", ["c"])
            assert patches(client) == 0
