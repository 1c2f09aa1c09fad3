"""Events are told once, counted after that, and never too many of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from tests.client.clusters import client_of
from trimtab.api.kinds.references import ObjectReference
from trimtab.api.resource import Metadata
from trimtab.client import Client, Config
from trimtab.client.credentials import Static, TlsMaterial
from trimtab.kinds import ConfigMap, Event, Node, Pod
from trimtab.runtime.correlation import COMBINED, Correlator, EventLimits, Happening
from trimtab.runtime.events import Recorder
from trimtab.testing import Cluster, eventually

START = datetime(2026, 1, 1, tzinfo=UTC)
GENEROUS = EventLimits(burst=10_000)


def happening(message: str = "hello", *, after: float = 0.0, **about: str) -> Happening:
    reference = ObjectReference(kind="Pod", **{"name": "web", **about})
    when = START + timedelta(seconds=after)
    return Happening(reference, "Normal", "Started", message, when)


def test_the_same_again_is_one_event_with_a_count() -> None:
    correlator = Correlator(EventLimits())
    first = correlator.observe(happening())
    second = correlator.observe(happening(after=60))
    assert first is second is not None
    assert second.count == 2
    assert second.last - second.first == timedelta(seconds=60)


def test_more_than_ten_alike_are_combined() -> None:
    correlator = Correlator(GENEROUS)
    records = [correlator.observe(happening(f"try {n}")) for n in range(15)]
    told = [record for record in records if record is not None]
    assert len({id(record) for record in told}) == 11
    assert told[-1].message == f"{COMBINED}try 14"
    assert told[-1].count == 5


def test_parts_of_an_object_have_events_of_their_own_and_one_allowance() -> None:
    correlator = Correlator(EventLimits(burst=2))
    parts = [f"spec.containers{{c{number}}}" for number in range(3)]
    records = [correlator.observe(happening(fieldPath=part)) for part in parts]
    told = [record for record in records if record is not None]
    assert [record.about.fieldPath for record in told] == parts[:2]


def test_ten_quiet_minutes_begin_a_new_count_of_what_is_alike() -> None:
    correlator = Correlator(GENEROUS)
    for number in range(15):
        correlator.observe(happening(f"try {number}"))
    record = correlator.observe(happening("try 99", after=601))
    assert record is not None
    assert record.message == "try 99"


def test_an_object_has_25_events_at_once_and_then_one_in_five_minutes() -> None:
    correlator = Correlator(EventLimits())
    told = [correlator.observe(happening()) for _ in range(40)]
    assert sum(record is not None for record in told) == 25
    assert correlator.observe(happening(after=299)) is None
    assert correlator.observe(happening(name="other", after=299)) is not None
    record = correlator.observe(happening(after=300))
    assert record is not None
    assert record.count == 42, "what was not told is counted all the same"


def test_memory_is_bounded_however_many_objects_there_are() -> None:
    correlator = Correlator(EventLimits(remembered=50))
    for number in range(500):
        correlator.observe(happening(name=str(number)))
    assert len(correlator._records) == 50
    assert len(correlator._messages) == 50
    assert len(correlator._allowances) == 50


def recorder(client: Client, **options: Any) -> Recorder:
    options = {"now": lambda: datetime.now(UTC), **options}
    return Recorder(
        client, component="tester", instance="tester-0", random=Random(), **options
    )


@asynccontextmanager
async def running(made: Recorder) -> AsyncIterator[Recorder]:
    async with asyncio.TaskGroup() as group:
        group.create_task(made.run())
        yield made
        made.stop()


@pytest.fixture
async def nowhere() -> AsyncIterator[Client]:
    """A client of a server that is not there."""
    config = Config(
        server="http://127.0.0.1:9",
        tls=TlsMaterial(),
        credentials=Static({}),
        namespace="default",
        proxy=None,
        impersonate=None,
        source="a test",
    )
    async with Client(config) as client:
        yield client


def pod(name: str = "web") -> Pod:
    return Pod(metadata=Metadata(name=name, namespace="shop", uid=name))


async def test_a_handler_never_waits_and_what_is_too_much_is_dropped(
    nowhere: Client,
) -> None:
    made = recorder(nowhere, pending=10)
    for number in range(25):
        made.event(pod(), "Normal", "Started", f"try {number}")
    assert made.statistics().pending == 10
    assert made.statistics().dropped == 15


async def test_a_handler_never_sees_an_error(nowhere: Client) -> None:
    def broken() -> datetime:
        raise RuntimeError("no clock")

    made = recorder(nowhere, now=broken)
    made.event(pod(), "Normal", "Started", "hello")
    assert made.statistics().dropped == 1


async def test_stopping_ends_in_time_though_the_server_is_away(
    nowhere: Client,
) -> None:
    made = recorder(nowhere, drain=0.05)
    clock = asyncio.get_running_loop().time
    async with running(made):
        made.event(pod("one"), "Normal", "Started", "hello")
        made.event(pod("two"), "Normal", "Started", "hello")
        await eventually(lambda: made.statistics().pending == 1)
        began = clock()
    assert clock() - began < 10.0
    statistics = made.statistics()
    assert (statistics.pending, statistics.written, statistics.dropped) == (0, 0, 2)


async def events_of(client: Client, name: str, namespace: str) -> list[Event]:
    fields = {"involvedObject.name": name}
    listing = client.list(Event, namespace=namespace, fields=fields)
    return [event async for event in listing]


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_of(cluster, namespace=namespace) as made:
        yield made


async def config_map(client: Client, namespace: str, name: str = "web") -> ConfigMap:
    metadata = Metadata(name=name, namespace=namespace)
    return await client.create(ConfigMap(metadata=metadata))


async def test_kubectl_shows_an_event_and_its_count(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    subject = await config_map(client, namespace)
    async with running(recorder(client)) as made:
        made.event(subject, "Normal", "Created", "Created Deployment web")
        await eventually(lambda: made.statistics().written == 1)
        for _ in range(2):
            made.event(subject, "Normal", "Created", "Created Deployment web")
        await eventually(lambda: made.statistics().pending == 0)
    [event] = await events_of(client, "web", namespace)
    assert (event.count, event.reportingInstance) == (3, "tester-0")
    table = await cluster.kubectl("get", "events", "-n", namespace)
    assert "Created Deployment web" in table
    assert "configmap/web" in table
    described = await cluster.kubectl("describe", "configmap", "web", "-n", namespace)
    assert "(x3 over" in described
    assert "tester" in described


async def test_an_event_that_the_server_dropped_is_made_again(
    client: Client, namespace: str
) -> None:
    subject = await config_map(client, namespace)
    async with running(recorder(client)) as made:
        made.event(subject, "Warning", "Broken", "no image")
        await eventually(lambda: made.statistics().written == 1)
        [event] = await events_of(client, "web", namespace)
        await client.delete(Event, event.metadata.name, namespace=namespace)
        made.event(subject, "Warning", "Broken", "no image")
    [event] = await events_of(client, "web", namespace)
    assert (event.count, made.statistics().dropped) == (2, 0)


async def test_events_of_cluster_scoped_objects_are_in_default(
    client: Client, namespace: str
) -> None:
    subject = Node(metadata=Metadata(name=f"{namespace}:Node"))
    async with running(recorder(client)) as made:
        made.event(subject, "Normal", "Joined", "x" * 5000)
    [event] = await events_of(client, subject.metadata.name, "default")
    assert 900 < len(event.message) < 1024
    await client.delete(Event, event.metadata.name, namespace="default")


async def test_a_refused_event_is_dropped_and_the_next_one_is_written(
    client: Client, namespace: str
) -> None:
    subject = await config_map(client, namespace)
    elsewhere = ConfigMap(metadata=Metadata(name="web", namespace="not-there"))
    async with running(recorder(client)) as made:
        made.event(elsewhere, "Normal", "Created", "hello")
        made.event(subject, "Normal", "Created", "hello")
    statistics = made.statistics()
    assert (statistics.written, statistics.dropped) == (1, 1)


async def test_a_handler_in_a_thread_may_tell_events_too(
    client: Client, namespace: str
) -> None:
    subject = await config_map(client, namespace)
    async with running(recorder(client)) as made:
        await eventually(lambda: made._loop is not None)
        thread = threading.Thread(
            target=made.event, args=(subject, "Normal", "Created", "hello")
        )
        thread.start()
        await eventually(lambda: made.statistics().written == 1)
        thread.join()
