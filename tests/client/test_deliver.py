"""Delivery: what comes of a watch is handed over as it comes, and only once."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from tests.client.faults import Exchange, FaultServer, Handler, raw, status_body
from tests.client.kinds import ConfigMap, event, item
from trimtab.client import Bookmark, Client, Watch, WatchEvent, budget
from trimtab.client.budget import remaining
from trimtab.client.connection import Connection
from trimtab.client.errors import Disconnected, Gone, Malformed, Stalled
from trimtab.client.wire import Body, parse_head
from trimtab.testing import eventually

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked"
JSON = (("Content-Type", "application/json"),)
THREE = [event("ADDED", item("a")), event("MODIFIED", item("a", "2"))]
THREE += [event("DELETED", item("a", "3"))]


def sends(*events: Any, end: bool = True) -> Handler:
    """Answers a watch with these events, each in two halves, then ends it, or hangs."""

    async def handler(exchange: Exchange) -> None:
        await exchange.begin_chunks(headers=JSON)
        for each in events:
            line = json.dumps(each).encode() + b"\n"
            await exchange.chunk(line[:9])
            await exchange.chunk(line[9:])
        if not end:
            await exchange.hang()
        await exchange.chunk(b"")

    return handler


async def delivered(watch: Watch[ConfigMap]) -> list[str]:
    """The types of what a watch delivers until it ends."""
    found: list[str] = []
    async with watch:
        await watch.deliver(lambda batch: found.extend(map(said, batch)))
    return found


def said(each: WatchEvent[ConfigMap] | Bookmark) -> str:
    return each.type if isinstance(each, WatchEvent) else "BOOKMARK"


def pieces(data: bytes, random: Random) -> list[bytes]:
    """The same bytes, cut at random."""
    cuts = sorted(random.randrange(len(data) + 1) for _ in range(random.randrange(4)))
    ends = [0, *cuts, len(data)]
    return [data[a:b] for a, b in pairwise(ends)]


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data) if data else b""


async def test_a_whole_line_is_handed_over_however_it_is_cut() -> None:
    random = Random(7)
    for _ in range(400):
        connection = Connection(asyncio.get_running_loop())
        connection.whole_lines = True
        body = Body(parse_head(HEAD), method="GET")
        got = bytearray()
        reading = asyncio.ensure_future(connection.pump(body, got.extend))
        await asyncio.sleep(0)
        sent = b""
        for number in range(3):
            line = b'{"number":%d,"}":"\\n"}\n' % number
            sent += line
            chunks = b"".join(chunked(piece) for piece in pieces(line, random))
            for record in filter(None, pieces(chunks, random)):
                connection.get_buffer(-1)[: len(record)] = record
                connection.buffer_updated(len(record))
            assert got == sent
        reading.cancel()
        await asyncio.wait([reading])


async def test_what_comes_has_the_budget_of_who_reads_and_not_of_who_connected() -> (
    None
):
    """What the loop calls for a connection runs in the context that opened it; a watch
    on a connection that a call had opened gave its budget to all who followed."""
    connection = Connection(asyncio.get_running_loop())
    left: list[float | None] = []
    body, record = Body(parse_head(HEAD), method="GET"), chunked(b"x\n")
    with budget(60.0):
        reading = asyncio.ensure_future(
            connection.pump(body, lambda _: left.append(remaining())),
        )
    await asyncio.sleep(0)
    with budget(1.0):
        connection.get_buffer(-1)[: len(record)] = record
        connection.buffer_updated(len(record))
    reading.cancel()
    await asyncio.wait([reading])
    assert [each is not None and each > 1.0 for each in left] == [True]


async def test_everything_is_delivered_until_the_server_ends_the_watch(
    server: FaultServer, client: Client
) -> None:
    server.play(sends(*THREE))
    assert await delivered(client.watch(ConfigMap)) == ["ADDED", "MODIFIED", "DELETED"]
    assert client.statistics().streams_open == 0


async def test_what_came_before_an_error_is_delivered(
    server: FaultServer, client: Client
) -> None:
    wrong = {"type": "ERROR", "object": status_body(410, "Expired", "too old")}
    server.play(sends(*THREE[:2], wrong), sends(THREE[0], {"type": "NONSENSE"}))
    found: list[Any] = []
    async with client.watch(ConfigMap) as watch:
        with pytest.raises(Gone):
            await watch.deliver(found.extend)
    assert list(map(said, found)) == ["ADDED", "MODIFIED"]
    async with client.watch(ConfigMap) as watch:
        with pytest.raises(Malformed):
            await watch.deliver(found.extend)
    assert len(found) == 3


async def test_what_the_receiver_raises_ends_the_watch_and_is_raised(
    server: FaultServer, client: Client
) -> None:
    server.play(sends(*THREE, end=False))
    calls = 0

    def take(batch: list[Any]) -> None:
        nonlocal calls
        calls += 1
        raise ZeroDivisionError

    async with client.watch(ConfigMap) as watch:
        with pytest.raises(ZeroDivisionError):
            await watch.deliver(take)
    assert calls == 1
    await eventually(lambda: server.open == 0)


async def test_what_was_read_ahead_is_delivered_first(
    server: FaultServer, client: Client
) -> None:
    lines = b"".join(json.dumps(each).encode() + b"\n" for each in THREE)
    whole = HEAD + b"\r\n\r\n" + chunked(lines) + b"0\r\n\r\n"
    server.play(raw(whole, cut=False))
    async with client.watch(ConfigMap) as watch:
        found = [said(await anext(watch))]
        await watch.deliver(lambda batch: found.extend(map(said, batch)))
    assert found == ["ADDED", "MODIFIED", "DELETED"]


async def test_a_stream_that_breaks_off_is_no_end(
    server: FaultServer, client: Client
) -> None:
    broken = HEAD + b"\r\nContent-Type: application/json\r\n\r\n"
    half = chunked(json.dumps(THREE[0]).encode()[:20])
    server.play(raw(broken + half), raw(broken + half + b"0\r\n\r\n", cut=False))
    for _ in range(2):
        with pytest.raises(Disconnected):
            await delivered(client.watch(ConfigMap))


async def test_silence_ends_a_delivery_and_events_prolong_it(
    server: FaultServer, client: Client
) -> None:
    server.play(sends(*THREE, end=False))
    found: list[Any] = []
    async with client.watch(ConfigMap, idle=0.2) as watch:
        with pytest.raises(Stalled):
            await watch.deliver(found.extend)
    assert len(found) == 3


async def test_a_watch_closed_by_another_task_delivers_no_more(
    server: FaultServer, client: Client
) -> None:
    server.play(sends(*THREE, end=False))
    found: list[Any] = []
    async with client.watch(ConfigMap) as watch, asyncio.TaskGroup() as group:
        group.create_task(watch.deliver(found.extend))
        await eventually(lambda: len(found) == 3)
        watch.close()


async def test_a_delivery_that_is_cancelled_leaves_nothing(
    server: FaultServer, client: Client
) -> None:
    server.play(sends(*THREE, end=False))
    found: list[Any] = []
    async with client.watch(ConfigMap) as watch:
        task = asyncio.ensure_future(watch.deliver(found.extend))
        await eventually(lambda: len(found) == 3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert client.statistics().streams_open == 0
    await eventually(lambda: server.open == 0)
