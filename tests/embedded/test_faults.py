"""Laws of planted faults, the same over HTTPS and within the process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.embedded.worlds import WAYS, Way, World, config_map, world
from trimtab.client import RetryPolicy
from trimtab.client.errors import (
    Ambiguous,
    ApiError,
    Disconnected,
    Gone,
    NotFound,
    ServerError,
    TooManyRequests,
)
from trimtab.embedded.faults import Fault, Faults, Planted
from trimtab.embedded.requests import ApiRequest, User
from trimtab.kinds import ConfigMap


@pytest.fixture(params=WAYS)
async def served(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    way: Way = request.param
    async with world(way) as made:
        yield made


async def test_a_failure_before_the_commit_writes_nothing(served: World) -> None:
    client = served.client
    fault = Fault(verb="create", resource="configmaps", code=500)
    planted = served.faults.plant(fault)
    with pytest.raises(ServerError, match="a test has planted"):
        await client.create(config_map("a"))
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "a")
    await client.create(config_map("a"))
    assert planted.hits == 1


async def test_a_failure_after_the_commit_has_written(served: World) -> None:
    client = served.client
    served.faults.plant(Fault(verb="create", when="after", code=504))
    with pytest.raises((ApiError, Ambiguous)):
        await client.create(config_map("a"))
    assert (await client.get(ConfigMap, "a")).metadata.name == "a"


async def test_a_connection_that_is_cut_before_the_commit_wrote_nothing(
    served: World,
) -> None:
    client = served.client
    served.faults.plant(Fault(verb="create", resource="configmaps", cut=True))
    with pytest.raises(Ambiguous):
        await client.create(config_map("a"))
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "a")


async def test_a_connection_that_is_cut_after_the_commit_has_written(
    served: World,
) -> None:
    client = served.client
    served.faults.plant(Fault(verb="create", when="after", cut=True))
    with pytest.raises(Ambiguous) as caught:
        await client.create(config_map("a"))
    assert isinstance(caught.value.__cause__, Disconnected)
    assert (await client.get(ConfigMap, "a")).metadata.name == "a"


async def test_a_delayed_request_is_carried_out_later(served: World) -> None:
    client = served.client
    served.faults.plant(Fault(verb="get", delay=0.2))
    clock = asyncio.get_running_loop().time
    began = clock()
    await client.get(ConfigMap, "kube-root-ca.crt")
    assert clock() - began >= 0.2


async def test_others_are_answered_while_one_is_delayed(served: World) -> None:
    client = served.client
    await client.create(config_map("a"))
    served.faults.plant(Fault(verb="get", name="a", delay=50.0))
    async with asyncio.TaskGroup() as group:
        slow = group.create_task(client.get(ConfigMap, "a"))
        async with asyncio.timeout(20.0):
            await client.get(ConfigMap, "kube-root-ca.crt")
        slow.cancel()


async def test_a_client_that_comes_again_gets_past_a_fault(served: World) -> None:
    client = served.connect(retry=RetryPolicy(base=0.001, cap=0.01))
    fault = Fault(resource="configmaps", times=2, code=503)
    planted = served.faults.plant(fault)
    await client.get(ConfigMap, "kube-root-ca.crt")
    assert planted.hits == 2


async def test_a_time_to_wait_is_sent_along(served: World) -> None:
    served.faults.plant(Fault(code=429, retry_after=7))
    with pytest.raises(TooManyRequests) as caught:
        await served.connect(deadline=5.0).get(ConfigMap, "a")
    assert caught.value.retry_after == 7


async def test_a_watch_is_cut_after_some_events(served: World) -> None:
    client = served.client
    revision = (await client.create(config_map("a", n="0")))["metadata"]
    served.faults.plant(Fault(verb="watch", when="after", cut=True, events=2))
    async with client.watch(
        ConfigMap, namespace="default", resource_version=revision["resourceVersion"]
    ) as events:
        for number in range(1, 3):
            await client.patch(ConfigMap, "a", {"data": {"n": str(number)}})
            event = await anext(events)
            assert event.object.data == {"n": str(number)}  # type: ignore[union-attr]
        with pytest.raises(Disconnected):
            await anext(events)


async def test_watches_under_way_are_cut_at_any_moment(served: World) -> None:
    client = served.client
    async with client.watch(ConfigMap, namespace="default") as events:
        await anext(events)
        assert served.faults.cut_watches("secrets") == 0
        assert served.faults.cut_watches("configmaps", namespace="other") == 0
        assert served.faults.cut_watches("configmaps") == 1
        with pytest.raises(Disconnected):
            async for _ in events:
                pass
    assert served.faults.cut_watches() == 0


async def test_expired_history_is_gone(served: World) -> None:
    client = served.client
    first = await client.create(config_map("a", n="0"))
    await client.patch(ConfigMap, "a", {"data": {"n": "1"}})
    served.faults.expire_history()
    version = first["metadata"]["resourceVersion"]
    with pytest.raises(Gone):
        async with client.watch(
            ConfigMap, namespace="default", resource_version=version
        ) as events:
            await anext(events)
    assert (await client.get(ConfigMap, "a")).data == {"n": "1"}


def request(method: str, path: str, **query: str) -> ApiRequest:
    return ApiRequest(method=method, path=path, query=query, user=User("jo"))


POD = "/api/v1/namespaces/a/pods/b"
PODS = "/api/v1/namespaces/a/pods"
SCALE = "/apis/apps/v1/namespaces/a/deployments/d/scale"


@pytest.mark.parametrize(
    ("fault", "asked", "hit"),
    [
        (Fault(), request("GET", POD), True),
        (Fault(), request("GET", "/version"), True),
        (Fault(verb="get"), request("GET", "/version"), True),
        (Fault(resource="pods"), request("GET", "/version"), False),
        (Fault(verb="get"), request("GET", POD), True),
        (Fault(verb="get"), request("GET", PODS), False),
        (Fault(verb="list"), request("GET", PODS), True),
        (Fault(verb="list"), request("GET", PODS, watch="true"), False),
        (Fault(verb="watch"), request("GET", PODS, watch="true"), True),
        (Fault(verb="create"), request("POST", PODS), True),
        (Fault(verb="update"), request("PUT", POD), True),
        (Fault(verb="patch"), request("PATCH", POD), True),
        (Fault(verb="delete"), request("DELETE", POD), True),
        (Fault(verb="delete"), request("DELETE", PODS), False),
        (Fault(verb="deletecollection"), request("DELETE", PODS), True),
        (Fault(resource="pods"), request("GET", POD), True),
        (Fault(resource="pods"), request("PATCH", f"{POD}/status"), False),
        (Fault(resource="pods/status"), request("PATCH", f"{POD}/status"), True),
        (Fault(resource="deployments.apps/scale"), request("GET", SCALE), True),
        (Fault(resource="deployments"), request("GET", SCALE), False),
        (Fault(namespace="a"), request("GET", POD), True),
        (Fault(namespace="b"), request("GET", POD), False),
        (Fault(name="b"), request("GET", POD), True),
        (Fault(name="c"), request("GET", POD), False),
    ],
)
def test_a_fault_hits_what_it_names_and_nothing_else(
    fault: Fault, asked: ApiRequest, hit: bool
) -> None:
    faults = Faults()
    faults.plant(fault)
    assert (faults.take(asked) is fault) == hit


@pytest.mark.parametrize(
    ("skip", "times", "hits"),
    [
        (0, 1, "x...."),
        (2, 1, "..x.."),
        (1, 2, ".xx.."),
        (3, 0, "...xx"),
        (0, 0, "x" * 5),
    ],
)
def test_a_fault_hits_as_often_as_it_says(skip: int, times: int, hits: str) -> None:
    planted = Planted(Fault(skip=skip, times=times))
    assert "".join("x" if planted.take() else "." for _ in range(5)) == hits
    assert planted.hits == hits.count("x")


def test_of_two_faults_the_first_hits_first() -> None:
    faults = Faults()
    first, second = Fault(code=500), Fault(code=503)
    for each in (first, second):
        faults.plant(each)
    asked = request("GET", POD)
    assert [faults.take(asked) for _ in range(3)] == [first, second, None]


def test_nothing_goes_wrong_once_faults_are_cleared() -> None:
    faults = Faults()
    assert not faults
    faults.plant(Fault(times=0))
    assert faults
    faults.clear()
    assert not faults
    assert faults.take(request("GET", POD)) is None


def test_history_needs_a_server_to_expire() -> None:
    with pytest.raises(RuntimeError, match="no server"):
        Faults().expire_history()
