"""Nodes as the gateway knows them: they register, beat, and are told apart by session.

A session is one life of a node. Its id is what the node calls itself; its token proves
it, and only a hash of it is stored.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime
from random import Random
from typing import cast, get_args

import msgspec

from trimtab.api import Metadata, fit, hashed, wire
from trimtab.api.names import InvalidName, check_label_key, check_label_value
from trimtab.api.times import rfc3339
from trimtab.cache import Index, Informer
from trimtab.client import Client, Conflict, Invalid, NotFound, TrimtabError
from trimtab.operators.vmafx.kinds import Doing, Vendor, VmafxNode, VmafxNodeSpec
from trimtab.operators.vmafx.tenancy.admitting import TooMany

BY_SESSION = Index("session", lambda node: (node.status.session,))

MOST_NODES = 256
"""Nodes of one tenant."""
_VENDORS: dict[str, Vendor] = {"cuda": "nvidia", "hip": "amd", "sycl": "intel"}
_MOST_JOBS = 64
_MOST_BACKENDS = 16
_MOST_LABELS = 32


class NoSession(TrimtabError):
    """No node lives under this session, or its token is another: register again."""


class Capability(msgspec.Struct, frozen=True, kw_only=True):
    """What a node says it can do."""

    vendor: str = ""
    backends: tuple[str, ...] = ()
    concurrency: int = 1
    device: str = ""
    labels: Mapping[str, str] = {}


class Session(msgspec.Struct, frozen=True):
    """What a node is told when it registers; the token is shown nowhere else."""

    id: str
    token: str

    def __repr__(self) -> str:
        return f"Session({self.id!r})"


class Nodes:
    """Registers nodes and writes their beats, each one object at most.

    Assumptions: the informer has the index ``BY_SESSION``.
    """

    def __init__(
        self,
        client: Client,
        informer: Informer[VmafxNode],
        *,
        namespace: str,
        random: Random,
    ) -> None:
        self._client = client
        self.informer = informer
        self._namespace = namespace
        self._random = random

    async def register(
        self, name: str, can: Capability, *, now: datetime, tenant: str = ""
    ) -> Session:
        """Begin a session of a node; an earlier one of the same name is over.

        Nodes of two tenants never are the same, whatever they call themselves.

        Errors: :class:`TooMany` for one more than a tenant may have.
        """
        session = Session(
            f"{self._random.getrandbits(128):032x}",
            f"{self._random.getrandbits(256):064x}",
        )
        name = name.lower()
        object_name = hashed(f"{tenant}-{name}", tenant, name) if tenant else fit(name)
        self._check_room(object_name, tenant)
        await self._ensure(object_name, can)
        status = {
            "session": session.id,
            "tokenHash": _hash(session.token),
            "tenant": tenant,
            "backends": list(can.backends[:_MOST_BACKENDS]),
            "detectedDevice": can.device,
            "lastHeartbeat": rfc3339(now),
            "beat": 0,
            "jobs": [],
            "assignedJobs": 0,
            "draining": False,
        }
        node = await self._client.patch(
            VmafxNode,
            object_name,
            {"status": status},
            namespace=self._namespace,
            subresource="status",
        )
        self.informer.store.written(node)
        return session

    def _check_room(self, name: str, tenant: str) -> None:
        """A tenant has so many nodes at most, and can fill nothing with them."""
        if not tenant or self.informer.store.get((self._namespace, name)):
            return
        known = self.informer.store.values()
        if sum(each.status.tenant == tenant for each in known) >= MOST_NODES:
            raise TooMany(
                f"The caller has {MOST_NODES} nodes, and may have no more: a node that "
                "is silent for an hour makes room."
            )

    async def _ensure(self, name: str, can: Capability) -> None:
        spec = VmafxNodeSpec(gpuVendor=_vendor(can), capacity=max(1, can.concurrency))
        labels = _labels(can)
        metadata = Metadata(name=name, namespace=self._namespace, labels=labels)
        try:
            await self._client.create(VmafxNode(metadata=metadata, spec=spec))
        except Conflict:  # it was there before
            body = {"metadata": {"labels": labels}, "spec": wire(spec)}
            await self._client.patch(VmafxNode, name, body, namespace=self._namespace)

    async def find(self, session: str, token: str, *, tenant: str = "") -> VmafxNode:
        """The node of a session, which is this tenant's.

        A gateway that has not heard of the session yet asks the server once.

        Errors: :class:`NoSession`.
        """
        known = self.informer.store.by(BY_SESSION.name, session) if session else []
        node = known[0] if known else await self._look(session)
        if (
            node is None
            or node.status.tenant != tenant
            or not hmac.compare_digest(node.status.tokenHash, _hash(token))
        ):
            raise NoSession("This session is not known, or over: register again.")
        return node

    async def _look(self, session: str) -> VmafxNode | None:
        if not session:
            return None
        async for node in self._client.list(VmafxNode, namespace=self._namespace):
            if node.status.session == session:
                self.informer.store.written(node)
                return node
        return None

    async def read(self, name: str) -> VmafxNode | None:
        """A node as it is now, whatever the cache says; None if it is gone."""
        try:
            node = await self._client.get(VmafxNode, name, namespace=self._namespace)
        except NotFound:
            return None
        self.informer.store.written(node)
        return node

    async def beat(
        self,
        node: VmafxNode,
        doing: Sequence[Doing],
        *,
        now: datetime,
        draining: bool = False,
    ) -> VmafxNode:
        """Write what a node says of itself: one write.

        Errors: :class:`NoSession` when it has registered anew meanwhile.
        """
        jobs = [wire(each) for each in doing[:_MOST_JOBS]]
        values = {
            "beat": node.status.beat + 1,
            "jobs": jobs,
            "assignedJobs": len(jobs),
            "lastHeartbeat": rfc3339(now),
            "draining": draining,
        }
        session = {
            "op": "test",
            "path": "/status/session",
            "value": node.status.session,
        }
        changes = [
            {"op": "add", "path": f"/status/{name}", "value": value}
            for name, value in values.items()
        ]
        try:
            written = await self._client.patch(
                VmafxNode,
                node.metadata.name,
                [session, *changes],
                how="json",
                namespace=self._namespace,
                subresource="status",
            )
        except (Invalid, NotFound):
            raise NoSession("This session is over: register again.") from None
        self.informer.store.written(written)
        return written


def _labels(can: Capability) -> dict[str, str]:
    """The labels that a node may have; of one that no label can be, nothing."""
    found: dict[str, str] = {}
    for key, value in sorted(can.labels.items())[:_MOST_LABELS]:
        try:
            check_label_key(key)
            check_label_value(value)
        except InvalidName:
            continue
        found[key] = value
    return found


def _vendor(can: Capability) -> Vendor:
    for vendor in get_args(Vendor):
        if can.vendor == vendor:
            return cast(Vendor, vendor)
    return next((_VENDORS[each] for each in can.backends if each in _VENDORS), "cpu")


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
