"""Laws of selectors over versions: they look at what is served, not what is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tests.embedded.asking import MERGE, Asker
from tests.embedded.asking import settling as settling
from tests.embedded.webhooks.desk import Desk
from tests.embedded.webhooks.desk import desk as desk
from tests.embedded.webhooks.things import Things, converted, serving
from trimtab.client.transport import Progress, Request

pytestmark = [pytest.mark.cluster("embedded", "real")]

Plain = dict[str, Any]
LAST = "zz"


def relabelled(obj: Plain, to: str) -> Plain:
    """In v2 a thing is labelled with its whole address, in v1 with its host."""
    made = converted(obj, to)
    spec = made.get("spec") or {}
    value = spec.get("address", "").replace(":", "-") or spec.get("host", "")
    if value:
        made["metadata"]["labels"] = {"at": value}
    return made


def convert(request: Plain) -> Plain:
    to = request["desiredAPIVersion"]
    made = [relabelled(each, to) for each in request["objects"]]
    return {"result": {"status": "Success"}, "convertedObjects": made}


@pytest.fixture
async def things(ask: Asker, desk: Desk) -> AsyncIterator[Things]:
    async with serving(ask, desk) as made:
        desk.tell("/convert", convert)
        for name, host in (("a", "h"), ("b", "h"), ("c", "i")):
            one = made.thing("v1", name, host=host, port=str(ord(name)))
            one["metadata"]["labels"] = {"at": host}
            assert (await ask("POST", made.path("v1"), one)).status == 201
        yield made


@pytest.mark.parametrize(
    ("version", "query", "names"),
    [
        ("v1", {"labelSelector": "at=h"}, ["a", "b"]),
        ("v2", {"labelSelector": "at=h"}, []),
        ("v2", {"labelSelector": "at=h-97"}, ["a"]),
        ("v2", {"labelSelector": "at!=h-97"}, ["b", "c"]),
        ("v1", {"fieldSelector": "spec.host=h"}, ["a", "b"]),
        ("v2", {"fieldSelector": "spec.address=h:98"}, ["b"]),
        ("v2", {"fieldSelector": "spec.address!=h:98"}, ["a", "c"]),
        ("v2", {"fieldSelector": "metadata.name=c"}, ["c"]),
        ("v2", {"fieldSelector": "spec.address=i:99", "labelSelector": "at"}, ["c"]),
    ],
)
async def test_a_list_selects_by_what_it_shows(
    ask: Asker, things: Things, version: str, query: dict[str, str], names: list[str]
) -> None:
    listed = await ask("GET", things.path(version), **query)
    assert listed.names == names
    assert {each["apiVersion"] for each in listed.obj["items"]} <= {
        f"{things.group}/{version}"
    }


async def test_a_field_of_another_version_is_not_selected_by(
    ask: Asker, things: Things
) -> None:
    refused = await ask("GET", things.path("v2"), fieldSelector="spec.host=h")
    assert refused.status == 400


async def test_pages_of_a_selection_come_to_all_of_it(
    ask: Asker, things: Things
) -> None:
    found, token = [], ""
    while True:
        page = await ask(
            "GET",
            things.path("v2"),
            labelSelector="at notin (h-98)",
            limit="1",
            **({"continue": token} if token else {}),
        )
        found += page.names
        assert len(page.names) <= 1
        token = page.meta.get("continue", "")
        if not token:
            break
    assert found == ["a", "c"]


async def test_what_a_selection_shows_is_what_is_deleted(
    ask: Asker, things: Things
) -> None:
    query = {"labelSelector": "at=h-97"}
    assert (await ask("DELETE", things.path("v2"), **query)).status == 200
    assert (await ask("GET", things.path("v1"))).names == ["b", "c"]


async def test_a_watch_selects_by_what_it_shows(ask: Asker, things: Things) -> None:
    start = (await ask("GET", things.path("v2"))).meta["resourceVersion"]
    move = {"spec": {"port": "1"}}
    for name, change in (
        ("b", move),  # comes into the selection
        ("a", {"spec": {"note": "n"}}),  # is in none of it
        ("b", {"spec": {"note": "n"}}),  # changes in it
        ("b", {"spec": {"port": "2"}}),  # leaves it
        ("a", move),
    ):
        path = things.path("v1", name)
        assert (await ask("PATCH", path, change, media=MERGE)).status == 200
    assert (await ask("DELETE", things.path("v1", "a"))).status == 200
    request = Request(
        method="GET",
        path=things.path("v2"),
        query=(
            ("watch", "true"),
            ("labelSelector", "at=h-1"),
            ("resourceVersion", start),
        ),
        headers=(("Accept", "application/json"),),
        body=None,
    )
    response = await ask.transport.send(request, progress=Progress())
    lines = b""
    while lines.count(b"\n") < 5:
        lines += await response.chunk()
    response.close()
    events = [msgspec.json.decode(line) for line in lines.splitlines()]
    told = [(each["type"], each["object"]["metadata"]["name"]) for each in events]
    assert told == [
        ("ADDED", "b"),
        ("MODIFIED", "b"),
        ("DELETED", "b"),
        ("ADDED", "a"),
        ("DELETED", "a"),
    ]
    assert {each["object"]["apiVersion"] for each in events} == {f"{things.group}/v2"}
