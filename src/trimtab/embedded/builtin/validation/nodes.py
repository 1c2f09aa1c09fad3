"""Nodes, and Events about them and everything else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from trimtab.embedded.builtin.validation import meta, resources, scheduling, texts
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_CIDR: Final = 'node updates may not change podCIDR except from "" to valid'
_PROVIDER: Final = 'node updates may not change providerID except from "" to valid'
_NAMESPACE: Final = "does not match event.namespace"


def create(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=False, name=texts.subdomain)
    spec = obj["spec"]
    scheduling.taints(found, spec.get("taints"), "metadata.taints")
    _resources(found, obj["status"])
    swap = (obj["status"].get("nodeInfo") or {}).get("swap") or {}
    if "capacity" in swap:
        found.positive("metadata.nodeSwapStatus.capacity", swap["capacity"])
    _features(found, obj["status"].get("declaredFeatures") or ())
    ranges = spec.get("podCIDRs") or ()
    for index, each in enumerate(ranges):
        found.each(f"spec.podCIDRs[{index}]", each, texts.cidr(each))
    if len(ranges) > 1:
        _both_families(found, ranges)


def _both_families(found: Found, ranges: Sequence[str]) -> None:
    path, families = "spec.podCIDRs", {":" in each for each in ranges}
    for index, each in enumerate(ranges):
        if texts.BAD_CIDR in texts.cidr(each):
            families = set()
            found.internal(
                path,
                "invalid PodCIDRs. failed to check with dual stack with error:"
                f"invalid CIDR[{index}]: <nil> (invalid CIDR address: {each})",
            )
            break
    if len(families) != 2 or len(ranges) > 2:
        detail = "may specify no more than one CIDR for each IP family"
        found.invalid(path, ranges, detail)


def _resources(found: Found, status: JSON) -> None:
    for field in ("capacity", "allocatable"):
        for name, value in (status.get(field) or {}).items():
            resources.amount(found, name, value, f"status.{field}.{name}")


_is_feature = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*").fullmatch


def _features(found: Found, given: Sequence[str]) -> None:
    """What a kubelet says that it can, in order."""
    for index, name in enumerate(given):
        path, what = (
            f"status.declaredFeatures[{index}]",
            f'invalid feature name "{name}"',
        )
        if len(name) > 253:
            found.invalid(path, name, f"{what}: must be no more than 253 characters")
        elif not _is_feature(name):
            detail = (
                f"{what}: must start with an UpperCamelCase segment, with subsequent "
                "segments separated by '/' (e.g., MyFeature or "
                "MyFeature/mySubFeature), and contain only alphanumeric characters "
                "and slashes"
            )
            found.invalid(path, name, detail)
        for after in given[index + 1 : index + 2]:
            path = f"status.declaredFeatures[{index + 1}]"
            if name == after:
                found.duplicate(path, after)
            elif name > after:
                found.invalid(path, after, "list must be sorted alphabetically")


def update(found: Found, obj: JSON, old: JSON) -> None:
    create(found, obj)
    status_update(found, obj, old)


def status_update(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    _resources(found, obj["status"])
    _features(found, obj["status"].get("declaredFeatures") or ())
    seen: list[JSON] = []
    for index, address in enumerate(obj["status"].get("addresses") or ()):
        if address in seen:
            shown = {"Type": address["type"], "Address": address["address"]}
            found.duplicate(f"status.addresses[{index}]", shown)
        seen.append(address)
    spec, before = obj["spec"], old["spec"]
    ranges = before.get("podCIDRs")
    if ranges and ranges != spec.get("podCIDRs"):
        found.forbidden("spec.podCIDRs", _CIDR)
    provider = before.get("providerID")
    if provider and provider != spec.get("providerID"):
        found.forbidden("spec.providerID", _PROVIDER)
    scheduling.taints(found, spec.get("taints"), "metadata.taints")
    if spec.get("externalID") != before.get("externalID"):
        found.forbidden("spec.externalID", "may not be updated")


def create_core_event(found: Found, obj: JSON) -> None:
    _event(found, obj, involved="involvedObject", controller="reportingComponent")
    # The general rules come after those of the kind, which are few.
    if not found:
        meta.common(found, obj["metadata"], namespaced=True)


def update_core_event(found: Found, obj: JSON, old: JSON) -> None:
    _event(found, obj, involved="involvedObject", controller="reportingComponent")


def _event(found: Found, obj: JSON, *, involved: str, controller: str) -> None:
    """An event is in the namespace of what it is about."""
    namespace = obj["metadata"].get("namespace", "")
    about = (obj.get(involved) or {}).get("namespace", "")
    path = "involvedObject.namespace"
    if obj.get("eventTime") is None:
        home = about or "default"
        if namespace != home and (about or namespace):
            found.invalid(path, about, _NAMESPACE)
    else:
        if not about and namespace not in ("default", "kube-system"):
            found.invalid(path, about, _NAMESPACE)
        _reporting(found, obj, controller)
    found.each("namespace", namespace, texts.subdomain(namespace))


def _reporting(found: Found, obj: JSON, controller: str) -> None:
    name = obj.get(controller, "")
    if not name:
        found.required(controller)
    found.each(controller, name, texts.key(name))
    for field, limit in (("reportingInstance", 128), ("action", 128), ("reason", 128)):
        value = obj.get(field, "")
        if not value:
            found.required(field)
        if len(value) > limit:
            found.invalid(field, "", f"can have at most {limit} characters")
    if len(obj.get("message") or obj.get("note") or "") > 1024:
        found.invalid("message", "", "can have at most 1024 characters")


def create_event(found: Found, obj: JSON) -> None:
    """The newer kind, which says when once and by whom always."""
    _event(found, obj, involved="regarding", controller="reportingController")
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    _series(found, obj)
    if obj.get("eventTime") is None:
        found.required("eventTime")
    if obj.get("type") not in ("Normal", "Warning"):
        found.invalid("type", "", f"has invalid value: {obj.get('type', '')}")
    for field, older in (
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ):
        if obj.get(field):
            found.invalid(older, "", "needs to be unset")


def _series(found: Found, obj: JSON) -> None:
    series = obj.get("series")
    if series is None:
        return
    if series["count"] < 2:
        found.invalid("series.count", "", "should be at least 2")
    if series["lastObservedTime"] is None:
        found.required("series.lastObservedTime")


_FIXED: Final = (
    ("regarding", "involvedObject"),
    ("reason", "reason"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("reason", "reason"),
    ("type", "type"),
    ("eventTime", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reportingController", "reportingController"),
    ("reportingInstance", "reportingInstance"),
)


def update_event(found: Found, obj: JSON, old: JSON) -> None:
    """Only a series goes on; the rest has happened."""
    _event(found, obj, involved="regarding", controller="reportingController")
    meta.updated(found, obj["metadata"], old["metadata"])
    if obj.get("series") != old.get("series"):
        _series(found, obj)
    for field, older in _FIXED:
        new = obj.get(field)
        if new != old.get(field):
            names = ("component", "host") if older == "source" else _REFERENCE
            shown = _printed(new, names) if isinstance(new, dict) else new or ""
            found.invalid(older, shown, texts.IMMUTABLE)


_REFERENCE: Final = (
    *("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion"),
    "fieldPath",
)


def _printed(reference: JSON, names: tuple[str, ...]) -> JSON:
    made = {}
    for name in names:
        go_name = {"uid": "UID", "apiVersion": "APIVersion"}.get(name)
        made[go_name or name[:1].upper() + name[1:]] = reference.get(name, "")
    return made
