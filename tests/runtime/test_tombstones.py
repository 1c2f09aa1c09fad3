"""What a controller deleted is hidden only until the watch has told of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.runtime.operating import Shop, client_in, here, running, shop
from trimtab import Context, Metadata, Operator
from trimtab.kinds import ConfigMap, Container, Pod, PodSpec
from trimtab.testing import Cluster, eventually

COUNT = 40


async def test_deletions_that_the_watch_told_first_are_not_remembered(
    cluster: Cluster, namespace: str
) -> None:
    app = Operator("tombstones")

    @app.reconciles(Shop, scope=here(namespace), owns=[ConfigMap])
    async def stock(site: Shop, ctx: Context) -> None:
        if site.spec.shelves:
            for number in range(site.spec.shelves):
                name = f"{site.metadata.name}-{number}"
                await ctx.apply(ConfigMap(metadata=Metadata(name=name)))
        else:
            children = ctx.children(ConfigMap)
            await asyncio.gather(*(ctx.delete(each) for each in children))

    async with client_in(cluster, namespace) as client:
        async with running(app, cluster, client) as manager:
            store = manager.controllers[0].informers[ConfigMap].store
            for _ in range(3):  # which comes first, answer or event, is chance
                await client.create(shop("corner", shelves=COUNT))
                await eventually(
                    lambda: len(store) == COUNT and not store.statistics().overlay
                )
                await client.patch(Shop, "corner", {"spec": {"shelves": 0}})
                await eventually(lambda: not len(store))
                await client.delete(Shop, "corner")
            # One more, for the watch to say how far it has come.
            await client.create(shop("last", shelves=1))
            await eventually(lambda: len(store) == 1 and not store.statistics().overlay)


async def test_a_pod_that_went_at_once_is_gone_although_it_is_the_answer(
    cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Operator("tombstones")
    spec = PodSpec(containers=[Container(name="main", image="none")])

    @app.reconciles(Shop, scope=here(namespace), owns=[Pod])
    async def staff(site: Shop, ctx: Context) -> None:
        if site.spec.shelves:
            await ctx.apply(Pod(metadata=Metadata(name="clerk"), spec=spec))
        for each in () if site.spec.shelves else ctx.children(Pod):
            await ctx.delete(each)

    async with client_in(cluster, namespace) as client:
        async with running(app, cluster, client) as manager:
            store = manager.controllers[0].informers[Pod].store
            real = client.delete

            async def late(*arguments: Any, **named: Any) -> Any:
                answer = await real(*arguments, **named)
                await eventually(lambda: not store.held_in(None))
                return answer

            monkeypatch.setattr(manager.client, "delete", late)
            await client.create(shop("corner", shelves=1))
            await eventually(lambda: len(store) == 1)
            await client.patch(Shop, "corner", {"spec": {"shelves": 0}})
            await eventually(lambda: not len(store))
