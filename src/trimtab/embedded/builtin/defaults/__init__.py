"""Defaults: what the real server fills in where an object says nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trimtab.embedded.builtin.defaults import core, devices, others, pods, workloads

__all__ = ["set_defaults"]

JSON = dict[str, Any]

_ADMISSION: Final = "admissionregistration.k8s.io"
_FLOW: Final = "flowcontrol.apiserver.k8s.io"

_DEFAULTS: Final[dict[tuple[str, str], Callable[[JSON], None]]] = {
    ("", "Pod"): pods.pod,
    ("", "PodTemplate"): workloads.pod_template,
    ("", "Service"): core.service,
    ("", "Secret"): core.secret,
    ("", "Namespace"): core.namespace,
    ("", "Node"): core.node,
    ("", "PersistentVolume"): core.persistent_volume,
    ("", "PersistentVolumeClaim"): core.persistent_volume_claim,
    ("", "Endpoints"): core.endpoints,
    ("", "LimitRange"): core.limit_range,
    ("", "ResourceQuota"): core.resource_quota,
    ("", "ReplicationController"): workloads.replication_controller,
    ("apps", "Deployment"): workloads.deployment,
    ("apps", "ReplicaSet"): workloads.replica_set,
    ("apps", "StatefulSet"): workloads.stateful_set,
    ("apps", "DaemonSet"): workloads.daemon_set,
    ("batch", "Job"): workloads.job,
    ("batch", "CronJob"): workloads.cron_job,
    ("rbac.authorization.k8s.io", "RoleBinding"): others.binding,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): others.binding,
    ("autoscaling", "HorizontalPodAutoscaler"): others.autoscaler,
    ("networking.k8s.io", "NetworkPolicy"): others.network_policy,
    ("networking.k8s.io", "IngressClass"): others.ingress_class,
    ("scheduling.k8s.io", "PriorityClass"): others.priority_class,
    ("storage.k8s.io", "StorageClass"): others.storage_class,
    ("storage.k8s.io", "VolumeAttachment"): core.volume_attachment,
    ("storage.k8s.io", "CSIDriver"): others.csi_driver,
    (_ADMISSION, "ValidatingWebhookConfiguration"): others.webhooks,
    (_ADMISSION, "MutatingWebhookConfiguration"): others.webhooks,
    (_ADMISSION, "ValidatingAdmissionPolicy"): others.admission_policy,
    (_ADMISSION, "MutatingAdmissionPolicy"): others.admission_policy,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): others.admission_binding,
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): others.admission_binding,
    ("discovery.k8s.io", "EndpointSlice"): others.endpoint_slice,
    ("resource.k8s.io", "ResourceClaim"): devices.claim,
    ("resource.k8s.io", "ResourceClaimTemplate"): devices.template,
    ("apiregistration.k8s.io", "APIService"): others.api_service,
    (_FLOW, "FlowSchema"): others.flow_schema,
    (_FLOW, "PriorityLevelConfiguration"): others.priority_level,
}


def set_defaults(group: str, kind: str, obj: JSON) -> None:
    """Fill in what an object does not say, in place.

    Assumptions: the object has its shape.
    """
    default = _DEFAULTS.get((group, kind))
    if default is not None:
        default(obj)
