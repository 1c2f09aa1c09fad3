"""Informers: what is in scope, and who is told of what, on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.cache.informers import (
    has,
    informer_of,
    kept,
    problem_of,
    running,
)
from tests.client.clusters import client_of, defines
from tests.client.kinds import ConfigMap, Website, config_map, website
from tests.embedded.worlds import World, world
from trimtab.api import crd
from trimtab.api.resource import Metadata
from trimtab.cache import Change, FeedOptions, Informer, Scope, label
from trimtab.client import Client
from trimtab.client.errors import NotFound
from trimtab.embedded.faults import Fault
from trimtab.kinds import ConfigMap as CoreConfigMap
from trimtab.kinds import Namespace
from trimtab.testing import Cluster, eventually

ROOT_CA = "kube-root-ca.crt"
NOT_ROOT_CA = "metadata.name!=kube-root-ca.crt"
"""A cluster puts that one into each namespace by itself."""


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_of(cluster, namespace=namespace) as made:
        yield made


def within(*namespaces: str, **more: Any) -> Scope:
    return Scope(namespaces=namespaces, fields=NOT_ROOT_CA, **more)


@asynccontextmanager
async def further_namespace(
    client: Client, name: str, **labels: str
) -> AsyncIterator[str]:
    await client.create(Namespace(metadata=Metadata(name=name, labels=labels)))
    try:
        yield name
    finally:
        await client.delete(Namespace, name)


async def create(client: Client, name: str, namespace: str) -> None:
    metadata = Metadata(name=name, namespace=namespace)
    await client.create(ConfigMap(metadata=metadata))


@pytest.mark.parametrize("way", ["pages", "stream"])
async def test_the_store_is_as_the_server_from_the_list_on(
    client: Client, namespace: str, way: Any
) -> None:
    await client.create(config_map("a", x="1"))
    await client.create(config_map("b"))
    options = FeedOptions(way=way)
    informer = informer_of(client, ConfigMap, within(namespace), options=options)
    async with running(informer) as seen:
        await informer.wait_synced()
        await has(informer, "a", "b")
        await client.patch(ConfigMap, "a", {"data": {"x": "2"}})
        await client.create(config_map("c"))
        await client.delete(ConfigMap, "b")
        await has(informer, "a", "c")
        assert kept(informer, "a", namespace=namespace).data == {"x": "2"}
    assert seen.of("a") == ["ADDED", "MODIFIED"]
    assert seen.of("b") == ["ADDED", "DELETED"]
    assert [each.initial for each in seen.changes if each.type == "ADDED"] == [
        *(True, True, False)
    ]
    statistics = informer.statistics()
    assert (statistics.objects, statistics.relists, statistics.errors) == (2, 0, 0)


async def test_a_late_subscriber_is_told_of_what_is_there_and_then_of_changes(
    client: Client, namespace: str
) -> None:
    await client.create(config_map("a"))
    informer = informer_of(client, ConfigMap, within(namespace))
    async with running(informer):
        await informer.wait_synced()
        late: list[Change[ConfigMap]] = []
        unsubscribe = informer.subscribe(late.append)
        assert [(each.type, each.initial) for each in late] == [("ADDED", True)]
        await client.delete(ConfigMap, "a")
        await eventually(lambda: [each.type for each in late] == ["ADDED", "DELETED"])
        unsubscribe()
        await client.create(config_map("b"))
        await has(informer, "b")
        assert len(late) == 2


async def test_a_subscriber_that_fails_is_logged_and_told_of_the_next(
    client: Client, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    def fails(change: Change[Any]) -> None:
        told.append(change.key[1])
        raise RuntimeError("no")

    informer = informer_of(client, ConfigMap, within(namespace))
    informer.subscribe(fails)
    async with running(informer) as seen:
        await client.create(config_map("a"))
        await client.create(config_map("b"))
        await has(informer, "a", "b")
        assert told == [name for _, name in seen.types] == ["a", "b"]
        assert not problem_of(informer)
    assert f"ConfigMap {namespace}/a: a subscriber failed" in caplog.text


async def test_nothing_is_left_when_it_is_cancelled(
    client: Client, namespace: str
) -> None:
    before = asyncio.all_tasks()
    informer = informer_of(client, ConfigMap, within(namespace, "default"))
    async with running(informer):
        await informer.wait_synced()
        await eventually(lambda: client.statistics().streams_open == 2)
    assert client.statistics().streams_open == 0
    assert asyncio.all_tasks() <= before


# Scopes


async def test_only_what_is_in_scope_is_there(client: Client, namespace: str) -> None:
    metadata = Metadata(name="labelled", labels={"tier": "x"})
    await client.create(ConfigMap(metadata=metadata))
    await client.create(config_map("other"))
    informer = informer_of(
        client,
        ConfigMap,
        Scope(namespaces=namespace, labels={"tier": "x"}),
        indexes=[label("tier")],
    )
    async with running(informer) as seen:
        await informer.wait_synced()
        await has(informer, "labelled")
        assert len(informer.store.by("label:tier", "x")) == 1
        await client.patch(ConfigMap, "other", {"metadata": {"labels": {"tier": "x"}}})
        await client.patch(
            ConfigMap, "labelled", {"metadata": {"labels": {"tier": "y"}}}
        )
        await has(informer, "other")
    assert seen.of("labelled") == ["ADDED", "DELETED"]


async def test_another_scope_is_followed_without_a_flicker(
    client: Client, namespace: str
) -> None:
    other = f"{namespace}-b"[-60:].strip("-")
    async with further_namespace(client, other):
        await create(client, "here", namespace)
        await create(client, "there", other)
        informer = informer_of(client, ConfigMap, within(namespace))
        async with running(informer) as seen:
            await informer.wait_synced()
            informer.rescope(within(namespace, other))
            assert not informer.synced
            await informer.wait_synced()
            await has(informer, "here", "there")
            informer.rescope(within(other))
            await informer.wait_synced()
            await has(informer, "there")
            await eventually(lambda: client.statistics().streams_open == 1)
            informer.rescope(Scope(fields="metadata.name=there"))
            await informer.wait_synced()
            await client.patch(
                ConfigMap, "there", {"data": {"x": "1"}}, namespace=other
            )
            await eventually(lambda: "MODIFIED" in seen.of("there"))
            informer.rescope(within(other))
            await informer.wait_synced()
        assert seen.of("here") == ["ADDED", "DELETED"]
        assert seen.of("there") == ["ADDED", "MODIFIED"]


async def test_namespaces_come_and_go_by_their_labels(
    client: Client, namespace: str
) -> None:
    other = f"{namespace}-b"[-60:].strip("-")
    mark = {"metadata": {"labels": {"team": namespace[-20:].strip("-")}}}
    unmark = {"metadata": {"labels": {"team": None}}}
    where = Scope(namespaces_where=mark["metadata"]["labels"], fields=NOT_ROOT_CA)
    async with further_namespace(client, other):
        await create(client, "here", namespace)
        await create(client, "there", other)
        await client.patch(Namespace, namespace, mark)
        informer = informer_of(client, ConfigMap, where)
        async with running(informer) as seen:
            await informer.wait_synced()
            await has(informer, "here")
            await client.patch(Namespace, other, mark)
            await has(informer, "here", "there")
            await create(client, "more", other)
            await has(informer, "here", "there", "more")
            await client.patch(Namespace, namespace, unmark)
            await has(informer, "there", "more")
            assert informer.synced
            await client.patch(Namespace, namespace, mark)
            await has(informer, "here", "there", "more")
        assert seen.of("here") == ["ADDED", "DELETED", "ADDED"]
        assert seen.of("there") == ["ADDED"]


def test_a_scope_that_its_kind_cannot_have_is_refused(
    # No server is needed to know it.
) -> None:
    client: Any = None
    with pytest.raises(ValueError, match="in no namespace"):
        informer_of(client, Namespace, Scope(namespaces=["a"]))


# Servers that come and go


async def test_a_restarted_server_is_followed_again(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    await client.create(config_map("a"))
    await client.create(config_map("b"))
    informer = informer_of(client, ConfigMap, within(namespace))
    async with running(informer) as seen:
        await informer.wait_synced()
        await cluster.restart_apiserver()
        await client.delete(ConfigMap, "a")
        await client.create(config_map("c"))
        await has(informer, "b", "c")
    assert seen.of("b") == ["ADDED"]
    assert seen.of("a") == ["ADDED", "DELETED"]


async def test_a_kind_that_is_deleted_takes_its_objects_and_may_come_back(
    client: Client, namespace: str
) -> None:
    class Passing(Website, group="passing.trimtab.dev", version="v1", kind="Passing"):
        """A kind of this test alone, so that nobody misses it."""

    definition = crd(Passing)

    async def is_served() -> bool:
        try:
            await client.list(Passing).next_page()
        except NotFound:
            return False
        return True

    await defines(client, definition)
    await eventually(is_served, within=20)
    await client.create(_as(Passing, website("a")))
    informer = informer_of(client, Passing, Scope(namespaces=namespace))
    async with running(informer) as seen:
        await informer.wait_synced()
        await has(informer, "a")
        kinds = await client.discover("apiextensions.k8s.io/v1", definition["kind"])
        await client.delete(kinds, definition["metadata"]["name"])
        await has(informer)
        await eventually(lambda: "passings" in problem_of(informer), within=20)
        await eventually(_is_gone(client, kinds, definition), within=20)
        await defines(client, definition)
        await eventually(is_served, within=20)
        await client.create(_as(Passing, website("b")))
        await has(informer, "b")
        await eventually(lambda: not problem_of(informer))
    assert seen.of("a") == ["ADDED", "DELETED"]
    await client.delete(kinds, definition["metadata"]["name"])


def _as(kind: type[Website], made: Website) -> Website:
    return kind(metadata=made.metadata, spec=made.spec, status=made.status)


def _is_gone(client: Client, kinds: Any, definition: dict[str, Any]) -> Any:
    async def is_gone() -> bool:
        try:
            await client.get(kinds, definition["metadata"]["name"])
        except NotFound:
            return True
        return False

    return is_gone


@pytest.fixture(params=["https", "in-process"])
async def served(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async with world(request.param) as made:
        yield made


def following(served: World) -> Informer[Any]:
    return informer_of(served.client, CoreConfigMap, within("default"))


async def test_a_forgotten_history_is_read_anew() -> None:
    async with world("https") as served:
        await forgets(served)


async def forgets(served: World) -> None:
    client = served.client
    for name in ("a", "b"):
        await client.create(config_map(name))
    informer = following(served)
    async with running(informer) as seen:
        await has(informer, "a", "b")
        served.faults.plant(Fault(verb="watch", code=503, times=0))
        served.faults.cut_watches("configmaps")
        await eventually(lambda: informer.statistics().errors > 1)
        await client.delete(CoreConfigMap, "a")
        await client.create(config_map("c"))
        served.faults.expire_history()
        served.faults.clear()
        await has(informer, "b", "c")
        assert informer.statistics().relists == 1
    assert seen.of("b") == ["ADDED"]
    [gone] = [each for each in seen.changes if each.type == "DELETED"]
    assert gone.key == ("default", "a")
    assert gone.old is not None


async def test_cuts_at_any_event_lose_nothing(served: World) -> None:
    client = served.client
    fault = Fault(verb="watch", when="after", cut=True, events=2, times=5)
    served.faults.plant(fault)
    informer = following(served)
    async with running(informer) as seen:
        await informer.wait_synced()
        names = [f"n{number}" for number in range(12)]
        for name in names:
            await client.create(config_map(name))
        await has(informer, *names)
    assert sorted(seen.types) == sorted(("ADDED", name) for name in names)
