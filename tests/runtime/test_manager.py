"""Laws of the manager: it says how it is, ends in time, and gives the lease back."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import AsyncIterator

import msgspec
import pytest

from tests.client.clusters import defines
from tests.runtime.managed import beside
from tests.runtime.operating import (
    Shop,
    client_in,
    here,
    manager_of,
    options,
    running,
    shop,
)
from tests.runtime.relay import Relay
from tests.runtime.replicas import MARGIN, connecting
from tests.runtime.test_endpoints import Reply, get
from trimtab import Client, Context, Metadata, Operator, Resource, crd
from trimtab.cache.options import FeedOptions
from trimtab.client.errors import NotFound
from trimtab.kinds import Event, Lease
from trimtab.runtime.manager import Manager
from trimtab.testing import Cluster, eventually

PROMPT = 10.0
"""Seconds in which a busy machine does what takes a moment."""
FAMILIES = (
    *("queue_depth", "queue_oldest_seconds", "reconciles_total", "reconcile_seconds"),
    *("writes_total", "writes_skipped_total", "reconcile_writes", "cache_objects"),
    *("cache_bytes", "relists_total", "client_requests_total", "is_leader"),
    *("events_dropped_total", "loop_lag_seconds"),
)


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_in(cluster, namespace) as client:
        yield client


def looking(namespace: str, seen: list[str], *, leader: bool = True) -> Operator:
    """An operator that notes whom it has seen."""
    app = Operator("shops", leader=leader)

    @app.reconciles(Shop, scope=here(namespace))
    async def look(site: Shop, ctx: Context) -> None:
        seen.append(site.metadata.name)

    return app


async def asked(manager: Manager, path: str) -> Reply:
    assert manager.endpoints is not None
    return await get(manager.endpoints, path)


def seconds() -> float:
    return asyncio.get_running_loop().time()


async def stopped(manager: Manager, task: asyncio.Task[None]) -> float:
    """Stop it; how long that took."""
    began = seconds()
    manager.stop()
    await asyncio.wait_for(task, 30)
    return seconds() - began


class Market(Resource, group="late.example.com", version="v1"):
    """A kind that the server does not have at first."""


async def test_it_is_ready_while_it_follows_the_server(
    cluster: Cluster, client: Client, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    app = Operator("markets", leader=False)
    seen: list[str] = []

    @app.reconciles(Market, scope=here(namespace))
    async def look(site: Market, ctx: Context) -> None:
        seen.append(site.metadata.name)

    chosen = options(namespace)
    manager = manager_of(app, cluster, client, options=chosen)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        await eventually(lambda: manager.cache.problem(seconds()))
        answer = await asked(manager, "/readyz")
        assert answer.status == 500
        assert b"markets" in answer.body
        assert answer.body.count(b"\n") <= 3
        assert (await asked(manager, "/livez")).body == b"ok"
        said = [each for each in caplog.messages if "markets" in each.lower()]
        assert len(said) == 1, said
        await defines(client, crd(Market))
        await client.create(Market(metadata=Metadata(name="fish")))
        await eventually(lambda: seen == ["fish"])

        async def answers(status: int) -> bool:
            return (await asked(manager, "/readyz")).status == status

        await eventually(lambda: answers(200))
        definitions = await client.discover(
            "apiextensions.k8s.io/v1", "CustomResourceDefinition"
        )
        await client.delete(definitions, crd(Market)["metadata"]["name"])
        await eventually(lambda: answers(500), within=20)
        assert await stopped(manager, task) < PROMPT


async def test_a_watch_that_is_half_open_turns_readiness_red(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    seen: list[str] = []
    feeds = FeedOptions(idle=0.5, patience=0.5)
    async with Relay(cluster.server) as relay:
        far = connecting(cluster, namespace, server=relay.server)
        async with far() as through:
            chosen = options(namespace, feeds=feeds)
            app = looking(namespace, seen, leader=False)
            manager = manager_of(app, cluster, through, options=chosen)

            async def answers(status: int) -> bool:
                return (await asked(manager, "/readyz")).status == status

            async with asyncio.TaskGroup() as group:
                task = group.create_task(manager.run())
                await eventually(manager.ready.is_set)
                await eventually(lambda: answers(200))
                relay.cut()
                await client.create(shop("corner"))
                # One that was just being opened has the deadline of a call for that.
                await eventually(lambda: answers(500), within=40)
                body = (await asked(manager, "/readyz")).body
                assert b"does not follow the server" in body
                assert (await asked(manager, "/livez")).status == 200
                assert seen == []
                relay.mend()
                await eventually(lambda: answers(200), within=20)
                await eventually(lambda: seen == ["corner"])
                await stopped(manager, task)


async def test_it_tells_what_it_has_done_and_why(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    seen: list[str] = []
    app = looking(namespace, seen)
    await client.create(shop("corner"))
    async with running(app, cluster, client) as manager:
        history = manager.controllers[0].history
        await eventually(lambda: history.of((namespace, "corner")))
        text = (await asked(manager, "/metrics")).body.decode()
        for family in FAMILIES:
            assert f"\ntrimtab_{family}" in text, family
        assert "\ntrimtab_is_leader 1.0" in text
        for kind in ("Shop", "shops", "shop"):
            answer = await asked(manager, f"/debug/why/{kind}/{namespace}/corner")
            (told,) = msgspec.json.decode(answer.body)["controllers"]
            assert told["object"] == f"Shop {namespace}/corner"
            assert told["cached"]
            assert told["last"]["outcome"] == "ok"
            assert told["last"]["causes"] == ["first list"]
        answer = await asked(manager, f"/debug/why/Shop/{namespace}/none")
        (told,) = msgspec.json.decode(answer.body)["controllers"]
        assert (told["cached"], told["last"]) == (False, None)
        assert (await asked(manager, "/debug/why/Nothing/a/b")).status == 404


async def test_what_is_in_hand_is_finished_and_told_and_nothing_new_is_begun(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops")
    go_on = asyncio.Event()
    seen: list[str] = []

    @app.reconciles(Shop, scope=here(namespace), concurrency=1)
    async def slow(site: Shop, ctx: Context) -> None:
        seen.append("began")
        await go_on.wait()
        ctx.condition("Ready", True, reason="Done")
        ctx.event("Finished", "It is finished.")
        seen.append("ended")

    for name in ("a", "b"):
        await client.create(shop(name))
    manager = manager_of(app, cluster, client, options=options(namespace))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        await eventually(lambda: seen == ["began"])
        asyncio.get_running_loop().call_later(0.1, go_on.set)
        assert await stopped(manager, task) < PROMPT
    assert seen == ["began", "ended"]
    found = [each async for each in client.list(Shop, namespace=namespace)]
    assert sum(each.status.conditions.is_true("Ready") for each in found) == 1
    events = [each async for each in client.list(Event, namespace=namespace)]
    assert "Finished" in {each.reason for each in events}


@pytest.mark.parametrize("leader", [True, False])
@pytest.mark.parametrize("plain", [True, False])
async def test_it_ends_in_time_though_a_handler_does_not(
    cluster: Cluster, client: Client, namespace: str, leader: bool, plain: bool
) -> None:
    app = Operator("shops", leader=leader)
    began, door = threading.Event(), threading.Event()

    def block(site: Shop, ctx: Context) -> None:
        began.set()
        door.wait(50)

    async def hang(site: Shop, ctx: Context) -> None:
        began.set()
        await asyncio.Event().wait()

    app.reconciles(Shop, scope=here(namespace))(block if plain else hang)
    await client.create(shop("corner"))
    quick = options(namespace, drain=0.3)
    manager = manager_of(app, cluster, client, options=quick)
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(manager.run())
            await eventually(began.is_set)
            assert await stopped(manager, task) < PROMPT
    finally:
        door.set()
    if leader:
        assert not (await client.get(Lease, "test")).spec.holderIdentity


async def test_it_ends_at_once_before_its_caches_are_complete(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("nowhere")

    class Nowhere(Resource, group="nowhere.example.com", version="v1"):
        """A kind that no server has."""

    @app.reconciles(Nowhere, scope=here(namespace))
    async def look(site: Nowhere, ctx: Context) -> None: ...

    manager = manager_of(app, cluster, client, options=options(namespace))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        assert manager.leadership is not None
        await eventually(lambda: manager.leadership and manager.leadership.is_leader)
        assert await stopped(manager, task) < PROMPT


async def test_another_replica_leads_at_once_when_one_stops(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    first: list[str] = []
    second: list[str] = []
    await client.create(shop("corner"))
    old, new = looking(namespace, first), looking(namespace, second)
    async with running(old, cluster, client, duration=60.0) as one:
        await eventually(lambda: first)
        async with running(new, cluster, client, duration=60.0):
            assert second == []
            one.stop()
            began = seconds()
            await eventually(lambda: second == ["corner"])
            # Its lease would last for longer.
            assert seconds() - began < PROMPT
    assert first == ["corner"]


async def test_another_replica_leads_when_one_is_killed(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    await client.create(shop("corner"))
    async with beside(cluster, namespace) as one:
        assert one.stdout is not None
        assert await asyncio.wait_for(one.stdout.readline(), 20) == b"corner\n"
        seen: list[str] = []
        app = looking(namespace, seen)
        async with running(app, cluster, client, duration=3.0) as manager:
            one.send_signal(signal.SIGKILL)
            began = seconds()
            await eventually(lambda: seen == ["corner"], within=20)
            lease = manager.leadership.options if manager.leadership else None
            assert lease is not None
            assert seconds() - began < lease.duration + lease.retry + MARGIN


async def test_work_that_needs_no_leader_runs_in_every_replica(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    seen: list[tuple[int, str]] = []

    def app(number: int) -> Operator:
        made = Operator("shops")

        @made.reconciles(Shop, scope=here(namespace), leader=False)
        async def everywhere(site: Shop, ctx: Context) -> None:
            seen.append((number, "everywhere"))

        @made.reconciles(Shop, scope=here(namespace))
        async def leading(site: Shop, ctx: Context) -> None:
            seen.append((number, "leading"))

        return made

    await client.create(shop("corner"))
    async with running(app(1), cluster, client):
        await eventually(lambda: len(seen) == 2)
        async with running(app(2), cluster, client):
            await eventually(lambda: (2, "everywhere") in seen)
    # The second comes to lead only if the first has left before it.
    assert (1, "leading") in seen
    assert seen.index((1, "leading")) < 2


async def test_a_lost_lease_ends_the_work_which_begins_again_when_it_is_won(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops")
    said: list[str] = []

    @app.reconciles(Shop, scope=here(namespace))
    async def work(site: Shop, ctx: Context) -> None:
        said.append("began")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            said.append("cancelled")
            raise

    await client.create(shop("corner"))
    async with running(app, cluster, client, drain=0.2) as manager:
        await eventually(lambda: said == ["began"])
        thief = {"holderIdentity": "thief", "leaseDurationSeconds": 60}
        await client.patch(Lease, "test", {"spec": thief})
        await eventually(lambda: said == ["began", "cancelled"])
        await client.patch(Lease, "test", {"spec": {"holderIdentity": ""}})
        await eventually(lambda: said == ["began", "cancelled", "began"])
        assert manager.leadership is not None
        assert manager.leadership.statistics().terms == 2


async def test_a_lease_that_somebody_deletes_is_held_again_and_the_work_goes_on(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    seen: list[str] = []
    async with running(looking(namespace, seen), cluster, client) as manager:
        await client.create(shop("a"))
        await eventually(lambda: seen == ["a"])
        old = await client.get(Lease, "test")
        await client.delete(Lease, "test")

        async def is_held() -> bool:
            try:
                found = await client.get(Lease, "test")
            except NotFound:
                return False
            held = found.spec.holderIdentity == old.spec.holderIdentity
            return held and found.metadata.uid != old.metadata.uid

        await eventually(is_held)
        await client.create(shop("b"))
        await eventually(lambda: seen[-1] == "b")
        assert manager.leadership is not None
        assert manager.leadership.is_leader
