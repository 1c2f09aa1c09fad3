"""Laws of the transport that is a function call: a client cannot tell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.embedded.standin import StandIn
from tests.embedded.worlds import WAYS, Way, World, config_map, world
from trimtab.client.errors import (
    AlreadyExists,
    BodyTooLarge,
    Closed,
    Disconnected,
    NotFound,
    TooLarge,
)
from trimtab.client.transport import Progress, Request, Response, Transport
from trimtab.embedded.api import Answer
from trimtab.embedded.driver import Driver
from trimtab.embedded.inprocess import InProcess
from trimtab.embedded.requests import User
from trimtab.kinds import ConfigMap, Namespace

PODS = "/api/v1/namespaces/a%20b/pods"


class Carried:
    """A stand-in, and a transport to it."""

    def __init__(self, *, user: User | None = None) -> None:
        self.api = StandIn()
        self.driver = Driver(self.api)
        self.driver.start()
        made = InProcess(self.driver, user=user) if user else InProcess(self.driver)
        self.transport: Transport = made

    async def send(self, path: str, *, stream: bool = False) -> Response:
        path, _, query = path.partition("?")
        pairs = [each.split("=", 1) for each in query.split("&") if each]
        request = Request(
            method="GET",
            path=path,
            query=tuple((key, value) for key, value in pairs),
            headers=(("Accept", "application/json"),),
            stream=stream,
        )
        return await self.transport.send(request, progress=Progress())


@pytest.fixture
async def carried() -> AsyncIterator[Carried]:
    made = Carried()
    yield made
    await made.transport.close()
    made.driver.close()


async def test_a_request_arrives_as_it_would_over_http(carried: Carried) -> None:
    request = Request(
        method="POST",
        path=PODS,
        query=(("limit", "1"), ("limit", "2"), ("x", "=&")),
        headers=(("Content-Type", "application/json"), ("X-A", "1"), ("x-a", "2")),
        body=b"{}",
    )
    response = await carried.transport.send(request, progress=Progress())
    response.close()
    [seen] = carried.api.requests
    assert seen.path == "/api/v1/namespaces/a b/pods"
    assert seen.query == {"limit": "1", "x": "=&"}
    assert seen.headers == {"content-type": "application/json", "x-a": "1"}
    assert seen.body == b"{}"
    assert seen.user.name == "admin"
    assert "system:masters" in seen.user.groups


async def test_whoever_was_named_asks() -> None:
    carried = Carried(user=User("jo"))
    (await carried.send("/api")).close()
    assert carried.api.requests[0].user == User("jo")
    carried.driver.close()


async def test_progress_says_that_a_request_was_sent(carried: Carried) -> None:
    progress = Progress()
    request = Request(method="GET", path="/api")
    (await carried.transport.send(request, progress=progress)).close()
    assert progress.sent


async def test_others_have_a_turn_before_each_request(carried: Carried) -> None:
    """A task that only asks, and never waits, must not keep the loop to itself."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while turns < 10:
            turns += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(other())
        for _ in range(20):
            (await carried.send("/api")).close()
            if turns == 10:
                break
    assert len(carried.api.requests) <= 11


async def test_an_answer_in_pieces_is_read_in_pieces(carried: Carried) -> None:
    response = await carried.send("/pieces?count=3&size=16")
    assert len(await response.chunk()) == 16
    assert len(await response.read(limit=100)) == 32
    assert await response.chunk() == b""
    response.close()


async def test_an_answer_beyond_its_limit_is_not_read_on(carried: Carried) -> None:
    response = await carried.send("/pieces?count=1000000&size=1000")
    with pytest.raises(BodyTooLarge) as caught:
        await response.read(limit=5000)
    assert 5000 < caught.value.seen <= 6000
    response.close()


async def test_an_answer_that_breaks_off_is_a_broken_connection(
    carried: Carried,
) -> None:
    response = await carried.send("/pieces?count=5&size=8&breaks=2")
    with pytest.raises(Disconnected):
        await response.read(limit=1000)
    response.close()


async def test_headers_are_found_in_any_case(carried: Carried) -> None:
    warnings = (("Warning", "one"), ("Warning", "two"))
    carried.api.routes["/warned"] = lambda _: Answer(headers=warnings)
    response = await carried.send("/warned")
    assert response.headers("WARNING") == ("one", "two")
    assert response.headers("content-type") == ("application/json",)
    assert response.headers("Retry-After") == ()
    response.close()


async def test_a_mistake_in_the_api_is_a_status(
    carried: Carried, caplog: pytest.LogCaptureFixture
) -> None:
    response = await carried.send("/boom")
    assert response.status == 500
    assert b"InternalError" in await response.read(limit=1000)
    response.close()
    assert "a mistake in the API" in caplog.text


async def test_a_watch_gives_what_is_put_and_ends(carried: Carried) -> None:
    response = await carried.send(f"{PODS}?watch=true", stream=True)
    [watcher] = carried.api.watchers
    watcher.put(b"one\n")
    assert await response.chunk() == b"one\n"
    watcher.put(b"")
    assert await response.chunk() == b""
    response.close()
    assert watcher.closed
    assert carried.driver.metrics.watches == 0


async def test_closing_a_watch_ends_it(carried: Carried) -> None:
    response = await carried.send(f"{PODS}?watch=true", stream=True)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(response.chunk())
        await asyncio.sleep(0)
        response.close()
        response.close()
    assert waiting.result() == b""
    assert carried.api.watchers[0].closed


async def test_closing_the_transport_ends_what_came_by_it(carried: Carried) -> None:
    response = await carried.send(f"{PODS}?watch=true", stream=True)

    async def wait() -> None:
        with pytest.raises(Closed):
            await response.chunk()

    async with asyncio.TaskGroup() as group:
        group.create_task(wait())
        await asyncio.sleep(0)
        await carried.transport.close()
    assert carried.transport.statistics().connections_open == 0
    with pytest.raises(Closed):
        await carried.send("/api")


async def test_the_end_of_the_driver_ends_a_watch_well(carried: Carried) -> None:
    response = await carried.send(f"{PODS}?watch=true", stream=True)
    carried.driver.close()
    assert await response.chunk() == b""
    response.close()


async def test_a_request_that_is_cancelled_leaves_nothing(carried: Carried) -> None:
    response = await carried.send(f"{PODS}?watch=true", stream=True)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(response.chunk())
        await asyncio.sleep(0)
        waiting.cancel()
    response.close()
    assert carried.transport.statistics().connections_open == 0


async def test_statistics_count_bytes_and_answers(carried: Carried) -> None:
    request = Request(
        method="POST", path="/bytes", query=(("size", "70"),), body=b"abc"
    )
    response = await carried.transport.send(request, progress=Progress())
    assert carried.transport.statistics().connections_open == 1
    await response.read(limit=100)
    response.close()
    statistics = carried.transport.statistics()
    assert (statistics.bytes_sent, statistics.bytes_received) == (3, 70)
    assert (statistics.connections_opened, statistics.connections_open) == (1, 0)


@pytest.fixture(params=WAYS)
async def served(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    way: Way = request.param
    async with world(way) as made:
        yield made


async def test_objects_are_written_and_read(served: World) -> None:
    client = served.client
    made = await client.create(config_map("a", n="1"))
    assert made["metadata"]["uid"]
    assert (await client.get(ConfigMap, "a")).data == {"n": "1"}
    with pytest.raises(AlreadyExists):
        await client.create(config_map("a"))
    await client.patch(ConfigMap, "a", {"data": {"m": "2"}})
    assert (await client.get(ConfigMap, "a")).data == {"n": "1", "m": "2"}
    await client.delete(ConfigMap, "a")
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "a")


async def test_lists_are_paged_and_whole(served: World) -> None:
    client = served.client
    for number in range(7):
        await client.create(config_map(f"page-{number}", n="x" * 1000))
    names = [
        each.metadata.name
        async for each in client.list(ConfigMap, namespace="default", page=3)
    ]
    assert [each for each in names if each.startswith("page-")] == [
        f"page-{number}" for number in range(7)
    ]


async def test_a_watch_sees_what_happens(served: World) -> None:
    client = served.client
    made = await client.create(config_map("a", n="0"))
    version = made["metadata"]["resourceVersion"]
    async with client.watch(
        ConfigMap, namespace="default", resource_version=version
    ) as events:
        await client.patch(ConfigMap, "a", {"data": {"n": "1"}})
        await client.delete(ConfigMap, "a")
        seen = [await anext(events) for _ in range(2)]
    assert [each.type for each in seen] == ["MODIFIED", "DELETED"]  # type: ignore[union-attr]


async def test_what_follows_from_a_write_comes_by_itself(served: World) -> None:
    client = served.client
    await client.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    )
    async with client.watch(ConfigMap, namespace="team") as events:
        async with asyncio.timeout(10):
            event = await anext(events)
    assert event.object.metadata.name == "kube-root-ca.crt"  # type: ignore[union-attr]
    await client.delete(Namespace, "team")
    async with asyncio.timeout(10):
        while True:
            try:
                await client.get(Namespace, "team")
            except NotFound:
                break
            await asyncio.sleep(0.01)


async def test_a_body_beyond_three_mebibytes_is_refused(served: World) -> None:
    with pytest.raises(TooLarge, match="limit is 3145728"):
        await served.client.create(config_map("a", n="x" * (3 << 20)))
