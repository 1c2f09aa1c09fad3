"""Laws of what takes time: watches, long lists, background work, and the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import aiohttp
import pytest

from tests.embedded.standin import StandIn, Standing, standing
from tests.embedded.standin import server as server
from tests.embedded.standin import session as session
from trimtab.embedded.api import Answer
from trimtab.embedded.requests import ApiRequest
from trimtab.testing import eventually


async def test_a_long_list_does_not_hold_up_others(
    session: aiohttp.ClientSession, server: Standing
) -> None:
    """Somebody else is answered while the pieces of a list are still being made."""
    made: list[int] = []

    def pieces(request: ApiRequest) -> Answer:
        def each() -> Iterator[bytes]:
            for number in range(4000):
                made.append(number)
                yield b"x" * 65536

        return Answer(body=each())

    server.api.routes["/long"] = pieces
    async with session.get("/long") as answer:
        async with session.get("/version") as other:
            assert other.status == 200
        assert len(made) < 4000
        answer.close()


async def test_events_of_a_watch_come_as_they_are_put(
    session: aiohttp.ClientSession, server: Standing
) -> None:
    async with session.get("/api/v1/pods?watch=1") as answer:
        [watcher] = server.api.watchers
        for line in (b"one\n", b"two\n"):
            watcher.put(line)
            assert await answer.content.readany() == line
        watcher.put(b"")
        assert await answer.read() == b""
    assert watcher.closed
    assert server.driver.metrics.watches == 0


async def test_the_head_of_a_watch_comes_before_its_first_event(
    session: aiohttp.ClientSession, server: Standing
) -> None:
    async with asyncio.timeout(5):
        async with session.get("/api/v1/pods?watch=1") as answer:
            assert answer.status == 200
            assert answer.headers["Transfer-Encoding"] == "chunked"


async def test_a_watch_whose_client_is_gone_is_closed(
    session: aiohttp.ClientSession, server: Standing
) -> None:
    answer = await session.get("/api/v1/pods?watch=1")
    [watcher] = server.api.watchers
    answer.close()
    await eventually(lambda: watcher.closed, describe="the watcher is closed")
    await eventually(lambda: server.driver.metrics.watches == 0)


async def test_nothing_is_buffered_without_bound_for_a_slow_reader(
    server: Standing,
) -> None:
    """The reader takes nothing; what the watcher hands out comes to an end."""
    _, writer = await server.raw()
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
    await eventually(lambda: bool(server.api.watchers))
    [watcher] = server.api.watchers
    seen = -1

    def settled() -> bool:
        nonlocal seen
        before, seen = seen, watcher.given
        return before == seen > 0

    await eventually(settled, every=0.2, describe="the watcher is asked no more")
    assert watcher.given < 16 << 20
    writer.transport.abort()
    await eventually(lambda: watcher.closed)


async def test_a_reader_that_takes_nothing_for_long_is_cut_off(
    server: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.embedded.responses.STALLED_SECONDS", 0.2)
    _, writer = await server.raw()
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
    await eventually(lambda: bool(server.api.watchers))
    await eventually(lambda: server.api.watchers[0].closed)
    writer.transport.abort()


async def test_what_follows_from_a_write_is_done_between_requests(
    session: aiohttp.ClientSession, server: Standing
) -> None:
    await eventually(lambda: server.api.steps == 1)
    server.api.left_to_do = 1_000_000
    async with session.post("/echo") as answer:
        assert answer.status == 200
    async with session.get("/echo"):  # answered though there is more to do
        assert server.api.left_to_do > 0
    server.api.left_to_do = 0
    await eventually(lambda: server.api.steps > 2)


async def test_reading_leads_to_no_work(
    session: aiohttp.ClientSession, server: Standing
) -> None:
    await eventually(lambda: server.api.steps == 1)
    for _ in range(3):
        async with session.get("/echo"):
            pass
    assert server.api.steps == 1


async def test_what_is_due_is_done_when_it_said_so() -> None:
    api = StandIn()
    api.maintain_again = 0.05
    async with standing(api):
        await eventually(lambda: api.maintained >= 3)
    after = api.maintained
    await asyncio.sleep(0.2)
    assert api.maintained == after


async def test_a_failure_of_what_is_due_is_logged_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing(StandIn):
        def maintain(self) -> float:
            super().maintain()
            if self.maintained == 1:
                raise RuntimeError("not now")
            return 3600.0

    api = Failing()
    async with standing(api):
        await eventually(lambda: api.maintained == 2)
    assert "not now" in caplog.text


async def test_a_stop_ends_watches_well_and_answers_what_is_under_way() -> None:
    slow = StandIn()
    async with standing(slow) as server, server.session() as session:
        watch = await session.get("/api/v1/pods?watch=1")
        slow.watchers[0].put(b"event\n")
        _, idle = await server.raw()
        reader, writer = await server.raw()
        writer.write(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na")
        await eventually(lambda: server.listener.connections == 3)
        loop = asyncio.get_running_loop()
        began = loop.time()

        async def finish() -> None:
            writer.write(b"bc")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")

        async with asyncio.TaskGroup() as group:
            server.driver.close()
            group.create_task(server.listener.close())
            group.create_task(finish())
        assert await watch.read() == b"event\n"
        assert loop.time() - began < 5.0
        with pytest.raises(OSError):
            await server.raw()
        for each in (idle, writer):
            each.transport.abort()


async def test_a_request_that_does_not_end_is_cut_off_by_a_stop() -> None:
    async with standing() as server:
        _, writer = await server.raw()
        writer.write(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na")
        await eventually(lambda: server.listener.connections == 1)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await server.listener.close(seconds=0.2)
        assert loop.time() - began < 10.0
        assert not server.listener.connections
        writer.transport.abort()
