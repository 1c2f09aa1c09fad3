"""Laws of the server: what it reads, what it refuses, and how it ends."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from http import HTTPStatus

import pytest

from trimtab.runtime.webhooks import serving
from trimtab.runtime.webhooks.certificates import Issued, issue
from trimtab.runtime.webhooks.routing import Answer
from trimtab.runtime.webhooks.serving import CannotServe, Server, parse
from trimtab.testing import eventually


@lru_cache(maxsize=2)
def issued(number: int = 0) -> Issued:
    assert number < 2
    now = datetime.now(UTC)
    return issue(["127.0.0.1"], lifetime=timedelta(days=1), now=now)


class Desk:
    """Answers with what it was sent, when it is let."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, bytes, float]] = []
        self.open = asyncio.Event()
        self.open.set()

    async def answer(self, path: str, body: bytes, seconds: float) -> Answer:
        self.heard.append((path, body, seconds))
        await self.open.wait()
        return Answer(HTTPStatus.OK, body or b"nothing")


@asynccontextmanager
async def served(desk: Desk) -> AsyncIterator[Server]:
    server = Server(
        "127.0.0.1", 0, answer=desk.answer, serves=lambda path: path == "/a"
    )
    await server.open()
    server.load(issued().pem)
    async with asyncio.TaskGroup() as group:
        await server.start(group)
        try:
            yield server
        finally:
            await server.close()


async def dialled(
    server: Server, trusted: Issued | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    ca = (trusted or issued()).authority.decode()
    context = ssl.create_default_context(cadata=ca)
    return await asyncio.open_connection("127.0.0.1", server.port, ssl=context)


def post(body: bytes, path: str = "/a", *lines: str) -> bytes:
    head = [f"POST {path} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body


async def answered(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    length = next(int(each[15:]) for each in lines if each.startswith("Content-Length"))
    return int(lines[0].split()[1]), await reader.readexactly(length)


async def test_requests_of_one_connection_are_answered_in_order() -> None:
    desk = Desk()
    async with served(desk) as server:
        reader, writer = await dialled(server)
        writer.write(post(b"one", "/a?timeout=7s") + post(b"two"))
        assert await answered(reader) == (200, b"one")
        assert await answered(reader) == (200, b"two")
        for piece in (b"PO", post(b"three")[2:20], post(b"three")[20:]):
            writer.write(piece)
            await writer.drain()
        assert await answered(reader) == (200, b"three")
        assert [each[2] for each in desk.heard] == [7.0, 10.0, 10.0]
        assert server.held == 0
        writer.transport.abort()
        await eventually(lambda: not server.connections)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        (post(b"", "/b"), 404),
        (post(b"", "/a", "Transfer-Encoding: chunked"), 411),
        (b"POST /a HTTP/1.1\r\nHost: a\r\n\r\n", 411),
        (b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
        (post(b"", "/a", "Content-Length: 3"), 400),
        (b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n", 413),
        (b"nonsense\r\n\r\n", 400),
        (b"x" * serving.HEAD_LIMIT, 431),
    ],
)
async def test_what_is_no_review_is_refused_and_ends_the_connection(
    sent: bytes, status: int
) -> None:
    desk = Desk()
    async with served(desk) as server:
        reader, writer = await dialled(server)
        writer.write(sent)
        assert (await answered(reader))[0] == status
        assert await reader.read() == b""
        writer.transport.abort()
    assert desk.heard == []


async def test_all_bodies_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "BODIES_LIMIT", 10)
    desk = Desk()
    desk.open.clear()
    async with served(desk) as server:
        _, one = await dialled(server)
        one.write(post(b"12345678"))
        await eventually(lambda: server.held == 8)
        reader, two = await dialled(server)
        two.write(post(b"123"))
        assert (await answered(reader))[0] == 503
        one.transport.abort()
        desk.open.set()
        await eventually(lambda: server.held == 0)
        two.transport.abort()


async def test_at_the_limit_the_most_idle_connection_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serving, "CONNECTIONS", 2)
    desk = Desk()
    desk.open.clear()
    async with served(desk) as server:
        reader, busy = await dialled(server)
        busy.write(post(b"one"))
        await eventually(lambda: desk.heard)
        idle_reader, idle = await dialled(server)
        _, third = await dialled(server)
        with suppress(ConnectionError):
            assert await idle_reader.read() == b""
        desk.open.set()
        assert await answered(reader) == (200, b"one")
        for writer in (busy, idle, third):
            writer.transport.abort()


async def test_the_end_answers_what_is_in_hand_and_leaves_nobody() -> None:
    desk = Desk()
    desk.open.clear()
    async with served(desk) as server:
        reader, writer = await dialled(server)
        idle_reader, idle = await dialled(server)
        writer.write(post(b"one"))
        await eventually(lambda: desk.heard)
        async with asyncio.TaskGroup() as group:
            group.create_task(server.close())
            assert await idle_reader.read() == b""
            desk.open.set()
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"Connection: close" in head
        assert server.connections == {}
        with pytest.raises(ConnectionError):
            await dialled(server)
        for each in (writer, idle):
            each.transport.abort()


async def test_a_request_that_comes_after_the_end_is_not_begun() -> None:
    desk = Desk()
    async with served(desk) as server:
        pass
    begun = []

    async def work() -> None:
        begun.append(1)

    assert not server.begin(work())
    assert begun == []


async def test_what_is_never_answered_does_not_keep_it_from_ending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serving, "GRACE", 0.05)
    desk = Desk()
    desk.open.clear()
    async with served(desk) as server:
        _, writer = await dialled(server)
        writer.write(post(b"one"))
        await eventually(lambda: desk.heard)
        await server.close()
        assert server.connections == {}
        desk.open.set()
        writer.transport.abort()


async def test_a_new_certificate_is_for_new_connections_a_bad_one_for_none() -> None:
    desk = Desk()
    async with served(desk) as server:
        reader, writer = await dialled(server)
        server.load(issued(1).pem)
        writer.write(post(b"one"))
        assert await answered(reader) == (200, b"one")
        with pytest.raises(ssl.SSLCertVerificationError):
            await dialled(server)
        for bad in (b"", b"nonsense", issued().key + issued(1).certificate):
            with pytest.raises(CannotServe, match="served before, if any, stays"):
                server.load(bad)
        other_reader, other = await dialled(server, issued(1))
        other.write(post(b"two"))
        assert await answered(other_reader) == (200, b"two")
        for each in (writer, other):
            each.transport.abort()


async def test_a_port_that_is_taken_is_one_sentence() -> None:
    desk = Desk()
    async with served(desk) as server:
        other = Server(
            "127.0.0.1", server.port, answer=desk.answer, serves=lambda _: True
        )
        with pytest.raises(CannotServe, match="another program has that port"):
            await other.open()


def test_a_time_that_makes_no_sense_is_the_usual_one() -> None:
    for query, seconds in (
        ("timeout=3s", 3.0),
        ("timeout=0s", 10.0),
        ("timeout=99999s", 10.0),
        ("timeout=nan", 10.0),
        ("", 10.0),
    ):
        head = post(b"", f"/a?{query}").removesuffix(b"\r\n\r\n")
        assert parse(head).seconds == seconds
