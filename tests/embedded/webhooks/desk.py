"""A desk: a real HTTPS server in the test that answers reviews, and remembers them."""

from __future__ import annotations

import asyncio
import secrets
import ssl
import tempfile
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tests.embedded.asking import Asker
from trimtab.embedded.certificates import Authority, Pair
from trimtab.testing import eventually

Plain = dict[str, Any]
Answering = Callable[[Plain], Any]
GROUP = "/apis/admissionregistration.k8s.io/v1"
DOMAIN = "tests.trimtab.dev"
NOT_READY = {"key": "ready", "operator": "DoesNotExist"}
"""Keeps other webhooks away from what only finds out whether they count."""


class Raw(msgspec.Struct, frozen=True):
    """An answer that is no review."""

    body: bytes
    status: int = 200


@lru_cache(maxsize=1)
def authority() -> Authority:
    return Authority.make("webhook-tests", now=datetime.now(UTC))


@lru_cache(maxsize=4)
def pair(*names: str) -> Pair:
    return authority().issue_server("desk", names=names, now=datetime.now(UTC))


def ca_bundle() -> str:
    return b64encode(authority().pair.certificate).decode()


def _nothing(_: Plain) -> None:
    """Nothing special: it is allowed."""


class Desk:
    """Answers at each path as it is told to; allows what it was told nothing about."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.heard: list[tuple[str, Plain]] = []
        """Path and request of every review, in the order in which they came."""
        self.bodies: list[Plain] = []
        self.queries: list[str] = []
        self._answers: dict[str, Answering] = {}

    def tell(self, path: str, answering: Answering) -> None:
        """How to answer at a path: a response, a :class:`Raw`, or nothing special."""
        self._answers[path] = answering

    def at(self, path: str) -> list[Plain]:
        """The requests that came to a path."""
        return [request for where, request in self.heard if where == path]

    def forget(self) -> None:
        for each in (self.heard, self.bodies, self.queries):
            each.clear()

    def client(self, path: str) -> Plain:
        url = f"https://127.0.0.1:{self.port}{path}"
        return {"url": url, "caBundle": ca_bundle()}

    async def handle(self, request: web.Request) -> web.Response:
        review = msgspec.json.decode(await request.read())
        asked = review["request"]
        if request.path != "/ready":
            self.heard.append((request.path, asked))
            self.bodies.append(review)
            self.queries.append(request.query_string)
        answering: Answering = self._answers.get(request.path, _nothing)
        told = answering(asked)
        if isinstance(told, Awaitable):
            told = await told
        if isinstance(told, Raw):
            return web.Response(body=told.body, status=told.status)
        response = {"uid": asked["uid"], "allowed": True, **(told or {})}
        answer = {
            "kind": review["kind"],
            "apiVersion": review["apiVersion"],
            "response": response,
        }
        return web.json_response(body=msgspec.json.encode(answer))


@asynccontextmanager
async def a_desk(*names: str) -> AsyncIterator[Desk]:
    made = pair(*(names or ("127.0.0.1",)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        await asyncio.to_thread(Path(file.name).write_bytes, made.pem)
        context.load_cert_chain(file.name)
    app = web.Application(client_max_size=16 << 20)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    desk = Desk(0)
    app.router.add_post("/{path:.*}", desk.handle)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    desk.port = runner.addresses[0][1]
    try:
        yield desk
    finally:
        assert runner.server is not None, "it was set up"
        for caller in runner.server.connections:  # who would keep them for more
            if caller.transport is not None:
                caller.transport.abort()
        await runner.cleanup()


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with a_desk() as made:
        yield made


def patch(*operations: Plain) -> Plain:
    """A response that changes the object."""
    text = b64encode(msgspec.json.encode(list(operations))).decode()
    return {"patchType": "JSONPatch", "patch": text}


def rule(resources: list[str], *operations: str, **more: Any) -> Plain:
    return {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "resources": resources,
        "operations": list(operations) or ["*"],
        **more,
    }


class Office:
    """Where configurations are put up, for one namespace, and taken down again."""

    def __init__(self, ask: Asker, desk: Desk) -> None:
        self.ask = ask
        self.desk = desk
        self._up: list[tuple[str, str]] = []

    def hook(self, path: str, rules: list[Plain], **more: Any) -> Plain:
        """A webhook that is asked about this namespace only."""
        here = {"kubernetes.io/metadata.name": self.ask.namespace}
        return {
            "name": f"{path.strip('/').replace('/', '-')}.{DOMAIN}",
            "clientConfig": self.desk.client(path),
            "rules": rules,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 10,
            "namespaceSelector": {"matchLabels": here},
            "objectSelector": {"matchExpressions": [NOT_READY]},
            **more,
        }

    async def mutating(self, *hooks: Plain, name: str = "") -> str:
        return await self.put_up("MutatingWebhookConfiguration", *hooks, name=name)

    async def validating(self, *hooks: Plain, name: str = "") -> str:
        return await self.put_up("ValidatingWebhookConfiguration", *hooks, name=name)

    async def put_up(self, kind: str, *hooks: Plain, name: str = "") -> str:
        """Write a configuration, and wait until it counts."""
        name = f"{name or 'hooks'}-{secrets.token_hex(4)}"
        labels = {"ready": name}
        ready = self.hook(
            "/ready",
            [rule(["configmaps"], "CREATE")],
            objectSelector={"matchLabels": labels},
        )
        seen: list[Plain] = []
        self.desk.tell("/ready", lambda request: seen.append(request))
        body = {"metadata": {"name": name}, "webhooks": [ready, *hooks]}
        path = f"{GROUP}/{kind.lower()}s"
        made = await self.ask("POST", path, body)
        assert made.status == 201, made.body
        self._up.append((path, name))
        probe = {"metadata": {"name": "probe", "labels": labels}}

        async def counts() -> bool:
            await self.ask("POST", self.ask.path("configmaps"), probe, dryRun="All")
            return bool(seen)

        await eventually(counts, within=10, describe=f"{name} counts")
        self.desk.forget()
        return name

    async def take_down(self) -> None:
        for path, name in self._up:
            await self.ask("DELETE", f"{path}/{name}")


@pytest.fixture
async def office(ask: Asker, desk: Desk) -> AsyncIterator[Office]:
    made = Office(ask, desk)
    try:
        yield made
    finally:
        await made.take_down()
