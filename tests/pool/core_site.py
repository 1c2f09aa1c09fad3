"""A site for tests of the pool: a node, pools, and replicas on the run's cluster."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

from tests.kubelet.laptop import laptop
from trimtab.api import Metadata, Quantity
from trimtab.client import Client, load
from trimtab.client.calling import Caller
from trimtab.kinds import Pod, Secret
from trimtab.pool.httpcalls import HttpCalls
from trimtab.pool.keyring import SecretKeyring
from trimtab.pool.kinds import (
    KINDS,
    LABEL_WORKER,
    Shape,
    TenantLedger,
    Worker,
    WorkerPool,
    WorkerPoolSpec,
    ledger_name,
)
from trimtab.pool.parts import PoolOptions
from trimtab.pool.replica import Replica
from trimtab.pool.requests import AcquireRequest
from trimtab.pool.states import TERMINAL, State
from trimtab.testing import Cluster, eventually, install

SMALL = Shape(name="small", cpu=Quantity("500m"), memory=Quantity("256Mi"))
COMMAND = [sys.executable, "-m", "trimtab.pool.worker", "--grace", "0"]


def template(node: str = "") -> dict[str, Any]:
    """Workers that are the real program, on one node."""
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {
                "name": "main",
                "image": "local",
                "command": COMMAND,
            }
        ],
    }
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    return {"spec": spec}


class Site:
    """One namespace of a cluster, with short words for what tests do with it."""

    def __init__(self, client: Client, cluster: Cluster, namespace: str) -> None:
        self.client = client
        self.cluster = cluster
        self.namespace = namespace
        self.node = ""

    async def pool(self, name: str = "pool", **spec: Any) -> WorkerPool:
        settings = {"template": template(self.node), "shapes": [SMALL], **spec}
        return await self.client.create(
            WorkerPool(
                metadata=Metadata(name=name, namespace=self.namespace),
                spec=WorkerPoolSpec(**settings),
            )
        )

    def options(self, **changes: Any) -> PoolOptions:
        quick: dict[str, Any] = {
            "lease_namespace": self.namespace,
            "namespaces": (self.namespace,),
            "lease_seconds": 5.0,
            "grace": 0.3,
            "period": 0.3,
            **changes,
        }
        return PoolOptions(**quick)

    @asynccontextmanager
    async def replica(self, name: str = "a", **changes: Any) -> AsyncIterator[Replica]:
        """A replica that is ready, and has stopped in order at the end."""
        async with Client(load(kubeconfig=self.cluster.kubeconfig)) as client:
            made = Replica(
                client,
                calls=HttpCalls(Caller()),
                keyring=SecretKeyring(client, now=wall, random=SystemRandom()),
                options=self.options(name=name, **changes),
                random=Random(f"{self.namespace} {name}"),
                now=wall,
                connect=lambda: Client(load(kubeconfig=self.cluster.kubeconfig)),
            )
            async with asyncio.TaskGroup() as group:
                running = group.create_task(made.run())
                ready = group.create_task(made.ready.wait())
                await asyncio.wait(
                    (running, ready), return_when=asyncio.FIRST_COMPLETED
                )
                try:
                    if ready.done():
                        yield made
                finally:
                    ready.cancel()
                    made.stop()

    async def workers(self) -> list[Worker]:
        found = self.client.list(Worker, namespace=self.namespace)
        return [each async for each in found]

    async def living(self, *states: State) -> list[Worker]:
        wanted = states or tuple(set(State) - TERMINAL)
        return [each for each in await self.workers() if each.status.state in wanted]

    async def until(self, count: int, *states: State, within: float = 20.0) -> None:
        async def look() -> bool:
            found = [each.status.state for each in await self.living(*states)]
            assert len(found) == count, found
            return True

        await eventually(look, within=within, every=0.05)

    async def entries(self, tenant: str = "", pool: str = "pool") -> list[str]:
        """What the ledger of a tenant counts."""
        at = ledger_name(pool, tenant)
        ledger = await self.client.get(TenantLedger, at, namespace=self.namespace)
        return [each.checkout for each in ledger.status.entries]

    async def leftovers(self) -> list[str]:
        """Pods and Secrets of workers that are there."""
        found: list[str] = []
        for kind in (Pod, Secret):
            listing = self.client.list(
                kind, namespace=self.namespace, labels=LABEL_WORKER
            )
            found += [str(each) async for each in listing]
        return found

    def request(self, tenant: str = "acme", **more: Any) -> AcquireRequest:
        settings: dict[str, Any] = {
            "pool": (self.namespace, "pool"),
            "holder": "me",
            **more,
        }
        return AcquireRequest(tenant=tenant, **settings)


def wall() -> datetime:
    return datetime.now(UTC)


@asynccontextmanager
async def site(cluster: Cluster, namespace: str) -> AsyncIterator[Site]:
    """A site without a node: for what needs no pods."""
    async with Client(load(kubeconfig=cluster.kubeconfig)) as client:
        await install(client, *KINDS)
        yield Site(client, cluster, namespace)


@asynccontextmanager
async def site_with_node(
    cluster: Cluster, namespace: str, folder: Path
) -> AsyncIterator[Site]:
    """A site where pods run as processes of this machine."""
    async with site(cluster, namespace) as made:
        async with laptop(cluster, namespace, folder) as node:
            made.node = node.name
            yield made
