"""People who are not the administrator, and what they are given, on either cluster."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.embedded.asking import JSON, LIMIT, Answer, encoded
from trimtab.client import load
from trimtab.client.http import HttpTransport
from trimtab.client.transport import Progress, Request
from trimtab.testing import Cluster, Options, Token, eventually
from trimtab.testing.cluster import started

GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"
ACCESS = "/apis/authorization.k8s.io/v1"
WHO = "/apis/authentication.k8s.io/v1"
JANE = Token(token="jane-comes-in", user="jane", groups=("crew",))

Plain = dict[str, Any]
Headers = Sequence[tuple[str, str]]


@pytest.fixture(scope="module")
def peopled(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster that Jane may come into, and nothing more."""
    options = Options(controllers=True, tokens=[JANE])
    with started(request.config.getoption("--cluster"), options=options) as made:
        yield made


class Person:
    """Asks as one user, with any headers."""

    def __init__(self, transport: HttpTransport, headers: Headers = ()) -> None:
        self._transport = transport
        self._headers = headers

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Headers = (),
        media: str = JSON,
        **query: str,
    ) -> Answer:
        request = Request(
            method=method,
            path=path,
            query=tuple(query.items()),
            headers=(
                ("Accept", JSON),
                ("Content-Type", media),
                *self._headers,
                *headers,
            ),
            body=None if body is None else encoded(body),
        )
        response = await self._transport.send(request, progress=Progress())
        try:
            read = bytes(await response.read(limit=LIMIT))
        finally:
            response.close()
        kind = "".join(response.headers("Content-Type"))
        return Answer(status=response.status, media=kind, body=read)

    async def make(self, path: str, **body: Any) -> Answer:
        """Create an object with a new name."""
        meta = {"name": name(), **body.pop("metadata", {})}
        return await self("POST", path, {"metadata": meta, **body})


@asynccontextmanager
async def person(
    cluster: Cluster, called: str, headers: Headers = ()
) -> AsyncIterator[Person]:
    transport = HttpTransport(load(kubeconfig=cluster.kubeconfig, context=called))
    try:
        yield Person(transport, headers)
    finally:
        await transport.close()


@pytest.fixture
async def admin(peopled: Cluster) -> AsyncIterator[Person]:
    async with person(peopled, "admin") as made:
        yield made


@pytest.fixture
async def jane(peopled: Cluster) -> AsyncIterator[Person]:
    credential = [("Authorization", f"Bearer {JANE.token}")]
    async with person(peopled, JANE.user, credential) as made:
        yield made


@pytest.fixture
async def place(admin: Person) -> AsyncIterator[str]:
    """A namespace of one's own."""
    made = await admin.make("/api/v1/namespaces")
    assert made.status == 201, made.body
    yield made.meta["name"]
    await admin("DELETE", f"/api/v1/namespaces/{made.meta['name']}")


def name() -> str:
    return f"made-{secrets.token_hex(4)}"


def rule(verbs: str, resources: str, *, group: str = "", **more: Any) -> Plain:
    """A rule of words that stand in a row."""
    given = {"apiGroups": [group], "resources": resources.split(), **more}
    return {"verbs": verbs.split(), **given}


def user(called: str) -> Plain:
    return {"kind": "User", "apiGroup": GROUP, "name": called}


def reference(kind: str, called: str) -> Plain:
    return {"apiGroup": GROUP, "kind": kind, "name": called}


async def settled(admin: Person, place: str = "") -> None:
    """Wait until all that was written is known to those who decide."""
    # A user of its own is bound last, and asked for until it is known.
    called = name()
    where = f"{RBAC}/namespaces/{place}/rolebindings" if place else ""
    path = where or f"{RBAC}/clusterrolebindings"
    made = await admin.make(
        path,
        roleRef=reference("ClusterRole", "cluster-admin"),
        subjects=[user(called)],
    )
    assert made.status == 201, made.body
    asked = {"verb": "get", "resource": "pods", "namespace": place}
    spec = {"user": called, "resourceAttributes": asked}

    async def known() -> bool:
        told = await admin("POST", f"{ACCESS}/subjectaccessreviews", {"spec": spec})
        return bool(told.obj["status"]["allowed"])

    await eventually(known, within=10)
    await admin("DELETE", f"{path}/{made.meta['name']}")


async def grant(
    admin: Person, *rules: Plain, place: str = "", to: Plain | None = None
) -> tuple[str, str]:
    """Give somebody some rules, in one place or everywhere: the role, the binding."""
    within = f"{RBAC}/namespaces/{place}/" if place else f"{RBAC}/cluster"
    kind = "Role" if place else "ClusterRole"
    role = await admin.make(f"{within}roles", rules=list(rules))
    assert role.status == 201, role.body
    binding = await admin.make(
        f"{within}rolebindings",
        roleRef=reference(kind, role.meta["name"]),
        subjects=[to or user(JANE.user)],
    )
    assert binding.status == 201, binding.body
    await settled(admin, place)
    return role.meta["name"], binding.meta["name"]


async def revoke(admin: Person, binding: str, *, place: str = "") -> None:
    within = f"{RBAC}/namespaces/{place}/" if place else f"{RBAC}/cluster"
    await admin("DELETE", f"{within}rolebindings/{binding}")
    await settled(admin, place)
