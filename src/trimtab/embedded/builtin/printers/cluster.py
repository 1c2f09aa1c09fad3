"""Tables of the cluster itself: nodes, namespaces, quotas, leases, its components."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from trimtab.embedded.builtin.printers.cells import (
    NONE,
    UNKNOWN,
    Plain,
    Printer,
    Row,
    condition,
    count,
    created,
    part,
    printer,
)

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE: Final = "kubernetes.io/role"


def _node(obj: Plain, now: datetime) -> Row:
    info, status = part(obj, "status", "nodeInfo"), part(obj, "status")
    return [
        obj["metadata"]["name"],
        _node_state(obj),
        _roles(obj["metadata"].get("labels") or {}) or NONE,
        created(obj, now),
        info.get("kubeletVersion") or "",
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        _kernel(info),
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_state(obj: Plain) -> str:
    state = "Unknown"
    # Of several conditions of one type the last counts here.
    for each in part(obj, "status").get("conditions") or ():
        if each["type"] == "Ready":
            state = "Ready" if each.get("status") == "True" else "NotReady"
    closed = part(obj, "spec").get("unschedulable")
    return f"{state},SchedulingDisabled" if closed else state


def _roles(labels: dict[str, str]) -> str:
    found = {
        key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)
    }
    return ",".join(sorted((found | {labels.get(_ROLE, "")}) - {""}))


def _address(status: Plain, kind: str) -> str:
    for each in status.get("addresses") or ():
        if each.get("type") == kind:
            return each.get("address") or ""
    return NONE


def _kernel(info: Plain) -> str:
    version = info.get("kernelVersion") or UNKNOWN
    machine = info.get("architecture")
    return f"{version} ({machine})" if machine else version


def _namespace(obj: Plain, now: datetime) -> Row:
    phase = part(obj, "status").get("phase") or ""
    return [obj["metadata"]["name"], phase, created(obj, now)]


def _component(obj: Plain, now: datetime) -> Row:
    name = obj["metadata"]["name"]
    for each in obj.get("conditions") or ():
        if each["type"] == "Healthy":
            state = "Healthy" if each.get("status") == "True" else "Unhealthy"
            return [name, state, each.get("message") or "", each.get("error") or ""]
    return [name, "Unknown", "", ""]


def _quota(obj: Plain, now: datetime) -> Row:
    hard, used = part(obj, "status", "hard"), part(obj, "status", "used")
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(hard):
        column = limits if name.startswith("limits.") else requests
        column.append(f"{name}: {used.get(name) or '0'}/{hard[name]}")
    shown = ", ".join(requests), ", ".join(limits)
    return [obj["metadata"]["name"], *shown, created(obj, now)]


def _lease(obj: Plain, now: datetime) -> Row:
    holder = part(obj, "spec").get("holderIdentity") or ""
    return [obj["metadata"]["name"], holder, created(obj, now)]


def _candidate(obj: Plain, now: datetime) -> Row:
    spec = part(obj, "spec")
    return [
        obj["metadata"]["name"],
        spec.get("leaseName") or "",
        spec.get("binaryVersion") or "",
        spec.get("emulationVersion") or "",
        created(obj, now),
    ]


def _priority(obj: Plain, now: datetime) -> Row:
    return [
        obj["metadata"]["name"],
        count(obj.get("value")),
        bool(obj.get("globalDefault")),
        created(obj, now),
        obj.get("preemptionPolicy") or "",
    ]


def _runtime(obj: Plain, now: datetime) -> Row:
    return [obj["metadata"]["name"], obj.get("handler") or "", created(obj, now)]


def _api_service(obj: Plain, now: datetime) -> Row:
    service, found = part(obj, "spec").get("service"), condition(obj, "Available")
    place = "Local"
    if service is not None:
        place = f"{service.get('namespace') or ''}/{service.get('name') or ''}"
    return [obj["metadata"]["name"], place, _available(found), created(obj, now)]


def _available(found: Plain | None) -> str:
    if found is None:
        return "Unknown"
    status: str = found.get("status") or ""
    reason = found.get("reason")
    return f"{status} ({reason})" if reason and status != "True" else status


def _result(obj: Plain, now: datetime) -> Row:
    return [obj.get(name) or "" for name in ("status", "reason", "message")]


def _flow_schema(obj: Plain, now: datetime) -> Row:
    spec, dangling = part(obj, "spec"), condition(obj, "Dangling")
    method = spec.get("distinguisherMethod")
    return [
        obj["metadata"]["name"],
        part(spec, "priorityLevelConfiguration").get("name") or "",
        count(spec.get("matchingPrecedence")),
        NONE if method is None else method.get("type") or "",
        created(obj, now),
        "?" if dangling is None else dangling.get("status") or "",
    ]


def _priority_level(obj: Plain, now: datetime) -> Row:
    spec = part(obj, "spec")
    limited = spec.get("limited")
    shares = NONE if limited is None else count(limited["nominalConcurrencyShares"])
    queuing = part(limited or {}, "limitResponse").get("queuing")
    names = ("queues", "handSize", "queueLengthLimit")
    return [
        obj["metadata"]["name"],
        spec.get("type") or "",
        shares,
        *(NONE if queuing is None else count(queuing.get(name)) for name in names),
        created(obj, now),
    ]


PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("", "Node"): printer(
        "Name/name, Status, Roles, Age, Version, Internal-IP*, External-IP*, "
        "OS-Image*, Kernel-Version*, Container-Runtime*",
        _node,
    ),
    ("", "Namespace"): printer("Name/name, Status, Age", _namespace),
    ("", "ComponentStatus"): printer("Name/name, Status, Message, Error", _component),
    ("", "ResourceQuota"): printer("Name/name, Request, Limit, Age", _quota),
    ("", "Status"): printer("Status, Reason, Message", _result),
    ("coordination.k8s.io", "Lease"): printer("Name/name, Holder, Age", _lease),
    ("coordination.k8s.io", "LeaseCandidate"): printer(
        "Name/name, LeaseName, BinaryVersion, EmulationVersion, Age", _candidate
    ),
    ("scheduling.k8s.io", "PriorityClass"): printer(
        "Name/name, Value:integer, Global-Default:boolean, Age, PreemptionPolicy",
        _priority,
    ),
    ("node.k8s.io", "RuntimeClass"): printer("Name/name, Handler, Age", _runtime),
    ("apiregistration.k8s.io", "APIService"): printer(
        "Name/name, Service, Available, Age", _api_service
    ),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): printer(
        "Name/name, PriorityLevel, MatchingPrecedence, DistinguisherMethod, Age, "
        "MissingPL",
        _flow_schema,
    ),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): printer(
        "Name/name, Type, NominalConcurrencyShares, Queues, HandSize, "
        "QueueLengthLimit, Age",
        _priority_level,
    ),
}
