"""The node: what this machine is to the cluster, and the heartbeat that it is there."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import shutil
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from trimtab.api.kinds import Lease, LeaseSpec, Node, NodeSpec
from trimtab.api.quantity import Quantity
from trimtab.api.resource import Metadata, owner_of
from trimtab.api.times import MicroTime, rfc3339
from trimtab.client import AlreadyExists, Client, NotFound, TrimtabError
from trimtab.kubelet.site import LOOPBACK, KubeletOptions

logger = logging.getLogger("trimtab.kubelet")

LEASES = "kube-node-lease"
LEASE_SECONDS = 40
VERSION = "v1.36.3+trimtab"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
NOT_READY = "node.kubernetes.io/not-ready"
WEBSOCKETS = "ExtendWebSocketsToKubelet"


def capacity(options: KubeletOptions) -> dict[str, Quantity]:
    """What the machine has, or what it was told to have."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    disk = shutil.disk_usage(options.folder).total
    found = {
        "cpu": str(os.cpu_count() or 1),
        "memory": f"{memory >> 10}Ki",
        "ephemeral-storage": f"{disk >> 10}Ki",
        "pods": str(options.pods),
        **options.capacity,
    }
    return {name: Quantity(amount) for name, amount in found.items()}


class NodeKeeper:
    """Registers the node and keeps saying that it is well.

    Flow: ``register``, then ``run`` in a task.
    """

    def __init__(
        self,
        client: Client,
        options: KubeletOptions,
        *,
        now: Callable[[], datetime],
        port: int = 0,
    ) -> None:
        self._client = client
        self._options = options
        self._now = now
        self.port = port
        """Where logs are read and commands run from outside; 0 is nowhere."""
        self.node = Node(metadata=Metadata(name=options.name))
        self.amounts: Mapping[str, Quantity] = capacity(options)

    async def register(self) -> Node:
        """Make the node known; an older node of this name is taken over."""
        options = self._options
        labels = {
            "kubernetes.io/hostname": options.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": _architecture(),
            **options.labels,
        }
        wanted = Node(
            metadata=Metadata(name=options.name, labels=labels),
            spec=NodeSpec(taints=options.taints),
        )
        try:
            await self._client.create(wanted)
        except AlreadyExists:
            body = {"metadata": {"labels": labels}}
            await self._client.patch(Node, options.name, body)
        await self.report()
        await self._untaint()
        await self.beat()
        return self.node

    async def _untaint(self) -> None:
        """The server taints a new node; where no controller does, we take that off."""
        taints = self.node.spec.taints
        kept = [each for each in taints if each.key != NOT_READY]
        if self._options.alone and len(kept) < len(taints):
            body = {"spec": {"taints": kept or None}}
            await self._client.patch(Node, self._options.name, body)

    async def report(self) -> None:
        """Write what the node has and that it is ready."""
        self.node = await self._client.patch(
            Node,
            self._options.name,
            {"status": self._status()},
            how="strategic",
            subresource="status",
            manager="kubelet",
        )

    async def beat(self) -> None:
        """Renew the lease that says the node is alive."""
        name = self._options.name
        spec = LeaseSpec(
            holderIdentity=name,
            leaseDurationSeconds=LEASE_SECONDS,
            renewTime=MicroTime.of(self._now()),
        )
        try:
            await self._client.patch(
                Lease,
                name,
                {"spec": {"renewTime": spec.renewTime, "holderIdentity": name}},
                namespace=LEASES,
            )
        except NotFound:
            metadata = Metadata(
                name=name,
                namespace=LEASES,
                ownerReferences=[owner_of(self.node, controller=False)],
            )
            await self._client.create(Lease(metadata=metadata, spec=spec))

    async def run(self) -> None:
        """Beat until cancelled; a node that somebody deleted is made again."""
        loop = asyncio.get_running_loop()
        reported = loop.time()
        while True:
            await asyncio.sleep(self._options.heartbeat)
            try:
                await self.beat()
                if loop.time() - reported >= self._options.status_every:
                    reported = loop.time()
                    await self.report()
            except NotFound:
                await self._again()
            except TrimtabError as error:
                logger.warning("%s", f"The node's heartbeat failed: {error}")

    async def _again(self) -> None:
        try:
            await self.register()
        except TrimtabError as error:
            logger.warning("%s", f"The node could not be registered again: {error}")

    def _status(self) -> dict[str, Any]:
        amounts = {name: str(amount) for name, amount in self.amounts.items()}
        endpoints = {"kubeletEndpoint": {"Port": self.port}} if self.port else {}
        return {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": self._conditions(),
            "addresses": [
                {"type": "InternalIP", "address": LOOPBACK},
                {"type": "Hostname", "address": self._options.name},
            ],
            "daemonEndpoints": endpoints,
            "declaredFeatures": [WEBSOCKETS] if self.port else None,
            "nodeInfo": _information(),
        }

    def _conditions(self) -> list[dict[str, Any]]:
        now = rfc3339(self._now())
        words = [
            (
                "MemoryPressure",
                "False",
                "KubeletHasSufficientMemory",
                "kubelet has sufficient memory available",
            ),
            (
                "DiskPressure",
                "False",
                "KubeletHasNoDiskPressure",
                "kubelet has no disk pressure",
            ),
            (
                "PIDPressure",
                "False",
                "KubeletHasSufficientPID",
                "kubelet has sufficient PID available",
            ),
            ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ]
        known = self.node.status.conditions
        return [
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": _since(known.get(kind), status, now),
            }
            for kind, status, reason, message in words
        ]


def _since(known: Any, status: str, now: str) -> str:
    if known is not None and known.status == status and known.lastTransitionTime:
        return rfc3339(known.lastTransitionTime)
    return now


def _architecture() -> str:
    machine = platform.machine()
    return ARCHITECTURES.get(machine, machine)


def _information() -> dict[str, str]:
    return {
        "architecture": _architecture(),
        "operatingSystem": "linux",
        "osImage": platform.platform(terse=True),
        "kernelVersion": platform.release(),
        "kubeletVersion": VERSION,
        "kubeProxyVersion": "",
        "containerRuntimeVersion": "trimtab://processes",
        "machineID": "",
        "systemUUID": "",
        "bootID": "",
    }
