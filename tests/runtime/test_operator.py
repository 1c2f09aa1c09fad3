"""An operator on a server: children are made, kept as they should be, and reported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

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
from trimtab import (
    Client,
    Context,
    Metadata,
    Operator,
    Owned,
    Result,
    Retry,
    Terminal,
    Watched,
)
from trimtab.client.errors import NotFound
from trimtab.kinds import ConfigMap, Secret
from trimtab.testing import Cluster, eventually


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_in(cluster, namespace) as client:
        yield client


def shelf_of(site: Shop) -> ConfigMap:
    return ConfigMap(
        metadata=Metadata(name=f"{site.metadata.name}-shelf"),
        data={"goods": site.spec.goods},
    )


def shelves(namespace: str, seen: list[str] | None = None) -> Operator:
    """An operator that gives each shop a ConfigMap and says what is in it.

    It notes of which revision of a shop it has done so, if it is to.
    """
    app = Operator("shops")

    @app.reconciles(Shop, scope=here(namespace), owns=[ConfigMap])
    async def shelve(site: Shop, ctx: Context) -> Result:
        if seen is not None:
            seen.append(site.metadata.resourceVersion)
        made = await ctx.apply(shelf_of(site))
        return ctx.done(
            status=ShopStatus(selling=made.data["goods"], shelves=site.spec.shelves)
        )

    return app


async def test_a_child_is_made_and_the_status_says_so(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    async with running(shelves(namespace), cluster, client):
        made = await client.create(shop("corner", goods="tea"))
        await until(client, "corner", lambda each: each.status.selling == "tea")
        child = await client.get(ConfigMap, "corner-shelf")
        assert child.metadata.ownerReferences[0].uid == made.metadata.uid
        assert child.metadata.labels["trimtab.dev/operator"] == "shops"
        await client.patch(Shop, "corner", {"spec": {"goods": "coffee"}})
        await until(client, "corner", lambda each: each.status.selling == "coffee")
        child = await client.get(ConfigMap, "corner-shelf")
        assert child.data == {"goods": "coffee"}


async def test_what_was_there_before_the_operator_is_reconciled(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    for number in range(5):
        await client.create(shop(f"old-{number}"))
    async with running(shelves(namespace), cluster, client):
        for number in range(5):
            await until(client, f"old-{number}", lambda each: each.status.selling)


async def test_a_child_that_somebody_deletes_or_changes_is_repaired(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    async with running(shelves(namespace), cluster, client):
        await client.create(shop("corner"))
        await until(client, "corner", lambda each: each.status.selling)
        first = await client.get(ConfigMap, "corner-shelf")
        await client.delete(ConfigMap, "corner-shelf")

        async def is_back() -> bool:
            try:
                found = await client.get(ConfigMap, "corner-shelf")
            except NotFound:
                return False
            return found.metadata.uid != first.metadata.uid

        await eventually(is_back)
        await client.patch(ConfigMap, "corner-shelf", {"data": {"goods": "sand"}})

        async def is_repaired() -> bool:
            found = await client.get(ConfigMap, "corner-shelf")
            return found.data == {"goods": "tea"}

        await eventually(is_repaired)


async def test_an_operator_at_rest_writes_nothing(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    seen: list[str] = []
    async with running(shelves(namespace, seen), cluster, client) as manager:
        await client.create(shop("corner"))
        done = await until(client, "corner", lambda each: each.status.selling)
        child = await client.get(ConfigMap, "corner-shelf")
        # Something that the handler does not act on wakes it all the same.
        labelled = await client.patch(
            Shop, "corner", {"metadata": {"labels": {"seen": "1"}}}
        )
        counted = manager.metrics.controller("shelve")

        def skipped() -> int:
            now = {(each.family, each.labels): each.value for each in counted.samples()}
            return int(now.get(("writes_skipped", ("shelve", "status")), 0))

        # Whenever it comes to see that, each time from then on it has skipped a write.
        await eventually(lambda: labelled.metadata.resourceVersion in seen)
        before = seen.index(labelled.metadata.resourceVersion)
        await eventually(lambda: skipped() >= max(1, before))
        again = await client.get(Shop, "corner")
        assert again.status == done.status
        shelf = await client.get(ConfigMap, "corner-shelf")
        assert shelf.metadata.resourceVersion == child.metadata.resourceVersion


async def test_a_change_that_nobody_reads_wakes_nobody(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops")
    seen: list[str] = []

    @app.reconciles(Shop, scope=here(namespace), on_change=("spec.goods",))
    async def look(site: Shop, ctx: Context) -> None:
        seen.append(f"{site.spec.goods}{site.spec.shelves}")

    async with running(app, cluster, client):
        await client.create(shop("corner"))
        await eventually(lambda: seen == ["tea1"])
        await client.patch(Shop, "corner", {"spec": {"shelves": 2}})
        await client.patch(Shop, "corner", {"spec": {"goods": "milk"}})
        await eventually(lambda: seen[-1] == "milk2")
        assert seen == ["tea1", "milk2"]


async def test_a_watched_object_wakes_whom_it_concerns(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops")
    seen: list[tuple[str, str]] = []

    @app.reconciles(
        Shop,
        scope=here(namespace),
        watches=[
            Watched(
                kind=Secret,
                scope=here(namespace),
                to=lambda secret: [secret.metadata.labels.get("shop", "")],
            )
        ],
    )
    async def look(site: Shop, ctx: Context) -> None:
        secret = ctx.get(Secret, "key")
        seen.append((site.metadata.name, "open" if secret else "closed"))

    async with running(app, cluster, client):
        await client.create(shop("corner"))
        await client.create(shop("other"))
        await eventually(lambda: len(seen) == 2)
        await client.create(
            Secret(metadata=Metadata(name="key", labels={"shop": "corner"}))
        )
        await eventually(lambda: seen[-1] == ("corner", "open"))
        assert ("other", "open") not in seen


async def test_no_object_is_reconciled_twice_at_once_and_several_are(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops")
    inside: set[str] = set()
    most = 0
    together = asyncio.Event()

    @app.reconciles(Shop, scope=here(namespace), concurrency=4)
    async def slow(site: Shop, ctx: Context) -> None:
        nonlocal most
        assert site.metadata.name not in inside, "it is being reconciled already"
        inside.add(site.metadata.name)
        most = max(most, len(inside))
        if most == 4:
            together.set()
        await client.patch(
            Shop, site.metadata.name, {"metadata": {"annotations": {"seen": "yes"}}}
        )
        async with asyncio.timeout(10):
            await together.wait()
        inside.discard(site.metadata.name)

    for number in range(8):
        await client.create(shop(f"s{number}"))
    async with running(app, cluster, client) as manager:
        await asyncio.wait_for(together.wait(), 10)
        await eventually(
            lambda: all(
                manager.controllers[0].history.of((namespace, f"s{number}"))
                for number in range(8)
            )
        )
        assert most == 4
        outcomes = {
            last.outcome
            for number in range(8)
            if (last := manager.controllers[0].history.of((namespace, f"s{number}")))
        }
        assert outcomes == {"ok"}


async def test_each_way_to_end_means_what_it_says(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops")
    calls: dict[str, int] = {}

    @app.reconciles(Shop, scope=here(namespace), budget=0.5)
    async def end(site: Shop, ctx: Context) -> Result | None:
        name = site.metadata.name
        calls[name] = calls.get(name, 0) + 1
        match name:
            case "later":
                return ctx.done(after=0.05)
            case "retried":
                raise Retry("the shop is closed", after=0.05)
            case "given-up" if site.spec.goods != "coffee":
                raise Terminal("we sell no tea")
            case "broken":
                raise RuntimeError("the roof is gone")
            case "endless":
                await asyncio.sleep(60)
        return None

    names = ("later", "retried", "given-up", "broken", "endless", "fine")
    for name in names:
        await client.create(shop(name))
    async with running(app, cluster, client) as manager:
        history = manager.controllers[0].history

        def ended(name: str, outcome: str) -> bool:
            last = history.of((namespace, name))
            return last is not None and last.outcome == outcome

        wanted = {
            "later": "requeue",
            "retried": "retry",
            "given-up": "terminal",
            "broken": "error",
            "endless": "timeout",
            "fine": "ok",
        }
        for name, outcome in wanted.items():
            await eventually(partial(ended, name, outcome))
        again = ("later", "retried", "broken")
        await eventually(lambda: all(calls[name] >= 2 for name in again))
        assert calls["given-up"] == calls["fine"] == 1
        await client.patch(Shop, "given-up", {"spec": {"goods": "coffee"}})
        await eventually(lambda: calls["given-up"] == 2)


async def test_children_are_found_by_their_owner_own_writes_included(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops")
    found: dict[str, list[str]] = {}

    @app.reconciles(Shop, scope=here(namespace), owns=[Owned(kind=ConfigMap)])
    async def shelve(site: Shop, ctx: Context) -> None:
        for number in range(site.spec.shelves):
            name = f"{site.metadata.name}-{number}"
            await ctx.apply(ConfigMap(metadata=Metadata(name=name)))
        children = sorted(ctx.children(ConfigMap), key=lambda each: each.key)
        found[site.metadata.name] = [each.metadata.name for each in children]
        for extra in children[site.spec.shelves :]:
            await ctx.delete(extra)
        left = {each.metadata.name for each in ctx.children(ConfigMap)}
        assert len(left) == site.spec.shelves, "an own delete is not seen"

    async with running(app, cluster, client) as manager:
        await client.create(shop("a", shelves=3))
        await client.create(shop("b", shelves=1))
        await eventually(lambda: found.get("a") == ["a-0", "a-1", "a-2"])
        await eventually(lambda: found.get("b") == ["b-0"])
        await client.patch(Shop, "a", {"spec": {"shelves": 1}})

        async def is_gone() -> bool:
            names = [each.metadata.name async for each in client.list(ConfigMap)]
            return "a-1" not in names and "a-2" not in names

        await eventually(is_gone)
        last = manager.controllers[0].history.of((namespace, "a"))
        assert last is not None
        assert last.error == ""


async def test_a_kind_that_was_not_declared_is_not_read_from_the_cache(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops")

    @app.reconciles(Shop, scope=here(namespace))
    async def look(site: Shop, ctx: Context) -> None:
        ctx.get(Secret, "key")

    await client.create(shop("corner"))
    async with running(app, cluster, client) as manager:
        history = manager.controllers[0].history
        last = await eventually(lambda: history.of((namespace, "corner")))
        assert last is not None
        assert "declare it with owns= or watches=" in last.error


async def test_every_object_is_looked_at_again_when_a_resync_is_asked_for(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops")
    causes: list[str] = []

    @app.reconciles(Shop, scope=here(namespace), resync=0.1)
    async def look(site: Shop, ctx: Context) -> None:
        causes.append(ctx.causes[0].why)

    await client.create(shop("corner"))
    async with running(app, cluster, client):
        await eventually(lambda: causes[:3] == ["initial", "resync", "resync"])
