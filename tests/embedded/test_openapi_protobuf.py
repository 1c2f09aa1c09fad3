"""OpenAPI in protobuf is what Go writes and reads."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

import msgspec
import pytest

from tests.embedded.asking import JSON, Asker
from tests.embedded.asking import ask as ask
from trimtab.embedded.openapi_protobuf import DEPRECATED, MEDIA, encode
from trimtab.testing import Cluster, KubectlFailed, assets

RECORDED = json.loads((Path(__file__).with_name("data") / "openapi.json").read_text())


def test_a_document_is_byte_for_byte_what_go_writes() -> None:
    assert encode(RECORDED["document"]) == b64decode(RECORDED["protobuf"])


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


async def test_who_asks_for_neither_gets_nothing(ask: Asker) -> None:
    told = await ask("GET", "/openapi/v2", accept="text/html")
    assert told.status == 406


if assets.find("kubectl") is not None:

    async def test_kubectl_checks_lists_by_it(cluster: Cluster, namespace: str) -> None:
        item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        made = {"apiVersion": "v1", "kind": "List", "items": [{**item, "dat": {}}]}
        create = ("create", "--filename=-", f"--namespace={namespace}")
        with pytest.raises(KubectlFailed, match='unknown field "dat"'):
            await cluster.kubectl(*create, stdin=json.dumps(made))
        await cluster.kubectl(*create, stdin=json.dumps({**made, "items": [item]}))
