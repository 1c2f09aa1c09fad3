"""Defaults of workloads: how many, how updated, how long kept."""

from __future__ import annotations

from typing import Any, Final

from trimtab.embedded.builtin.defaults import pods

JSON = dict[str, Any]

_INT32: Final = 2**31 - 1


def deployment(obj: JSON) -> None:
    spec = obj["spec"]
    spec.setdefault("replicas", 1)
    strategy = spec["strategy"]
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    pods.template(spec["template"])


def replica_set(obj: JSON) -> None:
    spec = obj["spec"]
    spec.setdefault("replicas", 1)
    pods.template(spec["template"])


def replication_controller(obj: JSON) -> None:
    """Selector and labels are the template's if there are none."""
    spec, metadata = obj["spec"], obj["metadata"]
    template = spec.get("template")
    labels = template["metadata"].get("labels") if template else None
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        if not metadata.get("labels"):
            metadata["labels"] = dict(labels)
    spec.setdefault("replicas", 1)
    pods.template(template)


def daemon_set(obj: JSON) -> None:
    spec = obj["spec"]
    strategy = spec["updateStrategy"]
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    pods.template(spec["template"])
    # Converted back from a field that has left the API, and so the writer's.
    annotations = obj["metadata"].setdefault("annotations", {})
    annotations.setdefault("deprecated.daemonset.template.generation", "0")


def stateful_set(obj: JSON) -> None:
    spec = obj["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec["updateStrategy"]
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
    policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    policy.setdefault("whenDeleted", "Retain")
    policy.setdefault("whenScaled", "Retain")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    pods.template(spec["template"])
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim["status"].setdefault("phase", "Pending")
        pods.claim_spec(claim["spec"])


def job(obj: JSON) -> None:
    """A Job takes the labels of its pods if it has none."""
    metadata = obj["metadata"]
    labels = obj["spec"]["template"]["metadata"].get("labels")
    if labels and not metadata.get("labels"):
        # The same map, not a copy: labels that are made for the pods are the Job's too.
        metadata["labels"] = labels
    job_spec(obj["spec"])
    spec = obj["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    if "backoffLimit" not in spec:
        spec["backoffLimit"] = _INT32 if "backoffLimitPerIndex" in spec else 6
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    replaced = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", replaced)
    spec.setdefault("manualSelector", False)


def job_spec(spec: JSON) -> None:
    """What Jobs and their templates have in common."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern["status"] = pattern.get("status") or "True"
    pods.template(spec["template"])


def cron_job(obj: JSON) -> None:
    spec = obj["spec"]
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    job_spec(spec["jobTemplate"]["spec"])


def pod_template(obj: JSON) -> None:
    pods.template(obj["template"])
