"""Laws of deleting a collection: all of it, some of it, or none of it for real.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

import pytest

from tests.embedded.asking import Asker
from tests.embedded.asking import ask as ask
from tests.embedded.objects import GROUP, custom, labelled
from trimtab.testing import Cluster

OWN = "labelSelector=of=shelf"


@pytest.fixture
async def path(ask: Asker) -> str:
    """Five ConfigMaps, of which every other one is odd."""
    path = ask.path("configmaps")
    for number in range(5):
        body = labelled(f"m{number}", of="shelf", odd=str(number % 2))
        assert (await ask("POST", path, body)).status == 201
    return path


async def names(ask: Asker, path: str) -> list[str]:
    return (await ask("GET", f"{path}?{OWN}")).names


@pytest.mark.parametrize(
    ("query", "gone"),
    [
        (OWN, "01234"),
        ("labelSelector=odd=1", "13"),
        ("labelSelector=odd in (0),of", "024"),
        ("fieldSelector=metadata.name=m3", "3"),
        (f"{OWN}&fieldSelector=metadata.name!=m3", "0124"),
        ("labelSelector=odd=1&fieldSelector=metadata.name=m0", ""),
        (f"{OWN}&limit=2", "01"),
        ("labelSelector=odd=1&limit=1", "1"),
        (f"{OWN}&limit=9", "01234"),
    ],
)
async def test_what_was_selected_is_deleted_and_told(
    ask: Asker, path: str, query: str, gone: str
) -> None:
    reply = await ask("DELETE", f"{path}?{query}")
    assert (reply.status, reply.obj["kind"]) == (200, "ConfigMapList")
    assert reply.names == [f"m{number}" for number in gone]
    left = [f"m{number}" for number in range(5) if str(number) not in gone]
    assert await names(ask, path) == left
    assert reply.meta.keys() <= {"resourceVersion", "continue", "remainingItemCount"}


async def test_a_limited_deletion_can_be_gone_on_with(ask: Asker, path: str) -> None:
    first = await ask("DELETE", f"{path}?{OWN}&limit=2")
    token = first.meta["continue"]
    rest = await ask("DELETE", f"{path}?{OWN}&limit=2&continue={token}")
    assert rest.names == ["m2", "m3"]
    assert await names(ask, path) == ["m4"]


async def test_a_selector_that_makes_no_sense_deletes_nothing(
    ask: Asker, path: str
) -> None:
    for query in ("labelSelector=!!", "fieldSelector=foo=bar", "limit=x"):
        assert (await ask("DELETE", f"{path}?{query}")).status == 400
    assert len(await names(ask, path)) == 5


@pytest.mark.parametrize("way", ["query", "body"])
async def test_a_dry_run_tells_of_a_collection_and_keeps_it(
    ask: Asker, path: str, way: str
) -> None:
    before = (await ask("GET", f"{path}?{OWN}")).obj
    query, body = ("&dryRun=All", None) if way == "query" else ("", {"dryRun": ["All"]})
    reply = await ask("DELETE", f"{path}?{OWN}{query}", body)
    assert (reply.status, reply.obj["items"]) == (200, before["items"])
    assert (await ask("GET", f"{path}?{OWN}")).obj["items"] == before["items"]


async def test_what_has_a_finalizer_is_told_as_it_was_and_waits(
    ask: Asker, path: str
) -> None:
    held = labelled("m9", of="shelf")
    held["metadata"]["finalizers"] = ["tests.trimtab.dev/hold"]
    await ask("POST", path, held)
    reply = await ask("DELETE", f"{path}?{OWN}")
    assert "deletionTimestamp" not in reply.obj["items"][-1]["metadata"]
    [left] = (await ask("GET", f"{path}?{OWN}")).obj["items"]
    assert left["metadata"]["deletionTimestamp"]
    again = await ask("DELETE", f"{path}?{OWN}")
    assert again.obj["items"] == [left]
    free = [{"op": "remove", "path": "/metadata/finalizers"}]
    patch = "application/json-patch+json"
    assert (await ask("PATCH", f"{path}/m9", free, media=patch)).status == 200
    assert await names(ask, path) == []


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/configmaps",
        "/apis/apps/v1/deployments",
        "/api/v1/namespaces",
        "/api/v1/namespaces/default/bindings",
    ],
)
async def test_a_collection_that_cannot_be_deleted_is_told_so(
    ask: Asker, path: str
) -> None:
    reply = await ask("DELETE", f"{path}?labelSelector=of=nobody")
    assert reply.refusal == (
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )


async def test_a_precondition_that_fails_ends_the_deletion(
    ask: Asker, path: str
) -> None:
    reply = await ask("DELETE", f"{path}?{OWN}", {"preconditions": {"uid": "other"}})
    assert reply.refusal[:2] == (409, "Conflict")
    assert len(await names(ask, path)) == 5


async def test_what_is_in_a_namespace_is_only_listed_without_one(
    ask: Asker, cluster: Cluster
) -> None:
    await custom(cluster, ask, "gadgets", "Gadget", status={})
    gadgets = f"/apis/{GROUP}/v1/gadgets"
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        reply = await ask(method, "/api/v1/configmaps", {}, labelSelector="a=nobody")
        assert reply.status == 405
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        for below in ("/x", "/x/status"):
            reply = await ask(method, f"/api/v1/configmaps{below}")
            told = "the server could not find the requested resource"
            assert reply.refusal == (404, "NotFound", told)
            reply = await ask(method, gadgets + below)
            assert (reply.status, reply.body) == (404, b"404 page not found\n")
        if method != "GET":
            reply = await ask(method, gadgets, labelSelector="a=nobody")
            assert (reply.status, reply.body) == (404, b"404 page not found\n")
