"""Laws of conversion: one object, many versions, and a webhook between them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tests.embedded.asking import APPLY, MERGE, Asker
from tests.embedded.asking import settling as settling
from tests.embedded.webhooks.desk import Desk
from tests.embedded.webhooks.desk import desk as desk
from tests.embedded.webhooks.things import Things, convert, converted, serving
from trimtab.client.transport import Progress, Request
from trimtab.testing import eventually

pytestmark = [pytest.mark.cluster("embedded", "real")]

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
async def things(ask: Asker, desk: Desk) -> AsyncIterator[Things]:
    async with serving(ask, desk) as made:
        yield made


async def test_an_object_is_read_in_each_version(ask: Asker, things: Things) -> None:
    one = things.thing("v1", "a", host="h", port="1", note="n")
    assert (await ask("POST", things.path("v1"), one)).status == 201
    two = things.thing("v2", "b", address="i:2")
    made = await ask("POST", things.path("v2"), two)
    assert (made.status, made.obj["spec"]) == (201, {"address": "i:2"})
    seen = [(await ask("GET", things.path("v2", name))).obj for name in "ab"]
    assert [each["spec"] for each in seen] == [
        {"address": "h:1", "note": "n"},
        {"address": "i:2"},
    ]
    assert {each["apiVersion"] for each in seen} == {f"{things.group}/v2"}
    listed = (await ask("GET", things.path("v1"))).obj["items"]
    assert [each["spec"] for each in listed] == [
        {"host": "h", "port": "1", "note": "n"},
        {"host": "i", "port": "2"},
    ]
    listed = (await ask("GET", things.path("v2"))).obj
    assert listed["items"] == seen
    assert listed["apiVersion"] == f"{things.group}/v2"
    table = (await ask("GET", things.path("v2"), accept=TABLE)).obj
    assert [row["cells"][0] for row in table["rows"]] == ["a", "b"]


async def test_every_way_to_write_speaks_the_version_of_its_path(
    ask: Asker, things: Things
) -> None:
    one = things.thing("v1", "a", host="h", port="1")
    assert (await ask("POST", things.path("v1"), one)).status == 201
    two = things.path("v2", "a")
    changed = {"spec": {"address": "j:3"}}
    patched = await ask("PATCH", two, changed, media=MERGE)
    assert patched.obj["spec"] == {"address": "j:3"}
    state = {"status": {"seen": "yes"}}
    seen = await ask("PATCH", f"{two}/status", state, media=MERGE)
    assert (seen.obj["spec"], seen.obj["status"]) == (changed["spec"], state["status"])
    body = things.thing("v2", "a", address="k:4")
    body["metadata"]["resourceVersion"] = seen.meta["resourceVersion"]
    put = await ask("PUT", two, body)
    assert put.obj["spec"] == {"address": "k:4"}
    dry = await ask("PATCH", f"{two}?dryRun=All", changed, media=MERGE)
    assert dry.obj["spec"] == changed["spec"]
    read = (await ask("GET", things.path("v1", "a"))).obj
    assert read["spec"] == {"host": "k", "port": "4"}
    assert read["status"] == {"seen": "yes"}
    assert read["metadata"]["resourceVersion"] == put.meta["resourceVersion"]


async def test_fields_are_owned_in_the_version_they_were_written_in(
    ask: Asker, things: Things
) -> None:
    two = things.thing("v2", "a", address="h:1")
    path = f"{things.path('v2', 'a')}?fieldManager=two"
    assert (await ask("PATCH", path, two, media=APPLY)).status == 201
    one = things.thing("v1", "a", port="9")
    path = f"{things.path('v1', 'a')}?fieldManager=one"
    refused = await ask("PATCH", path, one, media=APPLY)
    assert refused.status == 409
    conflict = ("FieldManagerConflict", ".spec.address", 'conflict with "two"')
    assert refused.causes == [conflict]
    forced = await ask("PATCH", f"{path}&force=true", one, media=APPLY)
    assert forced.obj["spec"] == {"host": "h", "port": "9"}
    owned = {
        each["manager"]: (each["apiVersion"], each["fieldsV1"])
        for each in forced.meta["managedFields"]
    }
    assert owned == {"one": (f"{things.group}/v1", {"f:spec": {"f:port": {}}})}
    note = {"spec": {"note": "x"}}
    path = f"{things.path('v2', 'a')}?fieldManager=three"
    assert (await ask("PATCH", path, note, media=MERGE)).status == 200
    read = (await ask("GET", things.path("v1", "a"))).obj
    assert {each["manager"] for each in read["metadata"]["managedFields"]} >= {
        "one",
        "three",
    }


async def test_metadata_is_not_the_webhook_s_but_for_labels_and_annotations(
    ask: Asker, desk: Desk, things: Things
) -> None:
    one = things.thing("v1", "a", host="h", port="1")
    made = (await ask("POST", things.path("v1"), one)).obj

    def spoil(request: dict[str, Any]) -> dict[str, Any]:
        answer = convert(request)
        for obj in answer["convertedObjects"]:
            obj["metadata"] |= {
                "generation": 77,
                "finalizers": ["tests.trimtab.dev/x"],
                "labels": {"a": "b"},
                "annotations": {"c": "d"},
            }
        return answer

    desk.tell("/convert", spoil)
    read = (await ask("GET", things.path("v2", "a"))).obj
    desk.tell("/convert", convert)
    labels = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    assert read["metadata"] == {**made["metadata"], **labels}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"result": {"status": "Failure", "message": "cannot"}}, "failed: cannot"),
        (
            {"result": {"status": "Failure"}},
            "failed: response.result.status was 'Failure', not 'Success'",
        ),
        (
            {"result": {"status": "Success"}, "convertedObjects": []},
            "returned 0 objects, expected 1",
        ),
    ],
)
async def test_an_object_that_is_not_converted_is_neither_read_nor_written(
    ask: Asker, desk: Desk, things: Things, answer: dict[str, Any], told: str
) -> None:
    one = things.thing("v1", "a", host="h", port="1")
    assert (await ask("POST", things.path("v1"), one)).status == 201
    desk.tell("/convert", lambda _: answer)
    read = await ask("GET", things.path("v2", "a"))
    of = f"conversion webhook for {things.group}/{{}}, Kind=Thing {told}"
    assert read.refusal == (500, "", of.format("v1"))
    two = things.thing("v2", "b", address="i:2")
    wrote = await ask("POST", things.path("v2"), two)
    assert wrote.refusal == (500, "", of.format("v2"))
    desk.tell("/convert", convert)
    assert (await ask("GET", things.path("v1", "b"))).status == 404
    assert (await ask("GET", things.path("v1", "a"))).status == 200


async def test_a_watch_tells_of_objects_in_its_own_version(
    ask: Asker, things: Things
) -> None:
    one = things.thing("v1", "a", host="h", port="1")
    made = (await ask("POST", things.path("v1"), one)).obj
    query = (
        ("watch", "true"),
        ("resourceVersion", "0"),
        ("timeoutSeconds", "30"),
        ("fieldSelector", "metadata.name!=z"),
    )
    request = Request(method="GET", path=things.path("v2"), query=query, stream=True)
    response = await ask.transport.send(request, progress=Progress())
    events: list[dict[str, Any]] = []
    buffer = b""

    async def read(count: int) -> None:
        nonlocal buffer
        while len(events) < count:
            buffer += await response.chunk()
            *lines, buffer = buffer.split(b"\n")
            events.extend(msgspec.json.decode(line) for line in lines)

    try:
        await read(1)
        change = {"spec": {"port": "2"}}
        await ask("PATCH", things.path("v1", "a"), change, media=MERGE)
        await ask("DELETE", things.path("v2", "a"))
        await read(3)
    finally:
        response.close()
    assert [each["type"] for each in events] == ["ADDED", "MODIFIED", "DELETED"]
    specs = [each["object"]["spec"] for each in events]
    assert specs == [{"address": "h:1"}, {"address": "h:2"}, {"address": "h:2"}]
    versions = {each["object"]["apiVersion"] for each in events}
    assert versions == {f"{things.group}/v2"}
    assert events[0]["object"]["metadata"]["uid"] == made["metadata"]["uid"]


async def test_what_holds_an_object_holds_it_in_every_version(
    ask: Asker, things: Things
) -> None:
    one = things.thing("v1", "a", host="h", port="1")
    one["metadata"]["finalizers"] = ["tests.trimtab.dev/hold"]
    assert (await ask("POST", things.path("v1"), one)).status == 201
    two = things.thing("v2", "b", address="i:2")
    assert (await ask("POST", things.path("v2"), two)).status == 201
    gone = await ask("DELETE", things.path("v2"))
    assert gone.status == 200
    assert [each["spec"] for each in gone.obj["items"]] == [
        {"address": "h:1"},
        {"address": "i:2"},
    ]
    held = await ask("GET", things.path("v2", "a"))
    assert held.meta["deletionTimestamp"]
    assert (await ask("GET", things.path("v1", "b"))).status == 404
    free = {"metadata": {"finalizers": None}}
    assert (await ask("PATCH", things.path("v2", "a"), free, media=MERGE)).status == 200
    assert (await ask("GET", things.path("v1", "a"))).status == 404


async def test_objects_of_an_older_storage_version_stay_readable(
    ask: Asker, things: Things
) -> None:
    one = things.thing("v1", "a", host="h", port="1")
    assert (await ask("POST", things.path("v1"), one)).status == 201
    definition = (await ask("GET", things.definition)).obj
    for version in definition["spec"]["versions"]:
        version["storage"] = version["name"] == "v2"
    assert (await ask("PUT", things.definition, definition)).status == 200
    two = things.thing("v2", "b", address="i:2")

    async def both() -> bool:
        await ask("POST", things.path("v2"), two)
        listed = (await ask("GET", things.path("v1"))).obj.get("items") or ()
        specs = [each["spec"] for each in listed]
        return specs == [{"host": "h", "port": "1"}, {"host": "i", "port": "2"}]

    await eventually(both, within=20, describe="both are read as v1")
    assert (await ask("GET", things.path("v2", "a"))).obj["spec"] == {"address": "h:1"}
    change = {"spec": {"note": "x"}}
    patched = await ask("PATCH", things.path("v1", "a"), change, media=MERGE)
    assert patched.obj["spec"] == {"host": "h", "port": "1", "note": "x"}


async def test_without_a_webhook_versions_differ_in_nothing_but_their_name(
    ask: Asker, things: Things
) -> None:
    one = things.thing("v1", "a", note="n")
    made = await ask("POST", things.path("v1"), one)
    assert made.status == 201
    definition = (await ask("GET", things.definition)).obj
    definition["spec"]["conversion"] = {"strategy": "None"}
    for version in definition["spec"]["versions"]:
        version["storage"] = version["name"] == "v2"
    assert (await ask("PUT", things.definition, definition)).status == 200

    async def plain() -> bool:
        two = things.thing("v2", "b", address="x:1")
        await ask("POST", things.path("v2"), two)
        read = await ask("GET", things.path("v1", "b"))
        if read.status == 200 and read.obj["spec"] == {}:
            return True
        # It was made as long as the webhook was asked, and stays what it made of it.
        await ask("DELETE", things.path("v1", "b"))
        return False

    await eventually(plain, within=20, describe="nothing is converted any more")
    for version in ("v1", "v2"):
        read = (await ask("GET", things.path(version, "a"))).obj
        expected = {**made.obj, "apiVersion": f"{things.group}/{version}"}
        assert read == expected
        [listed, _] = (await ask("GET", things.path(version))).obj["items"]
        assert listed == expected


async def test_objects_go_with_their_definition_though_nobody_converts_them(
    ask: Asker, desk: Desk, things: Things
) -> None:
    for version, spec in (("v1", {"host": "h", "port": "1"}), ("v2", {"note": "n"})):
        body = things.thing(version, f"a-{version}", **spec)
        assert (await ask("POST", things.path(version), body)).status == 201
    desk.tell("/convert", lambda _: {"result": {"status": "Failure"}})
    assert (await ask("DELETE", things.definition)).status == 200

    async def gone() -> bool:
        return (await ask("GET", things.definition)).status == 404

    await eventually(gone, within=20, describe="the definition is gone")


def test_the_test_s_own_webhook_is_sound() -> None:
    one = {"apiVersion": "g/v1", "spec": {"host": "h", "port": "1"}}
    assert converted(converted(one, "g/v2"), "g/v1") == one
