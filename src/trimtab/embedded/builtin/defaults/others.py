"""Defaults of the smaller groups."""

from __future__ import annotations

import copy
from typing import Any, Final

from trimtab.embedded.builtin.scalers import drop_notes

JSON = dict[str, Any]

_RBAC: Final = "rbac.authorization.k8s.io"
_SCALE_UP: Final = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: Final = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}
_CPU: Final = {
    "type": "Resource",
    "resource": {
        "name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 80},
    },
}


def binding(obj: JSON) -> None:
    """Of a role and of users and groups the API group goes without saying."""
    role = obj["roleRef"]
    if not role.get("apiGroup"):
        role["apiGroup"] = _RBAC
    for subject in obj.get("subjects") or ():
        if subject["kind"] in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = _RBAC


def autoscaler(obj: JSON) -> None:
    spec = obj["spec"]
    spec.setdefault("minReplicas", 1)
    if obj.get("apiVersion") == "autoscaling/v1":
        _older_autoscaler(obj)
        return
    drop_notes(obj["metadata"])
    if not spec.get("metrics"):
        spec["metrics"] = [copy.deepcopy(_CPU)]
    behaviour = spec.get("behavior")
    if behaviour is not None:
        for field, rules in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
            behaviour[field] = {**copy.deepcopy(rules), **behaviour.get(field, {})}


def _older_autoscaler(obj: JSON) -> None:
    """The old version has one metric of its own, and the rest in annotations."""
    notes = obj["metadata"].get("annotations") or {}
    metrics = "autoscaling.alpha.kubernetes.io/metrics" in notes
    if "targetCPUUtilizationPercentage" not in obj["spec"] and not metrics:
        obj["spec"]["targetCPUUtilizationPercentage"] = 80


def network_policy(obj: JSON) -> None:
    spec = obj["spec"]
    for direction in ("ingress", "egress"):
        for rule in spec.get(direction) or ():
            for port in rule.get("ports") or ():
                port.setdefault("protocol", "TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress"]
        if spec.get("egress"):
            spec["policyTypes"].append("Egress")


def ingress_class(obj: JSON) -> None:
    parameters = obj["spec"].get("parameters")
    if parameters is not None and parameters.get("scope") is None:
        parameters["scope"] = "Cluster"


def priority_class(obj: JSON) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def storage_class(obj: JSON) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def csi_driver(obj: JSON) -> None:
    spec = obj["spec"]
    for field, value in (
        ("attachRequired", True),
        ("podInfoOnMount", False),
        ("storageCapacity", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("requiresRepublish", False),
        ("seLinuxMount", False),
    ):
        spec.setdefault(field, value)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def webhooks(obj: JSON) -> None:
    """Both kinds of configurations; only one asks again."""
    mutating = obj.get("kind") == "MutatingWebhookConfiguration"
    for hook in obj.get("webhooks") or ():
        hook.setdefault("failurePolicy", "Fail")
        hook.setdefault("matchPolicy", "Equivalent")
        hook.setdefault("namespaceSelector", {})
        hook.setdefault("objectSelector", {})
        hook.setdefault("timeoutSeconds", 10)
        if mutating:
            hook.setdefault("reinvocationPolicy", "Never")
        for rule in hook.get("rules") or ():
            rule.setdefault("scope", "*")
        if "service" in hook["clientConfig"]:
            hook["clientConfig"]["service"].setdefault("port", 443)


def admission_policy(obj: JSON) -> None:
    spec = obj["spec"]
    spec.setdefault("failurePolicy", "Fail")
    if "matchConstraints" in spec:
        _match_resources(spec["matchConstraints"])


def admission_binding(obj: JSON) -> None:
    if "matchResources" in obj["spec"]:
        _match_resources(obj["spec"]["matchResources"])


def _match_resources(given: JSON) -> None:
    given.setdefault("matchPolicy", "Equivalent")
    given.setdefault("namespaceSelector", {})
    given.setdefault("objectSelector", {})
    for field in ("resourceRules", "excludeResourceRules"):
        for rule in given.get(field) or ():
            rule.setdefault("scope", "*")


def endpoint_slice(obj: JSON) -> None:
    for port in obj.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def api_service(obj: JSON) -> None:
    if "service" in obj["spec"]:
        obj["spec"]["service"].setdefault("port", 443)


def flow_schema(obj: JSON) -> None:
    obj["spec"]["matchingPrecedence"] = obj["spec"].get("matchingPrecedence") or 1000


def priority_level(obj: JSON) -> None:
    spec = obj["spec"]
    exempt, limited = spec.get("exempt"), spec.get("limited")
    if exempt is not None:
        exempt.setdefault("nominalConcurrencyShares", 0)
        exempt.setdefault("lendablePercent", 0)
    if limited is not None:
        if limited.get("nominalConcurrencyShares") is None:
            limited["nominalConcurrencyShares"] = 30
        limited.setdefault("lendablePercent", 0)
        queuing = (limited.get("limitResponse") or {}).get("queuing")
        if queuing is not None:
            for field, value in (
                ("handSize", 8),
                ("queues", 64),
                ("queueLengthLimit", 50),
            ):
                queuing[field] = queuing.get(field) or value
