"""A gateway for a test: real HTTPS and real reviews before workers that are made up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any

from trimtab import Client, load
from trimtab.api import Metadata, Quantity
from trimtab.cache import Key
from trimtab.pool.client import Pool
from trimtab.pool.gateway.api import Api
from trimtab.pool.gateway.gateway import Gateway
from trimtab.pool.kinds import Checkout, Worker, WorkerSpec, WorkerStatus
from trimtab.pool.requests import AcquireRequest, Grant, NotYours, Refused
from trimtab.pool.secrets import Authority
from trimtab.pool.states import Source, State
from trimtab.runtime.access import Reviews
from trimtab.testing import Cluster

RENEW_WITHIN = 6.0


def a_worker(name: str, namespace: str, **status: Any) -> Worker:
    return Worker(
        metadata=Metadata(name=name, namespace=namespace, uid=f"uid-{name}"),
        spec=WorkerSpec(
            pool="sql",
            shape="small",
            cpu=Quantity("1"),
            memory=Quantity("1Gi"),
            revision="r",
        ),
        status=WorkerStatus(**status),
    )


class Shelf:
    """Hands out made-up workers, one by one, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[AcquireRequest] = []
        self.out: dict[str, str] = {}
        """Holders by checkout."""
        self.renewals: list[tuple[str, list[str] | None]] = []
        self.drained: list[Key] = []
        self.unclean: list[str] = []
        self.refusal: Refused | None = None
        self.hold: asyncio.Event | None = None
        self.cancelled = 0
        self.rows: dict[str, Worker] = {}
        self._watchers: list[Callable[[Worker, bool], None]] = []

    async def acquire(self, request: AcquireRequest) -> Grant:
        self.asked.append(request)
        if self.refusal is not None:
            raise self.refusal
        if self.hold is not None:
            try:
                await self.hold.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        checkout = f"{len(self.asked):016x}"
        self.out[checkout] = request.holder
        name = f"worker-{len(self.asked)}"
        namespace = request.pool[0]
        held = Checkout(id=checkout, holder=request.holder)
        self.change(a_worker(name, namespace, state=State.HOT, checkout=held))
        return Grant(
            checkout=checkout,
            worker=name,
            uid=f"uid-{name}",
            namespace=namespace,
            address="127.0.0.1",
            port=1,
            token="a-secret-token",
            epoch=len(self.asked),
            ca=b"",
            renew_within=RENEW_WITHIN,
            source=Source.IDLE,
        )

    async def release(
        self,
        checkout: str,
        *,
        holder: str,
        clean: bool = True,
        worker: Key | None = None,
    ) -> None:
        if self.out.get(checkout) != holder:
            raise NotYours(f"The checkout {checkout} is not yours.")
        del self.out[checkout]
        if not clean:
            self.unclean.append(checkout)

    async def renew(
        self, holder: str, checkouts: Collection[str] | None = None
    ) -> None:
        self.renewals.append((holder, None if checkouts is None else list(checkouts)))

    async def drain(self, worker: Key) -> None:
        self.drained.append(worker)

    # The board

    def ready(self) -> bool:
        return True

    def workers(self, pool: Key) -> Iterable[Worker]:
        return list(self.rows.values())

    def subscribe(self, call: Callable[[Worker, bool], None]) -> Callable[[], None]:
        self._watchers.append(call)
        return lambda: self._watchers.remove(call)

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def change(self, worker: Worker, gone: bool = False) -> None:
        self.rows[worker.metadata.name] = worker
        for call in list(self._watchers):
            call(worker, gone)


class Desk:
    """A gateway, what is behind it, and who may come."""

    def __init__(self, cluster: Cluster, client: Client, namespace: str) -> None:
        self.cluster = cluster
        self.client = client
        self.namespace = namespace
        self.shelf = Shelf()
        self.reviewed: list[tuple[str, str]] = []
        self.authority = Authority.make("gateway", now=datetime.now(UTC))
        self.gateway: Gateway

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.gateway.port}"

    async def account(self, name: str, *rules: dict[str, Any]) -> str:
        """The token of a service account that may do this in the namespace."""
        meta = {"name": name, "namespace": self.namespace}
        rbac = "rbac.authorization.k8s.io"
        await self.client.create(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
        )
        if rules:
            role = {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": meta}
            await self.client.create({**role, "rules": list(rules)})
            await self.client.create(
                {
                    "apiVersion": f"{rbac}/v1",
                    "kind": "RoleBinding",
                    "metadata": meta,
                    "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
                    "subjects": [{"kind": "ServiceAccount", **meta}],
                }
            )
        made = await self.client.token(name, namespace=self.namespace)
        return made.token

    def pool(self, token: str, name: str = "sql") -> Pool:
        return Pool.connect(
            self.url,
            pool=f"{self.namespace}/{name}",
            token=token,
            ca=self.authority.pem,
            random=Random(7),
        )


def rule(*verbs: str, resource: str = "workerpools", name: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {
        "apiGroups": ["trimtab.dev"],
        "resources": [resource],
        "verbs": list(verbs),
    }
    return {**found, "resourceNames": [name]} if name else found


@asynccontextmanager
async def desk(cluster: Cluster, namespace: str) -> AsyncIterator[Desk]:
    """A gateway that is ready."""
    async with Client(load(kubeconfig=cluster.kubeconfig)) as client:
        made = Desk(cluster, client, namespace)
        reviews = Reviews(client, count=lambda *each: made.reviewed.append(each))
        api = Api(made.shelf, made.shelf, reviews, renew_within=RENEW_WITHIN)
        pair = made.authority.issue("127.0.0.1", now=datetime.now(UTC))
        made.gateway = Gateway(api, host="127.0.0.1", port=0, pair=pair)
        async with made.gateway:
            yield made
