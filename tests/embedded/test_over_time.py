"""What shows only over time: pages whose state is forgotten, watches of a server that
stops, schemas that are published. The same on the embedded server and on a real one."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.differential.wire import JSON, Wire
from tests.embedded.apis import api_on, asked
from trimtab.embedded.store import Store
from trimtab.testing.cluster import Cluster
from trimtab.testing.real import ETCD_SOCKET

Plain = dict[str, Any]
Ask = Callable[..., tuple[int, Plain]]

EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You can start a new list without the continue parameter, or use the continue "
    "token in this response to retrieve the remainder of the results. Continuing with "
    "the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may "
    "show up in the list."
)
TOO_OLD = "The resourceVersion for the provided list is too old."
GROUP = "time.example"


def _names(page: Plain) -> list[str]:
    return [each["metadata"]["name"] for each in page["items"]]


class _Etcd(http.client.HTTPConnection):
    """The store of a real cluster, whose socket is beside its kubeconfig."""

    def __init__(self, folder: Path) -> None:
        super().__init__("localhost", timeout=10.0)
        self._folder = folder

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._folder / ETCD_SOCKET))


def _asking(wire: Wire) -> Ask:
    def ask(method: str, path: str, body: Any = None) -> tuple[int, Plain]:
        text = None if body is None else json.dumps(body).encode()
        reply = wire.send(method, path, text, {"Content-Type": JSON})
        readable = reply.body.startswith(b"{")  # what is not there yet is plain text
        return reply.status, reply.obj if readable else {}

    return ask


def _pages_over(ask: Ask, path: str, forget: Callable[[int], None]) -> None:
    for name in "abcdef":
        assert ask("POST", path, {"metadata": {"name": name}})[0] == 201
    _, first = ask("GET", f"{path}?limit=2")
    token = first["metadata"]["continue"]
    version = int(first["metadata"]["resourceVersion"])
    ask("POST", path, {"metadata": {"name": "bb"}})
    ask("DELETE", f"{path}/c")
    _, last = ask("POST", path, {"metadata": {"name": "zz"}})
    forget(int(last["metadata"]["resourceVersion"]))
    code, expired = ask("GET", f"{path}?limit=2&continue={quote(token)}")
    assert (code, expired["reason"], expired["message"]) == (410, "Expired", EXPIRED)
    fresh = expired["metadata"]["continue"]
    assert fresh != token
    _read_on(ask, f"{path}?limit=2", fresh)
    query = f"resourceVersion={version}&resourceVersionMatch=Exact"
    code, refused = ask("GET", f"{path}?{query}")
    assert (code, refused["reason"], refused["message"]) == (410, "Expired", TOO_OLD)


def _read_on(ask: Ask, path: str, token: str) -> None:
    """The rest, as it is now: its first page has a version, which the others keep."""
    seen, versions = [], set()
    while token:
        code, page = ask("GET", f"{path}&continue={quote(token)}")
        assert code == 200
        seen.append(_names(page))
        versions.add(page["metadata"]["resourceVersion"])
        token = page["metadata"].get("continue", "")
    assert seen == [["bb", "d"], ["e", "f"], ["zz"]]
    assert len(versions) == 1


def test_a_page_of_a_forgotten_state_comes_with_a_token_for_the_rest() -> None:
    store = Store(None)
    api = api_on(store)

    def ask(method: str, path: str, body: Any = None) -> tuple[int, Plain]:
        answer = asked(api, method, path, body)
        return answer.status, answer.obj

    _pages_over(ask, "/api/v1/namespaces/default/secrets", store.compact)
    store.close()


@pytest.mark.cluster("real")
def test_a_real_server_answers_so_too_once_it_has_forgotten(
    cluster: Cluster, namespace: str
) -> None:
    wire = Wire(cluster)

    def forget(revision: int) -> None:
        etcd = _Etcd(cluster.kubeconfig.parent)
        etcd.request(
            "POST", "/v3/kv/compaction", json.dumps({"revision": str(revision)})
        )
        assert etcd.getresponse().status == 200
        etcd.close()
        # Or its own memory would answer, for another quarter of a minute.
        assert cluster.plane is not None
        cluster.plane.restart_apiserver()

    _pages_over(_asking(wire), f"/api/v1/namespaces/{namespace}/secrets", forget)
    wire.close()


def test_watches_end_well_when_the_server_stops(cluster: Cluster) -> None:
    wire, plane = Wire(cluster), cluster.plane
    assert plane is not None
    told: list[Plain] = []
    stopping: list[threading.Thread] = []

    def stop(event: Plain) -> bool:
        told.append(event)
        if event["type"] == "BOOKMARK" and not stopping:
            stopping.append(threading.Thread(target=plane.restart_apiserver))
            stopping[0].start()
        return False

    # The end of the body is read, or this raises: nothing was cut off.
    reply, events = wire.watch(
        "/api/v1/namespaces?watch=1&allowWatchBookmarks=true&sendInitialEvents=true"
        "&resourceVersionMatch=NotOlderThan",
        until=stop,
        headers={},
    )
    [thread] = stopping
    thread.join()
    assert reply.status == 200
    assert events == told
    assert {each["type"] for each in events} == {"ADDED", "BOOKMARK"}
    assert wire.send("GET", "/readyz").status == 200
    wire.close()


def _definition(plural: str, **spec: Plain) -> Plain:
    kind = plural.removesuffix("s").capitalize()
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": spec}},
    }
    version = {"name": "v1", "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WITHIN = {"embedded": 10.0, "real": 30.0}
"""Seconds for a schema to be published: a real server puts it off while it is busy, and
a busy machine takes long to ask for all of them."""


def _published(ask: Ask, kind: str) -> list[Any]:
    """The fields of a kind's spec in either version of OpenAPI, or why not."""
    name = f"example.time.v1.{kind}"
    _, old = ask("GET", "/openapi/v2")
    _, new = ask("GET", f"/openapi/v3/apis/{GROUP}/v1")
    schemas = new.get("components", {}).get("schemas", {})
    found = [old["definitions"].get(name, {}), schemas.get(name, {})]
    return [
        sorted(each.get("properties", {}).get("spec", {}).get("properties", {}))
        for each in found
    ]


def _until(ask: Ask, cluster: Cluster, kind: str, fields: list[str]) -> None:
    deadline = time.monotonic() + WITHIN[cluster.kind]
    while (found := _published(ask, kind)) != [fields, fields]:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def test_a_schema_is_published_soon(cluster: Cluster) -> None:
    wire = Wire(cluster)
    ask, text = _asking(wire), {"type": "string"}
    assert ask("POST", CRDS, _definition("clocks", hands=text))[0] == 201
    _until(ask, cluster, "Clock", ["hands"])
    path = f"{CRDS}/clocks.{GROUP}"
    _, made = ask("GET", path)
    changed = _definition("clocks", hands=text, bell=text)
    assert ask("PUT", path, {**made, "spec": changed["spec"]})[0] == 200
    _until(ask, cluster, "Clock", ["bell", "hands"])
    ask("DELETE", path)
    _until(ask, cluster, "Clock", [])
    wire.close()
