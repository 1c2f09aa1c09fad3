"""Laws of watches: where they begin, what they tell, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest

from tests.client.kinds import Website
from tests.embedded.apis import asked
from tests.embedded.asking import MERGE, Asker
from tests.embedded.asking import ask as ask
from tests.embedded.objects import labelled
from tests.embedded.test_forms import PARTIAL, TABLE
from trimtab.api import crd
from trimtab.client.transport import Progress, Request, Response
from trimtab.embedded.api import Api, WatchAnswer
from trimtab.embedded.inprocess import ADMIN
from trimtab.embedded.requests import ApiRequest
from trimtab.embedded.store import Store
from trimtab.embedded.tokens import Tokens
from trimtab.testing import eventually

BOOKMARKS = "allowWatchBookmarks=true"
INITIAL = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
END = {"k8s.io/initial-events-end": "true"}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Past:
    """ConfigMaps with a history: `kept` is there, `moved` left its label and ended."""

    def __init__(self, ask: Asker, path: str) -> None:
        self.ask = ask
        self.path = path
        self.start = ""
        self.states: list[Any] = []

    async def live(self) -> None:
        body = labelled("kept", of="past")
        made = await self.ask("POST", self.path, body)
        self.start = made.obj["metadata"]["resourceVersion"]
        body = labelled("moved", step="1")
        made = await self.ask("POST", self.path, body)
        self.states.append(made.obj)
        for step in ("2", "1"):
            change = {"metadata": {"labels": {"step": step}}}
            made = await self.ask("PATCH", f"{self.path}/moved", change, media=MERGE)
            self.states.append(made.obj)
        await self.ask("DELETE", f"{self.path}/moved")

    async def watch(
        self, query: str, *, count: int = 0, accept: str = "application/json"
    ) -> list[Any]:
        """The first events of a watch; without a count all that come in a second."""
        seconds = 10 if count else 1
        path = f"{self.path}?watch=1&timeoutSeconds={seconds}&{query}"
        async with opened(self.ask, path, accept=accept) as stream:
            return await events_of(stream, count=count)


@asynccontextmanager
async def opened(
    ask: Asker, path: str, *, accept: str = "application/json"
) -> AsyncIterator[Response]:
    """A watch that has begun."""
    path, _, query = path.partition("?")
    request = Request(
        method="GET",
        path=path,
        query=tuple(parse_qsl(query)),
        headers=(("Accept", accept),),
        stream=True,
    )
    response = await ask.transport.send(request, progress=Progress())
    assert response.status == 200
    try:
        yield response
    finally:
        response.close()


async def events_of(stream: Response, *, count: int = 0) -> list[Any]:
    """So many events of a watch, or all until it ends."""
    events: list[Any] = []
    rest = b""
    async with asyncio.timeout(30):
        while not count or len(events) < count:
            data = await stream.chunk()
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            events += [msgspec.json.decode(line) for line in lines]
    return events


@pytest.fixture
async def past(ask: Asker, namespace: str) -> Past:
    made = Past(ask, f"/api/v1/namespaces/{namespace}/configmaps")
    await made.live()
    return made


def told(events: list[Any]) -> list[tuple[str, str]]:
    return [
        (event["type"], event["object"]["metadata"].get("name", "")) for event in events
    ]


async def test_a_watch_from_a_revision_tells_what_came_after_it(past: Past) -> None:
    events = await past.watch(
        f"resourceVersion={past.start}&labelSelector=step", count=4
    )
    assert told(events) == [
        ("ADDED", "moved"),
        ("MODIFIED", "moved"),
        ("MODIFIED", "moved"),
        ("DELETED", "moved"),
    ]
    assert [event["object"] for event in events[:3]] == past.states
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))
    last = events[-1]["object"]
    assert last["metadata"]["labels"] == {"step": "1"}


async def test_what_leaves_a_selection_is_deleted_as_it_was(past: Past) -> None:
    """Its state is the one from before it left; its version is of the change."""
    query = f"resourceVersion={past.start}&labelSelector=step=1"
    events = await past.watch(query, count=4)
    assert [event["type"] for event in events] == [
        "ADDED",
        "DELETED",
        "ADDED",
        "DELETED",
    ]
    left = events[1]["object"]
    first, second, third = past.states
    assert left["metadata"]["labels"] == {"step": "1"}
    version = second["metadata"]["resourceVersion"]
    assert left["metadata"]["resourceVersion"] == version
    assert left["metadata"]["managedFields"] == first["metadata"]["managedFields"]
    assert events[2]["object"] == third


@pytest.mark.parametrize("query", ["", "resourceVersion=0", INITIAL])
async def test_a_watch_from_nowhere_begins_with_what_is_there(
    past: Past, query: str
) -> None:
    events = await past.watch(f"labelSelector=of&{query}", count=1)
    assert told(events) == [("ADDED", "kept")]


@pytest.mark.parametrize(
    "start", ["", "resourceVersion=0", INITIAL, f"{INITIAL}&resourceVersion=START"]
)
async def test_a_bookmark_tells_that_what_was_there_is_told(
    past: Past, start: str
) -> None:
    query = f"labelSelector=of&{BOOKMARKS}&{start}"
    events = await past.watch(query.replace("START", past.start), count=2)
    assert told(events[:2]) == [("ADDED", "kept"), ("BOOKMARK", "")]
    mark = events[1]["object"]
    assert (mark["kind"], mark["apiVersion"]) == ("ConfigMap", "v1")
    assert mark["metadata"]["annotations"] == END
    assert int(mark["metadata"]["resourceVersion"]) >= int(past.start)


async def test_a_watch_may_leave_out_what_is_there(past: Past) -> None:
    query = INITIAL.replace("true", "false")
    assert await past.watch(f"labelSelector=of&{query}") == []


FORBIDDEN = "resourceVersionMatch: Forbidden: "
NEEDS = (
    f"{FORBIDDEN}sendInitialEvents requires setting resourceVersionMatch to "
    "NotOlderThan"
)
ALONE = (
    f"{FORBIDDEN}resourceVersionMatch is forbidden for watch unless sendInitialEvents "
    "is provided"
)
CONTINUED = f"{FORBIDDEN}resourceVersionMatch is forbidden when continue is provided"


def unsupported(match: str) -> str:
    field = "resourceVersionMatch: Unsupported value: "
    return f'{field}"{match}": supported values: "NotOlderThan"'


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("sendInitialEvents=true", NEEDS),
        ("sendInitialEvents=false", NEEDS),
        (
            "sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1",
            f"[{NEEDS}, {unsupported('Exact')}]",
        ),
        (
            "sendInitialEvents=true&resourceVersionMatch=Foo",
            f"[{NEEDS}, {unsupported('Foo')}]",
        ),
        ("resourceVersionMatch=NotOlderThan&resourceVersion=1", ALONE),
        (f"{INITIAL}&continue=abc", CONTINUED),
        ("continue=abc", CONTINUED),
    ],
)
async def test_options_that_do_not_fit_a_watch_are_invalid(
    ask: Asker, query: str, text: str
) -> None:
    reply = await ask("GET", f"/api/v1/configmaps?watch=1&timeoutSeconds=1&{query}")
    assert (reply.status, reply.obj["reason"]) == (422, "Invalid")
    message = f'ListOptions.meta.k8s.io "" is invalid: {text}'
    assert reply.obj["message"] == message


async def test_a_watch_from_a_version_that_is_no_number_fails(ask: Asker) -> None:
    reply = await ask("GET", "/api/v1/configmaps?watch=1&resourceVersion=abc")
    assert reply.status == 500
    assert reply.obj["message"] == (
        'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": '
        "invalid syntax"
    )


async def test_a_watch_from_the_future_waits_for_it(past: Past) -> None:
    assert await past.watch("resourceVersion=99999999") == []


@pytest.mark.parametrize(
    ("query", "status"),
    [("timeoutSeconds=x", 400), ("fieldSelector=foo=bar", 400)],
)
async def test_a_watch_that_makes_no_sense_is_refused(
    ask: Asker, query: str, status: int
) -> None:
    reply = await ask("GET", f"/api/v1/configmaps?watch=1&{query}")
    assert (reply.status, reply.obj["reason"]) == (status, "BadRequest")


async def test_a_watch_on_the_path_of_an_object_is_a_get(past: Past) -> None:
    reply = await past.ask("GET", f"{past.path}/kept?watch=1&timeoutSeconds=1")
    assert (reply.status, reply.obj["kind"]) == (200, "ConfigMap")
    gone = await past.ask("GET", f"{past.path}/moved?watch=1")
    assert gone.status == 404


@pytest.mark.parametrize("name", ["/kept", ""])
async def test_the_watch_paths_of_old_clients_are_served(past: Past, name: str) -> None:
    old = past.path.replace("/api/v1", "/api/v1/watch")
    query = "" if name else "&labelSelector=of"
    async with opened(past.ask, f"{old}{name}?timeoutSeconds=10{query}") as stream:
        events = await events_of(stream, count=1)
    assert told(events) == [("ADDED", "kept")]


@pytest.mark.parametrize(
    ("flag", "kind"), [("x", ""), ("false", "ConfigMapList"), ("0", "ConfigMapList")]
)
async def test_a_flag_is_set_unless_it_says_that_it_is_not(
    past: Past, flag: str, kind: str
) -> None:
    query = f"watch={flag}&timeoutSeconds=1&labelSelector=of"
    reply = await past.ask("GET", f"{past.path}?{query}")
    assert reply.obj.get("kind", "") == kind


async def test_a_watch_of_tables_names_the_columns_once(past: Past) -> None:
    query = f"resourceVersion={past.start}&labelSelector=step=1"
    events = await past.watch(query, accept=TABLE, count=4)
    kinds = ["ADDED", "DELETED", "ADDED", "DELETED"]
    assert [event["type"] for event in events] == kinds
    tables = [event["object"] for event in events]
    assert [bool(table["columnDefinitions"]) for table in tables] == [
        True,
        False,
        False,
        False,
    ]
    for table in tables:
        [row] = table["rows"]
        assert row["cells"][:2] == ["moved", 0]
        version = row["object"]["metadata"]["resourceVersion"]
        assert table["metadata"]["resourceVersion"] == version
    bare = await past.watch(f"{query}&includeObject=None", accept=TABLE, count=4)
    assert {str(event["object"]["rows"][0]["object"]) for event in bare} == {"None"}


async def test_a_watch_of_bare_metadata(past: Past) -> None:
    query = f"{INITIAL}&{BOOKMARKS}&labelSelector=of"
    events = await past.watch(query, accept=PARTIAL, count=2)
    assert told(events[:2]) == [("ADDED", "kept"), ("BOOKMARK", "")]
    for event in events:
        assert event["object"]["kind"] == "PartialObjectMetadata"
        assert event["object"]["apiVersion"] == "meta.k8s.io/v1"


async def test_a_watch_cannot_be_written_in_yaml(past: Past) -> None:
    path = f"{past.path}?watch=1&timeoutSeconds=1"
    reply = await past.ask("GET", path, accept="application/yaml")
    assert (reply.status, reply.media) == (406, "application/yaml")
    assert b"application/json;stream=watch" in reply.body


async def test_a_watch_ends_with_the_definition_of_its_kind(ask: Asker) -> None:
    """The objects are told as deleted first, so that nobody believes in them."""
    definition = crd(Website)
    group, plural = "gone.tests.trimtab.dev", "websites"
    definition["spec"]["group"] = group
    definition["metadata"]["name"] = name = f"{plural}.{group}"
    assert (await ask("POST", DEFINITIONS, definition)).status == 201
    path = f"/apis/{group}/v1/namespaces/default/{plural}"

    async def is_made() -> bool:
        body = {"apiVersion": f"{group}/v1", "kind": "Website", "spec": {}}
        body["metadata"] = {"name": "one"}
        return (await ask("POST", path, body)).status in (201, 409)

    await eventually(is_made, within=30)
    version = (await ask("GET", path)).obj["metadata"]["resourceVersion"]
    query = f"watch=1&timeoutSeconds=60&resourceVersion={version}"
    async with opened(ask, f"{path}?{query}") as stream:
        await ask("DELETE", f"{DEFINITIONS}/{name}")
        events = await events_of(stream)
    assert told(events) == [("DELETED", "one")]

    async def is_gone() -> bool:
        return (await ask("GET", path)).status == 404

    await eventually(is_gone, within=30)


async def test_a_watch_from_a_forgotten_revision_has_expired() -> None:
    store = Store(None)
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    api = Api(store, now=lambda: moment, random=Random(1), tokens=Tokens())
    path = "/api/v1/namespaces/default/configmaps"
    for name in ("a", "b"):
        asked(api, "POST", path, labelled(name))
    api.forget()
    query = {"watch": "1", "resourceVersion": "1", "timeoutSeconds": "1"}
    answer = api.handle(ApiRequest(method="GET", path=path, query=query, user=ADMIN))
    assert isinstance(answer, WatchAnswer)
    line = msgspec.json.decode(await answer.watcher.chunk())
    assert line["type"] == "ERROR"
    status = line["object"]
    assert (status["kind"], status["code"]) == ("Status", 410)
    assert status["reason"] == "Expired"
    assert status["message"] == f"too old resource version: 1 ({store.revision})"
    assert await answer.watcher.chunk() == b""
    store.close()
