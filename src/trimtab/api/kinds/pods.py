"""Pods: what should run together on a node, and what of it runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from trimtab.api.conditions import Conditions
from trimtab.api.kinds.containers import (
    AppArmorProfile,
    Container,
    ContainerSummary,
    EphemeralContainer,
    ResourceRequirements,
    SeccompProfile,
    SELinuxOptions,
)
from trimtab.api.kinds.references import LocalObjectReference
from trimtab.api.kinds.volumes import Volume
from trimtab.api.objects import Object, field
from trimtab.api.resource import Metadata, Resource


class Toleration(Object):
    """A taint that does not keep the pod off a node."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    tolerationSeconds: int | None = None


class Sysctl(Object):
    """A kernel parameter of the pod's namespaces."""

    name: str
    value: str


class PodSecurityContext(Object):
    """What all containers of a pod may do unless they say otherwise."""

    runAsUser: int | None = None
    runAsGroup: int | None = None
    runAsNonRoot: bool | None = None
    fsGroup: int | None = None
    fsGroupChangePolicy: str | None = None
    supplementalGroups: Sequence[int] = ()
    seccompProfile: SeccompProfile | None = None
    appArmorProfile: AppArmorProfile | None = None
    seLinuxOptions: SELinuxOptions | None = None
    sysctls: Sequence[Sysctl] = ()


class HostAlias(Object):
    """A line of the pod's hosts file."""

    ip: str
    hostnames: Sequence[str] = ()


class PodReadinessGate(Object):
    """A condition, written by someone else, without which the pod is not ready."""

    conditionType: str


class PodSchedulingGate(Object):
    """A reason not to schedule the pod yet; it waits until every gate is removed."""

    name: str


class PodResourceClaim(Object):
    """A claim of devices that containers of the pod refer to by name."""

    name: str
    resourceClaimName: str | None = None
    resourceClaimTemplateName: str | None = None


class PodSummary(Object):
    """What controllers read of a pod's spec: where it runs, and what it holds there."""

    nodeName: str = ""
    containers: Sequence[ContainerSummary] = ()


class PodSpec(PodSummary):
    """What a pod runs and where; also the body of every pod template."""

    containers: Sequence[Container] = ()
    initContainers: Sequence[Container] = ()
    ephemeralContainers: Sequence[EphemeralContainer] = ()
    volumes: Sequence[Volume] = ()
    restartPolicy: str = ""
    terminationGracePeriodSeconds: int | None = None
    activeDeadlineSeconds: int | None = None
    serviceAccountName: str = ""
    automountServiceAccountToken: bool | None = None
    imagePullSecrets: Sequence[LocalObjectReference] = ()
    securityContext: PodSecurityContext | None = None
    nodeSelector: dict[str, str] = {}
    affinity: dict[str, Any] | None = None
    tolerations: Sequence[Toleration] = ()
    topologySpreadConstraints: Sequence[dict[str, Any]] = ()
    schedulerName: str = ""
    schedulingGates: Sequence[PodSchedulingGate] = ()
    priorityClassName: str = ""
    priority: int | None = None
    preemptionPolicy: str | None = None
    runtimeClassName: str | None = None
    hostname: str = ""
    subdomain: str = ""
    hostAliases: Sequence[HostAlias] = ()
    dnsPolicy: str = ""
    dnsConfig: dict[str, Any] | None = None
    hostNetwork: bool | None = None
    hostPID: bool | None = None
    hostIPC: bool | None = None
    hostUsers: bool | None = None
    shareProcessNamespace: bool | None = None
    enableServiceLinks: bool | None = None
    readinessGates: Sequence[PodReadinessGate] = ()
    resourceClaims: Sequence[PodResourceClaim] = ()
    resources: ResourceRequirements | None = None


class PodTemplateSpec(Object):
    """The pods that a controller makes: their labels and what they run."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: PodSpec = field(default_factory=PodSpec)


class ContainerStateWaiting(Object):
    """Not running yet, or not again yet; ``reason`` is a word for programs."""

    reason: str = ""
    message: str = ""


class ContainerStateRunning(Object):
    """Running since."""

    startedAt: datetime | None = None


class ContainerStateTerminated(Object):
    """Over, with an exit code; ``reason`` is "OOMKilled" where memory ran out."""

    exitCode: int
    signal: int | None = None
    reason: str = ""
    message: str = ""
    startedAt: datetime | None = None
    finishedAt: datetime | None = None


class ContainerState(Object):
    """What a container does: one of these, and none means that it waits."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Object):
    """What a node says of one container; ``lastState`` is how it ended before."""

    name: str
    ready: bool = False
    restartCount: int = 0
    started: bool | None = None
    state: ContainerState = ContainerState()
    lastState: ContainerState = ContainerState()
    imageID: str = ""


class PodStatus(Object):
    """How far a pod is: a coarse phase, conditions, and each container."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: Conditions = Conditions()
    containerStatuses: Sequence[ContainerStatus] = ()
    initContainerStatuses: Sequence[ContainerStatus] = ()
    ephemeralContainerStatuses: Sequence[ContainerStatus] = ()
    podIP: str = ""
    hostIP: str = ""
    startTime: datetime | None = None
    qosClass: str = ""


class Pod(Resource, version="v1", builtin=True):
    """Containers that run together on one node.

    Pods are what a cluster has most of, and their specs are the larger part of them,
    so of a spec only a summary is read. To write one, give it a whole
    :class:`PodSpec`, which is a summary too; to read one, ask for a :class:`WholePod`.
    """

    spec: PodSummary = PodSummary()
    status: PodStatus = PodStatus()


class WholePod(Pod):
    """A pod with its whole spec, at about three times the memory."""

    spec: PodSpec = field(default_factory=PodSpec)
