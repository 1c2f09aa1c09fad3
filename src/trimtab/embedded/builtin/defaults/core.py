"""Defaults of the core group, but for pods."""

from __future__ import annotations

import base64
from typing import Any, Final

from trimtab.embedded.builtin.defaults import pods

JSON = dict[str, Any]

_AFFINITY_SECONDS: Final = 10800


def service(obj: JSON) -> None:
    spec = obj["spec"]
    affinity = spec.setdefault("sessionAffinity", "None")
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if "timeoutSeconds" not in client:
            timeout = {"timeoutSeconds": _AFFINITY_SECONDS}
            spec["sessionAffinityConfig"] = {"clientIP": timeout}
    kind = spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if port["targetPort"] in (0, ""):
            port["targetPort"] = port["port"]
    external = kind in ("LoadBalancer", "NodePort") or (
        kind == "ClusterIP" and spec.get("externalIPs")
    )
    if external:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for each in obj["status"]["loadBalancer"].get("ingress") or ():
            if each.get("ip"):
                each.setdefault("ipMode", "VIP")


def secret(obj: JSON) -> None:
    """Text becomes data, in the same moment as the object is read."""
    text = obj.pop("stringData", None)
    if text:
        data = obj.setdefault("data", {})
        for key, value in text.items():
            data[key] = base64.b64encode(value.encode()).decode()
    obj.setdefault("type", "Opaque")


def namespace(obj: JSON) -> None:
    """A namespace can be selected by its name."""
    metadata = obj["metadata"]
    if name := metadata.get("name"):
        metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = name
    obj["status"].setdefault("phase", "Active")


def node(obj: JSON) -> None:
    """What can be given out is all there is, and the ranges of pods go together."""
    status, spec = obj["status"], obj["spec"]
    if "capacity" in status and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])
    for field in ("capacity", "allocatable"):
        pods.whole_millis(status.get(field))
    one, many = spec.get("podCIDR"), spec.get("podCIDRs")
    if one and (not many or many[0] != one):
        spec["podCIDRs"] = [one]
    elif many:
        spec["podCIDR"] = many[0]


def persistent_volume(obj: JSON) -> None:
    obj["status"].setdefault("phase", "Pending")
    spec = obj["spec"]
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    volume_source(spec)


def volume_source(spec: JSON) -> None:
    """What a volume is made of."""
    pods.whole_millis(spec.get("capacity"))
    for name, default in (
        ("hostPath", pods.host_path),
        ("rbd", pods.rbd),
        ("iscsi", pods.iscsi),
        ("azureDisk", pods.azure_disk),
        ("scaleIO", pods.scale_io),
    ):
        if name in spec:
            default(spec[name])


def persistent_volume_claim(obj: JSON) -> None:
    obj["status"].setdefault("phase", "Pending")
    for field in ("capacity", "allocatedResources"):
        pods.whole_millis(obj["status"].get(field))
    pods.claim_spec(obj["spec"])


def volume_attachment(obj: JSON) -> None:
    if inline := obj["spec"]["source"].get("inlineVolumeSpec"):
        volume_source(inline)


def endpoints(obj: JSON) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


def limit_range(obj: JSON) -> None:
    """Limits follow from the most, requests from limits and the least."""
    for item in obj["spec"]["limits"] or ():
        if item["type"] == "Container":
            default = {**(item.get("max") or {}), **(item.get("default") or {})}
            request = {
                **(item.get("min") or {}),
                **default,
                **(item.get("defaultRequest") or {}),
            }
            for field, value in (("default", default), ("defaultRequest", request)):
                if value:
                    item[field] = value
        for field in (
            "max",
            "min",
            "default",
            "defaultRequest",
            "maxLimitRequestRatio",
        ):
            pods.whole_millis(item.get(field))


def resource_quota(obj: JSON) -> None:
    pods.whole_millis(obj["spec"].get("hard"))
    for field in ("hard", "used"):
        pods.whole_millis(obj["status"].get(field))
