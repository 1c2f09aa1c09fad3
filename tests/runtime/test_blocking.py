"""Laws of plain functions as handlers: a thread each, and no word after their time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.runtime.operating import (
    Shop,
    ShopStatus,
    client_in,
    here,
    running,
    shop,
    until,
)
from trimtab import Client, Context, Metadata, Operator, Result
from trimtab.client.budget import remaining
from trimtab.client.errors import DeadlineExceeded, NotFound
from trimtab.kinds import ConfigMap, Event, Lease
from trimtab.runtime.blocking import BlockingContext
from trimtab.runtime.leadership import State
from trimtab.runtime.threads import Revoked, from_thread
from trimtab.testing import Cluster, eventually

LONG = 20.0
"""Seconds that a thread of a test waits at most."""


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_in(cluster, namespace) as client:
        yield client


@contextmanager
def opening() -> Iterator[threading.Event]:
    """A door that threads wait at, opened at the end in any case."""
    door = threading.Event()
    try:
        yield door
    finally:
        door.set()


def late(door: threading.Event, said: list[object]) -> Callable[..., None]:
    """A handler that waits for a door, and then tries to write."""

    def handler(site: Shop, ctx: BlockingContext) -> None:
        said.append("began")
        door.wait(LONG)
        for write in (
            lambda: ctx.apply(ConfigMap(metadata=Metadata(name="late"))),
            lambda: ctx.condition("Late", True, reason="Late"),
        ):
            try:
                write()
                said.append("wrote")
            except (Revoked, DeadlineExceeded) as error:
                said.append(type(error))

    return handler


async def budget_left() -> float | None:
    return remaining()


async def exists(client: Client, name: str) -> bool:
    try:
        await client.get(ConfigMap, name)
    except NotFound:
        return False
    return True


async def test_a_plain_function_has_a_thread_and_a_context_that_waits(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops", leader=False)
    seen: list[object] = []

    @app.reconciles(Shop, scope=here(namespace), owns=[ConfigMap], budget=30)
    def shelve(site: Shop, ctx: BlockingContext) -> Result:
        left = from_thread(budget_left())
        assert 0 < (left or 0) <= 30, "the budget is the reconcile's"
        assert threading.current_thread() is not threading.main_thread()
        made = ctx.apply(ConfigMap(metadata=Metadata(name="shelf"), data={"a": "b"}))
        assert ctx.get(ConfigMap, "shelf") == made
        assert ctx.children(ConfigMap) == [made]
        extra = ctx.apply(ConfigMap(metadata=Metadata(name="extra")))
        ctx.delete(ctx.swap(extra))
        assert ctx.get(ConfigMap, "extra") is None
        ctx.condition("Ready", True, reason="Open")
        ctx.event("Shelved", "The shelf stands.")
        ctx.log.info("Shelved at %s.", ctx.now)
        seen.append((ctx.failures, [each.why for each in ctx.causes]))
        return ctx.done(status=ShopStatus(selling="tea"))

    async with running(app, cluster, client) as manager:
        await client.create(shop("corner"))
        found = await until(client, "corner", lambda each: each.status.selling)
        assert found.status.conditions.is_true("Ready")
        assert seen[0] == (0, ["change"])
        history = manager.controllers[0].history
        last = await eventually(lambda: history.of((namespace, "corner")))
        assert last is not None
        assert last.error == ""

        async def is_told() -> bool:
            found = [each async for each in client.list(Event, namespace=namespace)]
            return "Shelved" in {each.reason for each in found}

        await eventually(is_told)


async def test_two_plain_functions_run_at_once_and_never_for_one_object(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops", leader=False)
    both = threading.Barrier(2, timeout=LONG)
    inside: set[str] = set()

    @app.reconciles(Shop, scope=here(namespace))
    def slow(site: Shop, ctx: BlockingContext) -> None:
        assert site.metadata.name not in inside
        inside.add(site.metadata.name)
        both.wait()
        inside.discard(site.metadata.name)

    for name in ("a", "b"):
        await client.create(shop(name))
    async with running(app, cluster, client) as manager:
        history = manager.controllers[0].history
        await eventually(
            lambda: all(
                (last := history.of((namespace, name))) and last.outcome == "ok"
                for name in ("a", "b")
            )
        )


async def test_past_its_budget_a_function_writes_nothing_and_keeps_its_object(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops", leader=False)
    said: list[object] = []
    with opening() as door:
        app.reconciles(Shop, scope=here(namespace), budget=0.3, name="late")(
            late(door, said)
        )
        await client.create(shop("corner"))
        async with running(app, cluster, client) as manager:
            await eventually(lambda: said == ["began"])
            working = manager.threads_everywhere.statistics
            loop = asyncio.get_running_loop()
            ends = loop.time() + 0.8
            # The budget passes, and others are asked for; the object is not free.
            while loop.time() < ends:
                await client.patch(Shop, "corner", {"metadata": {"labels": {"a": "b"}}})
                await asyncio.sleep(0.1)
                assert said == ["began"]
            assert working().working == 1
            door.set()
            await eventually(lambda: said.count("began") >= 2)
            assert said[1:3] == [Revoked, Revoked]


async def test_a_function_that_outlives_leadership_keeps_its_replica_from_leading(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops")
    said: list[object] = []
    with opening() as door:
        app.reconciles(Shop, scope=here(namespace), name="late")(late(door, said))

        @app.reconciles(Shop, scope=here(namespace), leader=False, resync=0.05)
        def busy(site: Shop, ctx: BlockingContext) -> None:
            """Threads of every replica's controllers are no part of a term."""

        await client.create(shop("corner"))
        async with running(app, cluster, client) as manager:
            assert manager.leadership is not None
            await eventually(lambda: said == ["began"])
            stolen = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 1}}
            await client.patch(Lease, "test", stolen)
            state = manager.leadership.statistics
            await eventually(lambda: state().state is State.EMPTYING)
            await asyncio.sleep(0.5)  # it would contend every 0.3 s
            assert state().state is State.EMPTYING
            assert (await client.get(Lease, "test")).spec.holderIdentity == "thief"
            door.set()
            await eventually(lambda: said[1:3] == [Revoked, Revoked])
            await eventually(lambda: said.count("began") >= 2, within=10)
            assert state().terms == 2
            # The next term's own handler may write.
            await eventually(lambda: exists(client, "late"))


async def test_a_handler_that_returns_something_else_is_told_so(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops", leader=False)

    @app.reconciles(Shop, scope=here(namespace))
    def wrong(site: Shop, ctx: Context) -> Result:
        return 5  # type: ignore[return-value]

    await client.create(shop("corner"))
    async with running(app, cluster, client) as manager:
        history = manager.controllers[0].history
        last = await eventually(lambda: history.of((namespace, "corner")))
        assert last is not None
        assert "wrong returned 5; return ctx.done(…)" in last.error
