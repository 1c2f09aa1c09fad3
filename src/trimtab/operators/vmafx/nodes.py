"""Nodes as the gateway knows them: they register, beat, and are told apart by session.

A session is one life of a node. Its id is what the node calls itself; its token proves
it, and only a hash of it is stored.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime
from random import Random
from typing import cast, get_args

import msgspec

from trimtab.api import Metadata, fit, wire
from trimtab.api.times import rfc3339
from trimtab.cache import Index, Informer
from trimtab.client import Client, Conflict, Invalid, NotFound, TrimtabError
from trimtab.operators.vmafx.kinds import Doing, Vendor, VmafxNode, VmafxNodeSpec

BY_SESSION = Index("session", lambda node: (node.status.session,))

_VENDORS: dict[str, Vendor] = {"cuda": "nvidia", "hip": "amd", "sycl": "intel"}
_MOST_JOBS = 64
_MOST_BACKENDS = 16


class NoSession(TrimtabError):
    """No node lives under this session, or its token is another: register again."""


class Capability(msgspec.Struct, frozen=True, kw_only=True):
    """What a node says it can do."""

    vendor: str = ""
    backends: tuple[str, ...] = ()
    concurrency: int = 1
    device: str = ""


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

    async def register(self, name: str, can: Capability, *, now: datetime) -> Session:
        """Begin a session of a node; an earlier one of the same name is over."""
        session = Session(
            f"{self._random.getrandbits(128):032x}",
            f"{self._random.getrandbits(256):064x}",
        )
        object_name = fit(name.lower())
        await self._ensure(object_name, can)
        status = {
            "session": session.id,
            "tokenHash": _hash(session.token),
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

    async def _ensure(self, name: str, can: Capability) -> None:
        spec = VmafxNodeSpec(gpuVendor=_vendor(can), capacity=max(1, can.concurrency))
        node = VmafxNode(
            metadata=Metadata(name=name, namespace=self._namespace), spec=spec
        )
        try:
            await self._client.create(node)
        except Conflict:  # it was there before
            await self._client.patch(
                VmafxNode, name, {"spec": wire(spec)}, namespace=self._namespace
            )

    async def find(self, session: str, token: str) -> VmafxNode:
        """The node of a session.

        A gateway that has not heard of the session yet asks the server once.

        Errors: :class:`NoSession`.
        """
        known = self.informer.store.by(BY_SESSION.name, session) if session else []
        node = known[0] if known else await self._look(session)
        if node is None or not hmac.compare_digest(node.status.tokenHash, _hash(token)):
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


def _vendor(can: Capability) -> Vendor:
    for vendor in get_args(Vendor):
        if can.vendor == vendor:
            return cast(Vendor, vendor)
    return next((_VENDORS[each] for each in can.backends if each in _VENDORS), "cpu")


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
