"""Claims: PersistentVolumeClaims, and the templates that become some."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from trimtab.api.quantity import Quantity
from trimtab.embedded.builtin.internal import difference
from trimtab.embedded.builtin.validation import meta, resources, texts
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

ACCESS_MODES: Final = (
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
)
VOLUME_MODES: Final = ("Block", "Filesystem")
_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_TEMPLATE_META: Final = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
)


def template(found: Found, given: JSON, path: str) -> None:
    """What a claim is made of."""
    template_metadata(found, given.get("metadata") or {}, f"{path}.metadata")
    spec(found, given["spec"], f"{path}.spec")


def template_metadata(found: Found, metadata: JSON, path: str) -> None:
    """That of a template of claims: labels and annotations only."""
    meta.notes(found, metadata.get("annotations"), f"{path}.annotations")
    meta.labels(found, metadata.get("labels"), f"{path}.labels")
    for field in _TEMPLATE_META:
        if metadata.get(field):
            shown = "uID" if field == "uid" else field  # Go's name in lower case
            found.forbidden(f"{path}.{shown}", "cannot be set")


def access_modes(found: Found, modes: list[str] | None, path: str) -> None:
    """Which modes there are, and the one that goes with no other."""
    if not modes:
        return
    for mode in modes:
        found.one_of(path, mode, ACCESS_MODES)
    others = [each for each in modes if each in ACCESS_MODES[:3]]
    if "ReadWriteOncePod" in modes and others:
        detail = "may not use ReadWriteOncePod with other access modes"
        found.forbidden(path, detail)


def spec(found: Found, given: JSON, path: str, *, old: JSON | None = None) -> None:
    """What is wished of a volume."""
    modes = given.get("accessModes")
    if not modes:
        detail = "at least 1 access mode is required"
        found.required(f"{path}.accessModes", detail)
    meta.selector(found, given.get("selector"), f"{path}.selector")
    access_modes(found, modes, f"{path}.accessModes")
    _storage(found, given, f"{path}.resources[storage]")
    name = given.get("storageClassName")
    if name:
        found.each(f"{path}.storageClassName", name, texts.subdomain(name))
    if "volumeMode" in given:
        found.one_of(f"{path}.volumeMode", given["volumeMode"], VOLUME_MODES)
    _data_sources(found, given, path, old or {})
    name = given.get("volumeAttributesClassName")
    if name:
        found.each(f"{path}.volumeAttributesClassName", name, texts.subdomain(name))


def _storage(found: Found, given: JSON, path: str) -> None:
    storage = (given["resources"].get("requests") or {}).get("storage")
    if storage is None:
        found.required(path)
    elif Quantity(storage) <= resources.ZERO:
        found.invalid(path, storage, texts.NOT_POSITIVE)


def _data_sources(found: Found, given: JSON, path: str, old: JSON) -> None:
    source, reference = given.get("dataSource"), given.get("dataSourceRef")
    kept = any(
        (old.get(name) or {}).get("apiGroup") is not None
        for name in ("dataSource", "dataSourceRef")
    )
    if source is not None:
        _data_source(found, source, f"{path}.dataSource", kept=kept)
    if reference is None:
        return
    _data_source(found, reference, f"{path}.dataSourceRef", kept=kept)
    namespace = reference.get("namespace")
    if namespace:
        where = f"{path}.dataSourceRef.namespace"
        found.each(where, namespace, texts.label(namespace))
    if source is None:
        return
    if namespace:
        detail = "may not be specified when dataSourceRef.namespace is specified"
        found.invalid(path, {}, detail)
    elif any(source.get(k) != reference.get(k) for k in ("apiGroup", "kind", "name")):
        found.invalid(path, {}, "must match dataSourceRef")


def _data_source(found: Found, source: JSON, path: str, *, kept: bool) -> None:
    for field in ("name", "kind"):
        if not source[field]:
            found.required(f"{path}.{field}")
    group = source.get("apiGroup") or ""
    if not group and source["kind"] != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        found.invalid(path, source["kind"], detail)
    if group and not kept:
        found.each(f"{path}.apiGroup", group, texts.subdomain(group))


def create(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    spec(found, obj["spec"], "spec")


def update(found: Found, obj: JSON, old: JSON) -> None:
    """A claim stays what it is, but that bound ones may grow."""
    meta.updated(found, obj["metadata"], old["metadata"])
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    spec(found, obj["spec"], "spec", old=old["spec"])
    new, before = copy.deepcopy(obj["spec"]), copy.deepcopy(old["spec"])
    _settle(found, obj, old, new, before)
    if new != before:
        found.forbidden(
            "spec",
            "spec is immutable after creation except resources.requests and "
            "volumeAttributesClassName for bound claims\n"
            + difference("core.PersistentVolumeClaimSpec", before, new),
        )
    _size(found, obj, old)
    path = "volumeMode"
    found.immutable(path, obj["spec"].get(path), old["spec"].get(path))
    _attributes(found, obj, old)


def _settle(
    found: Found, obj: JSON, old: JSON, new: dict[str, Any], before: dict[str, Any]
) -> None:
    """Make equal what is allowed to differ."""
    if not before.get("volumeName") and "volumeName" in new:
        before["volumeName"] = new["volumeName"]
    noted = (old["metadata"].get("annotations") or {}).get(_CLASS)
    notes = (obj["metadata"].get("annotations") or {}).get(_CLASS)
    given, given_before = new.get("storageClassName"), before.get("storageClassName")
    if (
        given is not None
        and given_before is None
        and given == noted == (notes or noted)
    ):
        del new["storageClassName"]
    else:
        if (notes or "") != (noted or ""):
            path = f"metadata.annotations.{_CLASS}"
            found.invalid(path, notes or "", texts.IMMUTABLE)
        if given is not None and given_before is None and noted in (None, given):
            del new["storageClassName"]
    if (obj.get("status") or {}).get("phase") == "Bound":
        requests = new["resources"].get("requests")
        size = (before["resources"].get("requests") or {}).get("storage")
        if requests is not None and size is not None:
            requests["storage"] = size
        _same(new, before, "volumeAttributesClassName")


def _same(new: dict[str, Any], before: Mapping[str, Any], field: str) -> None:
    new.pop(field, None)
    if field in before:
        new[field] = before[field]


def _size(found: Found, obj: JSON, old: JSON) -> None:
    size = Quantity(
        (obj["spec"]["resources"].get("requests") or {}).get("storage", "0")
    )
    before = Quantity(
        (old["spec"]["resources"].get("requests") or {}).get("storage", "0")
    )
    has = Quantity((old["status"].get("capacity") or {}).get("storage", "0"))
    if size < before and size <= has:
        path = "spec.resources.requests.storage"
        found.forbidden(path, "field can not be less than status.capacity")


def _attributes(found: Found, obj: JSON, old: JSON) -> None:
    name = obj["spec"].get("volumeAttributesClassName")
    if name == old["spec"].get("volumeAttributesClassName") or name:
        return
    if "currentVolumeAttributesClassName" in (old.get("status") or {}):
        what = "nil" if name is None else "empty string"
        found.forbidden(
            "spec.volumeAttributesClassName",
            f"update to {what} is forbidden when "
            "status.currentVolumeAttributesClassName is not nil",
        )


def status_update(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    if not obj["spec"].get("accessModes"):
        found.required("Spec.accessModes")
    status = obj.get("status") or {}
    for name, value in (status.get("capacity") or {}).items():
        if Quantity(value) < resources.ZERO:
            path = f"status.capacity[{name}]"
            detail = "must be a valid resource quantity"
            found.invalid(path, int(Quantity(value)), detail)
    path = "status.allocatedResourceStatuses"
    for name, value in (status.get("allocatedResourceStatuses") or {}).items():
        _key(found, name, path)
        if value not in _RESIZES:
            found.unsupported(path, name, _RESIZES)
    path = "status.allocatedResources"
    for name, value in (status.get("allocatedResources") or {}).items():
        if _key(found, name, path):
            continue
        if int(Quantity(value)) < 0:
            detail = "must be a valid resource quantity"
            found.invalid(f"{path}[{name}]", int(Quantity(value)), detail)
        else:
            resources.amount(found, "storage", value, f"{path}[{name}]")


_RESIZES: Final = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


def _key(found: Found, name: str, path: str) -> bool:
    """Whether a name of something that is allocated is wrong."""
    problems = texts.key(name)
    found.each(path, name, problems)
    strange = not problems and resources.is_native(name) and name != "storage"
    if strange:
        found.unsupported(path, name, ("storage",))
    return strange or bool(problems)
