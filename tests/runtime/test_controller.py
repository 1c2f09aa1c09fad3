"""Laws of the controller: no handler takes its workers away, whatever it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.runtime.operating import Shop, client_in, here, running, shop, until
from trimtab import Client, Context, Operator
from trimtab.client import TrimtabError
from trimtab.kinds import Lease
from trimtab.testing import Cluster, eventually


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_in(cluster, namespace) as client:
        yield client


async def test_a_handler_that_something_else_cancelled_has_failed_and_no_more(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops", leader=False)
    calls: list[str] = []
    looked = asyncio.Event()

    @app.reconciles(Shop, scope=here(namespace), concurrency=1)
    async def wait(site: Shop, ctx: Context) -> None:
        calls.append(site.metadata.name)
        if calls.count("corner") == 1:
            gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            gone.cancel()
            await gone
        await looked.wait()  # before what is said of the first is said of the next

    async with running(app, cluster, client) as manager:
        await client.create(shop("corner"))
        history = manager.controllers[0].history
        last = await eventually(lambda: history.of((namespace, "corner")))
        assert last is not None
        assert (last.outcome, last.error) == (
            "error",
            "RuntimeError: the handler was cancelled by what it waited for",
        )
        looked.set()
        await client.create(shop("other"))
        await eventually(lambda: calls.count("corner") == 2 and "other" in calls)


async def test_a_handler_that_swallows_its_end_ends_all_the_same(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops")
    said: list[str] = []

    @app.reconciles(Shop, scope=here(namespace))
    async def swallow(site: Shop, ctx: Context) -> None:
        said.append("began")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            said.append("swallowed")

    await client.create(shop("corner"))
    async with running(app, cluster, client, drain=0.2):
        await eventually(lambda: said == ["began"])
        thief = {"holderIdentity": "thief", "leaseDurationSeconds": 60}
        await client.patch(Lease, "test", {"spec": thief})
        await eventually(lambda: said == ["began", "swallowed"])
        await client.patch(Lease, "test", {"spec": {"holderIdentity": ""}})
        await eventually(lambda: said == ["began", "swallowed", "began"])


async def test_an_object_of_which_only_the_key_is_kept_is_read_when_it_is_due(
    cluster: Cluster, client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Operator("shops", leader=False)
    failures = 1

    @app.reconciles(Shop, scope=here(namespace), keep="key")
    async def look(site: Shop, ctx: Context) -> None:
        ctx.condition("Seen", True, reason=site.spec.goods)

    real = client.get

    async def get(*arguments: object, **named: object) -> object:
        nonlocal failures
        if failures:
            failures -= 1
            raise TrimtabError("The server is away.")
        return await real(*arguments, **named)  # type: ignore[call-overload]

    async with running(app, cluster, client) as manager:
        monkeypatch.setattr(manager.client, "get", get)
        await client.create(shop("corner", goods="milk"))
        await eventually(lambda: failures == 0)
        found = await until(client, "corner", lambda each: each.status.conditions)
        assert found.status.conditions["Seen"].reason == "milk"
