"""Records the tables that a real API server makes of built-in objects, for the tests.

A control plane is started, objects are made and given a status, and each kind is asked
for its table, and by which fields it can be selected. Of the fields that it accepts,
the values of each object are recorded too: those by which the server finds it. Written
is ``tests/embedded/data/tables.json.gz``.

The objects are in ``hack/table_cases.jsonl``, one to a line. A time there is how long
ago it was (``ago 90s``, or ``micro ago 90s`` for one with a fraction), and one that is
``deleted`` is deleted once it is made; it has a finalizer that keeps it.

So, with the programs that ``hack/cluster/build.py`` builds::

    PYTHONPATH=src:. python hack/record_tables.py
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from trimtab.client.config import load
from trimtab.client.http import HttpTransport
from trimtab.client.transport import Progress, Request
from trimtab.testing.cluster import cluster
from trimtab.testing.options import Options

JSON = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
RESOURCES = ROOT / "src" / "trimtab" / "embedded" / "data" / "resources.jsonl"
CASES = ROOT / "hack" / "table_cases.jsonl"
FACTS = ROOT / "tests" / "embedded" / "data" / "tables.json.gz"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
NAMESPACE = "default"
DELETED = "deleted"
# What each kind is asked to select by.
FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "name",
    "data.k",
    "spec.nodeName",
    "spec.host",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "spec.unschedulable",
    "spec.signerName",
    "spec.clusterIP",
    "spec.type",
    "spec.driver",
    "spec.leaseName",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
    "status.replicas",
    "status.successful",
    "type",
    "reason",
    "source",
    "reportingComponent",
    "reportingController",
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
)
# Of the objects' fields; each is tried on every field of every kind.
VALUES = (
    "",
    "0",
    "1",
    "2",
    "true",
    "false",
    "default",
    "rich",
    "Running",
    "Pending",
    "Active",
    "node-1",
    "10.0.0.7",
    "Never",
    "other",
    "sa",
    "node-9",
    "LoadBalancer",
    "None",
    "example.org/t",
    "example.org/signer",
    "example.org/c",
    "kubelet",
    "Warning",
    "Killing",
    "Pod",
    "p",
    "u-1",
    "v1",
    "7",
    "spec.containers{web}",
    "d.example.org",
    "n",
)
_AGO = re.compile(r'"(?P<micro>micro )?ago (?P<seconds>\d+)s"')
# Plugins that would change or refuse these objects, or wait for what is not there.
PLUGINS = (
    "LimitRanger",
    "TaintNodesByCondition",
    "PodSecurity",
    "Priority",
    "DefaultTolerationSeconds",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "RuntimeClass",
    "DefaultIngressClass",
    "ResourceQuota",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionWebhook",
    "MutatingAdmissionPolicy",
    "ValidatingAdmissionPolicy",
)


def objects() -> list[JSON]:
    """The objects, with times as seen from now."""
    start = datetime.now(UTC)
    text = _AGO.sub(partial(_moment, start), CASES.read_text("utf-8"))
    return [json.loads(line) for line in text.splitlines()]


def _moment(start: datetime, found: re.Match[str]) -> str:
    moment = start - timedelta(seconds=int(found["seconds"]))
    fraction = ".000000" if found["micro"] else ""
    return f'"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"'


class Server:
    """The real one: questions as JSON, answers as a code and JSON."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport
        self.refusals: list[str] = []

    async def ask(
        self,
        method: str,
        path: str,
        body: JSON | None = None,
        *,
        accept: str = "application/json",
        **query: str,
    ) -> tuple[int, JSON]:
        sort = "merge-patch+json" if method == "PATCH" else "json"
        headers = (("Accept", accept), ("Content-Type", f"application/{sort}"))
        request = Request(
            method=method,
            path=path,
            query=tuple(query.items()),
            headers=headers,
            body=b"" if body is None else json.dumps(body).encode(),
        )
        response = await self._transport.send(request, progress=Progress())
        data = await response.read(limit=50_000_000)
        response.close()
        return response.status, json.loads(data)

    async def done(self, method: str, path: str, body: JSON) -> None:
        """Ask for what has to succeed."""
        code, answer = await self.ask(method, path, body)
        if code >= 300:
            self.refusals.append(f"{method} {path}: {answer.get('message')}")


def resources() -> list[JSON]:
    """The kinds that can be listed."""
    found = [json.loads(line) for line in RESOURCES.read_text("utf-8").splitlines()]
    return [each for each in found if "list" in each["verbs"]]


def place(resource: JSON) -> str:
    """Where the objects of a kind are."""
    group, version = resource["group"], resource["version"]
    parts = ["apis", group, version] if group else ["api", version]
    parts += ["namespaces", NAMESPACE] if resource["namespaced"] else []
    return "/" + "/".join((*parts, resource["plural"]))


async def create(server: Server, path: str, given: JSON) -> None:
    """Make an object, give it its status, and delete it if it is to be deleted."""
    obj = {key: value for key, value in given.items() if key not in ("status", DELETED)}
    await server.done("POST", path, obj)
    mine = f"{path}/{obj['metadata']['name']}"
    if "status" in given:
        status = {"status": given["status"]}
        await server.done("PATCH", f"{mine}/status", status)
    if given.get(DELETED):
        await server.done("DELETE", mine, {"gracePeriodSeconds": 30})


async def table(server: Server, path: str) -> JSON:
    """A kind's table within one second, so that there is no doubt about the ages."""
    while True:
        before = datetime.now(UTC).replace(microsecond=0)
        _, answer = await server.ask("GET", path, accept=TABLE, includeObject="Object")
        if datetime.now(UTC).replace(microsecond=0) == before:
            break
    rows = [
        {
            "cells": row["cells"],
            "conditions": row.get("conditions") or [],
            "object": plain(row["object"]),
        }
        for row in answer["rows"] or ()
    ]
    columns = [
        [each["name"], each["type"], each["format"], each["priority"]]
        for each in answer["columnDefinitions"]
    ]
    return {"now": before.isoformat(), "columns": columns, "rows": rows}


def plain(obj: JSON) -> JSON:
    obj["metadata"].pop("managedFields", None)
    return obj


async def selectors(server: Server, path: str) -> dict[str, str]:
    """What the server says to a selection by each field; nothing if it accepts it."""
    answers = {}
    for field in FIELDS:
        selector = f"{field}=x"
        code, body = await server.ask("GET", path, fieldSelector=selector, limit="1")
        answers[field] = "" if code < 300 else body["message"]
    return answers


async def findings(server: Server, path: str, accepted: list[str]) -> JSON:
    """For each field and some values, which objects are found by it."""
    found: JSON = {}
    for field in accepted:
        for value in VALUES:
            code, body = await server.ask("GET", path, fieldSelector=f"{field}={value}")
            if code < 300:
                names = [each["metadata"]["name"] for each in body["items"]]
                found[f"{field}={value}"] = sorted(names)
    return found


async def record(server: Server, given: list[JSON]) -> list[JSON]:
    """All facts, a kind at a time."""
    facts = []
    waiting = {id(each): each for each in given}
    for resource in resources():
        version = f"{resource['group']}/{resource['version']}".lstrip("/")
        path = place(resource)
        for each in given:
            if (each["apiVersion"], each["kind"]) == (version, resource["kind"]):
                await create(server, path, waiting.pop(id(each)))
    if waiting:
        raise SystemExit(f"objects of unknown kinds: {list(waiting.values())}")
    if server.refusals:
        raise SystemExit("\n".join(server.refusals))
    for resource in resources():
        path = place(resource)
        fact = {key: resource[key] for key in ("group", "version", "kind")}
        fact |= await table(server, path)
        fact["fields"] = await selectors(server, path)
        accepted = [field for field, error in fact["fields"].items() if not error]
        fact["found"] = await findings(server, path, accepted)
        facts.append(fact)
    return facts


async def main() -> None:
    """Start a server, ask, write."""
    flags = (f"--disable-admission-plugins={','.join(PLUGINS)}",)
    async with cluster("real", options=Options(apiserver_flags=flags)) as ready:
        transport = HttpTransport(load(kubeconfig=ready.kubeconfig))
        try:
            facts = await record(Server(transport), objects())
        finally:
            await transport.close()
    data = json.dumps(facts, separators=(",", ":"), sort_keys=True).encode()
    FACTS.write_bytes(gzip.compress(data, mtime=0))
    print(f"{sum(len(each['rows']) for each in facts)} rows in {FACTS}")


if __name__ == "__main__":
    asyncio.run(main())
