"""What is answered in protobuf is what is answered in JSON, in the bytes of Go.

Each law runs unchanged on the embedded server and on kube-apiserver: there our encoding
of Go's JSON is compared with Go's own.
"""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator

import msgspec
import pytest

from tests.client.clusters import client_of, defines
from tests.client.kinds import website
from tests.embedded.asking import JSON, MERGE, Answer, Asker, Plain, ask
from tests.embedded.objects import labelled
from tests.embedded.protobuf_bodies import Body, samples, without_nulls
from tests.embedded.test_forms import TYPES
from tests.embedded.test_watches import opened
from trimtab.embedded.bodies import PROTOBUF
from trimtab.embedded.protobuf import MAGIC, decode
from trimtab.embedded.protobuf_encoding import encode, event
from trimtab.testing import Cluster, eventually

__all__ = ["ask"]

BOTH = f"{PROTOBUF},{JSON}"
"""As Go clients ask."""
META = "g=meta.k8s.io;v=v1"
PARTIAL = f"{PROTOBUF};as=PartialObjectMetadata;{META}"
PARTIALS = f"{PROTOBUF};as=PartialObjectMetadataList;{META}"
AGGREGATED = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def told(answer: Answer) -> Plain:
    """What an answer in protobuf says."""
    assert answer.media.split(";")[0] == PROTOBUF, answer.body
    return decode(answer.body)


def in_protobuf(obj: Plain) -> bytes:
    return encode(obj.get("apiVersion", ""), obj["kind"], obj)


async def same_in_both(ask: Asker, path: str, *, form: str = "") -> Answer:
    """The answer in protobuf, which says what the one in JSON does."""
    while True:
        plain = await ask("GET", path, accept=f"{JSON}{form}")
        answer = await ask("GET", path, accept=f"{PROTOBUF}{form},{JSON}{form}")
        if version_of(plain.obj) == version_of(told(answer)):
            break  # nobody wrote in between, as the server itself does
    assert answer.status == plain.status
    assert answer.body == in_protobuf(plain.obj)
    return answer


def version_of(obj: Plain) -> str:
    return str(obj.get("metadata", {}).get("resourceVersion", ""))


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.kind)
async def test_an_object_and_a_list_say_the_same_in_both(
    ask: Asker, sample: Body
) -> None:
    path = sample.path(ask.namespace)
    made = await ask("POST", path, without_nulls(sample.object), accept=BOTH)
    assert made.status == 201
    place = f"{path}/{told(made)['metadata']['name']}"
    found = await same_in_both(ask, place)
    assert told(found)["metadata"]["uid"] == told(made)["metadata"]["uid"]
    await same_in_both(
        ask, f"{path}?fieldSelector=metadata.name={place.split('/')[-1]}"
    )
    await same_in_both(ask, place, form=f";as=PartialObjectMetadata;{META}")
    await ask("DELETE", place, gracePeriodSeconds="0")

    async def is_gone() -> bool:
        return (await ask("GET", place)).status == 404

    await eventually(is_gone, within=30, describe=f"{place} is gone")


@pytest.fixture
async def path(ask: Asker) -> str:
    path = ask.path("configmaps")
    for name in ("a", "b", "c"):
        made = {**labelled(name, of="answers"), "data": {"x": "é"}}
        assert (await ask("POST", path, made)).status == 201
    return path


@pytest.fixture
async def websites(cluster: Cluster, namespace: str) -> AsyncIterator[str]:
    async with client_of(cluster, namespace=namespace) as client:
        await defines(client)
        await client.create(website("one"))
        yield f"/apis/tests.trimtab.dev/v1/namespaces/{namespace}/websites"


async def test_a_list_in_pages_says_the_same_in_both(ask: Asker, path: str) -> None:
    first = told(await ask("GET", f"{path}?limit=2", accept=BOTH))
    assert [each["metadata"]["name"] for each in first["items"]][-1] != "c"
    token = first["metadata"]["continue"]
    assert first["metadata"]["remainingItemCount"] >= 1
    await same_in_both(ask, f"{path}?limit=2&continue={token}")
    await same_in_both(ask, f"{path}?labelSelector=nobody")
    await same_in_both(ask, path, form=f";as=PartialObjectMetadataList;{META}")


async def test_a_long_list_says_the_same_in_both(ask: Asker, path: str) -> None:
    for name in ("d", "e", "f"):
        long = {**labelled(name), "data": {"x": "y" * 100_000}}
        assert (await ask("POST", path, long)).status == 201
    plain = await ask("GET", path)
    for packing in ("identity", "gzip"):
        answer = await ask("GET", path, accept=BOTH, packing=packing)
        assert answer.body == in_protobuf(plain.obj)


async def test_writes_are_answered_in_protobuf(ask: Asker, path: str) -> None:
    obj = (await ask("GET", f"{path}/a")).obj
    put = told(await ask("PUT", f"{path}/a", {**obj, "data": {}}, accept=BOTH))
    assert "data" not in put
    change = {"data": {"y": "2"}}
    patched = await ask("PATCH", f"{path}/a", change, media=MERGE, accept=BOTH)
    assert told(patched)["data"] == {"y": "2"}
    assert patched.body == in_protobuf((await ask("GET", f"{path}/a")).obj)
    gone = told(await ask("DELETE", f"{path}/a", accept=BOTH))
    assert (gone["kind"], gone["status"]) == ("Status", "Success")
    rest = await ask("DELETE", f"{path}?labelSelector=of=answers", accept=BOTH)
    assert told(rest)["kind"] == "ConfigMapList"


async def test_refusals_say_the_same_in_both(ask: Asker, path: str) -> None:
    bad = labelled("Bad_Name")
    for method, where, body in (
        ("GET", f"{path}/none", None),
        ("POST", path, labelled("b")),
        ("POST", path, bad),
        ("GET", f"{path}?limit=x", None),
    ):
        plain = await ask(method, where, body)
        answer = await ask(method, where, body, accept=BOTH)
        assert answer.status == plain.status >= 400
        assert answer.media == PROTOBUF
        assert answer.body == in_protobuf(plain.obj)


async def test_a_watch_says_the_same_in_both(ask: Asker, path: str) -> None:
    query = "watch=1&timeoutSeconds=1&labelSelector=of=answers"
    initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    where = f"{path}?{query}&{initial}&allowWatchBookmarks=true"
    async with opened(ask, where) as stream:
        assert stream.headers("Content-Type") == [JSON]
        lines = bytes(await stream.read(limit=1 << 20)).splitlines()
    async with opened(ask, where, accept=BOTH) as stream:
        assert stream.headers("Content-Type") == [f"{PROTOBUF};stream=watch"]
        frames = bytes(await stream.read(limit=1 << 20))
    events = [msgspec.json.decode(line) for line in lines]
    assert [each["type"] for each in events[:4]] == ["ADDED"] * 3 + ["BOOKMARK"]
    wanted = b"".join(event(e["type"], in_protobuf(e["object"])) for e in events[:3])
    assert frames.startswith(wanted)
    rest = frames[len(wanted) :]
    [size] = struct.unpack(">I", rest[:4])
    bookmark = decode(rest[rest.index(MAGIC) : 4 + size])
    assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_watch_that_cannot_begin_is_refused_in_protobuf(
    ask: Asker, path: str
) -> None:
    where = f"{path}?watch=1&resourceVersion=x"
    plain = await ask("GET", where)
    answer = await ask("GET", where, accept=BOTH)
    assert (answer.status, told(answer)["message"]) == (
        plain.status,
        plain.obj["message"],
    )


async def test_the_best_of_what_is_accepted_is_chosen(ask: Asker, path: str) -> None:
    table = f"{PROTOBUF};as=Table;{META}"
    for accept, media in (
        (PROTOBUF, PROTOBUF),
        (BOTH, PROTOBUF),
        (f"{JSON},{PROTOBUF}", JSON),
        (f"{PROTOBUF};q=0.5,{JSON};q=0.9", JSON),
        (f"{JSON};q=0.5,{PROTOBUF}", PROTOBUF),
        (f"{table},{JSON}", JSON),
        (f"{table},{JSON};as=Table;{META}", JSON),
        (PARTIAL, PROTOBUF),
        (f"{PROTOBUF};stream=watch", PROTOBUF),
    ):
        reply = await ask("GET", f"{path}/b", accept=accept)
        assert (reply.status, reply.media) == (200, media), accept
    refused = await ask("GET", f"{path}/b", accept=table)
    assert refused.status == 406
    assert refused.obj["message"] == (
        f"only the following media types are accepted: {TYPES}"
    )


async def test_custom_objects_have_only_their_metadata_in_protobuf(
    ask: Asker, websites: str
) -> None:
    one = f"{websites}/one"
    assert (await ask("GET", one, accept=BOTH)).media == JSON
    assert (await ask("GET", websites, accept=BOTH)).media == JSON
    refused = await ask("GET", one, accept=PROTOBUF)
    assert (refused.status, refused.media) == (406, PROTOBUF)
    missing = await ask("GET", f"{websites}/none", accept=BOTH)
    assert (missing.status, told(missing)["reason"]) == (404, "NotFound")
    await same_in_both(ask, one, form=f";as=PartialObjectMetadata;{META}")
    await same_in_both(ask, websites, form=f";as=PartialObjectMetadataList;{META}")


@pytest.mark.parametrize(
    "path",
    [
        "flowcontrol.apiserver.k8s.io/v1/flowschemas",
        "flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
        "networking.k8s.io/v1/servicecidrs",
        "networking.k8s.io/v1/ipaddresses",
        "apiregistration.k8s.io/v1/apiservices",
    ],
)
async def test_what_every_server_has_says_the_same_in_both(
    ask: Asker, path: str
) -> None:
    found = await same_in_both(ask, f"/apis/{path}?limit=5")
    assert told(found)["items"]


@pytest.mark.parametrize("path", ["/api", "/apis", "/apis/apps", "/apis/apps/v1"])
async def test_discovery_says_the_same_in_both(ask: Asker, path: str) -> None:
    await same_in_both(ask, path)


@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_all_groups_at_once_say_the_same_in_both(ask: Asker, path: str) -> None:
    answer = await same_in_both(ask, path, form=f";{AGGREGATED}")
    assert answer.media == f"{PROTOBUF};{AGGREGATED}"


async def test_a_scale_says_the_same_in_both(ask: Asker) -> None:
    sample = next(each for each in samples() if each.kind == "Deployment")
    path = sample.path(ask.namespace)
    made = await ask("POST", path, without_nulls(sample.object))
    await same_in_both(ask, f"{path}/{made.meta['name']}/scale")
    await ask("DELETE", f"{path}/{made.meta['name']}")
