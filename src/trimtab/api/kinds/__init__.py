"""Built-in kinds as slices: the fields that operators read and write, no more.

Each class is named and spelled as in the Kubernetes API reference, and leaves out what
operators seldom touch: what a slice does not name costs nothing to read and is never
lost on a write, because writes are applies and patches. A field that is missing is
added by a subclass, which stays the same kind::

    class MyPodStatus(PodStatus):
        nominatedNodeName: str = ""

    class MyPod(Pod):
        status: MyPodStatus = MyPodStatus()

Everything optional is left out unless it was set, so an apply owns only what it says:
a string is "" and a list is () until then, a number or boolean is None. Only what
identifies a thing (the name of a container, the port of a service) must be given. In a
status, counters that the server leaves out at zero are 0. Where the server itself
writes null, the type says so.

Of a :class:`Pod` only a summary of the spec is read; :class:`WholePod` has all of it.

A module of them is read when a name of it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trimtab.api.kinds.containers import *  # noqa: F403
    from trimtab.api.kinds.coordination import *  # noqa: F403
    from trimtab.api.kinds.core import *  # noqa: F403
    from trimtab.api.kinds.events import *  # noqa: F403
    from trimtab.api.kinds.networking import *  # noqa: F403
    from trimtab.api.kinds.nodes import *  # noqa: F403
    from trimtab.api.kinds.pods import *  # noqa: F403
    from trimtab.api.kinds.policy import *  # noqa: F403
    from trimtab.api.kinds.rbac import *  # noqa: F403
    from trimtab.api.kinds.references import *  # noqa: F403
    from trimtab.api.kinds.volumes import *  # noqa: F403
    from trimtab.api.kinds.workloads import *  # noqa: F403

_FROM = {
    "trimtab.api.kinds.containers": (
        "AppArmorProfile",
        "Capabilities",
        "ConfigMapEnvSource",
        "ConfigMapKeySelector",
        "Container",
        "ContainerPort",
        "ContainerSummary",
        "EnvFromSource",
        "EnvVar",
        "EnvVarSource",
        "EphemeralContainer",
        "ExecAction",
        "GRPCAction",
        "HTTPGetAction",
        "HTTPHeader",
        "Lifecycle",
        "LifecycleHandler",
        "ObjectFieldSelector",
        "Probe",
        "ResourceClaim",
        "ResourceFieldSelector",
        "ResourceRequirements",
        "SeccompProfile",
        "SecretEnvSource",
        "SecretKeySelector",
        "SecurityContext",
        "SELinuxOptions",
        "SleepAction",
        "TCPSocketAction",
        "VolumeMount",
    ),
    "trimtab.api.kinds.coordination": (
        "Lease",
        "LeaseSpec",
    ),
    "trimtab.api.kinds.core": (
        "ConfigMap",
        "LimitRange",
        "LimitRangeItem",
        "LimitRangeSpec",
        "Namespace",
        "NamespaceSpec",
        "NamespaceStatus",
        "Secret",
        "ServiceAccount",
    ),
    "trimtab.api.kinds.events": (
        "Event",
        "EventSeries",
        "EventSource",
    ),
    "trimtab.api.kinds.networking": (
        "IPBlock",
        "LoadBalancerIngress",
        "LoadBalancerStatus",
        "NetworkPolicy",
        "NetworkPolicyEgressRule",
        "NetworkPolicyIngressRule",
        "NetworkPolicyPeer",
        "NetworkPolicyPort",
        "NetworkPolicySpec",
        "Service",
        "ServicePort",
        "ServiceSpec",
        "ServiceStatus",
    ),
    "trimtab.api.kinds.nodes": (
        "Node",
        "NodeAddress",
        "NodeSpec",
        "NodeStatus",
        "NodeSystemInfo",
        "Taint",
    ),
    "trimtab.api.kinds.pods": (
        "ContainerState",
        "ContainerStateRunning",
        "ContainerStateTerminated",
        "ContainerStateWaiting",
        "ContainerStatus",
        "HostAlias",
        "Pod",
        "PodReadinessGate",
        "PodResourceClaim",
        "PodSchedulingGate",
        "PodSecurityContext",
        "PodSpec",
        "PodStatus",
        "PodSummary",
        "PodTemplateSpec",
        "Sysctl",
        "Toleration",
        "WholePod",
    ),
    "trimtab.api.kinds.policy": (
        "PodDisruptionBudget",
        "PodDisruptionBudgetSpec",
        "PodDisruptionBudgetStatus",
        "PriorityClass",
    ),
    "trimtab.api.kinds.rbac": (
        "AggregationRule",
        "ClusterRole",
        "ClusterRoleBinding",
        "PolicyRule",
        "Role",
        "RoleBinding",
        "RoleRef",
        "Subject",
    ),
    "trimtab.api.kinds.references": (
        "LocalObjectReference",
        "ObjectReference",
    ),
    "trimtab.api.kinds.volumes": (
        "ConfigMapProjection",
        "ConfigMapVolumeSource",
        "CSIVolumeSource",
        "DownwardAPIProjection",
        "DownwardAPIVolumeFile",
        "DownwardAPIVolumeSource",
        "EmptyDirVolumeSource",
        "HostPathVolumeSource",
        "ImageVolumeSource",
        "KeyToPath",
        "NFSVolumeSource",
        "PersistentVolumeClaimVolumeSource",
        "ProjectedVolumeSource",
        "SecretProjection",
        "SecretVolumeSource",
        "ServiceAccountTokenProjection",
        "Volume",
        "VolumeProjection",
    ),
    "trimtab.api.kinds.workloads": (
        "Deployment",
        "DeploymentSpec",
        "DeploymentStatus",
        "DeploymentStrategy",
        "Job",
        "JobSpec",
        "JobStatus",
        "RollingUpdateDeployment",
    ),
}
_HOME = {name: module for module, names in _FROM.items() for name in names}

if not TYPE_CHECKING:  # who checks types reads the modules above
    __all__ = sorted(_HOME)  # noqa: PLE0605

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
