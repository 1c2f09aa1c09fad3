"""Strategies: what registries do to an object before it is validated and stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from trimtab.embedded.builtin.shapes import struct
from trimtab.embedded.builtin.strategy import (
    certificates,
    core,
    others,
    pods,
    services,
    workloads,
)
from trimtab.embedded.builtin.strategy.common import keep_spec, keep_status, nothing
from trimtab.embedded.builtin.strategy.generations import generation

__all__ = ["generation", "prepare"]

JSON = dict[str, Any]
Create = Callable[[JSON], None]
Update = Callable[[JSON, JSON], None]
Allocate = Callable[..., Any]


def resets(shape: str, then: Create | None = None) -> Create:
    """Creating drops the status: what is left is that of the type, with its zeros."""
    zero = struct(shape)

    def create(obj: JSON) -> None:
        obj["status"] = zero({})
        if then is not None:
            then(obj)

    return create


class Strategy(msgspec.Struct, frozen=True, kw_only=True):
    """What is done to objects of a kind."""

    create: Create | None = None
    update: Update = keep_status
    subresources: Mapping[str, Update] = MappingProxyType({"status": keep_spec})


STRATEGIES: Final[dict[tuple[str, str], Strategy]] = {
    ("", "Pod"): Strategy(
        create=pods.create,
        update=pods.update,
        subresources={
            "status": pods.update_status,
            "ephemeralcontainers": pods.update_ephemeral,
            "resize": pods.resize,
        },
    ),
    ("", "ReplicationController"): Strategy(
        create=resets("core.v1.ReplicationControllerStatus")
    ),
    ("", "Namespace"): Strategy(
        create=core.create_namespace,
        update=core.update_namespace,
        subresources={"status": keep_spec, "finalize": core.finalize_namespace},
    ),
    ("", "Secret"): Strategy(update=core.update_secret),
    ("", "ServiceAccount"): Strategy(
        create=core.clean_secrets, update=core.clean_secrets
    ),
    ("", "LimitRange"): Strategy(create=core.create_limit_range, update=nothing),
    ("", "ResourceQuota"): Strategy(create=resets("core.v1.ResourceQuotaStatus")),
    ("", "Node"): Strategy(
        create=core.create_node,
        update=core.update_node,
        subresources={"status": core.node_status},
    ),
    ("", "PersistentVolume"): Strategy(
        create=core.create_volume, subresources={"status": core.volume_status}
    ),
    ("", "PersistentVolumeClaim"): Strategy(
        create=core.create_claim, update=core.update_claim
    ),
    ("apps", "Deployment"): Strategy(
        create=resets("apps.v1.DeploymentStatus"),
        subresources={"status": workloads.update_deployment_status},
    ),
    ("apps", "ReplicaSet"): Strategy(create=resets("apps.v1.ReplicaSetStatus")),
    ("apps", "StatefulSet"): Strategy(create=resets("apps.v1.StatefulSetStatus")),
    ("apps", "DaemonSet"): Strategy(
        create=resets("apps.v1.DaemonSetStatus", workloads.create_daemon_set),
        update=workloads.update_daemon_set,
        subresources={"status": workloads.update_daemon_set_status},
    ),
    ("batch", "Job"): Strategy(
        create=resets("batch.v1.JobStatus", workloads.create_job)
    ),
    ("batch", "CronJob"): Strategy(create=resets("batch.v1.CronJobStatus")),
    ("policy", "PodDisruptionBudget"): Strategy(
        create=resets("policy.v1.PodDisruptionBudgetStatus")
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): Strategy(
        create=others.create_scaler,
        update=others.update_scaler,
        subresources={"status": others.scaler_status},
    ),
    ("networking.k8s.io", "Ingress"): Strategy(
        create=resets("networking.v1.IngressStatus")
    ),
    ("networking.k8s.io", "ServiceCIDR"): Strategy(
        create=resets("networking.v1.ServiceCIDRStatus"),
        subresources={"status": others.attachment_status},
    ),
    ("storage.k8s.io", "VolumeAttachment"): Strategy(
        create=resets("storage.v1.VolumeAttachmentStatus"),
        subresources={"status": others.attachment_status},
    ),
    ("coordination.k8s.io", "Lease"): Strategy(update=nothing),
    ("discovery.k8s.io", "EndpointSlice"): Strategy(
        create=others.create_slice, update=others.update_slice
    ),
    ("certificates.k8s.io", "CertificateSigningRequest"): Strategy(
        create=resets("certificates.v1.CertificateSigningRequestStatus"),
        update=certificates.update,
        subresources={
            "status": certificates.status,
            "approval": certificates.approval,
        },
    ),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): Strategy(
        create=resets("admissionregistration.v1.ValidatingAdmissionPolicyStatus")
    ),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): Strategy(
        create=resets("flowcontrol.v1.FlowSchemaStatus"),
        subresources={"status": others.keep_all_but_status},
    ),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): Strategy(
        create=resets("flowcontrol.v1.PriorityLevelConfigurationStatus"),
        subresources={"status": others.keep_all_but_status},
    ),
    ("resource.k8s.io", "ResourceClaim"): Strategy(
        create=resets("resource.v1.ResourceClaimStatus"),
        subresources={"status": others.claim_status},
    ),
    ("apiregistration.k8s.io", "APIService"): Strategy(
        create=others.create_api_service,
        subresources={"status": others.api_service_status},
    ),
}


def prepare(
    group: str,
    kind: str,
    obj: JSON,
    old: JSON | None,
    *,
    subresource: str = "",
    allocate: Allocate | None = None,
) -> None:
    """Make an object ready to be validated and stored, in place.

    Assumptions: a new object has its uid, its time of creation and its namespace
    already, and is the very one that ``set_defaults`` filled in, not a copy. A changed
    one has been through ``set_defaults`` too. ``allocate`` gives addresses and ports to
    Services (see ``services``); without it they get none.

    Errors: 422 when an address or port cannot be had.
    """
    if kind == "Service" and not group and old is None and subresource == "status":
        obj["status"] = {"loadBalancer": {}}  # and it gets no address
        return
    if kind == "Service" and not group and subresource != "status":
        if old is None:
            services.create(obj, allocate)
        else:
            services.update(obj, old, allocate)
        return
    strategy = STRATEGIES.get((group, kind))
    if strategy is None:
        return
    if old is None:
        if strategy.create is not None:
            strategy.create(obj)
    else:
        strategy.subresources.get(subresource, strategy.update)(obj, old)
