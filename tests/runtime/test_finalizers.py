"""Laws of finalizers: nothing goes without a cleanup that succeeded."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.runtime.contexts import Bench
from tests.runtime.operating import Shop, client_in, here, running, shop, until
from trimtab import Client, Context, Operator, Result, Retry
from trimtab.client import TrimtabError, guarded
from trimtab.client.errors import Conflict, NotFound
from trimtab.testing import Cluster, eventually

OURS, THEIRS = "example.com/shop", "example.com/others"


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_in(cluster, namespace) as client:
        yield client


class Calls:
    """The handlers of an object, and what they were called for."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.fails: Exception | None = None
        self.result: Result | None = None

    async def reconcile(self, site: Shop, ctx: Context) -> None:
        assert OURS in site.metadata.finalizers
        assert OURS in (await ctx.client.get(Shop, "corner")).metadata.finalizers
        self.said.append("reconcile")

    async def cleanup(self, site: Shop, ctx: Context) -> Result | None:
        assert OURS in (await ctx.client.get(Shop, "corner")).metadata.finalizers
        self.said.append("cleanup")
        if self.fails is not None:
            raise self.fails
        return self.result


async def turn(bench: Bench, calls: Calls) -> Result:
    """One reconcile of the shop as it is now."""
    parent = bench.saw(await bench.client.get(Shop, "corner"))
    handling = bench.handling(
        handler=calls.reconcile, finalizer=OURS, cleanup=calls.cleanup
    )
    return await handling.reconcile(parent, bench.context(parent))


async def deleted(client: Client, *, finalizers: list[str]) -> None:
    """A shop that was deleted, and is held by these."""
    await client.create(shop("corner"))
    await client.patch(Shop, "corner", {"metadata": {"finalizers": finalizers}})
    await client.delete(Shop, "corner")


async def is_gone(client: Client) -> bool:
    try:
        await client.get(Shop, "corner")
    except NotFound:
        return True
    return False


async def test_it_is_put_on_before_the_first_reconcile_and_once(client: Client) -> None:
    bench, calls = Bench(client), Calls()
    await client.create(shop("corner"))
    await turn(bench, calls)
    before = await client.get(Shop, "corner")
    await turn(bench, calls)
    after = await client.get(Shop, "corner")
    assert calls.said == ["reconcile", "reconcile"]
    assert after.metadata.resourceVersion == before.metadata.resourceVersion


async def test_it_does_not_push_others_off(client: Client) -> None:
    bench, calls = Bench(client), Calls()
    await client.create(shop("corner"))
    await client.patch(Shop, "corner", {"metadata": {"finalizers": [THEIRS]}})
    await turn(bench, calls)
    found = await client.get(Shop, "corner")
    assert found.metadata.finalizers == [THEIRS, OURS]
    await client.delete(Shop, "corner")
    await turn(bench, calls)
    found = await client.get(Shop, "corner")
    assert found.metadata.finalizers == [THEIRS]
    await turn(bench, calls)
    assert calls.said == ["reconcile", "cleanup"], "it has been cleaned up"


async def test_one_that_others_changed_meanwhile_is_looked_at_again(
    client: Client,
) -> None:
    bench, calls = Bench(client), Calls()
    old = await client.create(shop("corner"))
    await client.patch(Shop, "corner", {"metadata": {"finalizers": [THEIRS]}})
    handling = bench.handling(
        handler=calls.reconcile, finalizer=OURS, cleanup=calls.cleanup
    )
    with pytest.raises(Conflict):
        await handling.reconcile(old, bench.context(old))
    assert calls.said == []
    found = await client.get(Shop, "corner")
    assert found.metadata.finalizers == [THEIRS]


async def test_an_object_stays_until_its_cleanup_has_succeeded(client: Client) -> None:
    bench, calls = Bench(client), Calls()
    await deleted(client, finalizers=[OURS])
    calls.fails = RuntimeError("the door is stuck")
    with pytest.raises(RuntimeError):
        await turn(bench, calls)
    calls.fails = Retry("somebody is inside")
    with pytest.raises(Retry):
        await turn(bench, calls)
    calls.fails, calls.result = None, Result(after=5)
    assert await turn(bench, calls) == Result(after=5)
    assert not await is_gone(client)
    calls.result = None
    await turn(bench, calls)
    assert calls.said == ["cleanup"] * 4
    assert await is_gone(client)


class Crash(TrimtabError):
    """The process ends before its write."""


async def test_a_crash_before_the_removal_has_the_cleanup_run_again(
    client: Client,
) -> None:
    def crash(_: float) -> float:
        raise Crash("The process is gone.")

    calls = Calls()
    await deleted(client, finalizers=[OURS])
    with guarded(crash), pytest.raises(Crash):
        await turn(Bench(client), calls)
    assert not await is_gone(client)
    await turn(Bench(client), calls)
    assert calls.said == ["cleanup", "cleanup"]
    assert await is_gone(client)


async def test_what_is_being_deleted_and_is_not_ours_is_left_alone(
    client: Client,
) -> None:
    bench, calls = Bench(client), Calls()
    await deleted(client, finalizers=[THEIRS])
    await turn(bench, calls)
    parent = await client.get(Shop, "corner")
    without = bench.handling(handler=calls.reconcile)
    await without.reconcile(parent, bench.context(parent))
    assert calls.said == []
    assert parent.metadata.finalizers == [THEIRS]


async def test_a_cleanup_may_say_how_it_goes(client: Client) -> None:
    bench = Bench(client)
    await deleted(client, finalizers=[OURS, THEIRS])

    async def cleanup(site: Shop, ctx: Context) -> None:
        ctx.condition("Closing", True, reason="Sweeping")

    parent = await client.get(Shop, "corner")
    handling = bench.handling(finalizer=OURS, cleanup=cleanup)
    await handling.reconcile(parent, bench.context(parent))
    found = await client.get(Shop, "corner")
    assert found.status.conditions.is_true("Closing")
    assert found.metadata.finalizers == [THEIRS]


async def test_a_running_operator_cleans_up_until_it_succeeds(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops", leader=False)
    said: list[str] = []

    @app.reconciles(Shop, scope=here(namespace))
    async def look(site: Shop, ctx: Context) -> None:
        said.append("reconcile")

    @app.finalizes(Shop, OURS)
    def close(site: Shop, ctx: Context) -> None:
        said.append("cleanup")
        if said.count("cleanup") < 3:
            raise RuntimeError("not yet")

    async with running(app, cluster, client):
        await client.create(shop("corner"))
        await until(client, "corner", lambda each: OURS in each.metadata.finalizers)
        await eventually(lambda: "reconcile" in said)
        await client.delete(Shop, "corner")
        await eventually(lambda: is_gone(client))
    assert said[-4:] == ["reconcile", "cleanup", "cleanup", "cleanup"]
