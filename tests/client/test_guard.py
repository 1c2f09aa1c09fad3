"""Laws of guards: every write inside asks first, wherever it is; no read does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from tests.client.clusters import client_of
from tests.client.kinds import ConfigMap
from trimtab.api import Metadata
from trimtab.client import Client, TrimtabError, guarded
from trimtab.client.guard import allowed
from trimtab.testing import Cluster


class Refused(TrimtabError):
    """What the guards of these tests say."""


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_of(cluster, namespace=namespace) as client:
        yield client


def refuse(_: float) -> float:
    raise Refused("Nobody writes here.")


def at_most(seconds: float) -> Callable[[float], float]:
    return lambda wished: min(wished, seconds)


def config_map(name: str) -> ConfigMap:
    return ConfigMap(metadata=Metadata(name=name))


async def test_every_write_inside_asks_and_no_read_does(client: Client) -> None:
    await client.create(config_map("a"))
    with guarded(refuse):
        assert (await client.get(ConfigMap, "a")).metadata.name == "a"
        assert await client.list(ConfigMap).next_page()
        writes = (
            client.create(config_map("b")),
            client.apply(config_map("a"), manager="m"),
            client.patch(ConfigMap, "a", {"data": {"x": "y"}}),
            client.delete(ConfigMap, "a"),
        )
        for write in writes:
            with pytest.raises(Refused):
                await write
    await client.delete(ConfigMap, "a")


async def test_a_guard_is_asked_once_for_a_write_with_its_deadline(
    client: Client,
) -> None:
    asked: list[float] = []

    def check(seconds: float) -> float:
        asked.append(seconds)
        return seconds

    with guarded(check):
        await client.create(config_map("a"), deadline=33.0)
    (wished,) = asked
    assert 22.0 < wished <= 33.0


async def test_guards_that_surround_each_other_all_hold() -> None:
    with guarded(at_most(5)):
        with guarded(at_most(9)):
            assert allowed(60) == 5
        with guarded(at_most(2)):
            assert allowed(60) == 2
        with guarded(at_most(9)), guarded(refuse), pytest.raises(Refused):
            allowed(1)
        assert allowed(60) == 5
    assert allowed(60) == 60


async def test_an_inner_guard_is_asked_for_what_the_outer_one_grants() -> None:
    asked: list[float] = []

    def check(seconds: float) -> float:
        asked.append(seconds)
        return seconds

    with guarded(at_most(5)), guarded(check):
        allowed(60)
    assert asked == [5]


async def test_tasks_and_threads_that_begin_inside_are_guarded_for_good() -> None:
    leave = asyncio.Event()

    async def later() -> float:
        await leave.wait()
        return allowed(60)

    async with asyncio.TaskGroup() as group:
        with guarded(at_most(5)):
            inside = group.create_task(later())
            assert await asyncio.to_thread(allowed, 60) == 5
        outside = group.create_task(later())
        leave.set()
    assert (inside.result(), outside.result()) == (5, 60)


async def test_a_guard_is_gone_after_an_error_inside() -> None:
    with pytest.raises(KeyError), guarded(refuse):
        raise KeyError
    assert allowed(1) == 1
