"""Nodes: the machines that pods run on, and what each can hold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from trimtab.api.conditions import Conditions
from trimtab.api.objects import Object, field
from trimtab.api.quantity import Quantity
from trimtab.api.resource import Resource


class Taint(Object):
    """What keeps pods without a matching toleration away."""

    key: str
    effect: str
    value: str = ""
    timeAdded: datetime | None = None


class NodeSpec(Object):
    """Whether new pods may come, and which addresses they get."""

    taints: Sequence[Taint] = ()
    unschedulable: bool | None = None
    podCIDR: str = ""
    podCIDRs: Sequence[str] = ()
    providerID: str = ""


class NodeAddress(Object):
    """One way to reach a node: InternalIP, ExternalIP, Hostname."""

    type: str
    address: str


class NodeSystemInfo(Object):
    """What a node runs on."""

    architecture: str = ""
    operatingSystem: str = ""
    osImage: str = ""
    kernelVersion: str = ""
    kubeletVersion: str = ""
    containerRuntimeVersion: str = ""


class NodeStatus(Object):
    """What a node has, what of it pods may use, and whether it is well."""

    capacity: dict[str, Quantity] = {}
    allocatable: dict[str, Quantity] = {}
    conditions: Conditions = Conditions()
    addresses: Sequence[NodeAddress] = ()
    nodeInfo: NodeSystemInfo = NodeSystemInfo()


class Node(Resource, version="v1", builtin=True, namespaced=False):
    """A machine that runs pods."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = field(default_factory=NodeStatus)
