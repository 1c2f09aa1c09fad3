"""Records what a real API server makes of built-in objects, for the tests.

A control plane is started, asked, and stopped. Admission plugins that change or refuse
objects are switched off: what is left is defaulting, the registries' own rules and
validation. Written is ``tests/embedded/data/builtin.jsonl.gz``, a question and its
answer to a line; the questions stand in ``hack/builtin_cases/``.

So, with the programs that ``hack/cluster/build.py`` builds::

    PYTHONPATH=src:. python hack/record_builtin_facts.py [words of case names]
"""

from __future__ import annotations

import asyncio
import gzip
import importlib
import json
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hack import builtin_cases
from hack.builtin_cases.case import JSON, Case, changed
from trimtab.client.config import load
from trimtab.client.http import HttpTransport
from trimtab.client.transport import Progress, Request
from trimtab.testing.cluster import cluster
from trimtab.testing.options import Options

ROOT = Path(__file__).resolve().parents[1]
RESOURCES = ROOT / "src" / "trimtab" / "embedded" / "data" / "resources.jsonl"
FACTS = ROOT / "tests" / "embedded" / "data" / "builtin.jsonl.gz"
NAMESPACE = "default"
UID = "00000000-1111-4222-8333-444444444444"
CREATED = "2026-01-02T03:04:05Z"
PLUGINS = (
    "LimitRanger",
    "TaintNodesByCondition",
    "PodSecurity",
    "Priority",
    "DefaultTolerationSeconds",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "PodTopologyLabels",
    "ResourceQuota",
    "NodeDeclaredFeatureValidator",
)


class Server:
    """The real one: questions as JSON, answers as a code and JSON."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport
        self._resources = {
            f"{each['group']}/{each['version']}/{each['kind']}".lstrip("/"): each
            for each in map(json.loads, RESOURCES.read_text().splitlines())
        }

    def path(self, kind: str, name: str = "", subresource: str = "") -> str:
        """Where objects of a kind are, or one of them."""
        resource = self._resources[kind]
        version = kind.rpartition("/")[0]
        parts = ["apis" if "/" in version else "api", version]
        if resource["namespaced"]:
            parts += ["namespaces", NAMESPACE]
        return "/" + "/".join(
            each
            for each in (*parts, resource["plural"], quote(name), subresource)
            if each
        )

    async def ask(
        self,
        method: str,
        path: str,
        body: JSON | None = None,
        *,
        query: dict[str, str] | None = None,
    ) -> tuple[int, JSON]:
        headers = (("Content-Type", "application/json"),)
        request = Request(
            method=method,
            path=path,
            query=tuple((query or {}).items()),
            headers=headers,
            body=b"" if body is None else json.dumps(body).encode(),
        )
        response = await self._transport.send(request, progress=Progress())
        data = await response.read(limit=50_000_000)
        response.close()
        return response.status, json.loads(data)

    async def remove(self, kind: str, obj: JSON) -> None:
        """Delete an object at once, whatever holds it."""
        path = self.path(kind, obj["metadata"]["name"])
        await self.ask("DELETE", path, query={"gracePeriodSeconds": "0"})
        code, left = await self.ask("GET", path)
        if code < 300 and left["metadata"].get("finalizers"):
            left["metadata"]["finalizers"] = []
            await self.ask("PUT", path, left)


_uuids = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


def plain(value: Any, uid: str, created: str) -> Any:
    """A value without what is different each time."""
    text = json.dumps(value)
    if uid:
        text = text.replace(uid, UID)
    if created:
        text = text.replace(f'"{created}"', f'"{CREATED}"')
    made = json.loads(text)
    metadata = made.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
        if metadata.get("resourceVersion"):
            metadata["resourceVersion"] = "1"
    return made


def answer(code: int, body: JSON, uid: str, created: str) -> JSON:
    """What came back: the object, or why not."""
    if code < 300:
        return {"object": plain(body, uid, created)}
    details = body.get("details") or {}
    told = {"message": body["message"], "causes": details.get("causes", [])}
    return {"code": code, **json.loads(_uuids.sub(UID, json.dumps(told)))}


async def record(server: Server, case: Case) -> JSON:
    """Ask one question."""
    row: JSON = {"kind": case.kind, "name": case.name}
    query = {"dryRun": "All"} if case.kind == "v1/Namespace" else {}
    if case.update is None:
        code, body = await server.ask(
            "POST", server.path(case.kind), case.create, query=query
        )
        metadata = body["metadata"] if code < 300 else {}
        uid, created = metadata.get("uid", ""), metadata.get("creationTimestamp", "")
        row |= {"request": case.create, **answer(code, body, uid, created)}
        if code < 300:
            await server.remove(case.kind, body)
        return row
    return row | await record_update(server, case)


async def record_update(server: Server, case: Case) -> JSON:
    code, old = await server.ask("POST", server.path(case.kind), case.create)
    if code >= 300:
        raise SystemExit(f"{case.kind} {case.name}: cannot be created: {old}")
    name = old["metadata"]["name"]
    if case.status is not None:
        path = server.path(case.kind, name, "status")
        code, old = await server.ask("PUT", path, changed(old, case.status))
        if code >= 300:
            raise SystemExit(f"{case.kind} {case.name}: no status: {old}")
    old["metadata"].pop("managedFields", None)
    uid, created = old["metadata"]["uid"], old["metadata"]["creationTimestamp"]
    request = changed(old, case.update or {})
    path = server.path(case.kind, name, case.subresource)
    code, body = await server.ask("PUT", path, request)
    await server.remove(case.kind, old)
    return {
        "subresource": case.subresource,
        "old": plain(old, uid, created),
        "request": plain(request, uid, created),
        **answer(code, body, uid, created),
    }


def modules() -> Iterator[Any]:
    for found in pkgutil.iter_modules(builtin_cases.__path__):
        if found.name != "case":
            yield importlib.import_module(f"hack.builtin_cases.{found.name}")


async def rows(server: Server, words: list[str]) -> list[JSON]:
    found: list[JSON] = []
    for module in modules():
        if words and module.__name__.rpartition(".")[2] not in words:
            continue
        for case in getattr(module, "cases", list)():
            found.append(await record(server, case))
    return found


async def main() -> None:
    """Start a server, ask, write."""
    flags = (f"--disable-admission-plugins={','.join(PLUGINS)}",)
    words = sys.argv[1:]
    async with cluster("real", options=Options(apiserver_flags=flags)) as ready:
        transport = HttpTransport(load(kubeconfig=ready.kubeconfig))
        try:
            found = await rows(Server(transport), words)
        finally:
            await transport.close()
    lines = [json.dumps(row, separators=(",", ":"), sort_keys=True) for row in found]
    data = ("\n".join(lines) + "\n").encode()
    place = FACTS if not words else Path("/tmp") / f"builtin-{'-'.join(words)}.jsonl.gz"
    place.write_bytes(gzip.compress(data, mtime=0))
    print(f"{len(found)} answers in {place}")


if __name__ == "__main__":
    asyncio.run(main())
