"""What tests of the client share that speak to a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from tests.client.conftest import leaves_nothing
from tests.client.kinds import ConfigMap, Website
from trimtab.api import crd
from trimtab.client import Client, Impersonation, load
from trimtab.client.credentials import Static
from trimtab.client.errors import AlreadyExists, NotFound
from trimtab.testing import Cluster, eventually


@asynccontextmanager
async def client_of(
    cluster: Cluster,
    *,
    namespace: str,
    token: str | None = None,
    acting: Impersonation | None = None,
) -> AsyncIterator[Client]:
    """A client as the administrator, or by a token, or acting as somebody."""
    config = load(
        kubeconfig=cluster.kubeconfig, namespace=namespace, impersonate=acting
    )
    if token is not None:
        config = msgspec.structs.replace(
            config,
            credentials=Static({"Authorization": f"Bearer {token}"}),
            tls=msgspec.structs.replace(config.tls, certificate=None, key=None),
        )
    client = Client(config)
    try:
        yield client
        await leaves_nothing(client)
    finally:
        await client.close()


def is_ours(obj: ConfigMap) -> bool:
    """Whether a test made it; a cluster puts one into each namespace by itself."""
    return obj.metadata.name != "kube-root-ca.crt"


async def defines(client: Client, definition: dict[str, Any] | None = None) -> None:
    """Have the server serve a kind, Website if no other is named."""
    definition = definition or crd(Website)
    with suppress(AlreadyExists):
        await client.create(definition)
    name = definition["metadata"]["name"]
    kinds = await client.discover("apiextensions.k8s.io/v1", definition["kind"])

    async def is_established() -> bool:
        found = await client.get(kinds, name)
        conditions = found.get("status", {}).get("conditions") or []
        return {"Established"} <= {
            each["type"] for each in conditions if each["status"] == "True"
        }

    await eventually(is_established, within=20)
    if definition["spec"]["names"]["kind"] == "Website":
        await eventually(lambda: _is_served(client), within=20)


async def _is_served(client: Client) -> bool:
    try:
        await client.list(Website).next_page()
    except NotFound:
        return False
    return True
