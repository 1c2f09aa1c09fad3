"""Tables of storage: volumes, claims, and what provides them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from trimtab.embedded.builtin.printers.cells import (
    NONE,
    UNSET,
    Plain,
    Printer,
    Row,
    created,
    part,
    printer,
)

_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULTS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _volume(obj: Plain, now: datetime) -> Row:
    spec, status = part(obj, "spec"), part(obj, "status")
    return [
        obj["metadata"]["name"],
        _size(spec),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy") or "",
        _phase(obj),
        _claim_of(spec.get("claimRef")),
        _class(obj),
        _or_unset(spec.get("volumeAttributesClassName")),
        status.get("reason") or "",
        created(obj, now),
        _or_unset(spec.get("volumeMode")),
    ]


def _claim(obj: Plain, now: datetime) -> Row:
    spec, status = part(obj, "spec"), part(obj, "status")
    bound = spec.get("volumeName") or ""
    return [
        obj["metadata"]["name"],
        _phase(obj),
        bound,
        _size(status) if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        _class(obj),
        _or_unset(spec.get("volumeAttributesClassName")),
        created(obj, now),
        _or_unset(spec.get("volumeMode")),
    ]


def _size(holder: Plain) -> str:
    return str(part(holder, "capacity").get("storage") or "0")


def _modes(given: Iterable[str] | None) -> str:
    found = given or ()
    return ",".join(short for mode, short in _MODES.items() if mode in found)


def _phase(obj: Plain) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    phase: str = part(obj, "status").get("phase") or ""
    return phase


def _claim_of(reference: Plain | None) -> str:
    if reference is None:
        return ""
    return f"{reference.get('namespace') or ''}/{reference.get('name') or ''}"


def _class(obj: Plain) -> str:
    """The storage class; the annotation is older than the field and wins."""
    annotations = obj["metadata"].get("annotations") or {}
    own = part(obj, "spec").get("storageClassName") or ""
    found: str = annotations.get(_CLASS, own)
    return found


def _or_unset(value: str | None) -> str:
    return UNSET if value is None else value


def _storage_class(obj: Plain, now: datetime) -> Row:
    meta = obj["metadata"]
    annotations = meta.get("annotations") or {}
    default = any(annotations.get(name) == "true" for name in _DEFAULTS)
    return [
        meta["name"] + (" (default)" if default else ""),
        obj.get("provisioner") or "",
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        created(obj, now),
    ]


def _attributes_class(obj: Plain, now: datetime) -> Row:
    return [obj["metadata"]["name"], obj.get("driverName") or "", created(obj, now)]


def _attachment(obj: Plain, now: datetime) -> Row:
    spec = part(obj, "spec")
    return [
        obj["metadata"]["name"],
        spec.get("attacher") or "",
        part(spec, "source").get("persistentVolumeName") or "",
        spec.get("nodeName") or "",
        bool(part(obj, "status").get("attached")),
        created(obj, now),
    ]


def _driver(obj: Plain, now: datetime) -> Row:
    spec = part(obj, "spec")
    attach, requests = spec.get("attachRequired"), spec.get("tokenRequests")
    return [
        obj["metadata"]["name"],
        True if attach is None else attach,
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        _audiences(requests),
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        created(obj, now),
    ]


def _audiences(requests: list[Plain] | None) -> str:
    if requests is None:
        return UNSET
    return ",".join(each.get("audience") or "" for each in requests)


def _csi_node(obj: Plain, now: datetime) -> Row:
    drivers = part(obj, "spec").get("drivers") or ()
    return [obj["metadata"]["name"], len(drivers), created(obj, now)]


PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("", "PersistentVolume"): printer(
        "Name/name, Capacity, Access Modes, Reclaim Policy, Status, Claim, "
        "StorageClass, VolumeAttributesClass, Reason, Age, VolumeMode*",
        _volume,
    ),
    ("", "PersistentVolumeClaim"): printer(
        "Name/name, Status, Volume, Capacity, Access Modes, StorageClass, "
        "VolumeAttributesClass, Age, VolumeMode*",
        _claim,
    ),
    ("storage.k8s.io", "StorageClass"): printer(
        "Name/name, Provisioner, ReclaimPolicy, VolumeBindingMode, "
        "AllowVolumeExpansion, Age",
        _storage_class,
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): printer(
        "Name/name, DriverName, Age", _attributes_class
    ),
    ("storage.k8s.io", "VolumeAttachment"): printer(
        "Name/name, Attacher/name, PV, Node, Attached:boolean, Age", _attachment
    ),
    ("storage.k8s.io", "CSIDriver"): printer(
        "Name/name, AttachRequired:boolean, PodInfoOnMount:boolean, "
        "StorageCapacity:boolean, TokenRequests, RequiresRepublish:boolean, Modes, Age",
        _driver,
    ),
    ("storage.k8s.io", "CSINode"): printer(
        "Name/name, Drivers:integer, Age", _csi_node
    ),
}
