"""OpenAPI in protobuf is what Go writes and reads."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.embedded.asking import JSON, Asker
from tests.embedded.asking import ask as ask
from trimtab.client.transport import Progress, Request
from trimtab.embedded import openapi_third
from trimtab.embedded.openapi_protobuf import DEPRECATED, MEDIA, encode
from trimtab.testing import Cluster, KubectlFailed, assets

THIRD = openapi_third.MEDIA
PODS = "io.k8s.api.core.v1.Pod"


def recorded(name: str) -> tuple[Any, bytes]:
    """A document, and what Go makes of it."""
    text = (Path(__file__).with_name("data") / name).read_text()
    told = json.loads(text)
    return told["document"], b64decode(told["protobuf"])


def test_a_document_is_byte_for_byte_what_go_writes() -> None:
    document, expected = recorded("openapi.json")
    assert encode(document) == expected


def test_a_document_of_the_third_version_is_byte_for_byte_what_go_writes() -> None:
    document, expected = recorded("openapi_third.json")
    assert openapi_third.encode(document) == expected


def test_what_this_version_does_not_know_is_left_out() -> None:
    schema = {"type": "string", "nullable": True}
    known = {"definitions": {"a": {"type": "string"}}}
    assert encode({"definitions": {"a": schema}}) == encode(known)


@pytest.mark.parametrize("accept", [MEDIA, DEPRECATED, f"{MEDIA}, {JSON};q=0.5"])
async def test_who_asks_for_protobuf_gets_it(ask: Asker, accept: str) -> None:
    told = await ask("GET", "/openapi/v2", accept=accept)
    assert (told.status, told.media) == (200, MEDIA)
    assert b"io.k8s.api.core.v1.Pod" in told.body


@pytest.mark.parametrize("accept", [JSON, "*/*", f"text/html, {JSON}, {MEDIA}"])
async def test_who_asks_for_json_gets_that(ask: Asker, accept: str) -> None:
    told = await ask("GET", "/openapi/v2", accept=accept)
    assert (told.status, told.media) == (200, JSON)
    assert msgspec.json.decode(told.body)["swagger"] == "2.0"


@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3/api/v1"])
async def test_who_asks_for_neither_gets_nothing(ask: Asker, path: str) -> None:
    told = await ask("GET", path, accept="text/html")
    assert (told.status, told.body) == (406, b"")


@pytest.mark.parametrize("accept", [THIRD, openapi_third.DEPRECATED])
@pytest.mark.parametrize("path", ["api/v1", "apis/apps/v1"])
async def test_each_group_is_told_in_protobuf(
    ask: Asker, path: str, accept: str
) -> None:
    told = await ask("GET", f"/openapi/v3/{path}", accept=accept)
    assert (told.status, told.media) == (200, THIRD)
    assert PODS.encode() in told.body


async def test_the_index_is_json_whatever_is_asked_for(ask: Asker) -> None:
    told = await ask("GET", "/openapi/v3", accept=THIRD)
    assert (told.status, told.media) == (200, "text/plain; charset=utf-8")
    assert "apis/apps/v1" in told.obj["paths"]


async def test_a_document_is_kept_by_its_hash(ask: Asker) -> None:
    index = (await ask("GET", "/openapi/v3")).obj["paths"]
    url = index["apis/apps/v1"]["serverRelativeURL"]
    tag = f'"{url.partition("=")[2]}"'
    told = await headers(ask, url)
    assert told == (200, tag, "public, immutable", "")
    assert await headers(ask, url, known=tag) == (304, *told[1:])
    moved = await headers(ask, url.replace("=", "=0"))
    assert (moved[0], moved[3]) == (301, url)


async def headers(
    ask: Asker, url: str, *, known: str = ""
) -> tuple[int, str, str, str]:
    """How a request is answered, and what is said beside the document."""
    path, _, query = url.partition("?")
    key, _, value = query.partition("=")
    request = Request(
        method="GET",
        path=path,
        query=((key, value),),
        headers=(("If-None-Match", known),) if known else (),
        body=None,
    )
    response = await ask.transport.send(request, progress=Progress())
    response.close()
    names = ("Etag", "Cache-Control", "Location")
    etag, control, location = ("".join(response.headers(name)) for name in names)
    return response.status, etag, control, location


if assets.find("kubectl") is not None:

    async def test_kubectl_checks_lists_by_it(cluster: Cluster, namespace: str) -> None:
        item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        made = {"apiVersion": "v1", "kind": "List", "items": [{**item, "dat": {}}]}
        create = ("create", "--filename=-", f"--namespace={namespace}")
        with pytest.raises(KubectlFailed, match='unknown field "dat"'):
            await cluster.kubectl(*create, stdin=json.dumps(made))
        await cluster.kubectl(*create, stdin=json.dumps({**made, "items": [item]}))
