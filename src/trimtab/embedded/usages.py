"""Usages: what an object takes of a quota, and which quotas are about it.

Every object counts as one of its kind. Pods also take what their containers ask for,
Services ports and load balancers, claims storage and devices. Scopes narrow a quota
down to some pods or some claims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from trimtab.api.quantity import Quantity
from trimtab.embedded.builtin.podresources import aggregate

Plain = Mapping[str, Any]
Amounts = dict[str, Quantity]

PODS = "core/pods/"
SERVICES = "core/services/"
VOLUME_CLAIMS = "core/persistentvolumeclaims/"
DEVICE_CLAIMS = "resource.k8s.io/resourceclaims/"
ALIASES = {
    f"core/{each}/": each
    for each in ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
}
IGNORED = frozenset({"core/events/", "events.k8s.io/events/"})
COMPUTE = ("cpu", "memory", "ephemeral-storage")
POD_NAMES = frozenset(
    {
        "pods",
        *COMPUTE,
        *(f"requests.{each}" for each in COMPUTE),
        *(f"limits.{each}" for each in COMPUTE),
    }
)
# What every container of a pod has to say, if a quota counts it.
DEMANDED = frozenset(
    each for each in POD_NAMES if each.rpartition(".")[2] in ("cpu", "memory")
)
HUGE = "hugepages-"
REQUESTS = "requests."
STORAGE_CLASS = ".storageclass.storage.k8s.io/"
DEVICE_CLASS = ".deviceclass.resource.k8s.io/devices"
STORAGE_NAMES = ("persistentvolumeclaims", "requests.storage")
CLASS_NOTE = "volume.beta.kubernetes.io/storage-class"
MOST_DEVICES = 32
ZERO, ONE = Quantity(0), Quantity(1)


@lru_cache(maxsize=1024)
def count_name(resource: str) -> str:
    """``count/deployments.apps`` for ``apps/deployments/``."""
    group, plural, _ = resource.split("/")
    return f"count/{plural}" if group == "core" else f"count/{plural}.{group}"


def usage(resource: str, obj: Plain) -> Amounts:
    """What an object of a resource takes."""
    taken = {count_name(resource): ONE}
    if resource in ALIASES:
        taken[ALIASES[resource]] = ONE
    special = _SPECIAL.get(resource)
    if special is not None:
        taken |= special(obj)
    return taken


def counted(resource: str, names: Iterable[str]) -> frozenset[str]:
    """Which of a quota's names are about objects of a resource."""
    counts = count_name(resource)
    about = _ABOUT.get(resource, _never)
    alias = ALIASES.get(resource)
    return frozenset(each for each in names if each in (counts, alias) or about(each))


def is_within(resource: str, obj: Plain, scopes: Iterable[Plain]) -> bool:
    """Whether an object is one of those that a quota's scopes name."""
    if resource == PODS:
        return all(_pod_matches(obj, each) for each in scopes)
    if resource == VOLUME_CLAIMS:
        return all(_claim_matches(obj, each) for each in scopes)
    return not any(True for _ in scopes)


def demand(pod: Plain, names: Iterable[str]) -> str:
    """What the containers of a pod do not say, and have to; empty if they say it."""
    spec = pod["spec"]
    resources = spec.get("resources") or {}
    if resources.get("requests") or resources.get("limits"):
        return ""
    wanted = DEMANDED & {*names}
    silent: dict[str, set[str]] = {}
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            given = container.get("resources") or {}
            said = _computed(given.get("requests") or {}, given.get("limits") or {})
            for name in wanted - said.keys():
                silent.setdefault(name, set()).add(container["name"])
    told = [f"{name} for: {','.join(sorted(silent[name]))}" for name in sorted(silent)]
    return f"must specify {'; '.join(told)}" if told else ""


def is_terminating(pod: Plain) -> bool:
    """Whether a pod ends by itself."""
    seconds = pod["spec"].get("activeDeadlineSeconds")
    return seconds is not None and seconds >= 0


def _computed(requests: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    taken = {}
    for name in COMPUTE:
        if name in requests:
            taken[name] = taken[f"{REQUESTS}{name}"] = requests[name]
        if name in limits:
            taken[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if name.startswith(HUGE):
            taken[name] = amount
        if name.startswith(HUGE) or _is_extended(name):
            taken[f"{REQUESTS}{name}"] = amount
    return taken


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


def _pod(pod: Plain) -> Amounts:
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return {}
    spec = pod["spec"]
    requests, limits = (_total(spec, each) for each in ("requests", "limits"))
    for name, amount in _amounts(spec.get("overhead") or {}).items():
        requests[name] = requests.get(name, ZERO) + amount
        if limits.get(name):
            limits[name] += amount
    return {"pods": ONE, **_computed(requests, limits)}


def _total(spec: Plain, field: str) -> Amounts:
    own = (spec.get("resources") or {}).get(field) or {}
    return {**aggregate(spec, field), **_amounts(own)}


def _amounts(given: Plain) -> Amounts:
    return {name: Quantity(value) for name, value in given.items()}


def _service(service: Plain) -> Amounts:
    spec = service["spec"]
    kind, ports = spec.get("type"), spec.get("ports") or ()
    balanced = kind == "LoadBalancer"
    count = len(ports) if balanced or kind == "NodePort" else 0
    if balanced and spec.get("allocateLoadBalancerNodePorts") is False:
        count = sum(1 for each in ports if each.get("nodePort"))
    return {
        "services": ONE,
        "services.nodeports": Quantity(count),
        "services.loadbalancers": ONE if balanced else ZERO,
    }


def _volume_claim(claim: Plain) -> Amounts:
    spec, status = claim["spec"], claim.get("status") or {}
    taken = {"persistentvolumeclaims": ONE}
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if asked is not None:
        held = (status.get("allocatedResources") or {}).get("storage")
        storage = Quantity(asked)
        if held is not None:
            storage = max(storage, Quantity(held))
        taken["requests.storage"] = storage
    notes = claim["metadata"].get("annotations") or {}
    name = notes.get(CLASS_NOTE, spec.get("storageClassName"))
    if name:
        taken |= {f"{name}{STORAGE_CLASS}{key}": taken[key] for key in list(taken)}
    return taken


def _device_claim(claim: Plain) -> Amounts:
    taken: Amounts = {}
    for request in claim["spec"]["devices"].get("requests") or ():
        exact = request.get("exactly")
        most: dict[str, int] = {}
        for each in request.get("firstAvailable") or ([exact] if exact else ()):
            name = f"{each['deviceClassName']}{DEVICE_CLASS}"
            count = each.get("count", 0)
            if each.get("allocationMode") == "All":
                count = MOST_DEVICES
            most[name] = max(most.get(name, 0), count)
        for name, count in most.items():
            taken[name] = taken.get(name, ZERO) + Quantity(count)
    return taken


_SPECIAL: dict[str, Callable[[Plain], Amounts]] = {
    PODS: _pod,
    SERVICES: _service,
    VOLUME_CLAIMS: _volume_claim,
    DEVICE_CLAIMS: _device_claim,
}


def _never(name: str) -> bool:
    return False


def _about_pods(name: str) -> bool:
    if name in POD_NAMES or name.removeprefix(REQUESTS).startswith(HUGE):
        return True
    return (
        name.startswith(REQUESTS) and _is_extended(name) and (STORAGE_CLASS not in name)
    )


_ABOUT: dict[str, Callable[[str], bool]] = {
    PODS: _about_pods,
    SERVICES: {"services", "services.nodeports", "services.loadbalancers"}.__contains__,
    VOLUME_CLAIMS: lambda name: (
        name in STORAGE_NAMES
        or name.endswith(tuple(STORAGE_CLASS + each for each in STORAGE_NAMES))
    ),
    DEVICE_CLAIMS: lambda name: name.endswith(DEVICE_CLASS),
}


def _pod_matches(pod: Plain, scope: Plain) -> bool:
    match scope["scopeName"]:
        case "Terminating":
            return is_terminating(pod)
        case "NotTerminating":
            return not is_terminating(pod)
        case "BestEffort":
            return _quality(pod) == "BestEffort"
        case "NotBestEffort":
            return _quality(pod) != "BestEffort"
        case "PriorityClass":
            name = pod["spec"].get("priorityClassName")
            return _selects(scope, [name] if name else [])
        case "CrossNamespacePodAffinity":
            return _looks_elsewhere(pod["spec"].get("affinity") or {})
    return False


def _quality(pod: Plain) -> str:
    return str((pod.get("status") or {}).get("qosClass", ""))


def _looks_elsewhere(affinity: Plain) -> bool:
    """Whether a pod wants to be near, or far from, pods of other namespaces."""
    for kind in ("podAffinity", "podAntiAffinity"):
        given = affinity.get(kind) or {}
        terms = [*(given.get("requiredDuringSchedulingIgnoredDuringExecution") or ())]
        terms += [
            each["podAffinityTerm"]
            for each in given.get("preferredDuringSchedulingIgnoredDuringExecution")
            or ()
        ]
        if any(t.get("namespaces") or "namespaceSelector" in t for t in terms):
            return True
    return False


def _claim_matches(claim: Plain, scope: Plain) -> bool:
    if scope["scopeName"] != "VolumeAttributesClass":
        return False
    status = claim.get("status") or {}
    names = [
        claim["spec"].get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    ]
    return _selects(scope, [each for each in names if each])


def _selects(scope: Plain, names: list[str]) -> bool:
    """Whether one of the names is meant; without a name there is one that is not."""
    values = scope.get("values") or ()
    match scope["operator"]:
        case "In":
            return any(each in values for each in names)
        case "NotIn":
            return not names or any(each not in values for each in names)
        case "Exists":
            return bool(names)
    return not names
