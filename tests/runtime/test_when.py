"""Laws of ``when``: an object for which there is nothing to do is never queued."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.runtime.operating import Shop, client_in, here, running, shop
from trimtab import Client, Context, Operator, Watched
from trimtab.api import Metadata
from trimtab.cache import Index
from trimtab.cache.keeping import Kept
from trimtab.kinds import ConfigMap
from trimtab.runtime import By, Retry
from trimtab.testing import Cluster, eventually


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_in(cluster, namespace) as made:
        yield made


def is_open(site: Shop) -> bool:
    return site.spec.shelves > 0


def kept(site: Shop) -> Kept:
    return "slice" if is_open(site) else "key"


OPEN_WITH = Index("open", lambda site: (site.spec.goods,) if is_open(site) else ())


def shops(seen: list[str], namespace: str, **others: Any) -> Operator:
    app = Operator("shops", leader=False)

    @app.reconciles(
        Shop,
        scope=here(namespace),
        when=is_open,
        keep=kept,
        indexes=(OPEN_WITH,),
        **others,
    )
    async def look(site: Shop, ctx: Context) -> None:
        seen.append(site.metadata.name)

    return app


async def test_what_there_is_nothing_to_do_for_is_neither_queued_nor_read(
    cluster: Cluster, client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    read: list[object] = []
    real = client.get

    async def get(*arguments: object, **named: object) -> object:
        read.append(arguments)
        return await real(*arguments, **named)  # type: ignore[call-overload]

    for name, shelves in (("closed", 0), ("corner", 1)):
        await client.create(shop(name, shelves=shelves))
    app = shops(seen, namespace)
    monkeypatch.setattr(client, "get", get)
    async with running(app, cluster, client):
        await eventually(lambda: seen == ["corner"])
        await client.patch(Shop, "closed", {"metadata": {"labels": {"a": "b"}}})
        await client.patch(Shop, "closed", {"spec": {"goods": "milk"}})
        await client.create(shop("last"))
        await eventually(lambda: "last" in seen)
        assert seen == ["corner", "last"]
    assert not [each for each in read if "closed" in str(each)]


async def test_an_object_is_back_as_soon_as_there_is_something_to_do(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    seen: list[str] = []
    await client.create(shop("closed", shelves=0))
    async with running(shops(seen, namespace), cluster, client):
        await client.patch(Shop, "closed", {"spec": {"shelves": 2}})
        await eventually(lambda: seen == ["closed"])


async def test_whom_another_object_concerns_an_index_may_say(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    seen: list[str] = []
    for name, goods, shelves in (
        ("corner", "tea", 1),
        ("closed", "tea", 0),
        ("other", "milk", 1),
    ):
        await client.create(shop(name, goods=goods, shelves=shelves))
    prices = Watched(
        kind=ConfigMap,
        scope=here(namespace),
        to=By(OPEN_WITH.name, lambda price: (price.data["of"],)),
    )
    async with running(shops(seen, namespace, watches=[prices]), cluster, client):
        await eventually(lambda: sorted(seen) == ["corner", "other"])
        seen.clear()
        await client.create(
            ConfigMap(
                metadata=Metadata(name="price", namespace=namespace),
                data={"of": "tea"},
            )
        )
        await eventually(lambda: seen == ["corner"])


async def test_what_cannot_be_decided_may_matter(
    cluster: Cluster, client: Client, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []
    app = Operator("shops", leader=False)

    def fails(site: Shop) -> bool:
        raise LookupError(site.metadata.name)

    @app.reconciles(Shop, scope=here(namespace), when=fails)
    async def look(site: Shop, ctx: Context) -> None:
        seen.append(site.metadata.name)

    await client.create(shop("corner"))
    with caplog.at_level(logging.ERROR):
        async with running(app, cluster, client):
            await eventually(lambda: seen == ["corner"])
    assert "cannot be decided" in caplog.text


async def test_a_failure_is_over_when_there_is_nothing_to_do_any_more(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    app = Operator("shops", leader=False)

    @app.reconciles(Shop, scope=here(namespace), when=is_open, keep=kept)
    async def fails(site: Shop, ctx: Context) -> None:
        raise Retry("there is no tea", after=0.05)

    await client.create(shop("corner"))
    key = (namespace, "corner")
    async with running(app, cluster, client) as manager:
        history = manager.controllers[0].history
        await eventually(lambda: history.of(key))
        await client.patch(Shop, "corner", {"spec": {"shelves": 0}})
        await eventually(lambda: history.of(key) is None)
