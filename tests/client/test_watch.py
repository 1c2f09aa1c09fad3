"""Watches: every event once and in order, or a named error that says where to go on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.client.conftest import Connect
from tests.client.faults import (
    Exchange,
    FaultServer,
    hang,
    raw,
    status,
    status_body,
)
from tests.client.kinds import (
    CONFIG_MAPS,
    ConfigMap,
    bookmark,
    event,
    item,
)
from tests.client.laws import ends_within, tells_well
from tests.client.watching import CHUNKED, SOON, THREE, MiB, sends
from trimtab.client import Bookmark, Client, Watch
from trimtab.client.errors import (
    ApiError,
    BodyTooLarge,
    DeadlineExceeded,
    Disconnected,
    Forbidden,
    Gone,
    Malformed,
    ServerError,
    Stalled,
    TrimtabError,
)
from trimtab.testing import eventually


def names(events: list[Any]) -> list[tuple[str, str]]:
    return [(each.type, each.object.metadata.resourceVersion) for each in events]


async def collect(watch: Watch[Any]) -> list[Any]:
    async with watch as events:
        return [each async for each in events]


async def test_events_come_typed_and_in_order_until_the_server_ends_them(
    server: FaultServer, client: Client
) -> None:
    server.play(sends(*THREE))
    got = await collect(client.watch(ConfigMap))
    assert names(got) == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "3")]
    assert all(isinstance(each.object, ConfigMap) for each in got)


async def test_a_discovered_kind_comes_as_plain_dicts(
    server: FaultServer, client: Client
) -> None:
    server.play(sends(*THREE, bookmark("9")))
    got = await collect(client.watch(CONFIG_MAPS))
    assert [each.object for each in got[:3]] == [each["object"] for each in THREE]
    assert got[3] == Bookmark(resource_version="9")


async def test_a_bookmark_tells_its_revision_and_the_end_of_what_was_there(
    server: FaultServer, client: Client
) -> None:
    server.play(sends(bookmark("5"), bookmark("6", initial=True)))
    assert await collect(client.watch(ConfigMap)) == [
        Bookmark(resource_version="5"),
        Bookmark(resource_version="6", initial_events_end=True),
    ]


async def test_what_is_asked_for_stands_in_the_query(
    server: FaultServer, client: Client
) -> None:
    server.always(sends())
    await collect(client.watch(ConfigMap))
    await collect(
        client.watch(
            ConfigMap,
            namespace="x",
            labels={"a": "b"},
            fields="metadata.name=c",
            resource_version="5",
            initial_events=True,
            timeout=7,
        )
    )
    first, second = (request.target for request in server.requests)
    assert first == "/api/v1/configmaps?watch=true&allowWatchBookmarks=true"
    assert second == (
        "/api/v1/namespaces/x/configmaps?watch=true&allowWatchBookmarks=true"
        "&labelSelector=a%3Db&fieldSelector=metadata.name%3Dc&resourceVersion=5"
        "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=7"
    )


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_no_cut_into_pieces_loses_or_doubles_an_event(
    server: FaultServer, client: Client, data: st.DataObject
) -> None:
    versions = [str(number) for number in range(data.draw(st.integers(1, 8)))]
    filling = data.draw(st.sampled_from(["", "ü\n", "x" * 5000]))
    lines = [
        json.dumps(event("ADDED", item("a", version, data={"k": filling}))).encode()
        for version in versions
    ]
    newline = data.draw(st.sampled_from([b"\n", b"\r\n", b"\n\n"]))
    stream = newline.join([*lines, b""])
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12).map(sorted))
    ends = [*cuts, len(stream)]

    async def handler(exchange: Exchange) -> None:
        await exchange.begin_chunks()
        for start, stop in zip([0, *cuts], ends, strict=True):
            if stop > start:
                await exchange.chunk(stream[start:stop])
                await asyncio.sleep(0)
        await exchange.chunk(b"")

    server.play(handler)
    got: list[Any] = []
    async with client.watch(ConfigMap) as watch:
        if data.draw(st.booleans()):
            got = [each async for each in watch]
        else:
            while batch := await watch.batch():
                got += batch
    assert [each.object.metadata.resourceVersion for each in got] == versions


async def test_a_batch_hands_out_what_came_before_an_error(
    server: FaultServer, client: Client
) -> None:
    gone = event("ERROR", status_body(410, "Expired", "too old"))
    lines = b"".join(json.dumps(each).encode() + b"\n" for each in [*THREE, gone])

    async def handler(exchange: Exchange) -> None:
        await exchange.begin_chunks()
        await exchange.chunk(lines)

    server.play(handler)
    async with client.watch(ConfigMap) as watch:
        got: list[Any] = []
        with pytest.raises(Gone):  # noqa: PT012  (in which batch it comes is open)
            while True:
                got += await watch.batch()
        assert len(got) == 3
        assert await watch.batch() == []


async def test_iteration_and_batches_can_be_mixed(
    server: FaultServer, client: Client
) -> None:
    server.play(sends(*THREE))
    async with client.watch(ConfigMap) as watch:
        first = await anext(watch)
        rest: list[Any] = []
        while batch := await watch.batch():
            rest += batch
        assert [version for _, version in names([first, *rest])] == ["1", "2", "3"]


# Errors


async def test_gone_as_an_answer_and_gone_in_the_stream_are_the_same_error(
    server: FaultServer, client: Client
) -> None:
    server.play(status(410, "Expired", "too old resource version"))
    server.play(sends(event("ERROR", status_body(410, "Expired", "too old"))))
    server.play(sends(event("ERROR", status_body(410, "Gone", "too old"))))
    for _ in range(3):
        with pytest.raises(Gone, match="too old") as caught:
            await collect(client.watch(ConfigMap))
        tells_well(caught.value)
    assert len(server.requests) == 3


IN_THE_STREAM: list[tuple[dict[str, Any], type[TrimtabError]]] = [
    (status_body(500, "InternalError", "etcd is away"), ServerError),
    (status_body(403, "Forbidden"), Forbidden),
    ({"kind": "Status"}, ServerError),
    ({"message": 5}, Malformed),
]


@pytest.mark.parametrize(("body", "expected"), IN_THE_STREAM)
async def test_an_error_in_the_stream_ends_the_watch(
    server: FaultServer,
    client: Client,
    body: dict[str, Any],
    expected: type[TrimtabError],
) -> None:
    server.play(sends(THREE[0], event("ERROR", body), THREE[1], end=False))
    async with client.watch(ConfigMap) as watch:
        await anext(watch)
        with pytest.raises(expected) as caught:
            await anext(watch)
        tells_well(caught.value)
        assert [each async for each in watch] == []
        assert client.statistics().streams_open == 0


NO_EVENTS = [
    b"garbage",
    b"[]",
    b'{"type":"ADDED"}',
    b'{"type":"ADDED","object":[]}',
    b'{"type":"SOMETHING","object":{}}',
    b'{"object":{},"type":"ADDED","object":7}',
    b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":7}}}',
    b'{"type":"ADDED","object":' + b'{"a":' * 50_000,
]


@pytest.mark.parametrize("line", NO_EVENTS, ids=lambda line: line[:40].decode())
async def test_a_line_that_is_no_event_ends_the_watch_and_nothing_is_skipped(
    server: FaultServer, client: Client, line: bytes
) -> None:
    after = json.dumps(THREE[2]).encode() + b"\n"

    async def handler(exchange: Exchange) -> None:
        await exchange.begin_chunks()
        await exchange.chunk(line + b"\n" + after)
        await exchange.hang()

    server.play(handler)
    async with client.watch(ConfigMap) as watch:
        with pytest.raises(Malformed) as caught:
            await anext(watch)
        tells_well(caught.value)
        assert [each async for each in watch] == []


CUTS = {
    "in an event": CHUNKED + b'15\r\n{"type":"ADDED","obje',
    "in a chunk": CHUNKED + b'99\r\n{"type":"ADDED","obje',
    "between chunks": CHUNKED + b"1\r\n\n\r\n",
    "at the start": CHUNKED,
}


@pytest.mark.parametrize("where", CUTS)
async def test_a_stream_that_is_cut_is_disconnected(
    server: FaultServer, client: Client, where: str
) -> None:
    server.play(raw(CUTS[where]))
    async with client.watch(ConfigMap) as watch:
        with ends_within(0), pytest.raises(Disconnected) as caught:
            await anext(watch)
        tells_well(caught.value)


async def test_a_change_of_protocol_is_no_end_of_a_watch(
    server: FaultServer, client: Client
) -> None:
    head = b"HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
    server.play(raw(head, cut=False))
    with pytest.raises(Malformed, match="protocol") as caught:
        await collect(client.watch(ConfigMap))
    tells_well(caught.value)
    await eventually(lambda: server.open == 0)


async def test_a_stream_that_ends_within_an_event_is_disconnected(
    server: FaultServer, client: Client
) -> None:
    server.play(raw(CHUNKED + b'15\r\n{"type":"ADDED","obje\r\n0\r\n\r\n', cut=False))
    async with client.watch(ConfigMap) as watch:
        with pytest.raises(Disconnected, match="within an event"):
            await anext(watch)


async def test_a_watch_that_falls_silent_is_stalled(
    server: FaultServer, client: Client
) -> None:
    server.play(sends(THREE[0], end=False))
    async with client.watch(ConfigMap, idle=SOON) as watch:
        with ends_within(SOON), pytest.raises(Stalled) as caught:
            async for _ in watch:
                pass
        tells_well(caught.value)
        assert client.statistics().streams_open == 0


async def test_a_watch_that_trickles_within_its_idle_time_is_alive(
    server: FaultServer, client: Client
) -> None:
    line = json.dumps(THREE[0]).encode() + b"\n"

    async def handler(exchange: Exchange) -> None:
        await exchange.begin_chunks()
        for start in range(0, len(line), 12):
            await exchange.chunk(line[start : start + 12])
            await asyncio.sleep(0.15)
        await exchange.chunk(b"")

    server.play(handler)
    # Longer in all than the idle time, and never silent for as long.
    assert len(await collect(client.watch(ConfigMap, idle=1.2))) == 1


async def test_a_watch_that_does_not_begin_costs_its_deadline(
    server: FaultServer, client: Client
) -> None:
    server.always(hang)
    with ends_within(SOON), pytest.raises(DeadlineExceeded):
        await collect(client.watch(ConfigMap, deadline=SOON))


async def test_the_deadline_is_for_the_beginning_only(
    server: FaultServer, client: Client
) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.begin_chunks()
        await asyncio.sleep(1.4)
        await exchange.chunk(json.dumps(THREE[0]).encode() + b"\n")
        await exchange.chunk(b"")

    server.play(handler)
    assert len(await collect(client.watch(ConfigMap, deadline=1.2))) == 1


async def test_an_event_without_end_costs_at_most_the_cap(
    server: FaultServer, connect: Connect
) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.head(200)
        await exchange.send(b'{"type":"ADDED","object":{"data":{"x":"')
        await exchange.flood(1 << 30)

    server.play(handler)
    client = connect(body_limit=MiB)
    async with client.watch(ConfigMap) as watch:
        with pytest.raises(BodyTooLarge) as caught:
            await anext(watch)
        tells_well(caught.value)
    assert caught.value.limit == MiB < caught.value.seen < 2 * MiB
    assert client.statistics().transport.bytes_received < 2 * MiB
    assert server.requests[0].flooded < 64 * MiB


@pytest.mark.parametrize("code", [401, 403, 500])
async def test_a_refused_watch_leaves_no_stream(
    server: FaultServer, client: Client, code: int
) -> None:
    server.always(status(code))
    with pytest.raises(ApiError):
        await collect(client.watch(ConfigMap))
    assert client.statistics().streams_open == 0
