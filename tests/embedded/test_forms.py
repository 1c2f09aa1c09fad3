"""Laws of forms: one object, as itself, as a table, as bare metadata, as YAML."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import yaml

from tests.client.clusters import client_of, defines
from tests.client.kinds import website
from tests.embedded.test_lists import Asker, config_map
from tests.embedded.test_lists import ask as ask
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
        obj = {**config_map(name, of="forms"), "data": {"x": "1"}}
        assert (await ask(path, method="POST", body=obj)).status == 201
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
    found = await ask(f"{path}?{SELECTED}&includeObject={include}", Accept=TABLE)
    table = found.json
    assert found.media == "application/json"
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"].keys() == {"resourceVersion"}
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names == ["Name", "Data", "Age"]
    assert rows(table) == [(["a", 1], kind), (["b", 1], kind)]
    one = (await ask(f"{path}/b?includeObject={include}", Accept=TABLE)).json
    assert rows(one) == [(["b", 1], kind)]


async def test_a_table_of_nothing_has_columns_and_no_rows(
    ask: Asker, path: str
) -> None:
    table = (await ask(f"{path}?labelSelector=nobody", Accept=TABLE)).json
    assert len(table["columnDefinitions"]) == 3
    assert table["rows"] == []


async def test_a_table_comes_in_pages_too(ask: Asker, path: str) -> None:
    first = (await ask(f"{path}?{SELECTED}&limit=1", Accept=TABLE)).json
    token = first["metadata"]["continue"]
    rest = await ask(f"{path}?{SELECTED}&limit=1&continue={token}", Accept=TABLE)
    assert [row["cells"][0] for row in (*first["rows"], *rest.json["rows"])] == [
        "a",
        "b",
    ]


async def test_a_table_cannot_include_what_nobody_knows(ask: Asker, path: str) -> None:
    reply = await ask(f"{path}?includeObject=bogus", Accept=TABLE)
    assert (reply.status, reply.json["reason"]) == (400, "BadRequest")
    assert reply.json["message"] == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "bogus"'
        ": must be 'Metadata', 'Object', 'None', or empty"
    )


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_bare_metadata_is_of_the_version_that_was_asked_for(
    ask: Asker, path: str, version: str
) -> None:
    wanted = {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}"}
    accept = PARTIAL.replace("v=v1", f"v={version}")
    one = (await ask(f"{path}/a", Accept=accept)).json
    whole = (await ask(f"{path}/a")).json
    assert one == {**wanted, "metadata": whole["metadata"]}
    accept = PARTIALS.replace("v=v1", f"v={version}")
    many = (await ask(f"{path}?{SELECTED}", Accept=accept)).json
    assert many["kind"] == "PartialObjectMetadataList"
    assert many["apiVersion"] == f"meta.k8s.io/{version}"
    assert many["items"][0] == one
    assert [each["metadata"]["name"] for each in many["items"]] == ["a", "b"]


async def test_bare_metadata_of_nothing_is_null(ask: Asker, path: str) -> None:
    many = (await ask(f"{path}?labelSelector=nobody", Accept=PARTIALS)).json
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
        reply = await ask(where, Accept=accept)
        assert (reply.status, reply.json["reason"]) == (406, "NotAcceptable")
        assert reply.json["message"] == f"you requested {text}"


async def test_custom_objects_have_the_same_forms(ask: Asker, websites: str) -> None:
    plain = (await ask(websites)).json
    assert plain["kind"] == "WebsiteList"
    assert plain["metadata"]["continue"] == ""
    [item] = plain["items"]
    assert (item["kind"], item["apiVersion"]) == ("Website", "tests.trimtab.dev/v1")
    table = (await ask(websites, Accept=TABLE)).json
    assert [row["cells"][0] for row in table["rows"]] == ["one"]
    partial = (await ask(f"{websites}/one", Accept=PARTIAL)).json
    assert partial["metadata"] == item["metadata"]
    assert partial["kind"] == "PartialObjectMetadata"


async def test_yaml_says_the_same_as_json(ask: Asker, path: str, websites: str) -> None:
    for where in (f"{path}/a", f"{path}?{SELECTED}", f"{websites}/one", f"{path}/none"):
        reply = await ask(where, Accept="application/yaml")
        plain = await ask(where)
        assert reply.media == "application/yaml"
        assert reply.status == plain.status
        assert yaml.safe_load(reply.body) == plain.json


async def test_the_best_of_what_is_accepted_is_chosen(ask: Asker, path: str) -> None:
    for accept, media in (
        ("text/html, application/json", "application/json"),
        ("application/yaml;q=0.1, application/json;q=0.9", "application/json"),
        (f"{TABLE.replace('v=v1', 'v=v9')},application/json", "application/json"),
        ("application/yaml, application/json", "application/yaml"),
        ("*/*", "application/json"),
    ):
        reply = await ask(f"{path}/a", Accept=accept)
        assert (reply.status, reply.media) == (200, media), accept
        assert b"ConfigMap" in reply.body


@pytest.mark.parametrize("accept", ["text/html", "text/*", "application/*"])
async def test_what_cannot_be_written_is_not_acceptable(
    ask: Asker, path: str, accept: str
) -> None:
    reply = await ask(f"{path}/a", Accept=accept)
    assert reply.status == 406
    text = f"406: Not Acceptable\n\nAvailable representations: {TYPES}"
    assert reply.json == {
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
    reply = await ask(f"{path}/a", Accept=TABLE.replace(*change))
    assert (reply.status, reply.json["reason"]) == (406, "NotAcceptable")
    text = f"only the following media types are accepted: {TYPES}"
    assert reply.json["message"] == text


async def test_a_body_of_an_unknown_type_is_refused(ask: Asker, path: str) -> None:
    reply = await ask(path, method="POST", body=b"<x/>", Content_Type="text/xml")
    assert (reply.status, reply.json["reason"]) == (415, "UnsupportedMediaType")
    assert reply.json["message"] == (
        "the body of the request was in an unknown format - accepted media types "
        f"include: {TYPES}"
    )


@pytest.mark.parametrize("media", ["text/xml", "application/json"])
async def test_a_patch_of_an_unknown_type_is_refused(
    ask: Asker, path: str, media: str
) -> None:
    reply = await ask(f"{path}/a", method="PATCH", body=b"{}", Content_Type=media)
    assert (reply.status, reply.json["reason"]) == (415, "UnsupportedMediaType")
    assert reply.json["message"] == "415: Unsupported Media Type"


async def test_a_write_is_answered_in_the_form_that_was_asked_for(
    ask: Asker, path: str
) -> None:
    made = await ask(path, method="POST", body=config_map("t"), Accept=TABLE)
    assert (made.status, made.json["kind"]) == (201, "Table")
    assert made.json["rows"][0]["cells"][0] == "t"
    made = await ask(path, method="POST", body=config_map("p"), Accept=PARTIAL)
    assert (made.status, made.json["kind"]) == (201, "PartialObjectMetadata")
    for name, accept in (("t", TABLE), ("p", PARTIAL)):
        gone = await ask(f"{path}/{name}", method="DELETE", Accept=accept)
        assert (gone.status, gone.json["kind"]) == (200, "Status")


async def test_a_method_that_there_is_not_is_not_allowed(ask: Asker, path: str) -> None:
    for method, where in (("PUT", path), ("POST", f"{path}/a")):
        reply = await ask(where, method=method, body={})
        assert (reply.status, reply.json["reason"]) == (405, "MethodNotAllowed")
        text = "the server does not allow this method on the requested resource"
        assert (reply.json["message"], reply.json["details"]) == (text, {})


async def test_a_long_answer_is_compressed_for_who_wants_that(
    ask: Asker, path: str
) -> None:
    big = {**config_map("big"), "data": {"x": "y" * 200_000}}
    await ask(path, method="POST", body=big)
    packed = await ask(f"{path}/big", Accept_Encoding="gzip")
    plain = await ask(f"{path}/big", Accept_Encoding="identity")
    assert (packed.encoding, plain.encoding) == ("gzip", "")
    assert msgspec.json.decode(packed.body) == plain.json  # the transport unpacks it
