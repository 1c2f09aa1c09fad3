"""Warnings: what whoever writes a good built-in object is told to do otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

Plain = dict[str, Any]

DEPRECATED_KINDS: Final = {
    ("", "v1", "ComponentStatus"): "v1 ComponentStatus is deprecated in v1.19+",
    ("", "v1", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use "
    "discovery.k8s.io/v1 EndpointSlice",
}
ORPHANED_PODS: Final = (
    "child pods are preserved by default when jobs are deleted; set "
    "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to "
    "suppress this warning"
)
_LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" '
    "instead",
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": "deprecated since v1.17; use "
    '"topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": "deprecated since v1.17; use "
    '"topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": "deprecated since v1.17; use "
    '"node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use "
    "Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" '
    "instead",
}
_VOLUMES: Final = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_TEMPLATES: Final = {
    ("apps", "Deployment"): ("spec", "template"),
    ("apps", "DaemonSet"): ("spec", "template"),
    ("apps", "ReplicaSet"): ("spec", "template"),
    ("apps", "StatefulSet"): ("spec", "template"),
    ("batch", "Job"): ("spec", "template"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
    ("", "ReplicationController"): ("spec", "template"),
}
_STATIC: Final = ".static.k8s.io"
_CONTAINERS: Final = ("initContainers", "containers")


def _reserved(obj: Plain) -> Iterator[str]:
    """A name that is for what a server is started with."""
    if str(obj["metadata"].get("name", "")).endswith(_STATIC):
        yield (
            f'metadata.name: names ending with "{_STATIC}" are reserved for static '
            "manifest-based configurations and cannot be managed via the API"
        )


def of_kind(group: str, version: str, kind: str) -> str:
    """What whoever uses a kind at all is warned of; mostly nothing."""
    return DEPRECATED_KINDS.get((group, version, kind), "")


def of_object(group: str, kind: str, obj: Plain, old: Plain | None) -> list[str]:
    """What whoever writes an object is warned of."""
    if (group, kind) == ("", "Pod"):
        return [] if old is not None else list(_pod(obj, ""))
    if (group, kind) == ("", "Service"):
        return list(_service(obj))
    if (group, kind) == ("networking.k8s.io", "Ingress") and old is None:
        return list(_ingress(obj))
    if group == "admissionregistration.k8s.io":
        return list(_reserved(obj))
    path = _TEMPLATES.get((group, kind))
    if path is None or not _is_new(obj, old):
        return []
    template: Any = obj
    for key in path:
        template = template.get(key) or {}
    return list(_pod(template, ".".join(path) + "."))


def _is_new(obj: Plain, old: Plain | None) -> bool:
    if old is None:
        return True
    generations = (each["metadata"].get("generation") for each in (obj, old))
    return len({*generations}) == 2


def _ingress(obj: Plain) -> Iterator[str]:
    if "kubernetes.io/ingress.class" in (obj["metadata"].get("annotations") or {}):
        yield (
            'annotation "kubernetes.io/ingress.class" is deprecated, please use '
            "'spec.ingressClassName' instead"
        )


def _service(obj: Plain) -> Iterator[str]:
    spec = obj.get("spec") or {}
    outside = spec.get("type") == "ExternalName"
    headless = spec.get("clusterIP") == "None"
    external = bool(spec.get("externalIPs"))
    if headless:
        if spec.get("loadBalancerIP"):
            yield "spec.loadBalancerIP is ignored for headless services"
        if external:
            yield "spec.externalIPs is ignored for headless services"
        if spec.get("sessionAffinity") != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    if external and not headless and not outside:
        yield (
            "spec.externalIPs is deprecated and may no longer be implemented in some "
            "clusters"
        )
    if external and outside:
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if spec.get("externalName") and not outside:
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'


def _pod(pod: Plain, start: str) -> Iterator[str]:
    spec: Plain = pod.get("spec") or {}
    path = f"{start}spec"
    for label in sorted(spec.get("nodeSelector") or ()):
        if label in _LABELS:
            yield f"{path}.nodeSelector[{label}]: {_LABELS[label]}"
    yield from _spread(spec, path)
    for index, volume in enumerate(spec.get("volumes") or ()):
        for sort, text in _VOLUMES.items():
            if sort in volume:
                yield f"{path}.volumes[{index}].{sort}: {text}"
    yield from _repeated(spec, path, "hostAliases", "ip")
    yield from _repeated(spec, path, "imagePullSecrets", "name")
    for index, each in enumerate(spec.get("imagePullSecrets") or ()):
        if not each.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'
    for where, container in _containers(spec, path):
        yield from _environment(container, where)
    yield from _ports(spec, path)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        yield (
            f"{path}.terminationGracePeriodSeconds: must be >= 0; negative values are "
            "invalid and will be treated as 1"
        )


def _spread(spec: Plain, path: str) -> Iterator[str]:
    for index, each in enumerate(spec.get("topologySpreadConstraints") or ()):
        where = f"{path}.topologySpreadConstraints[{index}]"
        key = each.get("topologyKey", "")
        if key in _LABELS:
            yield f"{where}.topologyKey: {key} is {_LABELS[key]}"
        if each.get("labelSelector") is None:
            text = "a null labelSelector results in matching no pod"
            yield f"{where}.labelSelector: {text}"


def _repeated(spec: Plain, path: str, field: str, key: str) -> Iterator[str]:
    seen = set()
    for index, each in enumerate(spec.get(field) or ()):
        if each.get(key) in seen:
            yield f'{path}.{field}[{index}].{key}: duplicate {key} "{each.get(key)}"'
        seen.add(each.get(key))


def _containers(spec: Plain, path: str) -> Iterator[tuple[str, Plain]]:
    for field in _CONTAINERS:
        for index, container in enumerate(spec.get(field) or ()):
            yield f"{path}.{field}[{index}]", container


def _environment(container: Plain, path: str) -> Iterator[str]:
    seen = set()
    for index, each in enumerate(container.get("env") or ()):
        name, value = each.get("name", ""), each.get("value", "")
        again = f"$({name})"
        fine = again in value and value != again and not each.get("valueFrom")
        if name in seen and not fine:
            yield (
                f'{path}.env[{index}]: hides previous definition of "{name}", which '
                "may be dropped when using apply"
            )
        seen.add(name)


def _ports(spec: Plain, path: str) -> Iterator[str]:
    seen: dict[tuple[Any, Any], list[tuple[str, Plain]]] = {}
    names: dict[str, str] = {}
    named = []
    for where, container in _containers(spec, path):
        for index, port in enumerate(container.get("ports") or ()):
            here = f"{where}.ports[{index}]"
            others = seen.setdefault(
                (port.get("containerPort"), port.get("protocol")), []
            )
            for there, other in others:
                text = _overlap(port, other)
                if text:
                    yield f"{here}: {text} port definition with {there}"
            others.append((here, port))
            name = port.get("name")
            if name and name in names:
                named.append(
                    f'{here}: duplicate port name "{name}" with {names[name]}, '
                    "services and probes that select ports by name will use "
                    f"{names[name]}"
                )
            elif name:
                names[name] = here
    yield from named


def _overlap(port: Plain, other: Plain) -> str:
    """How two definitions of the same port of a container go together."""
    host, its = port.get("hostPort", 0), other.get("hostPort", 0)
    here, there = port.get("hostIP", ""), other.get("hostIP", "")
    if (host, here) == (its, there):
        return "duplicate"
    if not host or not its:
        return "overlapping"
    return "dangerously ambiguous" if host == its and bool(here) != bool(there) else ""
