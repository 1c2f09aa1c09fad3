"""The core group as its registries make it, but for pods and Services."""

from __future__ import annotations

import uuid
from typing import Any, Final

from trimtab.embedded.builtin.strategy.common import keep, keep_spec

JSON = dict[str, Any]

_KUBERNETES: Final = "kubernetes"


def create_namespace(obj: JSON) -> None:
    """A namespace is emptied before it goes, which its finalizer stands for."""
    obj["status"] = {"phase": "Active"}
    finalizers = obj["spec"].get("finalizers") or []
    if _KUBERNETES not in finalizers:
        finalizers = [*finalizers, _KUBERNETES]
    obj["spec"]["finalizers"] = finalizers
    _label(obj)


def _label(obj: JSON) -> None:
    """A name that was made up is known only now."""
    metadata = obj["metadata"]
    labels = metadata.setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = metadata.get("name", "")


def update_namespace(obj: JSON, old: JSON) -> None:
    _label(obj)
    keep(obj["spec"], old["spec"], "finalizers")
    keep(obj, old, "status")


def finalize_namespace(obj: JSON, old: JSON) -> None:
    keep(obj, old, "status")


def update_secret(obj: JSON, old: JSON) -> None:
    if not obj.get("type"):
        keep(obj, old, "type")


def clean_secrets(obj: JSON, old: JSON | None = None) -> None:
    """A ServiceAccount refers to Secrets of its own namespace, by name only."""
    for index, each in enumerate(obj.get("secrets") or ()):
        obj["secrets"][index] = {"name": each["name"]} if "name" in each else {}


def create_limit_range(obj: JSON) -> None:
    if not obj["metadata"].get("name"):
        obj["metadata"]["name"] = str(uuid.uuid4())


def create_node(obj: JSON) -> None:
    obj["spec"].pop("configSource", None)
    obj["status"].pop("config", None)


def update_node(obj: JSON, old: JSON) -> None:
    keep(obj, old, "status")
    obj["spec"].pop("configSource", None)


def node_status(obj: JSON, old: JSON) -> None:
    keep_spec(obj, old)
    obj["status"].pop("config", None)


def create_volume(obj: JSON) -> None:
    obj["status"] = {"phase": "Pending"}
    if now := obj["metadata"].get("creationTimestamp"):
        obj["status"]["lastPhaseTransitionTime"] = now


def volume_status(obj: JSON, old: JSON) -> None:
    """A phase keeps the time at which it began; there is no clock here for others."""
    keep_spec(obj, old)
    status, before, field = obj["status"], old["status"], "lastPhaseTransitionTime"
    if status.get("phase") == before.get("phase") and field in before:
        status.setdefault(field, before[field])


def create_claim(obj: JSON) -> None:
    obj["status"] = {"phase": "Pending"}
    _data_sources(obj["spec"], used=False)


def update_claim(obj: JSON, old: JSON) -> None:
    keep(obj, old, "status")
    used = any(each in old["spec"] for each in ("dataSource", "dataSourceRef"))
    _data_sources(obj["spec"], used=used)


def _data_sources(spec: JSON, *, used: bool) -> None:
    """There are two ways to say where data comes from, and both are written."""
    reference = spec.get("dataSourceRef")
    if reference is not None and reference.get("namespace") and not used:
        del spec["dataSourceRef"]
        reference = None
    source = spec.get("dataSource")
    new = reference is None and not used
    if source is not None and new and not _is_known(source):
        del spec["dataSource"]
        return
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        fields = ("apiGroup", "kind", "name")
        spec["dataSource"] = {k: reference[k] for k in fields if k in reference}


def _is_known(source: JSON) -> bool:
    group, kind = source.get("apiGroup") or "", source["kind"]
    if kind == "PersistentVolumeClaim":
        return group == ""
    return kind == "VolumeSnapshot" and group == "snapshot.storage.k8s.io"
