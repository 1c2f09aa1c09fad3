"""Watching a real API server: what it sends, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.client.clusters import client_of
from tests.client.kinds import CONFIG_MAPS, ConfigMap, Counted, config_map
from trimtab.api.resource import Metadata
from trimtab.client import Bookmark, Client, Watch, WatchEvent
from trimtab.client.errors import (
    BadRequest,
    Gone,
    NotFound,
    TransportError,
)
from trimtab.testing import Cluster


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_of(cluster, namespace=namespace) as made:
        yield made


async def changes(watch: Watch[Any], number: int) -> list[tuple[str, str]]:
    """The next changes: what happened, and to whom. Bookmarks are passed over."""
    found: list[tuple[str, str]] = []
    async with asyncio.timeout(20):
        while len(found) < number:
            each = await anext(watch)
            if isinstance(each, WatchEvent):
                found.append((each.type, name_of(each.object)))
    return found


def name_of(obj: Any) -> str:
    if isinstance(obj, dict):
        name: str = obj["metadata"]["name"]
        return name
    return str(obj.metadata.name)


async def revision(client: Client, namespace: str) -> str:
    listing = client.list(ConfigMap, namespace=namespace)
    await listing.next_page()
    return listing.resource_version


@pytest.mark.parametrize("kind", [ConfigMap, CONFIG_MAPS], ids=["typed", "plain"])
async def test_every_change_is_seen_in_order(
    client: Client, namespace: str, kind: Any
) -> None:
    then = await revision(client, namespace)
    async with client.watch(kind, namespace=namespace, resource_version=then) as watch:
        await client.create(config_map("a"))
        await client.patch(ConfigMap, "a", {"data": {"x": "1"}})
        await client.create(config_map("b"))
        await client.delete(ConfigMap, "a")
        assert await changes(watch, 4) == [
            ("ADDED", "a"),
            ("MODIFIED", "a"),
            ("ADDED", "b"),
            ("DELETED", "a"),
        ]


async def test_selectors_choose_and_what_leaves_them_is_deleted(
    client: Client, namespace: str
) -> None:
    then = await revision(client, namespace)
    watch = client.watch(
        ConfigMap, namespace=namespace, labels={"x": "1"}, resource_version=then
    )
    async with watch:
        await client.create(config_map("other"))
        labelled = Metadata(name="mine", labels={"x": "1"})
        await client.create(ConfigMap(metadata=labelled))
        await client.patch(ConfigMap, "mine", {"metadata": {"labels": {"x": "2"}}})
        assert await changes(watch, 2) == [("ADDED", "mine"), ("DELETED", "mine")]
    one = client.watch(
        ConfigMap,
        namespace=namespace,
        fields={"metadata.name": "b"},
        resource_version=then,
    )
    async with one:
        await client.create(config_map("a"))
        await client.create(config_map("b"))
        assert await changes(one, 1) == [("ADDED", "b")]


async def test_a_watch_can_begin_with_what_is_there(
    client: Client, namespace: str
) -> None:
    for name in ("a", "b", "c"):
        await client.create(config_map(name))
    watch = client.watch(
        ConfigMap,
        namespace=namespace,
        fields="metadata.name!=kube-root-ca.crt",  # the cluster itself puts it there
        initial_events=True,
    )
    async with watch:
        assert sorted(await changes(watch, 3)) == [
            ("ADDED", "a"),
            ("ADDED", "b"),
            ("ADDED", "c"),
        ]
        end = await anext(watch)
        assert isinstance(end, Bookmark)
        assert end.initial_events_end
        assert int(end.resource_version) > 0
        await client.create(config_map("d"))
        assert await changes(watch, 1) == [("ADDED", "d")]


async def test_a_bookmark_tells_how_far_a_quiet_watch_has_come(
    client: Client, namespace: str
) -> None:
    then = await revision(client, namespace)
    watch = client.watch(
        ConfigMap,
        namespace=namespace,
        fields={"metadata.name": "none"},
        resource_version=then,
        timeout=5,  # a bookmark comes before the end
    )
    async with watch, asyncio.timeout(20):
        passed_by = await client.create(config_map("a"))
        got = [each async for each in watch]
    last = got[-1]
    assert isinstance(last, Bookmark)
    assert int(last.resource_version) >= int(passed_by.metadata.resourceVersion)
    assert not last.initial_events_end


async def test_a_watch_ends_when_its_time_is_up(client: Client, namespace: str) -> None:
    watch = client.watch(
        ConfigMap,
        namespace=namespace,
        fields={"metadata.name": "none"},
        timeout=1,
        bookmarks=False,
    )
    async with watch, asyncio.timeout(20):
        assert [each async for each in watch] == []
    assert client.statistics().requests == {("watch", "200"): 1}


async def test_a_watch_that_makes_no_sense_is_refused(
    client: Client, namespace: str
) -> None:
    with pytest.raises(BadRequest):
        async with client.watch(ConfigMap, labels="((("):
            pass

    class Nothing(Counted, version="v1", builtin=True, kind="Nothing"):
        pass

    with pytest.raises(NotFound):
        async with client.watch(Nothing):
            pass


@pytest.mark.cluster("real")
async def test_a_restarted_server_ends_a_watch_and_has_forgotten_old_revisions(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    made = await client.create(config_map("before"))
    then = made.metadata.resourceVersion
    for number in range(5):
        await client.patch(ConfigMap, "before", {"data": {"x": str(number)}})
    watch = client.watch(ConfigMap, namespace=namespace, resource_version=then)
    async with watch:
        restart = asyncio.ensure_future(cluster.restart_apiserver())
        try:
            async with asyncio.timeout(60):
                ended = [each async for each in watch]
        except TransportError:
            ended = []  # it hung up without ending the answer
        changed = [each for each in ended if isinstance(each, WatchEvent)]
        assert len(changed) <= 5
        await restart
    await client.create(config_map("after"))
    old = client.watch(ConfigMap, namespace=namespace, resource_version=then)
    with pytest.raises(Gone) as caught:
        async with old, asyncio.timeout(20):
            await anext(old)
    assert caught.value.status == 410
    now = await revision(client, namespace)
    again = client.watch(ConfigMap, namespace=namespace, resource_version=now)
    async with again:
        await client.delete(ConfigMap, "before")
        assert await changes(again, 1) == [("DELETED", "before")]
