"""Pods: what may be created, and the little that may change afterwards."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.internal import difference, internal
from trimtab.embedded.builtin.podresources import quality
from trimtab.embedded.builtin.validation import (
    containers,
    meta,
    podspec,
    scheduling,
    texts,
)
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_UPDATABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it "
    "was previously negative)"
)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def _whole(found: Found, obj: JSON) -> None:
    """Metadata and spec, at any time of a pod's life."""
    metadata, spec = obj["metadata"], obj["spec"]
    meta.created(found, metadata, namespaced=True, name=texts.subdomain)
    notes = metadata.get("annotations")
    podspec.pod_notes(found, notes, spec, "metadata.annotations")
    podspec.pod_spec(found, spec, "spec", metadata=metadata)
    if not spec.get("serviceAccountName"):
        _no_tokens(found, spec)
    for kind in ("containers", "initContainers"):
        for index, each in enumerate(spec.get(kind) or ()):
            containers.padding(found, each, f"spec.{kind}[{index}]")


def _no_tokens(found: Found, spec: JSON) -> None:
    for index, volume in enumerate(spec.get("volumes") or ()):
        sources = (volume.get("projected") or {}).get("sources") or ()
        for number, source in enumerate(sources):
            if "serviceAccountToken" in source:
                where = f"spec.volumes[{index}].projected.sources[{number}]"
                detail = "must not be specified when serviceAccountName is not set"
                found.forbidden(f"{where}.serviceAccountToken", detail)


def create(found: Found, obj: JSON) -> None:
    _whole(found, obj)
    spec = obj["spec"]
    if spec.get("ephemeralContainers"):
        found.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        found.forbidden("spec.nodeName", detail)


def update(found: Found, obj: JSON, old: JSON) -> None:
    """Images may change, tolerations be added, and a few things more."""
    meta.updated(found, obj["metadata"], old["metadata"])
    _whole(found, obj)
    changed_notes(found, obj, old)
    spec, before = obj["spec"], old["spec"]
    for kind in ("containers", "initContainers"):
        if not _images(found, spec.get(kind), before.get(kind), f"spec.{kind}"):
            return
    if not _deadline(found, spec, before):
        return
    _tolerations(found, spec, before)
    _gates(found, spec, before)
    if spec != before:
        _unchanged(found, spec, before)


def changed_notes(found: Found, obj: JSON, old: JSON) -> None:
    new = obj["metadata"].get("annotations") or {}
    before = old["metadata"].get("annotations") or {}
    for key, value in before.items():
        if new.get(key) != value:
            _special(found, key, "remove or update")
    for key in new:
        if key not in before:
            _special(found, key, "add")
    podspec.pod_notes(found, new, obj["spec"], "metadata.annotations")


def _special(found: Found, key: str, action: str) -> None:
    path = f"metadata.annotations[{key}]"
    if key.startswith(podspec.APP_ARMOR):
        found.forbidden(path, f"may not {action} AppArmor annotations")
    if key == podspec.MIRROR:
        found.forbidden(path, f"may not {action} mirror pod annotation")


def _images(
    found: Found, new: list[JSON] | None, old: list[JSON] | None, path: str
) -> bool:
    if len(new or ()) != len(old or ()):
        found.forbidden(path, "pod updates may not add or remove containers")
        return False
    for index, each in enumerate(new or ()):
        if not each.get("image"):
            found.required(f"{path}[{index}].image")
        containers.padding(found, each, f"{path}[{index}]")
    return True


def _deadline(found: Found, spec: JSON, before: JSON) -> bool:
    path = "spec.activeDeadlineSeconds"
    new = spec.get("activeDeadlineSeconds")
    old = before.get("activeDeadlineSeconds")
    if new is None:
        if old is not None:
            detail = "must not update from a positive integer to nil value"
            found.invalid(path, None, detail)
        return True
    if not 0 <= new < 2**31:
        found.invalid(path, new, texts.between(0, 2**31 - 1))
        return False
    if old is not None and old < new:
        found.invalid(path, new, "must be less than or equal to previous value")
        return False
    return True


def _tolerations(found: Found, spec: JSON, before: JSON) -> None:
    new = spec.get("tolerations") or []
    kept = [_without_seconds(each) for each in new]
    for each in before.get("tolerations") or ():
        if _without_seconds(each) not in kept:
            found.forbidden(
                "spec.tolerations",
                "existing toleration can not be modified except its tolerationSeconds",
            )
            return
    scheduling.tolerations(found, new, "spec.tolerations")


def _without_seconds(toleration: JSON) -> JSON:
    return {key: each for key, each in toleration.items() if key != "tolerationSeconds"}


def _gates(found: Found, spec: JSON, before: JSON) -> None:
    old = {each["name"] for each in before.get("schedulingGates") or ()}
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate["name"] not in old:
            detail = (
                "only deletion is allowed, but found new scheduling gate "
                f"'{gate['name']}'"
            )
            found.forbidden(f"spec.schedulingGates[{index}].name", detail)


def _unchanged(found: Found, spec: JSON, before: JSON) -> None:
    """Put back what may change; nothing else may be left that differs."""
    munged: dict[str, Any] = copy.deepcopy(dict(spec))
    for kind in ("containers", "initContainers"):
        for each, old in zip(
            munged.get(kind) or (), before.get(kind) or (), strict=True
        ):
            _same(each, old, "image")
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _same(munged, before, field)
    grace = before.get("terminationGracePeriodSeconds", 0)
    if grace < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        munged["terminationGracePeriodSeconds"] = grace
    if before.get("schedulingGates"):
        _gated(found, munged, before)
    if munged != before:
        found.forbidden(
            "spec",
            f"pod updates may not change fields other than {_UPDATABLE}\n"
            + difference("core.PodSpec", before, munged),
        )


def _same(new: dict[str, Any], old: JSON, field: str) -> None:
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


def _gated(found: Found, munged: dict[str, Any], before: JSON) -> None:
    """Where a pod may run can be narrowed as long as it waits at a gate."""
    old = before.get("nodeSelector") or {}
    new = munged.get("nodeSelector") or {}
    if any(new.get(key) != value for key, value in old.items()):
        detail = (
            "only additions to spec.nodeSelector are allowed (no mutations or "
            "deletions)"
        )
        found.invalid("spec.nodeSelector", new or None, detail)
    _same(munged, before, "nodeSelector")
    _gated_affinity(found, munged, before)


def _gated_affinity(found: Found, munged: dict[str, Any], before: JSON) -> None:
    affinity: dict[str, Any] = dict(munged.get("affinity") or {})
    old = (before.get("affinity") or {}).get("nodeAffinity")
    new = affinity.get("nodeAffinity")
    if old == new:
        return
    _narrowed(found, new or {}, old or {})
    affinity.pop("nodeAffinity", None)
    if old is not None:
        affinity["nodeAffinity"] = old
    if affinity or "affinity" in before:
        munged["affinity"] = affinity
    else:
        munged.pop("affinity", None)


def _narrowed(found: Found, new: JSON, old: JSON) -> None:
    before = (old.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    terms = (new.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    if before and len(before) != len(terms):
        shown = [internal("core.NodeSelectorTerm", each) for each in terms]
        detail = (
            "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        )
        found.invalid(path, shown or None, detail)
        return
    for index, (term, was) in enumerate(zip(terms, before, strict=False)):
        if not _only_adds(term, was):
            shown_term = internal("core.NodeSelectorTerm", term)
            detail = "only additions are allowed (no mutations or deletions)"
            found.invalid(f"{path}[{index}]", shown_term, detail)


def _only_adds(term: JSON, was: JSON) -> bool:
    if not was and term:
        return False
    for field in ("matchExpressions", "matchFields"):
        old = was.get(field) or []
        if (term.get(field) or [])[: len(old)] != old:
            return False
    return True


def ephemeral_update(found: Found, obj: JSON, old: JSON) -> None:
    """Containers to look into a pod are only ever added."""
    meta.updated(found, obj["metadata"], old["metadata"])
    _whole(found, obj)
    changed_notes(found, obj, old)
    if podspec.MIRROR in (old["metadata"].get("annotations") or {}):
        found.clear()
        found.forbidden("[]", "static pods do not support ephemeral containers")
        return
    path = "spec.ephemeralContainers"
    new = {each["name"]: each for each in obj["spec"].get("ephemeralContainers") or ()}
    for each in old["spec"].get("ephemeralContainers") or ():
        name = each["name"]
        what = f'existing ephemeral containers "{name}" may not be'
        if name not in new:
            found.forbidden(path, f"{what} removed\n")
        elif new[name] != each:
            changes = difference("core.EphemeralContainer", each, new[name])
            found.forbidden(path, f"{what} changed\n{changes}")


def resize(found: Found, obj: JSON, old: JSON) -> None:
    """Only CPU and memory change, and not what class the pod is of."""
    meta.updated(found, obj["metadata"], old["metadata"])
    _whole(found, obj)
    spec, before = obj["spec"], old["spec"]
    kept = old["status"].get("qosClass", "")
    if kept != quality(spec):
        detail = "Pod QOS Class may not change as a result of resizing"
        found.invalid("spec", kept, detail)
    for kind in ("initContainers", "containers"):
        pairs = zip(spec.get(kind) or (), before.get(kind) or (), strict=False)
        for index, (each, was) in enumerate(pairs):
            path = f"spec.{kind}[{index}].resources"
            _kept_resources(found, each["resources"], was["resources"], path)
    if not found and _without_compute(spec) != _without_compute(before):
        found.forbidden("spec", "only cpu and memory resources are mutable")


def _kept_resources(found: Found, new: JSON, old: JSON, path: str) -> None:
    for field in ("requests", "limits"):
        if (old.get(field) or {}).keys() - (new.get(field) or {}).keys():
            found.forbidden(f"{path}.{field}", f"resource {field} cannot be removed")


def _without_compute(spec: JSON) -> JSON:
    kept = copy.deepcopy(dict(spec))
    for kind in ("containers", "initContainers"):
        for each in kept.get(kind) or ():
            each.pop("resizePolicy", None)
            for field in ("requests", "limits"):
                asked = each["resources"].pop(field, {})
                rest = {k: v for k, v in asked.items() if k not in ("cpu", "memory")}
                if rest:
                    each["resources"][field] = rest
    return kept
