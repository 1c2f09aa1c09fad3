"""StatefulSets: pods with names and volumes of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.internal import internal
from trimtab.embedded.builtin.validation import (
    claims,
    meta,
    podspec,
    selection,
    texts,
    workloads,
)
from trimtab.embedded.builtin.validation.problems import Found, sorted_map

JSON = Mapping[str, Any]

_MUTABLE: Final = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)
_FORBIDDEN: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
    "'template', 'updateStrategy', 'revisionHistoryLimit', "
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def create(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.label)
    _spec(found, obj["spec"], new=True)


def update(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    _spec(found, obj["spec"], new=False)
    if _fixed(obj["spec"]) != _fixed(old["spec"]):
        found.forbidden("spec", _FORBIDDEN)


def _fixed(spec: JSON) -> JSON:
    return {field: value for field, value in spec.items() if field not in _MUTABLE}


def _spec(found: Found, spec: JSON, *, new: bool) -> None:
    policy, path = spec.get("podManagementPolicy", ""), "spec.podManagementPolicy"
    if not policy:
        found.required(path)
    elif policy not in ("OrderedReady", "Parallel"):
        found.invalid(path, policy, "must be 'OrderedReady' or 'Parallel'")
    _strategy(found, spec["updateStrategy"], "spec.updateStrategy")
    _retention(found, spec.get("persistentVolumeClaimRetentionPolicy"))
    templates = spec.get("volumeClaimTemplates") or ()
    if new:
        for index, each in enumerate(templates):
            claims.spec(found, each["spec"], f"spec.volumeClaimTemplates[{index}].spec")
    found.not_negative("spec.replicas", spec.get("replicas"))
    found.not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    ordinals = spec.get("ordinals") or {}
    found.not_negative("spec.ordinals.start", ordinals.get("start"))
    service = spec.get("serviceName")
    if new and service:
        found.each("spec.serviceName", service, texts.label(service))
    if selection.required(found, spec, kind="statefulset"):
        _template(found, spec)
    else:
        found.invalid("spec.selector", selection.printed(spec["selector"]), "")
    selection.forever(found, spec["template"]["spec"], kind="StatefulSet")


def _strategy(found: Found, strategy: JSON, path: str) -> None:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if not kind:
        found.required(path)
    elif kind == "OnDelete":
        if rolling is not None:
            shown = internal("apps.RollingUpdateStatefulSetStrategy", rolling)
            detail = "only allowed for updateStrategy 'RollingUpdate'"
            found.invalid(f"{path}.rollingUpdate", shown, detail)
    elif kind == "RollingUpdate":
        if rolling is not None:
            _rolling(found, rolling, f"{path}.rollingUpdate")
    else:
        shown = internal("apps.StatefulSetUpdateStrategy", strategy)
        found.invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")


def _rolling(found: Found, rolling: JSON, path: str) -> None:
    found.not_negative(f"{path}.partition", rolling.get("partition"))


def _retention(found: Found, policy: JSON | None) -> None:
    for field in ("whenDeleted", "whenScaled"):
        if policy is not None:
            path = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            found.one_of(path, policy.get(field, ""), ("Retain", "Delete"))


def _template(found: Found, spec: JSON) -> None:
    """The template as pods will have it: names are the set's, claims are volumes."""
    given, selector = spec["template"], spec.get("selector")
    metadata = given["metadata"]
    labels = metadata.get("labels")
    if selector != {} and not selection.selects(selector, labels or {}):
        detail = "`selector` does not match template `labels`"
        found.invalid("spec.template.metadata.labels", sorted_map(labels), detail)
    pod_spec = {k: v for k, v in given["spec"].items() if k not in _OWN_NAMES}
    templates = spec.get("volumeClaimTemplates") or []
    if templates:
        pod_spec["volumes"] = _volumes(templates, pod_spec.get("volumes") or [])
    podspec.template(found, {**given, "spec": pod_spec}, "spec.template")
    meta.labels(found, labels, "spec.template.labels")
    notes = metadata.get("annotations")
    meta.notes(found, notes, "spec.template.annotations")
    podspec.pod_notes(found, notes, pod_spec, "spec.template.annotations")


_OWN_NAMES: Final = ("subdomain", "hostname")


def _volumes(templates: list[JSON], volumes: list[JSON]) -> list[JSON]:
    names = [each["metadata"].get("name", "") for each in templates]
    made: list[JSON] = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}}
        for name in dict.fromkeys(names)
    ]
    return made + [each for each in volumes if each["name"] not in names]


def status_update(found: Found, obj: JSON, old: JSON) -> None:
    status = obj["status"]
    workloads.counts(
        found,
        status,
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    )
    workloads.at_most_replicas(
        found,
        status,
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    )
    detail = "cannot be greater than status.readyReplicas"
    workloads.available_are_ready(found, status, detail)
    meta.updated(found, obj["metadata"], old["metadata"])
    workloads.collisions(found, status, old["status"])
