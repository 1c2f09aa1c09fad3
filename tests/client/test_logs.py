"""Logs: whole lines, within bounds, until they end or the reader leaves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.client.faults import Exchange, FaultServer, Handler, raw, status
from tests.client.laws import ends_within, tells_well
from trimtab.client import Client, subresources
from trimtab.client.errors import (
    BadRequest,
    BodyTooLarge,
    Closed,
    Disconnected,
    NotFound,
    Stalled,
)
from trimtab.testing import eventually

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
SOON = 0.2


def text(*pieces: bytes, end: bool = True) -> Handler:
    async def handler(exchange: Exchange) -> None:
        await exchange.begin_chunks()
        for piece in pieces:
            await exchange.chunk(piece)
        if not end:
            await exchange.hang()
        await exchange.chunk(b"")

    return handler


async def lines(client: Client, **options: Any) -> list[bytes]:
    async with client.logs("web", **options) as log:
        return [line async for line in log]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    whole=st.binary(min_size=1, max_size=200).map(lambda b: b.replace(b"a", b"\n")),
    cuts=st.lists(st.integers(1, 199), max_size=5),
)
async def test_lines_come_whole_however_they_were_cut(
    server: FaultServer, client: Client, whole: bytes, cuts: list[int]
) -> None:
    ends = [*sorted({cut for cut in cuts if cut < len(whole)}), len(whole)]
    starts = [0, *ends[:-1]]
    server.play(text(*(whole[a:b] for a, b in zip(starts, ends, strict=True))))
    assert await lines(client) == whole.removesuffix(b"\n").split(b"\n")


async def test_what_is_asked_for_stands_in_the_query(
    server: FaultServer, client: Client
) -> None:
    server.always(text())
    await lines(client)
    await lines(
        client,
        namespace="x",
        container="c",
        follow=True,
        previous=True,
        timestamps=True,
        tail=5,
        since=6,
        limit=7,
    )
    first, second = (request.target for request in server.requests)
    assert first == "/api/v1/namespaces/default/pods/web/log"
    assert second == (
        "/api/v1/namespaces/x/pods/web/log?container=c&follow=true&previous=true"
        "&timestamps=true&tailLines=5&sinceSeconds=6&limitBytes=7"
    )


async def test_a_log_that_is_refused_is_named_and_leaves_no_stream(
    server: FaultServer, client: Client
) -> None:
    server.play(status(404, "NotFound"), status(400, "BadRequest"))
    with pytest.raises(NotFound):
        await lines(client)
    with pytest.raises(BadRequest):
        await lines(client)


async def test_a_line_without_end_costs_at_most_its_cap(
    server: FaultServer, client: Client
) -> None:
    async def flood(exchange: Exchange) -> None:
        await exchange.head(200)
        await exchange.flood(1 << 30)

    server.play(flood)
    with pytest.raises(BodyTooLarge) as caught:
        await lines(client, follow=True)
    tells_well(caught.value)
    assert client.statistics().transport.bytes_received < 3 << 20


async def test_a_log_that_is_cut_is_disconnected(
    server: FaultServer, client: Client
) -> None:
    server.play(raw(CHUNKED + b"3\r\na\nb\r\n"))
    got: list[bytes] = []
    with pytest.raises(Disconnected):  # noqa: PT012
        async with client.logs("web", follow=True) as log:
            async for line in log:
                got.append(line)
    assert got in ([b"a"], [])


async def test_a_log_that_is_not_followed_may_not_fall_silent(
    server: FaultServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subresources, "IDLE", SOON)
    server.play(text(b"a\n", end=False))
    with ends_within(SOON), pytest.raises(Stalled) as caught:
        await lines(client)
    tells_well(caught.value)


async def test_a_log_that_is_followed_may_be_silent_unless_told_otherwise(
    server: FaultServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subresources, "IDLE", 0.1)

    server.play(text(b"a\n", end=False))
    with ends_within(SOON), pytest.raises(Stalled):
        await lines(client, follow=True, idle=SOON)
    server.play(slow_line)
    assert await lines(client, follow=True) == [b"late"]


async def slow_line(exchange: Exchange) -> None:
    await exchange.begin_chunks()
    await asyncio.sleep(SOON)
    await exchange.chunk(b"late\n")
    await exchange.chunk(b"")


async def test_leaving_a_log_ends_its_connection(
    server: FaultServer, client: Client
) -> None:
    server.play(text(b"a\nb\n", end=False))
    async with client.logs("web", follow=True) as log:
        async for _ in log:
            break
        assert client.statistics().streams_open == 1
    assert client.statistics().streams_open == 0
    await eventually(lambda: server.open == 0)


async def test_closing_the_client_ends_a_log(
    server: FaultServer, client: Client
) -> None:
    server.play(text(b"a\n", end=False))
    async with client.logs("web", follow=True) as log:
        assert await anext(log) == b"a"
        waiting = asyncio.ensure_future(anext(log))
        await asyncio.sleep(0.02)
        await client.close()
        with ends_within(0), pytest.raises(Closed):
            await waiting


async def test_statistics_do_not_grow_with_what_subresources_are_called(
    client: Client,
) -> None:
    for number in range(5):
        await client.subresource(subresources.POD, "web", f"proxy/{number}", into=bytes)
    assert client.statistics().requests == {("proxy", "200"): 5}
