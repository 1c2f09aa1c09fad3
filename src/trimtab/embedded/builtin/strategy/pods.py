"""Pods as their registry makes them: status, class, and what an update may touch."""

from __future__ import annotations

from typing import Any, Final

from trimtab.embedded.builtin.podresources import quality
from trimtab.embedded.builtin.strategy.common import keep, keep_metadata

JSON = dict[str, Any]

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def create(obj: JSON) -> None:
    """A new pod is pending."""
    spec = obj["spec"]
    obj["status"] = {"phase": "Pending", "qosClass": quality(spec)}
    if spec.get("schedulingGates"):
        _gated(obj)
    labels = obj["metadata"].get("labels")
    if labels:
        _merge_label_keys(spec, labels)


def _gated(obj: JSON) -> None:
    obj["status"]["conditions"] = [
        {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": obj["metadata"].get("creationTimestamp"),
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]


def _merge_label_keys(spec: JSON, labels: dict[str, str]) -> None:
    """Keys of labels become expressions with the pod's own values."""
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for weighted in terms.get(_PREFERRED) or ():
            _merge(weighted["podAffinityTerm"], labels)
        for term in terms.get(_REQUIRED) or ():
            _merge(term, labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge(constraint, labels)


def _merge(term: JSON, labels: dict[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(field) or ():
            if key in labels:
                expressions = selector.setdefault("matchExpressions", [])
                expression = {"key": key, "operator": operator, "values": [labels[key]]}
                expressions.append(expression)


def update(obj: JSON, old: JSON) -> None:
    keep(obj, old, "status")


def update_status(obj: JSON, old: JSON) -> None:
    """The spec stays, and so do the owners; labels may change."""
    keep(obj, old, "spec")
    metadata, before = obj["metadata"], old["metadata"]
    keep(metadata, before, "ownerReferences")
    keep(metadata, before, "deletionTimestamp")
    status, old_status = obj["status"], old["status"]
    if "qosClass" not in status and "qosClass" in old_status:
        status["qosClass"] = old_status["qosClass"]
    if "observedGeneration" not in status and "observedGeneration" in old_status:
        status["observedGeneration"] = old_status["observedGeneration"]
    _keep_generations(status, old_status)


def _keep_generations(status: JSON, old: JSON) -> None:
    """A client that does not know generations does not take them away."""
    known: dict[str, list[int]] = {}
    for condition in old.get("conditions") or ():
        generations = known.setdefault(condition["type"], [])
        generations.append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions") or ():
        left = known.get(condition["type"])
        generation = left.pop(0) if left else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def update_ephemeral(obj: JSON, old: JSON) -> None:
    """Of the whole object only the containers to look into it are new."""
    added = obj["spec"].get("ephemeralContainers")
    obj["spec"] = dict(old["spec"])
    obj["spec"].pop("ephemeralContainers", None)
    if added:
        obj["spec"]["ephemeralContainers"] = added
    keep(obj, old, "status")
    keep_metadata(obj, old)


def resize(obj: JSON, old: JSON) -> None:
    """Of the whole object only resources of containers are new."""
    spec, before = obj["spec"], old["spec"]
    for kind in ("containers", "initContainers"):
        if len(spec.get(kind) or ()) != len(before.get(kind) or ()):
            return
    merged = {
        kind: _resized(spec[kind], before[kind])
        for kind in ("containers", "initContainers")
        if spec.get(kind)
    }
    own = spec.get("resources")
    obj["spec"] = {**before, **merged}
    obj["spec"].pop("resources", None)
    if own is not None:
        obj["spec"]["resources"] = own
    keep(obj, old, "status")
    keep_metadata(obj, old)


def _resized(new: list[JSON], old: list[JSON]) -> list[JSON]:
    if any(one["name"] != other["name"] for one, other in zip(new, old, strict=True)):
        return new
    made = []
    for each, before in zip(new, old, strict=True):
        merged = {**before, "resources": each["resources"]}
        merged.pop("resizePolicy", None)
        if "resizePolicy" in each:
            merged["resizePolicy"] = each["resizePolicy"]
        made.append(merged)
    return made
