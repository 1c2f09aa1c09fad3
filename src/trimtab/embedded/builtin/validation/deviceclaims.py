"""Claims of devices, templates of them, and classes of devices."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from trimtab.embedded.builtin.internal import internal
from trimtab.embedded.builtin.validation import (
    claims,
    deviceparts,
    meta,
    policy,
    scheduling,
    sources,
    texts,
)
from trimtab.embedded.builtin.validation.deviceparts import items
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]
Names = Mapping[str, frozenset[str]]
Key = Callable[[JSON], Any]

GROUP: Final = "resource.k8s.io"
_MOST: Final = 32
_NAMED: Final = (
    "must be the name of a request in the claim or the name of a request and a "
    "subrequest separated by '/'"
)
_is_uuid = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


def create_claim(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    _claim(found, obj["spec"]["devices"], "spec.devices")


def update_claim(found: Found, obj: JSON, old: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    meta.updated(found, obj["metadata"], old["metadata"])
    shown = internal("resource.ResourceClaimSpec", obj["spec"])
    found.immutable("spec", obj["spec"], old["spec"], shown)


def create_template(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    spec = obj["spec"]
    claims.template_metadata(found, spec.get("metadata") or {}, "spec.metadata")
    _claim(found, spec["spec"]["devices"], "spec.spec.devices")


def update_template(found: Found, obj: JSON, old: JSON) -> None:
    create_template(found, obj)
    meta.updated(found, obj["metadata"], old["metadata"])
    shown = internal("resource.ResourceClaimTemplateSpec", obj["spec"])
    found.immutable("spec", obj["spec"], old["spec"], shown)


def create_class(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=False, name=texts.subdomain)
    spec = obj["spec"]
    deviceparts.selectors(found, spec.get("selectors"), "spec.selectors")
    config = spec.get("config")
    items(found, config, "spec.config", deviceparts.opaque, most=_MOST)
    name = spec.get("extendedResourceName")
    if name is not None and not _is_extended(name):
        detail = "must be a valid extended resource name"
        found.invalid("spec.extendedResourceName", name, detail)


def update_class(found: Found, obj: JSON, old: JSON) -> None:
    create_class(found, obj)
    meta.updated(found, obj["metadata"], old["metadata"])


def _is_extended(name: str) -> bool:
    native = "/" not in name or "kubernetes.io/" in name
    if native or name.startswith("requests."):
        return False
    return not texts.key(f"requests.{name}")


def _names(claim: JSON) -> Names:
    """The requests of a claim, and those to choose from within each."""
    return {
        each["name"]: frozenset(sub["name"] for sub in each.get("firstAvailable") or ())
        for each in claim.get("requests") or ()
    }


def _name(each: JSON) -> Any:
    return each["name"]


def _claim(found: Found, claim: JSON, path: str) -> None:
    names, asked = _names(claim), claim.get("requests")
    items(found, asked, f"{path}.requests", _request, most=_MOST, key=_name)
    for field, check in (("constraints", _constraint), ("config", _config)):
        named = partial(check, names=names)
        items(found, claim.get(field), f"{path}.{field}", named, most=_MOST)


def _request(found: Found, request: JSON, path: str) -> None:
    deviceparts.label(found, request["name"], f"{path}.name")
    exactly, first = request.get("exactly"), request.get("firstAvailable") or ()
    rule = "exactly one of `exactly` or `firstAvailable` is required"
    if exactly is None and not first:
        found.required(path, rule)
    elif exactly is not None and first:
        found.invalid(path, None, f"{rule}, but multiple fields are set")
    elif exactly is not None:
        _exact(found, exactly, f"{path}.exactly")
    else:
        where = f"{path}.firstAvailable"
        items(found, first, where, _subrequest, most=8, key=_name)


def _subrequest(found: Found, request: JSON, path: str) -> None:
    deviceparts.label(found, request["name"], f"{path}.name")
    _exact(found, request, path)


def _exact(found: Found, request: JSON, path: str) -> None:
    name, where = request["deviceClassName"], f"{path}.deviceClassName"
    if name:
        found.each(where, name, texts.subdomain(name))
    else:
        found.required(where)
    deviceparts.selectors(found, request.get("selectors"), f"{path}.selectors")
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "All" and count:
        detail = "must not be specified when allocationMode is 'All'"
        found.invalid(f"{path}.count", count, detail)
    elif mode == "ExactCount" and count <= 0:
        found.invalid(f"{path}.count", count, "must be greater than zero")
    found.one_of(f"{path}.allocationMode", mode, ("All", "ExactCount"))
    deviceparts.tolerations(found, request.get("tolerations"), f"{path}.tolerations")


def _references(found: Found, holder: JSON, path: str, names: Names) -> None:
    check = partial(_reference, names=names)
    given, where = holder.get("requests"), f"{path}.requests"
    items(found, given, where, check, most=_MOST, key=lambda each: each)


def _reference(found: Found, name: str, path: str, *, names: Names) -> None:
    parts = name.split("/")
    if len(parts) > 2:
        found.invalid(path, name, _NAMED)
        return
    for part in parts:
        deviceparts.label(found, part, path)
    known = parts[0] in names and (len(parts) == 1 or parts[1] in names[parts[0]])
    if not known:
        found.invalid(path, name, _NAMED)


def _constraint(found: Found, given: JSON, path: str, *, names: Names) -> None:
    _references(found, given, path, names)
    for field in ("matchAttribute", "distinctAttribute"):
        if given.get(field) is not None:
            deviceparts.fully_qualified(found, given[field], f"{path}.{field}")
            return
    found.required(
        path,
        'exactly one of "matchAttribute" or "distinctAttribute" is required, but '
        "multiple fields are set",
    )


def _config(found: Found, given: JSON, path: str, *, names: Names) -> None:
    _references(found, given, path, names)
    deviceparts.opaque(found, given, path)


def status_claim(found: Found, obj: JSON, old: JSON) -> None:
    """What was allocated for a claim, for whom, and how its devices do."""
    meta.updated(found, obj["metadata"], old["metadata"])
    state, before = obj.get("status") or {}, old.get("status") or {}
    reserved, path = state.get("reservedFor") or [], "status.reservedFor"
    items(found, reserved, path, _consumer, most=256, key=_uid)
    allocation = state.get("allocation")
    devices = (allocation or {}).get("devices") or {}
    allocated = [_device(each) for each in devices.get("results") or ()]
    check = partial(_device_state, allocated=allocated)
    items(found, state.get("devices"), "status.devices", check, key=_device)
    if reserved and allocation is None:
        detail = "may not be specified when `allocated` is not set"
        found.forbidden(path, detail)
    elif obj["metadata"].get("deletionTimestamp") and any(
        each not in (before.get("reservedFor") or ()) for each in reserved
    ):
        found.forbidden(
            path,
            "new entries may not be added while `deallocationRequested` or "
            "`deletionTimestamp` are set",
        )
    if allocation is None:
        return
    if before.get("allocation") is not None:
        shown = internal("resource.AllocationResult", allocation)
        found.immutable("status.allocation", allocation, before["allocation"], shown)
    else:
        _allocation(found, allocation, _names(obj["spec"]["devices"]))


def _uid(each: JSON) -> Any:
    return each.get("uid", "")


def _device(each: JSON) -> dict[str, str]:
    """A device among all, as messages name it."""
    place = {field.title(): each[field] for field in ("driver", "pool", "device")}
    return {**place, "ShareID": each.get("shareID") or ""}


def _consumer(found: Found, given: JSON, path: str) -> None:
    for field in ("resource", "name", "uid"):
        if not given.get(field):
            found.required(f"{path}.{field}")


def _allocation(found: Found, allocation: JSON, names: Names) -> None:
    path, devices = "status.allocation.devices", allocation.get("devices") or {}
    result = partial(_result, names=names)
    items(found, devices.get("results"), f"{path}.results", result, most=_MOST)
    config = partial(_allocated_config, names=names)
    items(found, devices.get("config"), f"{path}.config", config, most=2 * _MOST)
    if allocation.get("nodeSelector") is not None:
        where = "status.allocation.nodeSelector"
        scheduling.node_selector(found, allocation["nodeSelector"], where)


def _result(found: Found, given: JSON, path: str, *, names: Names) -> None:
    _reference(found, given["request"], f"{path}.request", names=names)
    _place(found, given, path)
    deviceparts.binding_conditions(found, given, path)
    _share(found, given, path)


def _place(found: Found, given: JSON, path: str) -> None:
    sources.driver_name(found, given["driver"], f"{path}.driver")
    deviceparts.pool(found, given["pool"], f"{path}.pool")
    deviceparts.label(found, given["device"], f"{path}.device")


def _share(found: Found, given: JSON, path: str) -> None:
    value = given.get("shareID")
    if value is not None and not _is_uuid(value):
        found.invalid(
            f"{path}.shareID",
            value,
            f"error validating uid: invalid UUID length: {len(value)}"
            if len(value) != 36
            else "uid must be in RFC 4122 normalized form, "
            "`xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal "
            "characters",
        )


def _allocated_config(found: Found, given: JSON, path: str, *, names: Names) -> None:
    found.choice(f"{path}.source", given["source"], ("FromClaim", "FromClass"))
    _config(found, given, path, names=names)


def _device_state(
    found: Found, given: JSON, path: str, *, allocated: Sequence[JSON]
) -> None:
    _place(found, given, path)
    _share(found, given, path)
    name = _device(given)
    if name not in allocated:
        found.invalid(path, name, "must be an allocated device in the claim")
    conditions = given.get("conditions") or []
    if len(conditions) > 8:
        found.too_many(f"{path}.conditions", len(conditions), 8)
    policy.conditions(found, conditions, f"{path}.conditions")
    if given.get("data") is not None:
        deviceparts.raw(found, given["data"], f"{path}.data")
    _network(found, given.get("networkData") or {}, f"{path}.networkData")


def _network(found: Found, given: JSON, path: str) -> None:
    for field, longest in (("interfaceName", 256), ("hardwareAddress", 128)):
        if len(given.get(field, "").encode()) > longest:
            found.too_long(f"{path}.{field}", longest)
    addresses, where = given.get("ips"), f"{path}.ips"
    items(found, addresses, where, _interface, most=16, key=lambda each: each)


def _interface(found: Found, value: str, path: str) -> None:
    if "/" in value:
        try:
            parsed = str(ipaddress.ip_interface(value))
        except ValueError:
            parsed = ""
        if parsed == value:
            return
        if parsed:
            found.invalid(path, value, f'must be in canonical form ("{parsed}")')
            return
    detail = (
        "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
    )
    found.invalid(path, value, detail)
