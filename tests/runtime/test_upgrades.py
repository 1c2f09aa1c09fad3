"""Laws of rolling upgrades: releases N and N+1 run together, there and back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.runtime.operating import (
    Shop,
    ShopStatus,
    client_in,
    here,
    manager_of,
    options,
    shop,
    until,
)
from trimtab import Client, Context, Operator, Result
from trimtab.api.resource import Metadata
from trimtab.kinds import ConfigMap
from trimtab.runtime.manager import Manager
from trimtab.testing import Cluster, eventually


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_in(cluster, namespace) as client:
        yield client


def release(number: int, namespace: str, at_once: list[int]) -> Operator:
    """One release of the operator: each labels what it makes, and only one works."""
    app = Operator("shops")

    @app.reconciles(Shop, scope=here(namespace), owns=[ConfigMap])
    async def sell(site: Shop, ctx: Context) -> Result:
        at_once.append(number)
        assert set(at_once) == {number}, "two releases work at once"
        data = {"release": str(number), "goods": site.spec.goods}
        if number > 1:  # what only the newer one says
            data["new"] = "yes"
        try:
            name = site.metadata.name
            await ctx.apply(ConfigMap(metadata=Metadata(name=name), data=data))
        finally:
            at_once.remove(number)
        return ctx.done(status=ShopStatus(selling=site.spec.goods, shelves=number))

    return app


@asynccontextmanager
async def replica(
    app: Operator, cluster: Cluster, client: Client
) -> AsyncIterator[Manager]:
    chosen = options(client.config.namespace, name="shops")
    manager = manager_of(app, cluster, client, options=chosen)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        await eventually(lambda: manager.ready.is_set() or task.done())
        try:
            yield manager
        finally:
            manager.stop()
            async with asyncio.timeout(20):
                await asyncio.wait([task])


async def test_a_newer_release_takes_over_and_an_older_one_takes_it_back(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    at_once: list[int] = []
    first, second = (release(number, namespace, at_once) for number in (1, 2))
    await client.create(shop("corner"))
    async with replica(first, cluster, client) as older:
        await until(client, "corner", lambda each: each.status.shelves == 1)
        async with replica(second, cluster, client) as newer:
            # Both run, as in a rolling upgrade; the older one still leads.
            await client.patch(Shop, "corner", {"spec": {"goods": "milk"}})
            await until(client, "corner", lambda each: each.status.selling == "milk")
            assert newer.leadership is not None
            assert not newer.leadership.is_leader
            older.stop()
            await until(client, "corner", lambda each: each.status.shelves == 2)
            said = {"release": "2", "goods": "milk", "new": "yes"}
            await _said(client, said)
            again = release(1, namespace, at_once)
            async with replica(again, cluster, client):
                newer.stop()
                await until(client, "corner", lambda each: each.status.shelves == 1)
                # What only the newer one said goes: both apply as one manager.
                await _said(client, {"release": "1", "goods": "milk"})


async def _said(client: Client, wanted: dict[str, str]) -> None:
    async def is_said() -> bool:
        return dict((await client.get(ConfigMap, "corner")).data) == wanted

    await eventually(is_said)
