"""Slices of pools: which devices there are, and what each is like."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from trimtab.api.quantity import Quantity
from trimtab.embedded.builtin.internal import internal
from trimtab.embedded.builtin.validation import (
    deviceparts,
    meta,
    scheduling,
    sources,
    texts,
)
from trimtab.embedded.builtin.validation.deviceparts import items
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_WHERE: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_NUMBER: Final = r"(0|[1-9]\d*)"
_EARLY: Final = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD: Final = "[0-9a-zA-Z-]+"
_is_version = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_EARLY}(\.{_EARLY})*)?"
    rf"(\+{_BUILD}(\.{_BUILD})*)?",
    re.ASCII,
).fullmatch
_VALUES: Final = ("int", "bool", "string", "version")
_LONGEST_VALUE: Final = 64
_MOST_ATTRIBUTES: Final = 32


def create(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=False, name=texts.subdomain)
    _slice(found, obj["spec"], None)


def update(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    _slice(found, obj["spec"], old["spec"])


def _slice(found: Found, spec: JSON, old: JSON | None) -> None:
    sources.driver_name(found, spec["driver"], "spec.driver")
    _pool(found, spec["pool"])
    if old is not None:
        new, before = spec["pool"]["name"], old["pool"]["name"]
        found.immutable("spec.pool.name", new, before)
        for field in ("driver", "nodeName"):
            found.immutable(f"spec.{field}", spec.get(field), old.get(field))
    _placed(found, spec)
    devices, counters = spec.get("devices") or [], spec.get("sharedCounters") or []
    if devices and counters:
        detail = "only one of `sharedCounters` or `devices` is allowed"
        found.invalid("spec", "", detail)
    apart = bool(spec.get("perDeviceNodeSelection"))
    known = {each["name"]: each for each in (old or {}).get("devices") or ()}
    check = partial(_device, apart=apart, known=known)
    rich = any(each.get("taints") or each.get("consumesCounters") for each in devices)
    most = 64 if rich else 128
    items(found, devices, "spec.devices", check, most=most, key=_name)
    items(found, counters, "spec.sharedCounters", _counters, most=8, key=_name)


def _name(each: JSON) -> Any:
    return each["name"]


def _pool(found: Found, pool: JSON) -> None:
    deviceparts.pool(found, pool["name"], "spec.pool.name")
    found.positive("spec.pool.resourceSliceCount", pool["resourceSliceCount"])
    if pool["generation"] < 0:
        detail = "must be greater than or equal to zero"
        found.invalid("spec.pool.generation", pool["generation"], detail)


def _placed(found: Found, spec: JSON) -> None:
    """Where devices can be used: said in one way of four."""
    used = []
    for field in _WHERE:
        value, path = spec.get(field), f"spec.{field}"
        if value is None:
            continue
        if not value:
            to = "a non-empty string" if field == "nodeName" else "true"
            found.invalid(path, value, f"must be either unset or set to {to}")
            continue
        used.append(f"`{field}`")
        if field == "nodeName":
            found.each(path, value, texts.subdomain(value))
        elif field == "nodeSelector":
            _one_term(found, value, path)
    rule = f"exactly one of {', '.join(f'`{each}`' for each in _WHERE)} is required"
    if not used:
        found.required("spec", rule)
    elif len(used) > 1:
        shown = "{" + ", ".join(used) + "}"
        found.invalid("spec", shown, f"{rule}, but multiple fields are set")


def _one_term(found: Found, selector: JSON, path: str) -> None:
    scheduling.node_selector(found, selector, path)
    terms = selector["nodeSelectorTerms"] or []
    if len(terms) != 1:
        shown = [internal("core.NodeSelectorTerm", each) for each in terms]
        detail = "must have exactly one node selector term"
        found.invalid(f"{path}.nodeSelectorTerms", shown, detail)


def _device(
    found: Found, device: JSON, path: str, *, apart: bool, known: Mapping[str, JSON]
) -> None:
    deviceparts.label(found, device["name"], f"{path}.name")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if len(attributes) + len(capacity) > _MOST_ATTRIBUTES:
        rule = "the total number of attributes and capacities must not exceed"
        count = len(attributes) + len(capacity)
        found.invalid(path, count, f"{rule} {_MOST_ATTRIBUTES}")
    for name in sorted(attributes):
        deviceparts.qualified(found, name, f"{path}.attributes")
        _attribute(found, attributes[name], f"{path}.attributes[{name}]")
    shared = bool(device.get("allowMultipleAllocations"))
    for name in sorted(capacity):
        deviceparts.qualified(found, name, f"{path}.capacity")
        where = f"{path}.capacity[{name}].requestPolicy"
        _capacity(found, capacity[name], where, shared=shared)
    taints = device.get("taints") or []
    if taints != (known.get(device["name"], {}).get("taints") or []):
        items(found, taints, f"{path}.taints", deviceparts.taint, most=16)
    used, where = device.get("consumesCounters"), f"{path}.consumesCounters"
    items(found, used, where, _consumption, most=2, key=lambda each: each["counterSet"])
    _device_place(found, device, path, apart=apart)
    deviceparts.binding_conditions(found, device, path)


def _device_place(found: Found, device: JSON, path: str, *, apart: bool) -> None:
    given = [field for field in _WHERE[:3] if device.get(field) is not None]
    if not apart:
        if given:
            found.invalid(
                path,
                None,
                "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
                "`perDeviceNodeSelection` is set to true in the ResourceSlice spec",
            )
        return
    used = []
    for field in given:
        value, where = device[field], f"{path}.{field}"
        if field == "nodeName" and not value:
            found.invalid(where, value, "must not be empty")
        elif field == "allNodes" and not value:
            found.invalid(where, value, "must be either unset or set to true")
        else:
            used.append(f"`{field}`")
            if field == "nodeName":
                found.each(where, value, texts.subdomain(value))
            elif field == "nodeSelector":
                scheduling.node_selector(found, value, where)
    rule = (
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
        "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
    )
    if not used:
        found.required(path, rule)
    elif len(used) > 1:
        found.invalid(path, "{" + ", ".join(used) + "}", rule)


def _attribute(found: Found, given: JSON, path: str) -> None:
    for field in ("string", "version"):
        value, where = given.get(field), f"{path}.{field}"
        if value is None:
            continue
        if field == "version" and not _is_version(value):
            detail = "must be a string compatible with semver.org spec 2.0.0"
            found.invalid(where, value, detail)
        if len(value.encode()) > _LONGEST_VALUE:
            found.too_long(where, _LONGEST_VALUE)
    count = sum(given.get(field) is not None for field in _VALUES)
    if count != 1:
        shown = internal("resource.DeviceAttribute", given) if count else ""
        found.invalid(path, shown, "exactly one value must be specified")


def _capacity(found: Found, given: JSON, path: str, *, shared: bool) -> None:
    policy = given.get("requestPolicy")
    if policy is None:
        return
    if not shared:
        found.forbidden(path, "allowMultipleAllocations must be true")
        return
    values, span = policy.get("validValues") or [], policy.get("validRange")
    default = policy.get("default")
    if values and span is not None:
        found.forbidden(
            path,
            'exactly one policy can be specified, cannot specify "validValues" and '
            '"validRange" at the same time',
        )
    elif values or span is not None:
        field = "validValues" if values else "validRange"
        if default is None:
            found.required(f"{path}.default", f"required when {field} is defined")
        elif values:
            _choices(found, values, default, given["value"], f"{path}.{field}")
        else:
            _span(found, span or {}, default, given["value"], f"{path}.{field}")


def _choices(
    found: Found, values: list[str], default: str, whole: str, path: str
) -> None:
    for index, (low, high) in enumerate(itertools.pairwise(values), 1):
        if Quantity(low) > Quantity(high):
            detail = "values must be sorted in ascending order"
            found.invalid(f"{path}[{index}]", high, detail)

    def choice(found: Found, value: str, path: str) -> None:
        if Quantity(value) > Quantity(whole):
            detail = f"option is larger than capacity value: {whole}"
            found.invalid(path, value, detail)

    items(found, values, path, choice, most=10, key=_whole)
    if all(Quantity(each) != Quantity(default) for each in values):
        detail = "default value is not valid according to the requestPolicy"
        found.invalid(path, default, detail)


def _whole(value: str) -> str:
    return str(-(-Quantity(value).milli // 1000))


def _span(found: Found, span: JSON, default: str, whole: str, path: str) -> None:
    low, high, step = span.get("min"), span.get("max"), span.get("step")
    if low is None:
        found.required(f"{path}.min", "required when validRange is defined")
        return
    least, most, usual = Quantity(low), Quantity(whole), Quantity(default)
    if least > most:
        detail = f"min is larger than capacity value: {whole}"
        found.invalid(f"{path}.min", low, detail)
    if usual < least:
        found.invalid(f"{path}.min", default, f"default is less than min: {low}")
    if high is not None:
        top, where = Quantity(high), f"{path}.max"
        if least > top:
            found.invalid(where, low, f"min is larger than max: {high}")
        if top > most:
            found.invalid(where, high, f"max is larger than capacity value: {whole}")
        if usual > top:
            found.invalid(where, default, f"default is more than max: {high}")
    if step is not None:
        added = least + Quantity(step)
        if added > most:
            detail = f"one step {added} is larger than capacity value: {whole}"
            found.invalid(f"{path}.step", step, detail)
        for value in (default, *([high] if high is not None else ())):
            if (int(_whole(value)) - int(_whole(low))) % int(_whole(step)):
                detail = (
                    f"value is not a multiple of a given step ({step}) from ({low})"
                )
                found.invalid(f"{path}.step", value, detail)


def _counters(found: Found, given: JSON, path: str) -> None:
    _counted(found, given, path, "name")


def _consumption(found: Found, given: JSON, path: str) -> None:
    _counted(found, given, path, "counterSet")


def _counted(found: Found, given: JSON, path: str, field: str) -> None:
    if given[field]:
        deviceparts.label(found, given[field], f"{path}.{field}")
    else:
        found.required(f"{path}.{field}")
    counters, where = given.get("counters") or {}, f"{path}.counters"
    if not counters:
        found.required(where)
    elif len(counters) > 32:
        found.too_many(where, len(counters), 32)
    else:
        for name in sorted(counters):
            deviceparts.label(found, name, where)
