"""Storage: classes of volumes, drivers, and what is attached where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.api.quantity import Quantity
from trimtab.embedded.builtin.internal import internal
from trimtab.embedded.builtin.validation import (
    meta,
    persistentvolumes,
    resources,
    selection,
    sources,
    texts,
)
from trimtab.embedded.builtin.validation.problems import Found, sorted_map

JSON = Mapping[str, Any]

_MOST_PARAMETERS: Final = 512
_PARAMETERS_SIZE: Final = 256 * 1024
_METADATA_SIZE: Final = 256 * 1024
_MESSAGE_SIZE: Final = 1024
_ONE_SOURCE: Final = (
    "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
)


def create_class(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=False, name=texts.subdomain)
    _provisioner(found, obj["provisioner"], "provisioner")
    _parameters(found, obj.get("parameters") or {}, empty=True)
    policy = obj.get("reclaimPolicy")
    if policy:
        found.one_of("reclaimPolicy", policy, ("Delete", "Retain"))
    modes = ("Immediate", "WaitForFirstConsumer")
    found.choice("volumeBindingMode", obj.get("volumeBindingMode", ""), modes)
    _topologies(found, obj.get("allowedTopologies") or [])


def _provisioner(found: Found, name: str, path: str) -> None:
    if not name:
        found.required(path)
    else:
        found.each(path, name.lower(), texts.key(name.lower()))


def _parameters(found: Found, given: Mapping[str, str], *, empty: bool) -> None:
    if len(given) > _MOST_PARAMETERS:
        found.too_long("parameters", _MOST_PARAMETERS)
        return
    if "" in given:
        found.invalid("parameters", "", "field can not be empty.")
    if sum(len(key) + len(value) for key, value in given.items()) > _PARAMETERS_SIZE:
        found.too_long("parameters", _PARAMETERS_SIZE)
    if not empty and not given:
        found.required("parameters", "must contain at least one key/value pair")


def _topologies(found: Found, given: list[JSON]) -> None:
    terms: list[dict[str, set[str]]] = []
    for index, term in enumerate(given):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        seen: dict[str, set[str]] = {}
        for number, each in enumerate(term.get("matchLabelExpressions") or ()):
            where = f"{path}[{number}]"
            values = each["values"] or ()
            if not values:
                found.required(f"{where}.values")
            for place, value in enumerate(values):
                if value in values[:place]:
                    found.duplicate(f"{where}.values[{place}]", value)
            found.each(f"{where}.key", each["key"], texts.key(each["key"]))
            if each["key"] in seen:
                found.duplicate(f"{where}.key", each["key"])
            seen[each["key"]] = set(values)
        # The real server starts with an empty term for each that it will look at.
        same = terms.count(seen) + (0 if seen else len(given))
        for _ in range(same):
            found.duplicate(path, "")
        terms.append(seen)


def update_class(found: Found, obj: JSON, old: JSON) -> None:
    create_class(found, obj)
    meta.updated(found, obj["metadata"], old["metadata"])
    new, before = obj.get("parameters"), old.get("parameters")
    if (new or {}) != (before or {}):
        found.invalid("parameters", sorted_map(new), texts.IMMUTABLE)
    for field in ("provisioner", "reclaimPolicy", "volumeBindingMode"):
        found.immutable(field, obj.get(field), old.get(field))


def create_attributes_class(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=False, name=texts.subdomain)
    _provisioner(found, obj["driverName"], "driverName")
    _parameters(found, obj.get("parameters") or {}, empty=False)


def update_attributes_class(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    for field in ("driverName", "parameters"):
        if obj.get(field) != old.get(field):
            found.forbidden(field, f"updates to {field} are forbidden.")
    create_attributes_class(found, obj)


def create_driver(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=False, name=texts.subdomain)
    _driver(found, obj["spec"])


def _driver(found: Found, spec: JSON) -> None:
    policy = spec.get("fsGroupPolicy")
    if policy is not None:
        allowed = ("File", "None", "ReadWriteOnceWithFSType")
        found.one_of("spec.fsGroupPolicy", policy, allowed)
    requests = spec.get("tokenRequests") or []
    _tokens(found, requests)
    for mode in spec.get("volumeLifecycleModes") or ():
        modes = ("Persistent", "Ephemeral")
        found.one_of("spec.volumeLifecycleModes", mode, modes)
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        path = "spec.nodeAllocatableUpdatePeriodSeconds"
        found.invalid(path, period, "must be greater than or equal to 10 seconds")
    secrets = spec.get("serviceAccountTokenInSecrets")
    if secrets is not None and not requests:
        path = "spec.serviceAccountTokenInSecrets"
        detail = (
            "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        )
        found.invalid(path, secrets, detail)


def _tokens(found: Found, given: list[JSON]) -> None:
    audiences: set[str] = set()
    for index, each in enumerate(given):
        path, audience = f"spec.tokenRequests[{index}]", each["audience"]
        if audience in audiences:
            found.duplicate(f"{path}.audience", audience)
            continue
        audiences.add(audience)
        seconds, where = each.get("expirationSeconds"), f"{path}.expirationSeconds"
        if seconds is not None and seconds < 600:
            detail = "may not specify a duration less than 10 minutes"
            found.invalid(where, seconds, detail)
        if seconds is not None and seconds > 1 << 32:
            detail = "may not specify a duration larger than 2^32 seconds"
            found.invalid(where, seconds, detail)


def update_driver(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    _driver(found, obj["spec"])
    for field, shown in (
        ("attachRequired", "attachedRequired"),
        ("volumeLifecycleModes", "volumeLifecycleModes"),
    ):
        new = obj["spec"].get(field)
        found.immutable(f"spec.{shown}", new, old["spec"].get(field))


def create_node(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=False, name=texts.subdomain)
    names: set[str] = set()
    for index, driver in enumerate(obj["spec"]["drivers"] or ()):
        path = f"spec.drivers[{index}]"
        sources.driver_name(found, driver["name"], f"{path}.name")
        identity = driver["nodeID"]
        if not identity:
            found.required(f"{path}.nodeID")
        if len(identity) > 256:
            found.invalid(f"{path}.nodeID", identity, "must be 256 characters or less")
        count = (driver.get("allocatable") or {}).get("count")
        found.not_negative(f"{path}.allocatable.count", count)
        if driver["name"] in names:
            found.duplicate(f"{path}.name", driver["name"])
        names.add(driver["name"])
        _topology_keys(found, driver["topologyKeys"] or [], path)


def _topology_keys(found: Found, keys: list[str], path: str) -> None:
    for index, key in enumerate(keys):
        if not key:
            found.required(path)
        if key in keys[:index]:
            found.duplicate(path, key)
        found.each(path, key, texts.key(key))


def update_node(found: Found, obj: JSON, old: JSON) -> None:
    create_node(found, obj)
    before = {each["name"]: each for each in old["spec"]["drivers"] or ()}
    for driver in obj["spec"]["drivers"] or ():
        was = before.get(driver["name"])
        if was is None:
            continue
        new = {key: value for key, value in driver.items() if key != "allocatable"}
        same = {key: value for key, value in was.items() if key != "allocatable"}
        shown = internal("storage.CSINodeDriver", new)
        found.immutable("spec.drivers", new, same, shown)


def create_attachment(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=False, name=texts.subdomain)
    spec = obj["spec"]
    sources.driver_name(found, spec["attacher"], "spec.attacher")
    source, path = spec["source"], "spec.source"
    name, inline = source.get("persistentVolumeName"), "inlineVolumeSpec" in source
    if name is None and not inline:
        found.required(path, _ONE_SOURCE)
    elif name is not None and inline:
        found.forbidden(path, _ONE_SOURCE)
    elif name == "":
        detail = "must specify non empty persistentVolumeName"
        found.required(f"{path}.persistentVolumeName", detail)
    elif inline:
        where = f"{path}.inlineVolumeSpec"
        persistentvolumes.inline(found, source["inlineVolumeSpec"], where)
    node = spec["nodeName"]
    found.each("spec.nodeName", node, texts.subdomain(node))
    metadata = obj["status"].get("attachmentMetadata") or {}
    if sum(len(key) + len(value) for key, value in metadata.items()) > _METADATA_SIZE:
        found.too_long("status.attachmentMetadata", _METADATA_SIZE)
    for field in ("attachError", "detachError"):
        _volume_error(found, obj["status"].get(field), f"status.{field}")
    if name is not None:
        where = "spec.source.persistentVolumeName"
        found.each(where, name, texts.subdomain(name))


def _volume_error(found: Found, given: JSON | None, path: str) -> None:
    if not given:
        return
    if len(given.get("message", "")) > _MESSAGE_SIZE:
        found.too_long(f"{path}.message", _METADATA_SIZE)
    code = given.get("errorCode")
    if code is not None and code < 0:
        found.invalid(f"{path}.errorCode", code, texts.between(0, 2**31 - 1))


def update_attachment(found: Found, obj: JSON, old: JSON) -> None:
    create_attachment(found, obj)
    shown = internal("storage.VolumeAttachmentSpec", obj["spec"])
    found.immutable("spec", obj["spec"], old["spec"], shown)


def create_capacity(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    meta.selector(found, obj.get("nodeTopology"), "nodeTopology")
    name = obj["storageClassName"]
    found.each("storageClassName", name, texts.subdomain(name))
    capacity = obj.get("capacity")
    if capacity is not None and Quantity(capacity) < resources.ZERO:
        found.invalid("capacity", capacity, texts.NEGATIVE)


def update_capacity(found: Found, obj: JSON, old: JSON) -> None:
    create_capacity(found, obj)
    meta.updated(found, obj["metadata"], old["metadata"])
    new = obj.get("nodeTopology")
    shown = None if new is None else selection.printed(new)
    found.immutable("nodeTopology", new, old.get("nodeTopology"), shown)
    field = "storageClassName"
    found.immutable(field, obj[field], old[field])
