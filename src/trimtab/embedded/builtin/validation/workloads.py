"""Workloads: Deployments, ReplicaSets, DaemonSets and the older controllers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.internal import internal
from trimtab.embedded.builtin.validation import meta, podspec, selection, texts
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_ABOVE: Final = "cannot be greater than status.replicas"


def int_or_percent(found: Found, value: int | str, path: str) -> None:
    if isinstance(value, str):
        found.each(path, value, texts.percent(value))
    else:
        found.not_negative(path, value)


def percent_of(value: int | str) -> int | None:
    """The number before ``%``; None if it is not a percentage."""
    if isinstance(value, str) and not texts.percent(value):
        return int(value[:-1])
    return None


def number_of(value: int | str) -> int:
    """A number or a percentage as a number; nonsense is zero."""
    percent = percent_of(value)
    if percent is not None:
        return percent
    if isinstance(value, int):
        return value
    return int(value) if value.isdecimal() and value.isascii() else 0


def at_most_all(found: Found, value: int | str, path: str) -> None:
    percent = percent_of(value)
    if percent is not None and percent > 100:
        found.invalid(path, value, "must not be greater than 100%")


def create_deployment(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    _deployment(found, obj["spec"])


def update_deployment(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    _deployment(found, obj["spec"])
    same_selector(found, obj["spec"], old["spec"])


def same_selector(found: Found, spec: JSON, old: JSON) -> None:
    new, before = spec.get("selector"), old.get("selector")
    if new != before:
        shown = None if new is None else selection.printed(new)
        found.invalid("spec.selector", shown, texts.IMMUTABLE)


def _deployment(found: Found, spec: JSON) -> None:
    found.not_negative("spec.replicas", spec.get("replicas"))
    if selection.required(found, spec, kind="deployment"):
        selection.template(found, spec, kind="ReplicaSet")
    else:
        shown = selection.printed(spec["selector"])
        found.invalid("spec.selector", shown, "invalid label selector")
    _deployment_strategy(found, spec["strategy"], "spec.strategy")
    found.not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    limit = spec.get("revisionHistoryLimit")
    found.not_negative("spec.revisionHistoryLimit", limit)
    deadline, path = spec.get("progressDeadlineSeconds"), "spec.progressDeadlineSeconds"
    if deadline is not None:
        found.not_negative(path, deadline)
        if deadline <= spec.get("minReadySeconds", 0):
            found.invalid(path, deadline, "must be greater than minReadySeconds")


def _deployment_strategy(found: Found, strategy: JSON, path: str) -> None:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            found.forbidden(f"{path}.rollingUpdate", detail)
    elif kind == "RollingUpdate":
        _rolling_deployment(found, rolling or {}, f"{path}.rollingUpdate")
    else:
        shown = internal("apps.DeploymentStrategy", strategy)
        found.unsupported(path, shown, ("Recreate", "RollingUpdate"))


def _rolling_deployment(found: Found, rolling: JSON, path: str) -> None:
    least, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    int_or_percent(found, least, f"{path}.maxUnavailable")
    int_or_percent(found, surge, f"{path}.maxSurge")
    if not number_of(least) and not number_of(surge):
        detail = "may not be 0 when `maxSurge` is 0"
        found.invalid(f"{path}.maxUnavailable", least, detail)
    at_most_all(found, least, f"{path}.maxUnavailable")


def status_deployment(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    status = obj["status"]
    counts(
        found,
        status,
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    )
    at_most_replicas(
        found, status, "updatedReplicas", "readyReplicas", "availableReplicas"
    )
    available_are_ready(found, status, "cannot be greater than readyReplicas")
    collisions(found, status, old["status"])


def counts(found: Found, status: JSON, *fields: str) -> None:
    """Numbers of a status that are not negative."""
    for field in fields:
        found.not_negative(f"status.{field}", status.get(field))


def at_most_replicas(found: Found, status: JSON, *fields: str) -> None:
    for field in fields:
        value = status.get(field, 0)
        if value > status.get("replicas", 0):
            found.invalid(f"status.{field}", value, _ABOVE)


def available_are_ready(found: Found, status: JSON, detail: str) -> None:
    available = status.get("availableReplicas", 0)
    if available > status.get("readyReplicas", 0):
        found.invalid("status.availableReplicas", available, detail)


def collisions(found: Found, status: JSON, old: JSON) -> None:
    new, before = status.get("collisionCount"), old.get("collisionCount")
    if before is not None and (new is None or new < before):
        found.invalid("status.collisionCount", new or 0, "cannot be decremented")


def create_replica_set(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    _replica_set(found, obj["spec"])


def update_replica_set(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    _replica_set(found, obj["spec"])
    same_selector(found, obj["spec"], old["spec"])


def _replica_set(found: Found, spec: JSON) -> None:
    found.not_negative("spec.replicas", spec.get("replicas"))
    found.not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    if selection.required(found, spec, kind="deployment"):
        selection.template(found, spec, kind="ReplicaSet")
    else:
        shown = selection.printed(spec["selector"])
        found.invalid("spec.selector", shown, "invalid label selector")


def status_replica_set(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    status = obj["status"]
    counts(
        found,
        status,
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    )
    at_most_replicas(
        found, status, "fullyLabeledReplicas", "readyReplicas", "availableReplicas"
    )
    available_are_ready(found, status, "cannot be greater than readyReplicas")


def create_daemon_set(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    _daemon_set(found, obj["spec"])


def update_daemon_set(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    same_selector(found, obj["spec"], old["spec"])
    _daemon_set(found, obj["spec"])


def _daemon_set(found: Found, spec: JSON) -> None:
    selector = spec.get("selector")
    meta.selector(found, selector, "spec.selector")
    selection.mismatch(found, spec)
    if selector == {}:
        detail = "empty selector is invalid for daemonset"
        found.invalid("spec.selector", {}, detail)
    podspec.template(found, spec["template"], "spec.template")
    selection.forever(found, spec["template"]["spec"], kind="DaemonSet")
    found.not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    _daemon_strategy(found, spec["updateStrategy"], "spec.updateStrategy")
    limit = spec.get("revisionHistoryLimit")
    found.not_negative("spec.revisionHistoryLimit", limit)


def _daemon_strategy(found: Found, strategy: JSON, path: str) -> None:
    kind = strategy.get("type", "")
    if kind == "RollingUpdate":
        _rolling_daemon(found, strategy["rollingUpdate"], f"{path}.rollingUpdate")
    elif kind != "OnDelete":
        shown = internal("apps.DaemonSetUpdateStrategy", strategy)
        found.unsupported(path, shown, ("RollingUpdate", "OnDelete"))


def _rolling_daemon(found: Found, rolling: JSON, path: str) -> None:
    least, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    for check in (int_or_percent, at_most_all):
        check(found, least, f"{path}.maxUnavailable")
        check(found, surge, f"{path}.maxSurge")
    if number_of(least) and number_of(surge):
        detail = "may not be set when maxUnavailable is non-zero"
        found.invalid(f"{path}.maxSurge", surge, detail)
    elif not number_of(least) and not number_of(surge):
        found.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def status_daemon_set(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    counts(
        found,
        obj["status"],
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    )
    collisions(found, obj["status"], old["status"])


def create_replication_controller(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    _replication_controller(found, obj["spec"])


def update_replication_controller(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    _replication_controller(found, obj["spec"])


def _replication_controller(found: Found, spec: JSON) -> None:
    found.not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    selector = spec.get("selector")
    if not selector:
        found.required("spec.selector")
    found.not_negative("spec.replicas", spec.get("replicas"))
    template = spec.get("template")
    if template is None:
        found.required("spec.template")
        return
    as_labels = {"matchLabels": selector} if selector else {}
    selection.template(
        found,
        {"selector": as_labels, "template": template},
        kind="ReplicationController",
    )


def create_pod_template(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    podspec.template(found, obj["template"], "template")


def update_pod_template(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    podspec.template(found, obj["template"], "template")


def create_revision(found: Found, obj: JSON) -> None:
    _revision(found, obj)
    data = obj.get("data")
    if data is None:
        found.required("data", "data is mandatory")
    elif not isinstance(data, dict):
        found.required("data", "data must be a valid JSON object")


def _revision(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    found.not_negative("revision", obj["revision"])


def update_revision(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    _revision(found, obj)
    if obj.get("data") != old.get("data"):
        found.invalid("data", obj.get("data"), texts.IMMUTABLE)
