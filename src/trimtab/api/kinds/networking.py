"""Networking: how pods are reached, and from where they may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.api.conditions import Conditions
from trimtab.api.objects import Object, field
from trimtab.api.resource import Resource
from trimtab.api.selectors import LabelSelector


class ServicePort(Object):
    """A port of the service, and the port (or its name) of the pods behind it."""

    port: int
    name: str = ""
    protocol: str = ""
    targetPort: int | str | None = None
    nodePort: int | None = None
    appProtocol: str | None = None


class ServiceSpec(Object):
    """Which pods stand behind a name; ``clusterIP="None"`` is a headless service."""

    selector: dict[str, str] = {}
    ports: Sequence[ServicePort] = ()
    type: str = ""
    clusterIP: str = ""
    clusterIPs: Sequence[str] = ()
    externalName: str = ""
    externalIPs: Sequence[str] = ()
    publishNotReadyAddresses: bool | None = None
    sessionAffinity: str = ""
    sessionAffinityConfig: dict[str, Any] | None = None
    internalTrafficPolicy: str | None = None
    externalTrafficPolicy: str = ""
    trafficDistribution: str | None = None
    loadBalancerClass: str | None = None
    loadBalancerIP: str = ""
    loadBalancerSourceRanges: Sequence[str] = ()
    allocateLoadBalancerNodePorts: bool | None = None
    healthCheckNodePort: int | None = None
    ipFamilies: Sequence[str] = ()
    ipFamilyPolicy: str | None = None


class LoadBalancerIngress(Object):
    """One address that a load balancer answers at."""

    ip: str = ""
    hostname: str = ""
    ipMode: str | None = None


class LoadBalancerStatus(Object):
    """Where a load balancer answers; empty until there is one."""

    ingress: Sequence[LoadBalancerIngress] = ()


class ServiceStatus(Object):
    """What became of a service outside the cluster."""

    loadBalancer: LoadBalancerStatus = LoadBalancerStatus()
    conditions: Conditions = Conditions()


class Service(Resource, version="v1", builtin=True):
    """A name and an address for a set of pods."""

    spec: ServiceSpec = field(default_factory=ServiceSpec)
    status: ServiceStatus = ServiceStatus()


class IPBlock(Object):
    """A range of addresses, less some."""

    cidr: str
    except_: Sequence[str] = ()


class NetworkPolicyPeer(Object):
    """Who may be at the other end; an empty selector is everyone."""

    podSelector: LabelSelector | None = None
    namespaceSelector: LabelSelector | None = None
    ipBlock: IPBlock | None = None


class NetworkPolicyPort(Object):
    """A port, its name, or a range up to ``endPort``; none is every port."""

    protocol: str | None = None
    port: int | str | None = None
    endPort: int | None = None


class NetworkPolicyIngressRule(Object):
    """What may come in: any of these ports from any of these peers."""

    from_: Sequence[NetworkPolicyPeer] = ()
    ports: Sequence[NetworkPolicyPort] = ()


class NetworkPolicyEgressRule(Object):
    """What may go out: any of these ports to any of these peers."""

    to: Sequence[NetworkPolicyPeer] = ()
    ports: Sequence[NetworkPolicyPort] = ()


class NetworkPolicySpec(Object):
    """Which pods are held to which rules; a listed type without rules is closed."""

    podSelector: LabelSelector = field(default_factory=LabelSelector)
    policyTypes: Sequence[str] = ()
    ingress: Sequence[NetworkPolicyIngressRule] = ()
    egress: Sequence[NetworkPolicyEgressRule] = ()


class NetworkPolicy(Resource, group="networking.k8s.io", version="v1", builtin=True):
    """What traffic some pods of a namespace may have; the rest is dropped."""

    spec: NetworkPolicySpec = field(default_factory=NetworkPolicySpec)
