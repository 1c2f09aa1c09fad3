"""Laws of the annotations that people steer any operator with."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.runtime.operating import Shop, client_in, here, running, shop
from trimtab import Client, Context, Operator
from trimtab.runtime.wishes import PAUSED, RECONCILE, asks, is_paused
from trimtab.testing import Cluster, eventually


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_in(cluster, namespace) as client:
        yield client


async def annotate(client: Client, **annotations: str | None) -> None:
    names = {"paused": PAUSED, "reconcile": RECONCILE}
    said = {names[name]: value for name, value in annotations.items()}
    await client.patch(Shop, "corner", {"metadata": {"annotations": said}})


async def test_a_paused_object_is_left_alone_its_deletion_too(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops", leader=False)
    seen: list[str] = []

    @app.reconciles(Shop, scope=here(namespace), on_change=("spec",))
    async def sell(site: Shop, ctx: Context) -> None:
        seen.append(site.spec.goods)

    @app.finalizes(Shop, "example.com/shop")
    async def close(site: Shop, ctx: Context) -> None:
        seen.append("closed")

    await client.create(shop("corner"))
    async with running(app, cluster, client) as manager:
        await eventually(lambda: seen == ["tea"])
        await annotate(client, paused="true")
        store = manager.controllers[0].informers[Shop].store
        await eventually(lambda: is_paused(store.get((namespace, "corner"))))
        told = manager.why("shop", namespace, "corner")["controllers"][0]
        assert told["paused"] is True
        await client.patch(Shop, "corner", {"spec": {"goods": "milk"}})
        await client.delete(Shop, "corner")
        queue = manager.controllers[0].queue
        assert queue is not None

        def is_going() -> bool:
            held = store.get((namespace, "corner"))
            return held is not None and held.metadata.deletionTimestamp is not None

        await eventually(is_going)
        await eventually(lambda: queue.waiting((namespace, "corner")).due is None)
        assert seen == ["tea"]
        await annotate(client, paused=None)
        await eventually(lambda: seen == ["tea", "closed"])


async def test_a_new_value_brings_an_object_back_at_once_though_it_has_failed(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops", leader=False)
    seen: list[str] = []

    @app.reconciles(Shop, scope=here(namespace), on_change=("spec",))
    async def sell(site: Shop, ctx: Context) -> None:
        seen.append(", ".join(str(cause) for cause in ctx.causes))
        if len(seen) == 1:
            raise RuntimeError("the till is empty")

    await client.create(shop("corner"))
    async with running(app, cluster, client) as manager:
        await eventually(lambda: len(seen) == 2)
        await annotate(client, reconcile="today")
        await eventually(lambda: len(seen) == 3)
        assert seen[2] == "change (metadata.annotations)"
        told = manager.why("Shop", namespace, "corner")["controllers"][0]
        assert told["errors"]["count"] == 1
        assert told["errors"]["last"] == "RuntimeError: the till is empty"
        assert told["waiting"]["dueInSeconds"] is None


def test_only_these_two_annotations_are_wishes() -> None:
    old = shop("corner")
    assert not asks(old, old)
    assert not asks(None, old)
    assert not is_paused(old)
