"""Fields: what a pod may learn about itself (the downward API)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from trimtab.api.kinds import Container, ResourceFieldSelector, WholePod
from trimtab.api.quantity import Quantity

SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")


class NoSuchField(Exception):
    """The pod has no such field, or it cannot be had this way."""


def field_of(pod: WholePod, path: str, *, host: str, address: str) -> str:
    """The value of a field that ``fieldRef`` names."""
    subscript = SUBSCRIPT.fullmatch(path)
    metadata, spec = pod.metadata, pod.spec
    if subscript:
        held = getattr(metadata, subscript[1])
        return str(held.get(subscript[2], ""))
    simple = {
        "metadata.name": metadata.name,
        "metadata.namespace": metadata.namespace,
        "metadata.uid": metadata.uid,
        "spec.nodeName": spec.nodeName,
        "spec.serviceAccountName": spec.serviceAccountName,
        "status.hostIP": host,
        "status.hostIPs": host,
        "status.podIP": address,
        "status.podIPs": address,
    }
    if path in simple:
        return simple[path]
    if path in ("metadata.labels", "metadata.annotations"):
        return _table(getattr(metadata, path.rpartition(".")[2]))
    raise NoSuchField(f"unsupported fieldPath: {path}")


def _table(pairs: Mapping[str, str]) -> str:
    """One line each, as the kubelet writes them: key="value", quoted."""
    return "\n".join(f"{key}={_quoted(pairs[key])}" for key in sorted(pairs))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def resource_of(
    pod: WholePod,
    wanted: ResourceFieldSelector,
    container: Container,
    *,
    allocatable: Mapping[str, Quantity],
) -> str:
    """An amount that ``resourceFieldRef`` names, in units of its divisor, rounded up.

    A limit that is not set is what the node has.
    """
    if wanted.containerName:
        container = _named(pod, wanted.containerName)
    kind, _, resource = wanted.resource.partition(".")
    if kind not in ("limits", "requests"):
        raise NoSuchField(f"unsupported container resource: {wanted.resource}")
    amounts = container.resources.limits
    if kind == "requests":
        amounts = container.resources.requests
    amount = amounts.get(resource)
    if amount is None and kind == "limits":
        amount = allocatable.get(resource)
    if amount is None:
        return "0"
    divisor = wanted.divisor.fraction if wanted.divisor else 1
    return str(math.ceil(amount.fraction / (divisor or 1)))


def _named(pod: WholePod, name: str) -> Container:
    for each in (*pod.spec.containers, *pod.spec.initContainers):
        if each.name == name:
            return each
    raise NoSuchField(f"container {name} not found")
