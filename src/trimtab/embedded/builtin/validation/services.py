"""Services and Endpoints: ports, types, and who can be reached from where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.validation import addresses, handlers, meta, texts
from trimtab.embedded.builtin.validation.containers import PROTOCOLS
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_MODE: Final = "service.kubernetes.io/topology-mode"
_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_ONLY_BALANCED: Final = "may only be used when `type` is 'LoadBalancer'"
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_LONGEST: Final = 86400


def create(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.label)
    _service(found, obj, None)


def update(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    spec, before = obj["spec"], old["spec"]
    addresses.changed_ips(found, spec, before)
    addresses.changed_families(found, spec, before)
    _class(found, spec, before)
    field = "healthCheckNodePort"
    still = _needs_health(before) and _needs_health(spec)
    if still and spec.get(field) != before.get(field):
        found.forbidden(f"spec.{field}", texts.IMMUTABLE)
    _service(found, obj, old)


def _service(found: Found, obj: JSON, old: JSON | None) -> None:
    spec, before = obj["spec"], old["spec"] if old else {}
    notes = obj["metadata"].get("annotations") or {}
    if _MODE in notes and _HINTS in notes and notes[_MODE] != notes[_HINTS]:
        path = f"metadata.annotations[{_MODE}]"
        detail = f"must match annotations[{_HINTS}] when both are specified"
        found.invalid(path, notes[_MODE], detail)
    headless = addresses.is_headless(spec)
    ports = spec.get("ports") or []
    if not ports and not headless and spec["type"] != "ExternalName":
        found.required("spec.ports")
    _type(found, spec, headless=headless)
    names: set[str] = set()
    for index, port in enumerate(ports):
        _port(found, port, names, f"spec.ports[{index}]", named=len(ports) > 1)
    meta.labels(found, spec.get("selector"), "spec.selector")
    _affinity(found, spec)
    addresses.cluster_ips(found, spec, before)
    _external_ips(found, spec, before)
    found.choice("spec.type", spec["type"], _TYPES)
    _unique_ports(found, spec, ports)
    _source_ranges(found, spec, notes, old)
    if "allocateLoadBalancerNodePorts" in spec and spec["type"] != "LoadBalancer":
        found.forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCED)
    _class(found, spec, None)
    _traffic(found, spec)


def _type(found: Found, spec: JSON, *, headless: bool) -> None:
    kind = spec["type"]
    if kind in ("LoadBalancer", "NodePort") and headless:
        detail = f"may not be set to 'None' for {kind} services"
        found.invalid("spec.clusterIPs[0]", "None", detail)
    if kind != "ExternalName":
        return
    for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(field):
            detail = "may not be set for ExternalName services"
            found.forbidden(f"spec.{field}", detail)
    name = spec.get("externalName", "").removesuffix(".")
    if name:
        found.each("spec.externalName", name, texts.subdomain(name))
    else:
        found.required("spec.externalName")


def _port(found: Found, port: JSON, names: set[str], path: str, *, named: bool) -> None:
    name = port.get("name", "")
    if named and not name:
        found.required(f"{path}.name")
    elif name:
        found.each(f"{path}.name", name, texts.label(name))
        if name in names:
            found.duplicate(f"{path}.name", name)
        names.add(name)
    if not 1 <= port["port"] <= 65535:
        found.invalid(f"{path}.port", port["port"], texts.PORT_RANGE)
    found.choice(f"{path}.protocol", port.get("protocol", ""), PROTOCOLS)
    handlers.port(found, port["targetPort"], f"{path}.targetPort")
    protocol = port.get("appProtocol")
    if protocol is not None:
        found.each(f"{path}.appProtocol", protocol, texts.key(protocol))


def _affinity(found: Found, spec: JSON) -> None:
    kind, path = spec.get("sessionAffinity", ""), "spec.sessionAffinityConfig"
    found.choice("spec.sessionAffinity", kind, ("ClientIP", "None"))
    if kind != "ClientIP":
        return
    client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
    seconds = client.get("timeoutSeconds", 0)
    if not 0 < seconds <= _LONGEST:
        detail = f"must be greater than 0 and less than {_LONGEST}"
        found.invalid(f"{path}.clientIP.timeoutSeconds", seconds, detail)


def _external_ips(found: Found, spec: JSON, before: JSON) -> None:
    old = before.get("externalIPs") or ()
    for index, address in enumerate(spec.get("externalIPs") or ()):
        problems = () if address in old else texts.ip(address)
        problems = problems or texts.endpoint_ip(address)
        found.each(f"spec.externalIPs[{index}]", address, problems)


def _unique_ports(found: Found, spec: JSON, ports: list[JSON]) -> None:
    nodes: set[tuple[str, int]] = set()
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        if spec["type"] == "ClusterIP" and port.get("nodePort"):
            detail = "may not be used when `type` is 'ClusterIP'"
            found.forbidden(f"spec.ports[{index}].nodePort", detail)
    for index, port in enumerate(ports):
        key = (port.get("protocol", ""), port.get("nodePort", 0))
        if key[1] and key in nodes:
            found.duplicate(f"spec.ports[{index}].nodePort", key[1])
        nodes.add(key)
    for index, port in enumerate(ports):
        key = (port.get("protocol", ""), port["port"])
        if key in seen:
            found.duplicate(f"spec.ports[{index}]", _printed_port(*key))
        seen.add(key)


def _printed_port(protocol: str, port: int) -> JSON:
    return {
        "Name": "",
        "Protocol": protocol,
        "AppProtocol": None,
        "Port": port,
        "TargetPort": 0,
        "NodePort": 0,
    }


def _source_ranges(found: Found, spec: JSON, notes: JSON, old: JSON | None) -> None:
    ranges = spec.get("loadBalancerSourceRanges") or ()
    balanced = spec["type"] == "LoadBalancer"
    if ranges:
        path = "spec.LoadBalancerSourceRanges"
        if not balanced:
            found.forbidden(path, _ONLY_BALANCED)
        before = (old["spec"] if old else {}).get("loadBalancerSourceRanges") or ()
        for index, each in enumerate(ranges):
            if each not in before:
                value = each.strip()
                found.each(f"{path}[{index}]", value, texts.cidr(value))
    elif _RANGES in notes:
        path = f"metadata.annotations[{_RANGES}]"
        if not balanced:
            found.forbidden(path, _ONLY_BALANCED)
        was = (old["metadata"].get("annotations") or {}).get(_RANGES) if old else None
        if notes[_RANGES] != was and notes[_RANGES].strip():
            for each in notes[_RANGES].split(","):
                found.each(path, each.strip(), texts.cidr(each.strip()))


def _class(found: Found, spec: JSON, old: JSON | None) -> None:
    name, path = spec.get("loadBalancerClass"), "spec.loadBalancerClass"
    balanced = spec["type"] == "LoadBalancer"
    still = old is not None and balanced and old["type"] == "LoadBalancer"
    if old is not None and still and name != old.get("loadBalancerClass"):
        found.invalid(path, name, "may not change once set")
    if name is None:
        return
    if balanced:
        found.each(path, name, texts.key(name))
    else:
        found.forbidden(path, _ONLY_BALANCED)


def _needs_health(spec: JSON) -> bool:
    local = spec.get("externalTrafficPolicy") == "Local"
    return bool(spec["type"] == "LoadBalancer" and local)


def _traffic(found: Found, spec: JSON) -> None:
    policy, path = spec.get("externalTrafficPolicy", ""), "spec.externalTrafficPolicy"
    external = spec["type"] in ("LoadBalancer", "NodePort") or (
        spec["type"] == "ClusterIP" and spec.get("externalIPs")
    )
    if external:
        found.choice(path, policy, ("Cluster", "Local"))
    elif policy:
        detail = "may only be set for externally-accessible services"
        found.invalid(path, policy, detail)
    port, path = spec.get("healthCheckNodePort", 0), "spec.healthCheckNodePort"
    if not _needs_health(spec):
        if port:
            detail = (
                "may only be set when `type` is 'LoadBalancer' and "
                "`externalTrafficPolicy` is 'Local'"
            )
            found.invalid(path, port, detail)
    elif port and not 1 <= port <= 65535:
        found.invalid(path, port, texts.PORT_RANGE)
    inside, path = spec.get("internalTrafficPolicy"), "spec.internalTrafficPolicy"
    if inside is not None:
        found.one_of(path, inside, ("Cluster", "Local"))
    spread = spec.get("trafficDistribution")
    if spread is not None:
        found.one_of("spec.trafficDistribution", spread, _DISTRIBUTIONS)


def status_update(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    given = obj["status"].get("loadBalancer", {}).get("ingress") or []
    path = "status.loadBalancer.ingress"
    if given and obj["spec"]["type"] != "LoadBalancer":
        detail = "may only be used when `spec.type` is 'LoadBalancer'"
        found.forbidden(path, detail)
        return
    known = old["status"].get("loadBalancer", {}).get("ingress") or ()
    load_balancer(found, given, {each.get("ip") for each in known}, path)


def load_balancer(
    found: Found, given: list[JSON], known: set[Any], path: str, *, modes: bool = True
) -> None:
    """Where a load balancer can be reached."""
    for index, each in enumerate(given):
        where, address = f"{path}[{index}]", each.get("ip", "")
        if address and address not in known:
            found.each(f"{where}.ip", address, texts.ip(address))
        if modes:
            _mode(found, each, f"{where}.ipMode")
        name = each.get("hostname", "")
        if name:
            found.each(f"{where}.hostname", name, texts.subdomain(name))
            if texts.parse_ip(name) is not None:
                detail = "must be a DNS name, not an IP address"
                found.invalid(f"{where}.hostname", name, detail)


def _mode(found: Found, each: JSON, path: str) -> None:
    mode, address = each.get("ipMode"), each.get("ip", "")
    if mode is None:
        if address:
            found.required(path, "must be specified when `ip` is set")
    elif not address:
        found.forbidden(path, "may not be specified when `ip` is not set")
    else:
        found.one_of(path, mode, ("Proxy", "VIP"))


def create_endpoints(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    _subsets(found, obj.get("subsets") or [])


def update_endpoints(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    if obj.get("subsets") != old.get("subsets"):
        _subsets(found, obj.get("subsets") or [])


def _subsets(found: Found, given: list[JSON]) -> None:
    for index, subset in enumerate(given):
        path = f"subsets[{index}]"
        ready, others = subset.get("addresses"), subset.get("notReadyAddresses")
        if not ready and not others:
            found.required(path, "must specify `addresses` or `notReadyAddresses`")
        for field in ("addresses", "notReadyAddresses"):
            for number, each in enumerate(subset.get(field) or ()):
                _endpoint(found, each, f"{path}.{field}[{number}]")
        ports = subset.get("ports") or ()
        for number, port in enumerate(ports):
            where = f"{path}.ports[{number}]"
            _endpoint_port(found, port, where, named=len(ports) > 1)


def _endpoint(found: Found, address: JSON, path: str) -> None:
    value = address["ip"]
    found.each(f"{path}.ip", value, texts.ip(value))
    name = address.get("hostname", "")
    if name:
        found.each(f"{path}.hostname", name, texts.label(name))
    node = address.get("nodeName")
    if node is not None:
        found.each(f"{path}.nodeName", node, texts.subdomain(node))
    found.each(f"{path}.ip", value, texts.endpoint_ip(value))


def _endpoint_port(found: Found, port: JSON, path: str, *, named: bool) -> None:
    name = port.get("name", "")
    if named and not name:
        found.required(f"{path}.name")
    elif name:
        found.each(f"{path}.name", name, texts.label(name))
    if not 1 <= port["port"] <= 65535:
        found.invalid(f"{path}.port", port["port"], texts.PORT_RANGE)
    found.choice(f"{path}.protocol", port.get("protocol", ""), PROTOCOLS)
    protocol = port.get("appProtocol")
    if protocol is not None:
        found.each(f"{path}.appProtocol", protocol, texts.key(protocol))
