"""PersistentVolumes: storage that was made, and what it is made of."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any, Final

from trimtab.api.quantity import Quantity
from trimtab.embedded.builtin.internal import difference, internal
from trimtab.embedded.builtin.validation import (
    claims,
    meta,
    resources,
    scheduling,
    sources,
    texts,
)
from trimtab.embedded.builtin.validation.problems import Found, sorted_map

JSON = Mapping[str, Any]

_MORE: Final = "may not specify more than 1 volume type"
_INLINE: Final = "may not be specified in the context of inline volumes"
_OPTIONS: Final = "volume.beta.kubernetes.io/mount-options"
_RECLAIM: Final = ("Delete", "Recycle", "Retain")
_SECRETS: Final = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)


def _csi(found: Found, source: JSON, path: str) -> None:
    sources.driver_name(found, source["driver"], f"{path}.driver")
    if not source["volumeHandle"]:
        found.required(f"{path}.volumeHandle")
    for field in _SECRETS:
        if field in source:
            _secret(found, source[field], f"{path}.{field}")


def _secret(found: Found, reference: JSON, path: str) -> None:
    for field, check in (("name", texts.subdomain), ("namespace", texts.label)):
        value = reference.get(field, "")
        if not value:
            found.required(f"{path}.{field}")
        else:
            found.each(f"{path}.{field}", value, check(value))


def _local(found: Found, source: JSON, path: str) -> None:
    if not source["path"]:
        found.required(f"{path}.path")
    else:
        sources.no_steps_back(found, source["path"], f"{path}.path")


_ORDER: Final = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
)
_OWN: Final = {"csi": _csi, "local": _local, "iscsi": sources.persistent_iscsi}
_WITH_OPTIONS: Final = frozenset(
    "gcePersistentDisk awsElasticBlockStore glusterfs nfs rbd quobyte iscsi cinder "
    "cephfs azureFile vsphereVolume azureDisk photonPersistentDisk".split()
)


def create(found: Found, obj: JSON) -> None:
    _volume(found, obj)
    _mount_options(found, obj)


def _mount_options(found: Found, obj: JSON) -> None:
    if obj["spec"].keys() & _WITH_OPTIONS:
        return
    if _OPTIONS in (obj["metadata"].get("annotations") or {}):
        detail = "may not specify mount options for this volume type"
        found.forbidden(f"metadata.annotations.{_OPTIONS}", detail)


def _volume(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=False, name=texts.subdomain)
    spec = obj["spec"]
    _modes(found, spec, "spec")
    _capacity(found, spec.get("capacity") or {})
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy:
        found.one_of("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM)
    if "nodeAffinity" in spec:
        _node_affinity(found, spec["nodeAffinity"])
    _source(found, spec, "spec", placed="nodeAffinity" in spec)
    name = spec.get("storageClassName")
    if name:
        found.each("spec.storageClassName", name, texts.subdomain(name))
    if "volumeMode" in spec:
        found.one_of("spec.volumeMode", spec["volumeMode"], claims.VOLUME_MODES)
    _attributes_class(found, spec)


def _modes(found: Found, spec: JSON, path: str) -> None:
    modes = spec.get("accessModes")
    if not modes:
        found.required(f"{path}.accessModes")
    claims.access_modes(found, modes, f"{path}.accessModes")


def inline(found: Found, spec: JSON, path: str) -> None:
    """A volume that a VolumeAttachment brings itself."""
    if "claimRef" in spec:
        found.forbidden(f"{path}.claimRef", _INLINE)
    if spec.get("capacity"):
        found.forbidden(f"{path}.capacity", _INLINE)
    if "csi" not in spec:
        detail = "has to be specified in the context of inline volumes"
        found.required(f"{path}.csi", detail)
    _modes(found, spec, path)
    if spec.get("persistentVolumeReclaimPolicy", "Retain") != "Retain":
        detail = "may only be Retain in the context of inline volumes"
        found.forbidden(f"{path}.persistentVolumeReclaimPolicy", detail)
    if "nodeAffinity" in spec:
        found.forbidden(f"{path}.nodeAffinity", _INLINE)
    _source(found, spec, path, placed=False)
    if spec.get("storageClassName"):
        found.forbidden(f"{path}.storageClassName", _INLINE)
    if spec.get("volumeMode", "Filesystem") != "Filesystem":
        detail = (
            "may not specify volumeMode other than Filesystem in the context of inline "
            "volumes"
        )
        found.forbidden(f"{path}.volumeMode", detail)


def _capacity(found: Found, given: Mapping[str, str]) -> None:
    path = "spec.capacity"
    if not given:
        found.required(path)
    if "storage" not in given or len(given) > 1:
        found.unsupported(path, sorted_map(given), ("storage",))
    for name, value in given.items():
        quantity = Quantity(value)
        if int(quantity) < 0:
            detail = "must be a valid resource quantity"
            found.invalid(f"{path}[{name}]", int(quantity), detail)
        if quantity <= resources.ZERO:
            found.invalid(f"{path}[{name}]", value, texts.NOT_POSITIVE)


def _node_affinity(found: Found, given: JSON) -> None:
    path = "spec.nodeAffinity.required"
    if "required" in given:
        scheduling.node_selector(found, given["required"], path)
    else:
        found.required(path, "must specify required node constraints")


def _source(found: Found, spec: JSON, path: str, *, placed: bool) -> None:
    count = 0
    for name in _ORDER:
        if name not in spec:
            continue
        count += 1
        if count > 1 and name != "flexVolume":
            shown = "cephFS" if name == "cephfs" else name
            found.forbidden(f"{path}.{shown}", _MORE)
            continue
        check, part = sources.SOURCES.get(name, (None, name))
        own = _OWN.get(name, check)
        if own is not None:
            own(found, spec[name], f"{path}.{part if name not in _OWN else name}")
        if name == "local" and not placed:
            detail = "Local volume requires node affinity"
            found.required(f"{path}.nodeAffinity", detail)
    if not count:
        found.required(path, "must specify a volume type")
    recycled = spec.get("persistentVolumeReclaimPolicy") == "Recycle"
    place = (spec.get("hostPath") or {}).get("path", "")
    if recycled and place and posixpath.normpath(place) == "/":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        found.forbidden(f"{path}.persistentVolumeReclaimPolicy", detail)


def _attributes_class(found: Found, spec: JSON) -> None:
    name = spec.get("volumeAttributesClassName")
    if name is None:
        return
    where = "spec.volumeAttributesClassName"
    if not name:
        found.required(where, "an empty string is disallowed")
    else:
        found.each(where, name, texts.subdomain(name))
    if "csi" not in spec:
        detail = "has to be specified when using volumeAttributesClassName"
        found.required("spec.csi", detail)


def update(found: Found, obj: JSON, old: JSON) -> None:
    """What a volume is made of does not change."""
    create(found, obj)
    _volume(found, obj)
    new, before = _made_of(obj["spec"]), _made_of(old["spec"])
    secret = "controllerExpandSecretRef"
    if "csi" in new and "csi" in before and secret not in before["csi"]:
        new["csi"] = {k: v for k, v in new["csi"].items() if k != secret}
    if new != before:
        found.forbidden(
            "spec.persistentvolumesource",
            "spec.persistentvolumesource is immutable after creation\n"
            + difference("core.PersistentVolumeSource", before, new),
        )
    mode = obj["spec"].get("volumeMode")
    found.immutable("volumeMode", mode, old["spec"].get("volumeMode"))
    affinity, was = obj["spec"].get("nodeAffinity"), old["spec"].get("nodeAffinity")
    if was is not None and affinity != was:
        shown = internal("core.VolumeNodeAffinity", affinity)
        detail = f"{texts.IMMUTABLE}, except for updating from beta label to GA"
        found.invalid("nodeAffinity", shown, detail)
    field = "volumeAttributesClassName"
    if field in old["spec"] and field not in obj["spec"]:
        detail = "update from non-nil value to nil is forbidden"
        found.forbidden(f"spec.{field}", detail)


def _made_of(spec: JSON) -> dict[str, Any]:
    return {name: spec[name] for name in _ORDER if name in spec}


def status_update(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
