"""Services as their registry makes them: addresses and ports are given out.

Who gives them out is the caller's: a function ``allocate(what, wanted)`` with ``what``
``"clusterIP"`` or ``"nodePort"``. It gives the wanted one, or any free one for None,
and raises ``ValueError`` with the reason if it cannot; ``TAKEN`` and
``out_of_range`` have the real server's words. The cluster has IPv4 only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trimtab.embedded import status
from trimtab.embedded.builtin.shapes import struct
from trimtab.embedded.builtin.strategy.common import keep
from trimtab.embedded.builtin.validation.addresses import cluster_ips
from trimtab.embedded.builtin.validation.problems import Found

JSON = dict[str, Any]
Allocate = Callable[[str, Any], Any]

TAKEN: Final = {
    "clusterIP": "provided IP is already allocated",
    "nodePort": "provided port is already allocated",
}
_KIND: Final = status.GroupResource("", "Service")


def out_of_range(what: str, ports: str = "30000-32767") -> str:
    """Why a wanted address or port cannot be given: it is none of the cluster's."""
    if what == "clusterIP":
        return "the provided network does not match the current range"
    return (
        f"provided port is not in the valid range. The range of valid ports is {ports}"
    )


def needs_address(spec: JSON) -> bool:
    return bool(spec["type"] != "ExternalName")


def needs_ports(spec: JSON) -> bool:
    if spec["type"] == "NodePort":
        return True
    balanced = spec["type"] == "LoadBalancer"
    return balanced and spec.get("allocateLoadBalancerNodePorts", True) is True


def needs_health_port(spec: JSON) -> bool:
    local = spec.get("externalTrafficPolicy") == "Local"
    return bool(spec["type"] == "LoadBalancer" and local)


def create(obj: JSON, allocate: Allocate | None) -> None:
    """A new Service has an address in the cluster, and ports on nodes if asked for."""
    spec = obj["spec"]
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    _families(obj, None)
    if allocate is not None:
        _allocate_address(obj, allocate)
        _allocate_ports(obj, None, allocate)
        if needs_health_port(spec) and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = allocate("nodePort", None)
    obj["status"] = struct("core.v1.ServiceStatus")({})


def update(obj: JSON, old: JSON, allocate: Allocate | None) -> None:
    """A Service keeps what it was given, as long as it is of a type that needs it."""
    spec, before = obj["spec"], old["spec"]
    _keep_allocated(spec, before)
    _normalise(spec, before)
    _families(obj, old)
    if allocate is not None:
        if not needs_address(before) and needs_address(spec):
            _allocate_address(obj, allocate)
        ports = [each.get("nodePort", 0) for each in before.get("ports") or ()]
        _allocate_ports(obj, ports, allocate)
        new = needs_health_port(spec) and not needs_health_port(before)
        if new and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = allocate("nodePort", None)
    keep(obj, old, "status")
    _drop_for_type(obj, old)


def _keep_allocated(spec: JSON, before: JSON) -> None:
    if needs_address(before) and needs_address(spec):
        for field in ("clusterIP", "clusterIPs"):
            if not spec.get(field) and before.get(field):
                spec[field] = before[field]
    if needs_ports(before) and needs_ports(spec):
        _keep_ports(spec, before)
    port = before.get("healthCheckNodePort")
    still = needs_health_port(before) and needs_health_port(spec)
    if still and port and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = port


def _keep_ports(spec: JSON, before: JSON) -> None:
    new, old = spec.get("ports") or (), before.get("ports") or ()
    used = {each.get("nodePort") for each in new} & {
        each.get("nodePort") for each in old
    }
    named = {each.get("name", ""): each.get("nodePort", 0) for each in old}
    for port in new:
        kept = named.get(port.get("name", ""), 0)
        if not port.get("nodePort") and kept and kept not in used:
            port["nodePort"] = kept


def _normalise(spec: JSON, before: JSON) -> None:
    """The one address of old, and the list of them, follow each other."""
    one, was = spec.get("clusterIP", ""), before.get("clusterIP", "")
    if before.get("clusterIPs") and not spec.get("clusterIPs") and one == was:
        spec["clusterIPs"] = before["clusterIPs"]
    if one != was and spec.get("clusterIPs") == before.get("clusterIPs"):
        spec.pop("clusterIPs", None)
        if one:
            spec["clusterIPs"] = [one]


def _families(obj: JSON, old: JSON | None) -> None:
    """Which kinds of addresses a Service has: one, of the cluster's own kind."""
    spec, before = obj["spec"], old["spec"] if old else {}
    if not needs_address(spec):
        return
    headless = spec.get("clusterIP") == "None" and not spec.get("selector")
    default = "RequireDualStack" if headless else "SingleStack"
    policy = spec.setdefault("ipFamilyPolicy", before.get("ipFamilyPolicy", default))
    found = Found()
    cluster_ips(found, spec, before)
    if not found:
        _one_family(found, spec, policy, headless=headless)
    if found:
        raise status.invalid_object(_KIND, obj["metadata"].get("name", ""), found)
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = ["IPv4"]
    if headless and len(spec["ipFamilies"]) < 2 and policy != "SingleStack":
        spec["ipFamilies"] = ["IPv4", "IPv6"]
        if spec["ipFamilies"][0] != "IPv4":
            spec["ipFamilies"].reverse()


def _one_family(found: Found, spec: JSON, policy: str, *, headless: bool) -> None:
    path = "spec.ipFamilyPolicy"
    if policy == "SingleStack":
        for field, what in (
            ("clusterIPs", "cluster IPs"),
            ("ipFamilies", "IP families"),
        ):
            if len(spec.get(field) or ()) == 2:
                detail = (
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple "
                    f"{what} are specified"
                )
                found.invalid(path, policy, detail)
    for index, address in enumerate(spec.get("clusterIPs") or ()):
        if ":" in address and index >= len(spec.get("ipFamilies") or ()):
            detail = "IPv6 is not configured on this cluster"
            found.invalid(f"spec.clusterIPs[{index}]", spec["clusterIPs"], detail)
    if found or headless:
        return
    if policy == "RequireDualStack":
        detail = "this cluster is not configured for dual-stack services"
        found.invalid(path, policy, detail)
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family != "IPv4":
            detail = "not configured on this cluster"
            found.invalid(f"spec.ipFamilies[{index}]", family, detail)


def _allocate_address(obj: JSON, allocate: Allocate) -> None:
    spec = obj["spec"]
    if not needs_address(spec) or spec.get("clusterIP") == "None":
        return
    wanted = spec.get("clusterIP") or None
    try:
        address = allocate("clusterIP", wanted)
    except ValueError as error:
        what = f"failed to allocate IP {wanted}" if wanted else "failed to allocate IP"
        shown = spec.get("clusterIPs") or [""]
        raise _refused(obj, "spec.clusterIPs", shown, f"{what}: {error}") from None
    spec["clusterIP"], spec["clusterIPs"] = address, [address]


def _refused(obj: JSON, field: str, value: Any, detail: str) -> status.ApiProblem:
    found = Found()
    found.invalid(field, value, detail)
    return status.invalid_object(_KIND, obj["metadata"].get("name", ""), found)


def _allocate_ports(obj: JSON, kept: list[int] | None, allocate: Allocate) -> None:
    """Ports of nodes; two protocols of one port share the number.

    ``kept`` are those that a changed Service had; None for a new one.
    """
    spec = obj["spec"]
    if spec["type"] not in ("NodePort", "LoadBalancer"):
        return
    given: dict[int, int] = {}
    ports = spec.get("ports") or ()
    for index, port in enumerate(ports):
        wanted = port.get("nodePort", 0) or given.get(port["port"], 0)
        if not wanted and not needs_ports(spec):
            continue
        wanted = wanted or _asked(port["port"], ports)
        if not _has(wanted, port["port"], given, kept):
            path = f"spec.ports[{index}].nodePort"
            try:
                if wanted in given.values():
                    raise ValueError(TAKEN["nodePort"])
                wanted = allocate("nodePort", wanted or None)
            except ValueError as error:
                raise _refused(obj, path, wanted, str(error)) from None
        port["nodePort"] = given[port["port"]] = wanted


def _has(wanted: int, port: int, given: dict[int, int], kept: list[int] | None) -> bool:
    """Whether the Service has this port of the nodes already."""
    if kept is None:
        return bool(wanted) and given.get(port) == wanted
    return bool(wanted) and (wanted in kept or wanted in given.values())


def _asked(port: int, ports: Any) -> int:
    """The number that another protocol of the same port asks for."""
    for each in ports:
        if each["port"] == port and each.get("nodePort"):
            return int(each["nodePort"])
    return 0


def _drop_for_type(obj: JSON, old: JSON) -> None:
    """What only made sense for the type before goes, unless it was changed too."""
    spec, before = obj["spec"], old["spec"]
    if needs_address(before) and not needs_address(spec):
        same = all(
            spec.get(each) == before.get(each) for each in ("clusterIP", "clusterIPs")
        )
        _drop(spec, ("clusterIP", "clusterIPs") if same else ())
        for field in ("ipFamilies", "ipFamilyPolicy"):
            _drop(spec, (field,) if spec.get(field) == before.get(field) else ())
    on_nodes = ("NodePort", "LoadBalancer")
    if before["type"] in on_nodes and spec["type"] not in on_nodes:
        _drop_ports(spec, before)
    field = "healthCheckNodePort"
    if needs_health_port(before) and not needs_health_port(spec):
        _drop(spec, (field,) if spec.get(field) == before.get(field) else ())
    if before["type"] == "LoadBalancer" and spec["type"] != "LoadBalancer":
        for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            _drop(spec, (field,) if spec.get(field) == before.get(field) else ())
    field = "externalTrafficPolicy"
    if is_external(before) and not is_external(spec):
        _drop(spec, (field,) if spec.get(field) == before.get(field) else ())
    if spec["type"] != "LoadBalancer" and obj["status"].get("loadBalancer"):
        obj["status"] = {**obj["status"], "loadBalancer": {}}
    inside = spec.get("internalTrafficPolicy")
    if spec["type"] == "ExternalName" and inside in ("Cluster", "Local"):
        del spec["internalTrafficPolicy"]


def is_external(spec: JSON) -> bool:
    """Whether a Service can be reached from outside."""
    if spec["type"] in ("LoadBalancer", "NodePort"):
        return True
    return bool(spec["type"] == "ClusterIP" and spec.get("externalIPs"))


def _drop_ports(spec: JSON, before: JSON) -> None:
    new = {each.get("nodePort") for each in spec.get("ports") or ()} - {None, 0}
    old = {each.get("nodePort") for each in before.get("ports") or ()}
    if new <= old:
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)


def _drop(spec: JSON, fields: tuple[str, ...]) -> None:
    for field in fields:
        spec.pop(field, None)
