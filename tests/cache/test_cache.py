"""The cache: one informer for each kind and scope, as long as somebody uses it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from tests.cache.informers import has
from tests.client.clusters import client_of
from tests.client.kinds import ConfigMap, config_map
from trimtab.api.resource import Metadata
from trimtab.cache import Cache, Scope, label
from trimtab.client import Client
from trimtab.testing import Cluster, eventually


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_of(cluster, namespace=namespace) as made:
        yield made


@asynccontextmanager
async def running(cache: Cache) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(cache.run())
        try:
            yield
        finally:
            task.cancel()


def scope_of(namespace: str) -> Scope:
    return Scope(namespaces=namespace, fields="metadata.name!=kube-root-ca.crt")


def open_watches(client: Client) -> int:
    return client.statistics().streams_open


async def test_users_of_one_kind_and_scope_share_one_watch(
    client: Client, namespace: str
) -> None:
    cache = Cache(client, random=Random(7))
    first = cache.informer(ConfigMap, scope_of(namespace))
    second = cache.informer(ConfigMap, scope_of(namespace))
    other = cache.informer(ConfigMap, Scope(namespaces=namespace, labels="x=y"))
    assert first is second
    assert other is not first
    async with running(cache):
        await cache.wait_synced()
        await eventually(lambda: open_watches(client) == 2)
        cache.release(first)
        cache.release(other)
        await eventually(lambda: open_watches(client) == 1)
        await client.create(config_map("a"))
        await has(second, "a")
        cache.release(second)
        await eventually(lambda: open_watches(client) == 0)
        again = cache.informer(ConfigMap, scope_of(namespace))
        assert again is not first
        await again.wait_synced()
        await has(again, "a")
    assert open_watches(client) == 0


async def test_an_informer_may_be_asked_for_while_the_cache_runs(
    client: Client, namespace: str
) -> None:
    cache = Cache(client, random=Random(7))
    async with running(cache):
        informer = cache.informer(ConfigMap, scope_of(namespace))
        await informer.wait_synced()
        assert cache.synced
        assert cache.problem(asyncio.get_running_loop().time()) is None


async def test_an_index_that_comes_later_has_what_is_there(
    client: Client, namespace: str
) -> None:
    metadata = Metadata(name="a", labels={"app": "web"})
    await client.create(ConfigMap(metadata=metadata))
    cache = Cache(client, random=Random(7))
    async with running(cache):
        informer = cache.informer(ConfigMap, scope_of(namespace))
        await informer.wait_synced()
        again = cache.informer(ConfigMap, scope_of(namespace), indexes=[label("app")])
        assert [each.metadata.name for each in again.store.by("label:app", "web")] == [
            "a"
        ]
        (kind, statistics), *others = cache.statistics().informers
        assert (kind, others) == ("configmaps.v1", [])
        assert statistics.objects == cache.statistics().objects == 1
        assert cache.statistics().bytes > 0


async def test_an_informer_that_was_rescoped_is_found_by_its_new_scope(
    client: Client, namespace: str
) -> None:
    cache = Cache(client, random=Random(7))
    informer = cache.informer(ConfigMap, scope_of(namespace))
    informer.rescope(scope_of("default"))
    assert cache.informer(ConfigMap, scope_of("default")) is informer
    assert cache.informer(ConfigMap, scope_of(namespace)) is not informer


async def test_two_users_cannot_keep_the_same_objects_in_two_forms(
    client: Client, namespace: str
) -> None:
    cache = Cache(client, random=Random(7))
    cache.informer(ConfigMap, scope_of(namespace), keep="full")
    with pytest.raises(ValueError, match="keep='key'"):
        cache.informer(ConfigMap, scope_of(namespace), keep="key")


async def test_nobody_releases_what_they_do_not_have(
    client: Client, namespace: str
) -> None:
    cache = Cache(client, random=Random(7))
    informer = cache.informer(ConfigMap, scope_of(namespace))
    cache.release(informer)
    with pytest.raises(ValueError, match="more often"):
        cache.release(informer)
