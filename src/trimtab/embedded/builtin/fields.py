"""Selectable fields: what lists and watches of built-in kinds can be narrowed by.

Every kind has its name and namespace. Some have fields of their own, and refuse others
in words of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

Plain = Mapping[str, Any]
Fields = dict[str, str]

_NAME: Final = "metadata.name"
_NAMESPACE: Final = "metadata.namespace"
_COMMON: Final = frozenset((_NAME, _NAMESPACE))
_NOTHING: Final[Plain] = {}
_REFERENCE: Final = (
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath",
)


class _Own(msgspec.Struct, frozen=True):
    """The fields of a kind that has some of its own."""

    names: frozenset[str]
    values: Callable[[Plain], Fields]
    refusal: str = "field label not supported: {}"


def fields(group: str, kind: str, obj: Plain) -> Fields:
    """What the fields of one object are. One that is not there is empty."""
    meta = obj["metadata"]
    found = {
        _NAME: meta.get("name") or "",
        _NAMESPACE: meta.get("namespace") or "",
    }
    own = _OWN.get((group, kind))
    if own is not None:
        found.update(own.values(obj))
    return found


def supported_fields(group: str, kind: str) -> frozenset[str]:
    """The fields that objects of a kind may be selected by."""
    own = _OWN.get((group, kind))
    return _COMMON if own is None else own.names


def field_error(group: str, kind: str, field: str) -> str:
    """What is said to one who selects by another field."""
    own = _OWN.get((group, kind))
    if own is not None:
        return own.refusal.format(field)
    quoted = msgspec.json.encode(field).decode()
    return f'{quoted} is not a known field selector: only "{_NAME}", "{_NAMESPACE}"'


def _pod(obj: Plain) -> Fields:
    spec, status = obj.get("spec") or _NOTHING, obj.get("status") or _NOTHING
    node, addresses = spec.get("nodeName") or "", status.get("podIPs")
    return {
        "spec.nodeName": node,
        "spec.host": node,
        "spec.restartPolicy": spec.get("restartPolicy") or "",
        "spec.schedulerName": spec.get("schedulerName") or "",
        "spec.serviceAccountName": spec.get("serviceAccountName") or "",
        "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
        "status.phase": status.get("phase") or "",
        "status.podIP": (addresses[0].get("ip") or "") if addresses else "",
        # One may ask for it, but the real server never fills it.
        "status.podIPs": "",
        "status.nominatedNodeName": status.get("nominatedNodeName") or "",
    }


def _node(obj: Plain) -> Fields:
    closed = (obj.get("spec") or _NOTHING).get("unschedulable")
    return {"spec.unschedulable": "true" if closed else "false"}


def _namespace(obj: Plain) -> Fields:
    return {"status.phase": (obj.get("status") or _NOTHING).get("phase") or ""}


def _secret(obj: Plain) -> Fields:
    return {"type": obj.get("type") or ""}


def _service(obj: Plain) -> Fields:
    spec = obj.get("spec") or _NOTHING
    address, kind = spec.get("clusterIP") or "", spec.get("type") or ""
    return {"spec.clusterIP": address, "spec.type": kind}


def _replication_controller(obj: Plain) -> Fields:
    status = obj.get("status") or _NOTHING
    return {"status.replicas": str(status.get("replicas") or 0)}


def _job(obj: Plain) -> Fields:
    status = obj.get("status") or _NOTHING
    return {"status.successful": str(status.get("succeeded") or 0)}


def _event(obj: Plain) -> Fields:
    about = obj.get("involvedObject") or _NOTHING
    reporter = obj.get("reportingComponent") or ""
    source = (obj.get("source") or _NOTHING).get("component") or reporter
    found = {f"involvedObject.{name}": about.get(name) or "" for name in _REFERENCE}
    found |= {"reportingComponent": reporter, "source": source}
    return found | _of_both(obj)


def _new_event(obj: Plain) -> Fields:
    about = obj.get("regarding") or _NOTHING
    found = {f"regarding.{name}": about.get(name) or "" for name in _REFERENCE}
    found["reportingController"] = obj.get("reportingController") or ""
    return found | _of_both(obj)


def _of_both(event: Plain) -> Fields:
    return {"reason": event.get("reason") or "", "type": event.get("type") or ""}


def _signer(obj: Plain) -> Fields:
    return {"spec.signerName": (obj.get("spec") or _NOTHING).get("signerName") or ""}


def _slice(obj: Plain) -> Fields:
    spec = obj.get("spec") or _NOTHING
    node, driver = spec.get("nodeName") or "", spec.get("driver") or ""
    return {"spec.nodeName": node, "spec.driver": driver}


def _namespaced(values: Callable[[Plain], Fields], **refusal: str) -> _Own:
    return _Own(_COMMON | values(_NOTHING).keys(), values, **refusal)


def _of_cluster(values: Callable[[Plain], Fields], **refusal: str) -> _Own:
    """Of a kind without namespaces, that does not let one ask for it either."""
    return _Own(frozenset((_NAME, *values(_NOTHING))), values, **refusal)


_OWN: Final[Mapping[tuple[str, str], _Own]] = {
    ("", "Pod"): _namespaced(_pod),
    ("", "Node"): _of_cluster(_node),
    ("", "Namespace"): _of_cluster(_namespace),
    ("", "Secret"): _namespaced(_secret),
    ("", "Service"): _namespaced(_service),
    ("", "ReplicationController"): _namespaced(_replication_controller),
    ("", "Event"): _namespaced(_event),
    ("events.k8s.io", "Event"): _namespaced(_new_event),
    ("batch", "Job"): _namespaced(
        _job, refusal='field label "{}" not supported for Job'
    ),
    ("certificates.k8s.io", "CertificateSigningRequest"): _of_cluster(_signer),
    ("resource.k8s.io", "ResourceSlice"): _of_cluster(
        _slice,
        refusal="field label not supported for "
        "resource.k8s.io/v1, Kind=ResourceSlice: {}",
    ),
}
