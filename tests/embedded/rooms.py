"""A namespace, and ConfigMaps in it that own each other, where controllers run."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.embedded.asking import MERGE, Answer, Asker, asking
from trimtab.testing import Cluster, Options, eventually
from trimtab.testing.cluster import started

FINALIZER = "tests.trimtab.dev/hold"


@pytest.fixture(scope="module")
def controlled(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A real cluster has no controllers unless it is asked for them."""
    kind = request.config.getoption("--cluster")
    if kind == "embedded":
        yield request.getfixturevalue("cluster")
        return
    with started(kind, options=Options(controllers=True)) as made:
        yield made


@pytest.fixture
async def ask(controlled: Cluster) -> AsyncIterator[Asker]:
    async with asking(controlled, "default") as made:
        yield made


class Room:
    """A namespace, and ConfigMaps in it that own each other."""

    def __init__(self, ask: Asker, name: str) -> None:
        self.ask = ask
        self.name = name
        self.place = f"/api/v1/namespaces/{name}"
        self.path = f"{self.place}/configmaps"

    async def make(
        self, name: str, *owners: Any, block: bool = False, held: bool = False
    ) -> Any:
        references = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "blockOwnerDeletion": block,
            }
            for owner in owners
        ]
        meta = {"name": name, "ownerReferences": references}
        if held:
            meta["finalizers"] = [FINALIZER]
        made = await self.ask("POST", self.path, {"metadata": meta})
        assert made.status == 201, made.body
        return made.obj

    async def get(self, name: str) -> Answer:
        return await self.ask("GET", f"{self.path}/{name}")

    async def delete(self, name: str, **options: Any) -> Answer:
        return await self.ask("DELETE", f"{self.path}/{name}", options)

    async def release(self, name: str) -> Answer:
        body = {"metadata": {"finalizers": None}}
        path = f"{self.path}/{name}"
        return await self.ask("PATCH", path, body, media=MERGE)

    async def is_gone(self, *names: str) -> None:
        async def gone() -> bool:
            return {(await self.get(name)).status for name in names} == {404}

        await eventually(gone, within=30, describe=f"{names} are gone")


@asynccontextmanager
async def furnished(ask: Asker) -> AsyncIterator[Room]:
    """A room that has what every namespace has."""
    name = f"room-{secrets.token_hex(4)}"
    place = f"/api/v1/namespaces/{name}"
    body = {"metadata": {"name": name}}
    assert (await ask("POST", "/api/v1/namespaces", body)).status == 201

    async def has_account() -> bool:
        return (await ask("GET", f"{place}/serviceaccounts/default")).status == 200

    await eventually(has_account, within=30)
    yield Room(ask, name)
    await ask("DELETE", place)


@pytest.fixture
async def room(ask: Asker) -> AsyncIterator[Room]:
    async with furnished(ask) as made:
        yield made
