"""The life of a watch: entering, waiting, leaving, and being closed."""

from __future__ import annotations

import asyncio
import json
import weakref
from typing import Any

import pytest

from tests.client.conftest import Connect
from tests.client.faults import (
    Exchange,
    FaultServer,
    hang,
)
from tests.client.kinds import (
    ConfigMap,
    Counted,
    event,
    item,
)
from tests.client.laws import ends_within, tells_well
from tests.client.watching import THREE, sends
from trimtab.client import Client, Watch, WatchEvent
from trimtab.client.errors import (
    BodyTooLarge,
    Closed,
    Stalled,
)
from trimtab.testing import eventually


async def name_of_next(watch: Watch[ConfigMap]) -> str:
    change = await anext(watch)
    assert isinstance(change, WatchEvent)
    return change.object.metadata.name


async def collect(watch: Watch[Any]) -> list[Any]:
    async with watch as events:
        return [each async for each in events]


async def test_a_watch_must_be_entered_and_only_once(
    server: FaultServer, client: Client
) -> None:
    server.always(sends())
    watch = client.watch(ConfigMap)
    with pytest.raises(RuntimeError, match="async with"):
        await anext(watch)
    with pytest.raises(RuntimeError, match="async with"):
        await watch.batch()
    async with watch:
        with pytest.raises(RuntimeError, match="once"):
            await watch.__aenter__()


async def test_a_cancelled_wait_for_an_event_loses_nothing(
    server: FaultServer, client: Client
) -> None:
    go = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        await exchange.begin_chunks()
        await exchange.chunk(json.dumps(THREE[0]).encode()[:20])
        await go.wait()
        await exchange.chunk(json.dumps(THREE[0]).encode()[20:] + b"\n")
        await exchange.hang()

    server.play(handler)
    async with client.watch(ConfigMap) as watch:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(watch), 0.05)
        go.set()
        got = await anext(watch)
        assert isinstance(got, WatchEvent)
        assert got.object.metadata.name == "a"


async def test_leaving_a_watch_ends_its_connection(
    server: FaultServer, client: Client
) -> None:
    server.play(sends(*THREE, end=False))
    async with client.watch(ConfigMap) as watch:
        await anext(watch)
        assert client.statistics().streams_open == 1
    assert client.statistics().streams_open == 0
    await eventually(lambda: server.open == 0)
    assert [each async for each in watch] == []


async def test_a_task_cancelled_within_a_watch_ends_its_connection(
    server: FaultServer, client: Client
) -> None:
    server.play(sends(*THREE, end=False))
    task = asyncio.ensure_future(collect(client.watch(ConfigMap)))
    await eventually(lambda: client.statistics().streams_open == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert client.statistics().streams_open == 0
    await eventually(lambda: server.open == 0)


async def test_a_task_cancelled_while_a_watch_begins_leaves_nothing(
    server: FaultServer, client: Client
) -> None:
    server.always(hang)
    task = asyncio.ensure_future(collect(client.watch(ConfigMap)))
    await eventually(lambda: server.requests)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: server.open == 0)


async def test_a_watch_closed_by_another_task_stops(
    server: FaultServer, client: Client
) -> None:
    server.play(sends(THREE[0], end=False))
    async with client.watch(ConfigMap) as watch:
        await anext(watch)
        waiting = asyncio.ensure_future(anext(watch, None))
        await asyncio.sleep(0.02)
        watch.close()
        with ends_within(0):
            assert await waiting is None


async def test_closing_the_client_ends_a_watch_that_waits(
    server: FaultServer, client: Client
) -> None:
    server.play(sends(THREE[0], end=False))
    async with client.watch(ConfigMap) as watch:
        await anext(watch)
        waiting = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0.02)
        await client.close()
        with ends_within(0), pytest.raises(Closed) as caught:
            await waiting
        tells_well(caught.value)


async def test_closing_the_client_ends_a_watch_that_is_read_later(
    server: FaultServer, client: Client
) -> None:
    server.play(sends(THREE[0], end=False))
    async with client.watch(ConfigMap) as watch:
        await anext(watch)
        await client.close()
        with pytest.raises(Closed):
            await anext(watch)


async def test_events_that_were_handed_out_are_not_kept(
    server: FaultServer, client: Client
) -> None:
    server.play(sends(*[event("ADDED", item(str(n))) for n in range(200)], end=False))
    seen: list[weakref.ref[Counted]] = []
    async with client.watch(Counted) as watch:
        for _ in range(200):
            last = await anext(watch)
            assert isinstance(last, WatchEvent)
            seen.append(weakref.ref(last.object))
        assert sum(each() is not None for each in seen) == 1


async def test_a_reader_that_is_slow_does_not_make_a_watch_silent(
    server: FaultServer, client: Client
) -> None:
    go = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        await exchange.events([event("ADDED", item("a"))], end=False)
        await go.wait()
        line = json.dumps(event("ADDED", item("b"))).encode() + b"\n"
        await exchange.chunk(line)
        await exchange.hang()

    server.play(handler)
    async with client.watch(ConfigMap, idle=0.8) as watch:
        await anext(watch)
        await asyncio.sleep(0.9)  # nobody waits, so nobody is kept waiting
        go.set()
        assert await name_of_next(watch) == "b"
        with ends_within(0.8), pytest.raises(Stalled):
            await anext(watch)


async def test_an_event_too_long_does_not_take_those_before_it_along(
    server: FaultServer, connect: Connect
) -> None:
    line = json.dumps(event("ADDED", item("a"))).encode() + b"\n"

    async def handler(exchange: Exchange) -> None:
        await exchange.begin_chunks()
        await exchange.chunk(line + b'{"type":"ADDED","object":{"' + b"x" * 5000)
        await exchange.hang()

    server.play(handler)
    async with connect(body_limit=1000).watch(ConfigMap, idle=0.5) as watch:
        assert await name_of_next(watch) == "a"
        with pytest.raises(BodyTooLarge):
            await anext(watch)
