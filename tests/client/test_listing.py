"""Lists: every object of every page, one page at a time."""

from __future__ import annotations

import asyncio
import json
import weakref
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.client.conftest import Connect
from tests.client.faults import Exchange, FaultServer, answers, cut, hang, status
from tests.client.kinds import CONFIG_MAPS, ConfigMap, Counted, item, page
from tests.client.laws import ends_within, tells_well
from trimtab.client import Client, Listing, RetryPolicy, budget
from trimtab.client.errors import DeadlineExceeded, Disconnected, Gone, Malformed

SOON = 0.2


def parameters(exchange: Exchange) -> dict[str, str]:
    found = parse_qs(urlsplit(exchange.target).query, strict_parsing=False)
    return {key: value for key, (value,) in found.items()}


def serves(total: int, *, size: int | None = None) -> Any:
    """Answers lists of ``total`` objects in pages, as an API server does."""

    async def handler(exchange: Exchange) -> None:
        asked = parameters(exchange)
        start = int(asked.get("continue", "0"))
        stop = min(total, start + (size or int(asked.get("limit", total or 1))))
        items = [item(str(number)) for number in range(start, stop)]
        after = str(stop) if stop < total else ""
        await exchange.json(page(*items, after=after, remainingItemCount=total - stop))

    return handler


async def names(listing: Listing[ConfigMap]) -> list[str]:
    return [each.metadata.name async for each in listing]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(total=st.integers(0, 30), size=st.integers(1, 12))
async def test_every_object_of_every_page_comes_once_and_in_order(
    server: FaultServer, client: Client, total: int, size: int
) -> None:
    server.always(serves(total))
    expected = [str(number) for number in range(total)]
    assert await names(client.list(ConfigMap, page=size)) == expected
    pages = [each async for each in client.list(ConfigMap, page=size).pages()]
    assert [each.metadata.name for part in pages for each in part] == expected
    assert all(len(part) <= size for part in pages)


async def test_never_more_than_one_page_is_held(
    server: FaultServer, client: Client
) -> None:
    server.always(serves(100))
    seen: list[weakref.ref[Counted]] = []
    asked: list[int] = []
    async for each in client.list(Counted, page=10):
        seen.append(weakref.ref(each))
        alive = sum(reference() is not None for reference in seen)
        assert alive == 1, "an object that was handed out is kept"
        asked.append(len(server.requests))
    # A page is asked for when its first object is wanted, and not before.
    assert asked == [1 + number // 10 for number in range(100)]


async def test_pages_that_were_handed_out_are_not_kept(
    server: FaultServer, client: Client
) -> None:
    server.always(serves(50))
    seen: list[weakref.ref[Counted]] = []
    async for part in client.list(Counted, page=10).pages():
        seen += [weakref.ref(each) for each in part]
        assert sum(reference() is not None for reference in seen) <= 2 * 10
        del part
    assert len(seen) == 50


async def test_what_is_asked_for_stands_in_the_query_of_the_first_page(
    server: FaultServer, client: Client
) -> None:
    server.always(serves(3))
    listing = client.list(
        ConfigMap,
        namespace="x",
        labels={"a": "b"},
        fields={"metadata.name": "c"},
        page=2,
        resource_version="5",
        match="Exact",
    )
    assert len(await names(listing)) == 3
    first, second = server.requests
    selectors = {"labelSelector": "a=b", "fieldSelector": "metadata.name=c"}
    assert first.path == second.path == "/api/v1/namespaces/x/configmaps"
    revision = {"resourceVersion": "5", "resourceVersionMatch": "Exact"}
    assert parameters(first) == {**selectors, "limit": "2", **revision}
    # The continue token carries the revision; naming it again would be an error.
    assert parameters(second) == {**selectors, "limit": "2", "continue": "2"}


async def test_a_page_of_zero_asks_for_everything(
    server: FaultServer, client: Client
) -> None:
    server.always(serves(700))
    assert len(await names(client.list(ConfigMap, page=0))) == 700
    assert parameters(server.requests[0]) == {}
    assert len(await names(client.list(ConfigMap))) == 700
    assert parameters(server.requests[1]) == {"limit": "500"}


async def test_the_revision_and_what_remains_are_told(
    server: FaultServer, client: Client
) -> None:
    server.always(serves(5))
    listing = client.list(ConfigMap, page=2)
    assert listing.resource_version == ""
    await listing.next_page()
    assert (listing.resource_version, listing.remaining) == ("7", 3)
    assert [len(part) async for part in listing.pages()] == [2, 1]
    assert await listing.next_page() == []
    assert len(server.requests) == 3


async def test_a_discovered_kind_comes_as_plain_dicts(
    server: FaultServer, client: Client
) -> None:
    server.always(serves(2))
    assert [each async for each in client.list(CONFIG_MAPS)] == [item("0"), item("1")]


async def test_an_empty_page_in_the_middle_is_no_end(
    server: FaultServer, client: Client
) -> None:
    server.play(answers(page(after="x")), answers(page(after="y")))
    server.play(answers({"metadata": {"continue": "z"}, "items": None}))
    server.play(answers(page(item("a"))))
    assert await names(client.list(ConfigMap)) == ["a"]


async def test_a_revision_that_went_away_between_pages_is_gone(
    server: FaultServer, client: Client
) -> None:
    server.play(serves(4, size=2), status(410, "Expired", "the token is too old"))
    got: list[str] = []
    with pytest.raises(Gone) as caught:  # noqa: PT012
        async for each in client.list(ConfigMap):
            got.append(each.metadata.name)
    tells_well(caught.value)
    assert got == ["0", "1"]
    assert len(server.requests) == 2  # and nobody listed again behind our back


async def test_a_page_that_failed_can_be_asked_for_again(
    server: FaultServer, client: Client
) -> None:
    server.play(serves(4, size=2), hang)
    server.always(serves(4, size=2))
    listing = client.list(ConfigMap)
    got = await listing.next_page()
    with ends_within(SOON), pytest.raises(DeadlineExceeded), budget(SOON):
        await listing.next_page()
    got += await listing.next_page()
    assert [each.metadata.name for each in got] == ["0", "1", "2", "3"]


async def test_a_lost_page_is_tried_again(server: FaultServer, client: Client) -> None:
    server.play(serves(4, size=2), cut)
    server.always(serves(4, size=2))
    assert await names(client.list(ConfigMap)) == ["0", "1", "2", "3"]
    assert client.statistics().retries == 1


async def test_each_page_has_the_whole_deadline(
    server: FaultServer, client: Client
) -> None:
    async def slowly(exchange: Exchange) -> None:
        await asyncio.sleep(0.5)
        await serves(3)(exchange)

    server.always(slowly)
    assert len(await names(client.list(ConfigMap, page=1, deadline=1.4))) == 3


async def test_a_server_that_names_a_page_as_its_own_next_is_not_followed(
    server: FaultServer, client: Client
) -> None:
    server.always(answers(page(item("a"), after="same")))
    with ends_within(0), pytest.raises(Malformed, match="never end") as caught:
        await names(client.list(ConfigMap))
    tells_well(caught.value)
    assert len(server.requests) == 2


async def test_an_abandoned_list_holds_no_connection(
    server: FaultServer, client: Client
) -> None:
    server.always(serves(10))
    async for _ in client.list(ConfigMap, page=2):
        break
    pages = client.list(ConfigMap, page=2).pages()
    await anext(pages)
    del pages
    await client.get(ConfigMap, "one")
    assert server.connections == 1


def halves(*names: str, after: str, revision: str = "7") -> tuple[bytes, bytes]:
    """A page as a server sends that of a built-in kind: its metadata come first."""
    meta = json.dumps({"resourceVersion": revision, "continue": after})
    items = json.dumps([item(name) for name in names])
    head = f'{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{meta},"items":'
    return head.encode(), items.encode() + b"}"


async def test_a_page_that_broke_off_is_the_next_one_again(
    server: FaultServer, connect: Connect
) -> None:
    async def broken(exchange: Exchange) -> None:
        await exchange.begin_chunks()
        await exchange.chunk(halves("a", after="2")[0])
        await cut(exchange)

    client = connect(retry=RetryPolicy(attempts=1))
    server.always(serves(3))
    server.play(broken)
    listing = client.list(ConfigMap, page=2)
    with pytest.raises(Disconnected):
        await listing.next_page()
    assert await names(listing) == ["0", "1", "2"]


async def test_a_first_page_that_is_sent_again_is_that_of_the_second_answer(
    server: FaultServer, client: Client
) -> None:
    async def broken(exchange: Exchange) -> None:
        await exchange.begin_chunks()
        await exchange.chunk(halves("a", after="gone", revision="1")[0])
        await cut(exchange)

    server.always(serves(3))
    server.play(broken)
    listing = client.list(ConfigMap, page=2)
    assert await names(listing) == ["0", "1", "2"]
    assert listing.resource_version == "7"
