"""Asking a server with any request, however wrong, and hiding nothing of the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from trimtab.client import load
from trimtab.client.http import HttpTransport
from trimtab.client.transport import Progress, Request
from trimtab.testing import Cluster

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
LIMIT = 64 << 20

Plain = dict[str, Any]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back: a status code, an object (or a Status), and warnings."""

    status: int
    media: str
    body: bytes
    encoding: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def obj(self) -> Any:
        """The body, read: text if it is not JSON, whatever it is said to be."""
        try:
            return msgspec.json.decode(self.body)
        except msgspec.DecodeError:
            return self.body.decode()

    @property
    def meta(self) -> Plain:
        found: Plain = self.obj["metadata"]
        return found

    @property
    def names(self) -> list[str]:
        """Of the objects in a list."""
        return [each["metadata"]["name"] for each in self.obj["items"] or ()]

    @property
    def refusal(self) -> tuple[int, str, str]:
        told = self.obj
        return self.status, told.get("reason", ""), told["message"]

    @property
    def causes(self) -> list[tuple[str, str, str]]:
        return [
            (each.get("reason", ""), each.get("field", ""), each.get("message", ""))
            for each in (self.obj.get("details") or {}).get("causes") or ()
        ]


class Asker:
    """Sends requests as they stand; a query may be in the path or beside it."""

    def __init__(self, transport: HttpTransport, namespace: str) -> None:
        self.transport = transport
        self.namespace = namespace

    def path(self, plural: str, *, group: str = "", version: str = "v1") -> str:
        root = f"/apis/{group}" if group else "/api"
        return f"{root}/{version}/namespaces/{self.namespace}/{plural}"

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        media: str = JSON,
        accept: str = JSON,
        agent: str = "tests/1.0",
        packing: str = "",
        **query: str,
    ) -> Answer:
        given = {"Accept": accept, "User-Agent": agent}
        if packing:
            given["Accept-Encoding"] = packing
        if body is not None:
            given["Content-Type"] = media
        path, _, asked = path.partition("?")
        pairs = (each.partition("=") for each in asked.split("&") if each)
        request = Request(
            method=method,
            path=path,
            query=(*((key, value) for key, _, value in pairs), *query.items()),
            headers=tuple(given.items()),
            body=None if body is None else encoded(body),
        )
        response = await self.transport.send(request, progress=Progress())
        try:
            read = bytes(await response.read(limit=LIMIT))
        finally:
            response.close()
        return Answer(
            status=response.status,
            media="".join(response.headers("Content-Type")),
            body=read,
            encoding="".join(response.headers("Content-Encoding")),
            warnings=tuple(response.headers("Warning")),
        )


class Settling(Asker):
    """Answers a write when the next one is sure to start from what it left.

    A real server tries a write on the object in its watch cache, which lags behind, and
    again on the stored one if that was another: webhooks are asked for both. A read of
    at least some version waits for the cache.
    """

    async def __call__(
        self, method: str, path: str, body: Any = None, **more: Any
    ) -> Answer:
        answer = await super().__call__(method, path, body, **more)
        if method not in ("POST", "PUT", "PATCH") or answer.status not in (200, 201):
            return answer
        found = answer.obj["metadata"]
        if version := found.get("resourceVersion"):
            name = f"/{found['name']}" if method == "POST" else ""
            written = path.partition("?")[0] + name
            await super().__call__("GET", written, resourceVersion=version)
        return answer


def encoded(body: Any) -> bytes:
    """A body: bytes as they are, anything else as JSON."""
    return body if isinstance(body, bytes) else msgspec.json.encode(body)


@asynccontextmanager
async def asking(cluster: Cluster, namespace: str) -> AsyncIterator[Asker]:
    """An asker for the length of the block."""
    transport = HttpTransport(load(kubeconfig=cluster.kubeconfig))
    try:
        yield Asker(transport, namespace)
    finally:
        await transport.close()


@pytest.fixture(name="ask")
async def settling(cluster: Cluster, namespace: str) -> AsyncIterator[Settling]:
    async with asking(cluster, namespace) as made:
        yield Settling(made.transport, namespace)


@pytest.fixture
async def ask(cluster: Cluster, namespace: str) -> AsyncIterator[Asker]:
    async with asking(cluster, namespace) as made:
        yield made
