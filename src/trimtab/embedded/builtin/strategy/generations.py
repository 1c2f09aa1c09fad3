"""Generations: a number that grows whenever what is wished of an object changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["generation"]

JSON = Mapping[str, Any]

_ADMISSION: Final = "admissionregistration.k8s.io"
_NETWORKING: Final = "networking.k8s.io"
_FLOW: Final = "flowcontrol.apiserver.k8s.io"

_WISHES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): ("spec",),
    ("", "PodTemplate"): ("template",),
    ("", "ReplicationController"): ("spec",),
    ("apps", "Deployment"): ("spec", "metadata.annotations"),
    ("apps", "ReplicaSet"): ("spec",),
    ("apps", "StatefulSet"): ("spec",),
    ("apps", "DaemonSet"): ("spec",),
    ("batch", "Job"): ("spec",),
    ("batch", "CronJob"): ("spec",),
    ("policy", "PodDisruptionBudget"): ("spec",),
    ("scheduling.k8s.io", "PriorityClass"): (),
    ("discovery.k8s.io", "EndpointSlice"): (
        "addressType",
        "endpoints",
        "ports",
        "metadata.labels",
    ),
    (_NETWORKING, "Ingress"): ("spec",),
    (_NETWORKING, "IngressClass"): ("spec",),
    (_NETWORKING, "NetworkPolicy"): ("spec",),
    (_ADMISSION, "ValidatingWebhookConfiguration"): ("webhooks",),
    (_ADMISSION, "MutatingWebhookConfiguration"): ("webhooks",),
    (_ADMISSION, "ValidatingAdmissionPolicy"): ("spec",),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): ("spec",),
    (_ADMISSION, "MutatingAdmissionPolicy"): ("spec",),
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): ("spec",),
    ("storage.k8s.io", "CSIDriver"): ("spec",),
    (_FLOW, "FlowSchema"): ("spec",),
    (_FLOW, "PriorityLevelConfiguration"): ("spec",),
    ("resource.k8s.io", "DeviceClass"): ("spec",),
    ("resource.k8s.io", "ResourceSlice"): ("spec",),
}
_FROM_ZERO: Final = frozenset({("storage.k8s.io", "CSIDriver")})


def generation(
    group: str,
    kind: str,
    obj: JSON,
    old: JSON | None,
    *,
    subresource: str = "",
) -> int:
    """The generation of an object once it is stored; 0 for a kind that has none.

    Assumptions: the object has been through ``prepare``, so that what a request could
    not change has not.
    """
    wishes = _WISHES.get((group, kind))
    if wishes is None:
        return 0
    if old is None:
        return 0 if (group, kind) in _FROM_ZERO else 1
    before = int(old["metadata"].get("generation", 0))
    if subresource == "status":
        return before
    changed = any(_at(obj, path) != _at(old, path) for path in wishes)
    return before + changed


def _at(obj: JSON, path: str) -> Any:
    value: Any = obj
    for key in path.split("."):
        value = value.get(key) or {}
    return value
