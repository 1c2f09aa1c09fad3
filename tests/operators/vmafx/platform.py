"""The whole platform around a test: operator, gateway and nodes, on its cluster."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc

from trimtab.api import Metadata
from trimtab.cache import Scope
from trimtab.client import Client, load
from trimtab.kinds import ServiceAccount
from trimtab.operators.vmafx.calling import Caller
from trimtab.operators.vmafx.feedback import Feedback
from trimtab.operators.vmafx.gateway import GatewayOptions, serving
from trimtab.operators.vmafx.kinds import VmafxJob, VmafxJobSpec
from trimtab.operators.vmafx.node import Node, NodeOptions
from trimtab.operators.vmafx.operator import make
from trimtab.operators.vmafx.relay import Way
from trimtab.operators.vmafx.roots import Roots
from trimtab.operators.vmafx.scoring import MODEL, score
from trimtab.operators.vmafx.segments import Segment
from trimtab.operators.vmafx.tools import Ffmpeg
from trimtab.runtime.access import Reviews
from trimtab.runtime.webhooks.declarations import Declarations
from trimtab.testing import Cluster, eventually, running

RIGHTS = {
    "reader": [("vmafxjobs", ["get", "list", "watch"])],
    "writer": [("vmafxjobs", ["create"])],
    "node": [("vmafxnodes", ["work"])],
}


class Platform:
    """What a test needs of it."""

    def __init__(self, client: Client, namespace: str, folder: Path) -> None:
        self.client = client
        self.namespace = namespace
        self.folder = folder
        self.http: list[int] = []
        """The ports of each gateway's HTTP."""
        self._stack = AsyncExitStack()

    async def gateway(
        self,
        *,
        lease: float = 60.0,
        scorer: Any = None,
        roots: tuple[str, ...] = (),
        client: Client | None = None,
        others: tuple[str, ...] = (),
        change: Callable[[GatewayOptions], GatewayOptions] = lambda options: options,
    ) -> int:
        """Another replica of the gateway; its port."""
        used = client or self.client
        options = GatewayOptions(
            namespace=self.namespace,
            scope=Scope(namespaces=(self.namespace, *others)),
            port=0,
            http=0,
            roots=Roots((str(self.folder), *roots)),
            lease=lease,
        )
        served = await self._stack.enter_async_context(
            serving(
                used,
                judge=Reviews(used),
                options=change(options),
                now=lambda: datetime.now(UTC),
                random=random.SystemRandom(),
                scorer=scorer,
            )
        )
        self.http.append(served.http)
        return served.grpc

    @asynccontextmanager
    async def caller(self, port: int, role: str) -> AsyncIterator[Caller]:
        """Somebody with a role, at the gateway of a port."""
        token = await self.token(role)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield Caller(channel, token=token)

    async def token(self, role: str) -> Path:
        file = self.folder / f"{self.namespace}-{role}.token"
        if file.exists():
            return file
        where = {"name": role, "namespace": self.namespace}
        await self.client.create(
            ServiceAccount(metadata=Metadata(name=role, namespace=self.namespace))
        )
        rbac = "rbac.authorization.k8s.io"
        rules = [
            {"apiGroups": ["vmafx.dev"], "resources": [resource], "verbs": verbs}
            for resource, verbs in RIGHTS.get(role, [])
        ]
        await self.client.create(
            {
                "apiVersion": f"{rbac}/v1",
                "kind": "Role",
                "metadata": where,
                "rules": rules,
            }
        )
        await self.client.create(
            {
                "apiVersion": f"{rbac}/v1",
                "kind": "RoleBinding",
                "metadata": where,
                "roleRef": {"apiGroup": rbac, "kind": "Role", "name": role},
                "subjects": [{"kind": "ServiceAccount", **where}],
            }
        )
        made = await self.client.token(role, namespace=self.namespace)
        file.touch(mode=0o600)
        file.write_text(made.token)
        return file

    async def submit(
        self, name: str, reference: Path, distorted: Path, **spec: Any
    ) -> None:
        """Create the object of a job, as kubectl would."""
        await self.client.create(
            VmafxJob(
                metadata=Metadata(name=name, namespace=self.namespace),
                spec=VmafxJobSpec(
                    reference=str(reference), distorted=str(distorted), **spec
                ),
            )
        )

    async def job(self, name: str) -> VmafxJob:
        return await self.client.get(VmafxJob, name, namespace=self.namespace)

    async def ended(self, name: str, *, within: float = 30.0) -> VmafxJob:
        """The job when its phase is final."""

        async def over() -> VmafxJob | None:
            found = await self.job(name)
            final = ("Succeeded", "Failed", "Cancelled")
            return found if found.status.phase in final else None

        found = await eventually(over, within=within)
        assert found is not None
        return found


@asynccontextmanager
async def node(
    platform: Platform,
    port: int,
    name: str,
    *,
    ffmpeg: Ffmpeg,
    change: Callable[[NodeOptions], NodeOptions] = lambda options: options,
    way: Way | None = None,
    feedback: Feedback | None = None,
) -> AsyncIterator[Node]:
    """A node that works for as long as the block runs, and then drains."""

    async def scorer(
        reference: str,
        distorted: str,
        *,
        model: str,
        progress: Any,
        segment: Segment | None = None,
    ) -> Any:
        return await score(
            reference,
            distorted,
            ffmpeg=ffmpeg,
            threads=1,
            model=model or MODEL,
            progress=progress,
            way=way,
            segment=segment,
        )

    options = change(NodeOptions(name=name, beat=1.0, pull=5.0, patience=10.0))
    async with platform.caller(port, "node") as caller:
        made = Node(
            caller,
            scorer,
            options=options,
            random=random.Random(7),
            feedback=feedback,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(made.run())
            try:
                yield made
            finally:
                made.drain()


@asynccontextmanager
async def platform(
    cluster: Cluster,
    namespace: str,
    folder: Path,
    *,
    webhooks: bool = False,
    **options: Any,
) -> AsyncIterator[Platform]:
    """The operator in a namespace, and the means for the rest."""
    app = make(random=random.SystemRandom(), **options)
    if not webhooks:
        app.webhooks = Declarations()
    async with (
        running(app, cluster, namespace),
        Client(load(kubeconfig=cluster.kubeconfig, namespace=namespace)) as client,
    ):
        made = Platform(client, namespace, folder)
        async with made._stack:
            yield made
