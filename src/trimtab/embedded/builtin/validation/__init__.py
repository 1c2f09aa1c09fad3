"""Validation: what the real server refuses of built-in kinds, in its own words.

One module for each family of kinds; here is which kind has which rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from trimtab.embedded.builtin.validation import (
    admissionbindings,
    admissionpolicies,
    apiservices,
    certificates,
    claims,
    config,
    cronjobs,
    deviceclaims,
    deviceslices,
    flowcontrol,
    ingress,
    jobs,
    meta,
    networking,
    nodes,
    persistentvolumes,
    pods,
    podstatus,
    policy,
    quotas,
    ranges,
    rbac,
    scaling,
    services,
    statefulsets,
    storage,
    successes,
    webhooks,
    workloads,
)
from trimtab.embedded.builtin.validation.problems import Found
from trimtab.embedded.status import FieldProblem

__all__ = ["validate"]

JSON = Mapping[str, Any]
Create = Callable[[Found, JSON], None]
Update = Callable[[Found, JSON, JSON], None]


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of a kind."""

    create: Create
    update: Update
    namespaced: bool = True
    subresources: Mapping[str, Update] = {}


RULES: Final[dict[tuple[str, str], Rules]] = {
    ("", "Pod"): Rules(
        create=pods.create,
        update=pods.update,
        subresources={
            "status": podstatus.update,
            "ephemeralcontainers": pods.ephemeral_update,
            "resize": pods.resize,
        },
    ),
    ("", "PodTemplate"): Rules(
        create=workloads.create_pod_template, update=workloads.update_pod_template
    ),
    ("", "ReplicationController"): Rules(
        create=workloads.create_replication_controller,
        update=workloads.update_replication_controller,
        subresources={"status": workloads.status_replica_set},
    ),
    ("apps", "Deployment"): Rules(
        create=workloads.create_deployment,
        update=workloads.update_deployment,
        subresources={"status": workloads.status_deployment},
    ),
    ("apps", "ReplicaSet"): Rules(
        create=workloads.create_replica_set,
        update=workloads.update_replica_set,
        subresources={"status": workloads.status_replica_set},
    ),
    ("apps", "DaemonSet"): Rules(
        create=workloads.create_daemon_set,
        update=workloads.update_daemon_set,
        subresources={"status": workloads.status_daemon_set},
    ),
    ("apps", "StatefulSet"): Rules(
        create=statefulsets.create,
        update=statefulsets.update,
        subresources={"status": statefulsets.status_update},
    ),
    ("apps", "ControllerRevision"): Rules(
        create=workloads.create_revision, update=workloads.update_revision
    ),
    ("batch", "Job"): Rules(
        create=jobs.create,
        update=jobs.update,
        subresources={"status": successes.status_update},
    ),
    ("batch", "CronJob"): Rules(
        create=cronjobs.create,
        update=cronjobs.update,
        subresources={"status": cronjobs.status_update},
    ),
    ("", "Service"): Rules(
        create=services.create,
        update=services.update,
        subresources={"status": services.status_update},
    ),
    ("", "Endpoints"): Rules(
        create=services.create_endpoints, update=services.update_endpoints
    ),
    ("", "ConfigMap"): Rules(
        create=config.create_config_map, update=config.update_config_map
    ),
    ("", "Secret"): Rules(create=config.create_secret, update=config.update_secret),
    ("", "ServiceAccount"): Rules(
        create=config.create_service_account, update=config.update_service_account
    ),
    ("", "Namespace"): Rules(
        create=config.create_namespace,
        update=config.update_namespace,
        namespaced=False,
        subresources={
            "status": config.status_namespace,
            "finalize": config.finalize_namespace,
        },
    ),
    ("", "LimitRange"): Rules(create=quotas.create_limits, update=quotas.update_limits),
    ("", "ResourceQuota"): Rules(
        create=quotas.create_quota,
        update=quotas.update_quota,
        subresources={"status": quotas.status_quota},
    ),
    ("", "Node"): Rules(
        create=nodes.create,
        update=nodes.update,
        namespaced=False,
        subresources={"status": nodes.status_update},
    ),
    ("", "Event"): Rules(
        create=nodes.create_core_event, update=nodes.update_core_event
    ),
    ("events.k8s.io", "Event"): Rules(
        create=nodes.create_event, update=nodes.update_event
    ),
    ("", "PersistentVolume"): Rules(
        create=persistentvolumes.create,
        update=persistentvolumes.update,
        namespaced=False,
        subresources={"status": persistentvolumes.status_update},
    ),
    ("", "PersistentVolumeClaim"): Rules(
        create=claims.create,
        update=claims.update,
        subresources={"status": claims.status_update},
    ),
    (rbac.GROUP, "Role"): Rules(create=rbac.create_role, update=rbac.update_role),
    (rbac.GROUP, "ClusterRole"): Rules(
        create=rbac.create_cluster_role,
        update=rbac.update_cluster_role,
        namespaced=False,
    ),
    (rbac.GROUP, "RoleBinding"): Rules(
        create=rbac.create_role_binding, update=rbac.update_role_binding
    ),
    (rbac.GROUP, "ClusterRoleBinding"): Rules(
        create=rbac.create_cluster_role_binding,
        update=rbac.update_cluster_role_binding,
        namespaced=False,
    ),
    ("policy", "PodDisruptionBudget"): Rules(
        create=policy.create_budget,
        update=policy.update_budget,
        subresources={"status": policy.status_budget},
    ),
    ("scheduling.k8s.io", "PriorityClass"): Rules(
        create=policy.create_priority, update=policy.update_priority, namespaced=False
    ),
    ("coordination.k8s.io", "Lease"): Rules(
        create=policy.create_lease, update=policy.update_lease
    ),
    ("node.k8s.io", "RuntimeClass"): Rules(
        create=policy.create_runtime_class,
        update=policy.update_runtime_class,
        namespaced=False,
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): Rules(
        create=scaling.create,
        update=scaling.update,
        subresources={"status": scaling.status_update},
    ),
    ("networking.k8s.io", "NetworkPolicy"): Rules(
        create=networking.create_policy, update=networking.update_policy
    ),
    ("networking.k8s.io", "Ingress"): Rules(
        create=ingress.create,
        update=ingress.update,
        subresources={"status": ingress.status_update},
    ),
    ("networking.k8s.io", "IngressClass"): Rules(
        create=ingress.create_class, update=ingress.update_class, namespaced=False
    ),
    ("discovery.k8s.io", "EndpointSlice"): Rules(
        create=networking.create_slice, update=networking.update_slice
    ),
    ("storage.k8s.io", "StorageClass"): Rules(
        create=storage.create_class, update=storage.update_class, namespaced=False
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): Rules(
        create=storage.create_attributes_class,
        update=storage.update_attributes_class,
        namespaced=False,
    ),
    ("storage.k8s.io", "CSIDriver"): Rules(
        create=storage.create_driver, update=storage.update_driver, namespaced=False
    ),
    ("storage.k8s.io", "CSINode"): Rules(
        create=storage.create_node, update=storage.update_node, namespaced=False
    ),
    ("storage.k8s.io", "VolumeAttachment"): Rules(
        create=storage.create_attachment,
        update=storage.update_attachment,
        namespaced=False,
    ),
    ("storage.k8s.io", "CSIStorageCapacity"): Rules(
        create=storage.create_capacity, update=storage.update_capacity
    ),
    ("networking.k8s.io", "IPAddress"): Rules(
        create=ranges.create_address, update=ranges.update_address, namespaced=False
    ),
    ("networking.k8s.io", "ServiceCIDR"): Rules(
        create=ranges.create_range,
        update=ranges.update_range,
        namespaced=False,
        subresources={"status": ranges.status_range},
    ),
    (flowcontrol.GROUP, "FlowSchema"): Rules(
        create=flowcontrol.create_schema,
        update=flowcontrol.update_schema,
        namespaced=False,
        subresources={"status": flowcontrol.status_update},
    ),
    (flowcontrol.GROUP, "PriorityLevelConfiguration"): Rules(
        create=flowcontrol.create_level,
        update=flowcontrol.update_level,
        namespaced=False,
        subresources={"status": flowcontrol.status_update},
    ),
    (certificates.GROUP, "CertificateSigningRequest"): Rules(
        create=certificates.create,
        update=certificates.update,
        namespaced=False,
        subresources={
            "status": certificates.status_update,
            "approval": certificates.approval_update,
        },
    ),
    (deviceclaims.GROUP, "ResourceClaim"): Rules(
        create=deviceclaims.create_claim,
        update=deviceclaims.update_claim,
        subresources={"status": deviceclaims.status_claim},
    ),
    (deviceclaims.GROUP, "ResourceClaimTemplate"): Rules(
        create=deviceclaims.create_template, update=deviceclaims.update_template
    ),
    (deviceclaims.GROUP, "DeviceClass"): Rules(
        create=deviceclaims.create_class,
        update=deviceclaims.update_class,
        namespaced=False,
    ),
    (deviceclaims.GROUP, "ResourceSlice"): Rules(
        create=deviceslices.create, update=deviceslices.update, namespaced=False
    ),
    ("apiregistration.k8s.io", "APIService"): Rules(
        create=apiservices.create,
        update=apiservices.update,
        namespaced=False,
        subresources={"status": apiservices.status_update},
    ),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): Rules(
        create=webhooks.create, update=webhooks.update, namespaced=False
    ),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): Rules(
        create=webhooks.create, update=webhooks.update, namespaced=False
    ),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): Rules(
        create=admissionpolicies.create_validating,
        update=admissionpolicies.update_validating,
        namespaced=False,
        subresources={"status": admissionpolicies.status_validating},
    ),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): Rules(
        create=admissionbindings.create_binding,
        update=admissionbindings.update_binding,
        namespaced=False,
    ),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): Rules(
        create=admissionpolicies.create_mutating,
        update=admissionpolicies.update_mutating,
        namespaced=False,
    ),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): Rules(
        create=admissionbindings.create_mutating_binding,
        update=admissionbindings.update_mutating_binding,
        namespaced=False,
    ),
}


def validate(
    group: str, kind: str, obj: JSON, old: JSON | None = None, *, subresource: str = ""
) -> list[FieldProblem]:
    """What is wrong with an object, or with what it would become.

    Assumptions: the object has been through ``set_defaults`` and ``prepare``, and is
    in the namespace of the request. A kind without rules here has those for all.
    """
    found = Found()
    rules = RULES.get((group, kind))
    metadata = obj["metadata"]
    namespaced = rules.namespaced if rules else "namespace" in metadata
    if old is None:
        if rules is not None:
            rules.create(found, obj)
        else:
            meta.common(found, metadata, namespaced=namespaced)
        return found
    meta.common_update(found, metadata, old["metadata"], namespaced=namespaced)
    if rules is not None:
        rules.subresources.get(subresource, rules.update)(found, obj, old)
    return found
