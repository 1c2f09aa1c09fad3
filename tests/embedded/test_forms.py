"""Laws of forms: one object, as itself, as a table, as bare metadata, as YAML."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import yaml

from tests.client.clusters import client_of, defines
from tests.client.kinds import website
from tests.embedded.asking import Asker
from tests.embedded.asking import ask as ask
from tests.embedded.objects import labelled
from trimtab.testing import Cluster

META = "g=meta.k8s.io"
TABLE = f"application/json;as=Table;v=v1;{META}"
PARTIAL = f"application/json;as=PartialObjectMetadata;v=v1;{META}"
PARTIALS = f"application/json;as=PartialObjectMetadataList;v=v1;{META}"
TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
SELECTED = "labelSelector=of=forms"


@pytest.fixture
async def path(ask: Asker, namespace: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for name in ("a", "b"):
        obj = {**labelled(name, of="forms"), "data": {"x": "1"}}
        assert (await ask("POST", path, obj)).status == 201
    return path


@pytest.fixture
async def websites(cluster: Cluster, namespace: str) -> AsyncIterator[str]:
    async with client_of(cluster, namespace=namespace) as client:
        await defines(client)
        await client.create(website("one"))
        yield f"/apis/tests.trimtab.dev/v1/namespaces/{namespace}/websites"


def rows(table: Any) -> list[Any]:
    return [
        (row["cells"][:2], (row["object"] or {}).get("kind")) for row in table["rows"]
    ]


@pytest.mark.parametrize(
    ("include", "kind"),
    [
        ("", "PartialObjectMetadata"),
        ("Metadata", "PartialObjectMetadata"),
        ("None", None),
        ("Object", "ConfigMap"),
    ],
)
async def test_a_table_has_as_much_of_each_object_as_was_asked_for(
    ask: Asker, path: str, include: str, kind: str | None
) -> None:
    found = await ask("GET", f"{path}?{SELECTED}&includeObject={include}", accept=TABLE)
    table = found.obj
    assert found.media == "application/json"
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"].keys() == {"resourceVersion"}
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names == ["Name", "Data", "Age"]
    assert rows(table) == [(["a", 1], kind), (["b", 1], kind)]
    one = (await ask("GET", f"{path}/b?includeObject={include}", accept=TABLE)).obj
    assert rows(one) == [(["b", 1], kind)]


async def test_a_table_of_nothing_has_columns_and_no_rows(
    ask: Asker, path: str
) -> None:
    table = (await ask("GET", f"{path}?labelSelector=nobody", accept=TABLE)).obj
    assert len(table["columnDefinitions"]) == 3
    assert table["rows"] == []


async def test_a_table_comes_in_pages_too(ask: Asker, path: str) -> None:
    first = (await ask("GET", f"{path}?{SELECTED}&limit=1", accept=TABLE)).obj
    token = first["metadata"]["continue"]
    rest = await ask("GET", f"{path}?{SELECTED}&limit=1&continue={token}", accept=TABLE)
    assert [row["cells"][0] for row in (*first["rows"], *rest.obj["rows"])] == [
        "a",
        "b",
    ]


async def test_a_table_cannot_include_what_nobody_knows(ask: Asker, path: str) -> None:
    reply = await ask("GET", f"{path}?includeObject=bogus", accept=TABLE)
    assert (reply.status, reply.obj["reason"]) == (400, "BadRequest")
    assert reply.obj["message"] == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "bogus"'
        ": must be 'Metadata', 'Object', 'None', or empty"
    )


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_bare_metadata_is_of_the_version_that_was_asked_for(
    ask: Asker, path: str, version: str
) -> None:
    wanted = {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}"}
    accept = PARTIAL.replace("v=v1", f"v={version}")
    one = (await ask("GET", f"{path}/a", accept=accept)).obj
    whole = (await ask("GET", f"{path}/a")).obj
    assert one == {**wanted, "metadata": whole["metadata"]}
    accept = PARTIALS.replace("v=v1", f"v={version}")
    many = (await ask("GET", f"{path}?{SELECTED}", accept=accept)).obj
    assert many["kind"] == "PartialObjectMetadataList"
    assert many["apiVersion"] == f"meta.k8s.io/{version}"
    assert many["items"][0] == one
    assert [each["metadata"]["name"] for each in many["items"]] == ["a", "b"]


async def test_bare_metadata_of_nothing_is_null(ask: Asker, path: str) -> None:
    many = (await ask("GET", f"{path}?labelSelector=nobody", accept=PARTIALS)).obj
    assert many["items"] is None


async def test_one_is_not_many(ask: Asker, path: str) -> None:
    for where, accept, text in (
        (
            path,
            PARTIAL,
            (
                "PartialObjectMetadata, but the requested object is a list "
                "(*core.ConfigMapList)"
            ),
        ),
        (
            f"{path}/a",
            PARTIALS,
            (
                "PartialObjectMetadataList, but the requested object "
                "is not a list (*core.ConfigMap)"
            ),
        ),
    ):
        reply = await ask("GET", where, accept=accept)
        assert (reply.status, reply.obj["reason"]) == (406, "NotAcceptable")
        assert reply.obj["message"] == f"you requested {text}"


async def test_custom_objects_have_the_same_forms(ask: Asker, websites: str) -> None:
    plain = (await ask("GET", websites)).obj
    assert plain["kind"] == "WebsiteList"
    assert plain["metadata"]["continue"] == ""
    [item] = plain["items"]
    assert (item["kind"], item["apiVersion"]) == ("Website", "tests.trimtab.dev/v1")
    table = (await ask("GET", websites, accept=TABLE)).obj
    assert [row["cells"][0] for row in table["rows"]] == ["one"]
    partial = (await ask("GET", f"{websites}/one", accept=PARTIAL)).obj
    assert partial["metadata"] == item["metadata"]
    assert partial["kind"] == "PartialObjectMetadata"


async def test_yaml_says_the_same_as_json(ask: Asker, path: str, websites: str) -> None:
    for where in (f"{path}/a", f"{path}?{SELECTED}", f"{websites}/one", f"{path}/none"):
        reply = await ask("GET", where, accept="application/yaml")
        plain = await ask("GET", where)
        assert reply.media == "application/yaml"
        assert reply.status == plain.status
        assert yaml.safe_load(reply.body) == plain.obj


async def test_the_best_of_what_is_accepted_is_chosen(ask: Asker, path: str) -> None:
    for accept, media in (
        ("text/html, application/json", "application/json"),
        ("application/yaml;q=0.1, application/json;q=0.9", "application/json"),
        (f"{TABLE.replace('v=v1', 'v=v9')},application/json", "application/json"),
        ("application/yaml, application/json", "application/yaml"),
        ("*/*", "application/json"),
    ):
        reply = await ask("GET", f"{path}/a", accept=accept)
        assert (reply.status, reply.media) == (200, media), accept
        assert b"ConfigMap" in reply.body


@pytest.mark.parametrize("accept", ["text/html", "text/*", "application/*"])
async def test_what_cannot_be_written_is_not_acceptable(
    ask: Asker, path: str, accept: str
) -> None:
    reply = await ask("GET", f"{path}/a", accept=accept)
    assert reply.status == 406
    text = f"406: Not Acceptable\n\nAvailable representations: {TYPES}"
    assert reply.obj == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": text,
        "reason": "NotAcceptable",
        "details": {},
        "code": 406,
    }


@pytest.mark.parametrize("change", [("Table", "Foo"), ("v=v1", "v=v2")])
async def test_a_form_that_there_is_not_is_not_acceptable(
    ask: Asker, path: str, change: tuple[str, str]
) -> None:
    reply = await ask("GET", f"{path}/a", accept=TABLE.replace(*change))
    assert (reply.status, reply.obj["reason"]) == (406, "NotAcceptable")
    text = f"only the following media types are accepted: {TYPES}"
    assert reply.obj["message"] == text


async def test_a_body_of_an_unknown_type_is_refused(ask: Asker, path: str) -> None:
    reply = await ask("POST", path, b"<x/>", media="text/xml")
    assert (reply.status, reply.obj["reason"]) == (415, "UnsupportedMediaType")
    assert reply.obj["message"] == (
        "the body of the request was in an unknown format - accepted media types "
        f"include: {TYPES}"
    )


@pytest.mark.parametrize("media", ["text/xml", "application/json"])
async def test_a_patch_of_an_unknown_type_is_refused(
    ask: Asker, path: str, media: str
) -> None:
    reply = await ask("PATCH", f"{path}/a", b"{}", media=media)
    assert (reply.status, reply.obj["reason"]) == (415, "UnsupportedMediaType")
    assert reply.obj["message"] == "415: Unsupported Media Type"


async def test_a_write_is_answered_in_the_form_that_was_asked_for(
    ask: Asker, path: str
) -> None:
    made = await ask("POST", path, labelled("t"), accept=TABLE)
    assert (made.status, made.obj["kind"]) == (201, "Table")
    assert made.obj["rows"][0]["cells"][0] == "t"
    made = await ask("POST", path, labelled("p"), accept=PARTIAL)
    assert (made.status, made.obj["kind"]) == (201, "PartialObjectMetadata")
    for name, accept in (("t", TABLE), ("p", PARTIAL)):
        gone = await ask("DELETE", f"{path}/{name}", accept=accept)
        assert (gone.status, gone.obj["kind"]) == (200, "Status")


async def test_a_method_that_there_is_not_is_not_allowed(ask: Asker, path: str) -> None:
    for method, where in (("PUT", path), ("POST", f"{path}/a")):
        reply = await ask(method, where, {})
        assert (reply.status, reply.obj["reason"]) == (405, "MethodNotAllowed")
        text = "the server does not allow this method on the requested resource"
        assert (reply.obj["message"], reply.obj["details"]) == (text, {})


async def test_a_long_answer_is_compressed_for_who_wants_that(
    ask: Asker, path: str
) -> None:
    big = {**labelled("big"), "data": {"x": "y" * 200_000}}
    await ask("POST", path, big)
    packed = await ask("GET", f"{path}/big", packing="gzip")
    plain = await ask("GET", f"{path}/big", packing="identity")
    assert (packed.encoding, plain.encoding) == ("gzip", "")
    assert msgspec.json.decode(packed.body) == plain.obj  # the transport unpacks it
