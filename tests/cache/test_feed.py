"""Feeds: how a list is read, what ends a watch, and what is said of it.

That no fault makes a ghost, a loss or a flicker is the matter of the conformance suite.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.cache.informers import has, informer_of, kept, problem_of, running
from tests.client.conftest import QUICK as QUICK_RETRY
from tests.client.faults import Exchange, FaultServer, Handler, status
from tests.client.kinds import ConfigMap, bookmark, event, item, page
from trimtab.cache import FeedOptions
from trimtab.cache.feed import FIRST_PAGE
from trimtab.client import Client, Options
from trimtab.client import listing as listing_module
from trimtab.client.rooms import Room
from trimtab.testing import eventually

MiB = 1 << 20


@pytest.fixture
async def server() -> AsyncIterator[FaultServer]:
    async with FaultServer() as made:
        yield made


@pytest.fixture
async def client(server: FaultServer) -> AsyncIterator[Client]:
    async with Client(server.config(), options=Options(retry=QUICK_RETRY)) as made:
        yield made
        assert made.statistics().streams_open == 0


def kinds_of(exchange: Exchange) -> str:
    if "watch=true" not in exchange.target:
        return "list"
    return "stream" if "sendInitialEvents" in exchange.target else "watch"


def by_kind(**handlers: Handler) -> Handler:
    """Answers lists, watches and streams each in its way."""

    async def handler(exchange: Exchange) -> None:
        await handlers[kinds_of(exchange)](exchange)

    return handler


def listing(*items: Any, revision: str = "7") -> Handler:
    async def handler(exchange: Exchange) -> None:
        await exchange.json(page(*items, resourceVersion=revision))

    return handler


def watching(*events: Any) -> Handler:
    async def handler(exchange: Exchange) -> None:
        await exchange.events(events, end=False)
        await exchange.hang()

    return handler


def asked(server: FaultServer) -> list[str]:
    return [kinds_of(each) for each in server.requests]


# Lists


async def test_pages_become_as_long_as_they_shall_be(
    server: FaultServer, client: Client
) -> None:
    data = {"x": "x" * 20_000}
    limits: list[int] = []

    async def pages(exchange: Exchange) -> None:
        limits.append(int(exchange.target.partition("limit=")[2].partition("&")[0]))
        names = [f"{len(limits)}-{number}" for number in range(limits[-1])]
        after = str(len(limits)) if len(limits) < 4 else ""
        await exchange.json(page(*(item(n, data=data) for n in names), after=after))

    server.always(by_kind(list=pages, watch=watching()))
    informer = informer_of(client, ConfigMap)
    async with running(informer):
        await informer.wait_synced()
    assert limits[0] == FIRST_PAGE
    assert all(1.7 * MiB < limit * 20_150 < 2.1 * MiB for limit in limits[1:]), limits
    assert informer.statistics().objects == sum(limits)


async def test_there_are_two_pages_at_most(
    server: FaultServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms: list[Room] = []

    def noted() -> Room:
        rooms.append(Room())
        return rooms[-1]

    async def pages(exchange: Exchange) -> None:
        number = sum("limit=" in each.target for each in server.requests)
        after = str(number) if number < 9 else ""
        await exchange.json(page(item(f"{number}"), after=after))

    monkeypatch.setattr(listing_module, "Room", noted)
    server.always(by_kind(list=pages, watch=watching()))
    informer = informer_of(client, ConfigMap)
    async with running(informer):
        await informer.wait_synced()
    assert informer.statistics().objects == 9
    assert len(rooms) == 2


@pytest.mark.parametrize("code", [400, 403, 422])
async def test_a_server_without_watch_lists_is_read_in_pages(
    server: FaultServer, client: Client, code: int
) -> None:
    server.always(
        by_kind(
            stream=status(code, "Invalid", "sendInitialEvents is forbidden"),
            list=listing(item("a")),
            watch=watching(),
        )
    )
    informer = informer_of(
        client, ConfigMap, options=FeedOptions(way="stream", first_pause=0.01)
    )
    async with running(informer):
        await informer.wait_synced()
        await has(informer, "a")
    assert asked(server)[:2] == ["stream", "list"]


async def test_a_watch_list_without_its_end_is_no_list(
    server: FaultServer, client: Client
) -> None:
    async def ends_early(exchange: Exchange) -> None:
        await exchange.events([event("ADDED", item("a", "3")), bookmark("7")])

    server.always(by_kind(stream=ends_early, list=listing(item("b")), watch=watching()))
    informer = informer_of(
        client, ConfigMap, options=FeedOptions(way="stream", first_pause=0.01)
    )
    async with running(informer) as seen:
        await informer.wait_synced()
        await has(informer, "b")
    assert seen.of("a") == ["ADDED", "DELETED"]


async def test_who_may_only_watch_reads_the_list_from_the_watch(
    server: FaultServer, client: Client
) -> None:
    server.always(
        by_kind(
            list=status(403, "Forbidden", "you may not list"),
            stream=watching(event("ADDED", item("a")), bookmark("7", initial=True)),
        )
    )
    informer = informer_of(client, ConfigMap)
    async with running(informer) as seen:
        await informer.wait_synced()
        await has(informer, "a")
    assert [each.initial for each in seen.changes] == [True]
    assert informer.statistics().relists == 0


async def test_events_behind_the_end_of_a_watch_list_are_not_lost(
    server: FaultServer, client: Client
) -> None:
    async def together(exchange: Exchange) -> None:
        events = [event("ADDED", item("a", "3")), bookmark("7", initial=True)]
        events += [event("ADDED", item("b", "8")), event("DELETED", item("a", "9"))]
        await exchange.begin_chunks()
        await exchange.chunk(b"".join(json.dumps(e).encode() + b"\n" for e in events))
        await exchange.hang()

    server.always(by_kind(stream=together))
    informer = informer_of(client, ConfigMap, options=FeedOptions(way="stream"))
    async with running(informer):
        await has(informer, "b")


# What cannot be read


async def test_an_unreadable_object_does_not_stop_the_others(
    server: FaultServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    bad = item("bad", "5", data=["not", "a", "map"])
    server.always(
        by_kind(
            list=listing(item("a"), bad, item("c")),
            watch=watching(event("ADDED", item("d", "8"))),
        )
    )
    informer = informer_of(client, ConfigMap)
    async with running(informer):
        await has(informer, "a", "c", "d")
        assert not problem_of(informer)
    lines = [each for each in caplog.messages if "default/bad cannot be read" in each]
    assert len(lines) == 1
    assert "\n" not in lines[0]


async def test_the_last_readable_state_is_kept_until_the_object_goes(
    server: FaultServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = {"data": ["not", "a", "map"]}
    go = asyncio.Event()

    async def watch(exchange: Exchange) -> None:
        await exchange.begin_chunks()

        async def say(each: Any) -> None:
            await exchange.chunk(json.dumps(each).encode() + b"\n")

        await say(event("MODIFIED", item("a", "8", **wrong)))
        await say(event("ADDED", item("b", "9")))
        await go.wait()
        await say(event("DELETED", item("a", "10", **wrong)))
        await exchange.hang()

    # Once objects are read one by one, a list has the bad one too.
    server.play(listing(item("a", "5", data={"x": "1"})))
    server.always(by_kind(list=listing(item("a", "5", **wrong)), watch=watch))
    informer = informer_of(client, ConfigMap)
    async with running(informer) as seen:
        await has(informer, "a", "b")
        assert kept(informer, "a").data == {"x": "1"}
        go.set()
        await has(informer, "b")
    assert seen.of("a") == ["ADDED", "DELETED"]


async def test_objects_kept_full_are_full_from_lists_and_from_watches(
    server: FaultServer, client: Client
) -> None:
    more = {"extra": {"deep": [1, 2]}}
    server.always(
        by_kind(
            list=listing(item("a", "3", **more)),
            watch=watching(event("ADDED", item("b", "8", **more))),
        )
    )
    informer = informer_of(client, ConfigMap, keep="full")
    async with running(informer):
        await has(informer, "a", "b")
        for name in ("a", "b"):
            full = informer.store.full(("default", name))
            assert full is not None
            assert full["extra"] == {"deep": [1, 2]}


# Problems


async def test_a_refusal_is_a_problem_at_once_and_no_longer_when_it_ends(
    server: FaultServer, client: Client
) -> None:
    server.always(status(403, "Forbidden", "you may not list configmaps"))
    informer = informer_of(client, ConfigMap)
    async with running(informer):
        text = await eventually(lambda: problem_of(informer))
        assert "configmaps.v1" in text
        assert "you may not list configmaps" in text
        assert "\n" not in text
        assert not informer.synced
        server.always(by_kind(list=listing(), stream=status(400), watch=watching()))
        await informer.wait_synced()
        await eventually(lambda: not problem_of(informer))


async def test_a_kind_that_is_not_served_is_awaited(
    server: FaultServer, client: Client
) -> None:
    server.always(status(404, "NotFound", "the server could not find the resource"))
    informer = informer_of(client, ConfigMap)
    async with running(informer):
        assert "could not find" in await eventually(lambda: problem_of(informer))
        assert not informer.synced
        server.always(by_kind(list=listing(item("a")), watch=watching()))
        await has(informer, "a")


async def test_one_cut_is_no_problem_and_lasting_ones_are(
    server: FaultServer, client: Client
) -> None:
    async def cut(exchange: Exchange) -> None:
        raise exchange.cut()

    server.always(by_kind(list=listing(item("a")), watch=cut))
    slow = FeedOptions(first_pause=0.01, longest_pause=0.05, patience=30)
    informer = informer_of(client, ConfigMap, options=slow)
    async with running(informer):
        await eventually(lambda: informer.statistics().errors >= 3)
        now = asyncio.get_running_loop().time()
        assert informer.problem(now) is None
        text = informer.problem(now + 31)
        assert text is not None
        assert "does not follow the server" in text


async def test_silence_is_cut_and_is_a_problem_until_the_server_speaks(
    server: FaultServer, client: Client
) -> None:
    server.always(by_kind(list=listing(item("a")), watch=watching()))
    silent = FeedOptions(idle=0.2, first_pause=0.01, longest_pause=0.05)
    informer = informer_of(client, ConfigMap, options=silent)
    async with running(informer):
        text = await eventually(lambda: problem_of(informer))
        assert "silent" in text
        server.always(by_kind(list=listing(item("a")), watch=watching(bookmark("9"))))
        await eventually(lambda: not problem_of(informer))
    assert asked(server)[:3] == ["list", "watch", "watch"]


async def test_a_server_that_ends_each_watch_at_once_is_not_stormed(
    server: FaultServer, client: Client
) -> None:
    async def ends(exchange: Exchange) -> None:
        await exchange.events([])

    server.always(by_kind(list=listing(), watch=ends))
    patient = FeedOptions(first_pause=0.2, longest_pause=30)
    informer = informer_of(client, ConfigMap, options=patient)
    async with running(informer):
        await informer.wait_synced()
        await asyncio.sleep(1.0)
    assert len(server.requests) < 15


async def test_a_watch_goes_on_from_the_last_event_or_bookmark(
    server: FaultServer, client: Client
) -> None:
    async def once(exchange: Exchange) -> None:
        await exchange.events([event("ADDED", item("a", "12")), bookmark("40")])

    server.play(listing(), once)
    server.always(by_kind(watch=watching()))
    informer = informer_of(client, ConfigMap)
    async with running(informer):
        await eventually(lambda: len(server.requests) >= 3)
    targets = [each.target for each in server.requests]
    assert "resourceVersion=7" in targets[1]
    assert "resourceVersion=40" in targets[2]


async def test_a_server_that_went_back_in_time_is_believed(
    server: FaultServer, client: Client
) -> None:
    server.play(
        listing(item("a", "50"), item("b", "60"), revision="90"),
        watching(bookmark("20")),
    )
    server.always(
        by_kind(list=listing(item("a", "15"), revision="20"), watch=watching())
    )
    informer = informer_of(client, ConfigMap)
    async with running(informer) as seen:
        await has(informer, "a")
        assert kept(informer, "a").metadata.resourceVersion == "15"
    assert seen.of("a") == ["ADDED", "MODIFIED"]
    assert seen.of("b") == ["ADDED", "DELETED"]


async def test_a_revision_that_never_comes_is_given_up(
    server: FaultServer, client: Client
) -> None:
    # As after the restore of a backup: a watch of the future hears nothing at all.
    server.play(listing(item("a", "50"), item("b", "60"), revision="90"))
    server.always(
        by_kind(list=listing(item("a", "15"), revision="20"), watch=watching())
    )
    silent = FeedOptions(idle=0.1, first_pause=0.01, longest_pause=0.05)
    informer = informer_of(client, ConfigMap, options=silent)
    async with running(informer):
        await has(informer, "a")
        assert kept(informer, "a").metadata.resourceVersion == "15"
    assert asked(server)[:4] == ["list", "watch", "watch", "list"]


async def test_a_server_that_forgets_all_the_time_is_not_stormed(
    server: FaultServer, client: Client
) -> None:
    server.always(by_kind(list=listing(), watch=status(410, "Expired", "too old")))
    patient = FeedOptions(first_pause=0.2, longest_pause=30)
    informer = informer_of(client, ConfigMap, options=patient)
    async with running(informer):
        await informer.wait_synced()
        await asyncio.sleep(1.0)
    assert len(server.requests) < 20
