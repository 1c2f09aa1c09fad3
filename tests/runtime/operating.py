"""What tests of the runtime share: a kind of their own, and operators that run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any

from tests.client.clusters import defines
from trimtab import (
    Client,
    Conditions,
    Metadata,
    Operator,
    Resource,
    Scope,
    Spec,
    Status,
    crd,
    field,
    load,
)
from trimtab.runtime.lease import LeaseOptions
from trimtab.runtime.manager import Manager, ManagerOptions
from trimtab.testing import Cluster, eventually


class ShopSpec(Spec):
    """What the shop sells."""

    goods: str = "tea"
    shelves: int = 1


class ShopStatus(Status):
    """What two owners say of it."""

    selling: str = ""
    shelves: int = 0
    visitors: int = field(default=0, owner="door")
    conditions: Conditions = Conditions()


class Shop(Resource, group="runtime.example.com", version="v1"):
    """A kind for the tests of the runtime."""

    spec: ShopSpec = ShopSpec()
    status: ShopStatus = ShopStatus()


def shop(name: str, **spec: Any) -> Shop:
    return Shop(metadata=Metadata(name=name), spec=ShopSpec(**spec))


def here(namespace: str) -> Scope:
    """What a test may see: its own namespace."""
    return Scope(namespaces=(namespace,))


def options(
    namespace: str, *, name: str = "test", duration: float = 15.0, **others: Any
) -> ManagerOptions:
    """Any port, and a lease that a busy machine does not lose."""
    lease = LeaseOptions(
        name=name,
        namespace=namespace,
        identity=f"{name}-{Random().getrandbits(32)}",
        duration=duration,
        renew_deadline=duration * 2 / 3,
        retry=0.3,
    )
    return ManagerOptions(**{"port": 0, "lease": lease, **others})


def manager_of(
    app: Operator,
    cluster: Cluster | str,
    client: Client,
    *,
    options: ManagerOptions,
) -> Manager:
    namespace = client.config.namespace
    kubeconfig = cluster if isinstance(cluster, str) else cluster.kubeconfig
    return Manager(
        app,
        client,
        connect=lambda: Client(load(kubeconfig=kubeconfig, namespace=namespace)),
        random=Random(1),
        now=lambda: datetime.now(UTC),
        options=options,
    )


@asynccontextmanager
async def running(
    app: Operator, cluster: Cluster, client: Client, **others: Any
) -> AsyncIterator[Manager]:
    """The operator, while the block runs; it must stop in time."""
    chosen = options(client.config.namespace, **others)
    manager = manager_of(app, cluster, client, options=chosen)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        await eventually(lambda: manager.ready.is_set() or task.done())
        try:
            yield manager
        finally:
            manager.stop()
            async with asyncio.timeout(20):
                await asyncio.wait([task])


@asynccontextmanager
async def client_in(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    """A client whose server knows the Shop."""
    config = load(kubeconfig=cluster.kubeconfig, namespace=namespace)
    async with Client(config) as client:
        await defines(client, crd(Shop))
        yield client


async def until(
    client: Client, name: str, holds: Callable[[Shop], object], *, within: float = 10.0
) -> Shop:
    """The shop, once something is true of it."""

    async def look() -> Shop | None:
        found = await client.get(Shop, name)
        return found if holds(found) else None

    found = await eventually(look, within=within)
    assert found is not None
    return found
