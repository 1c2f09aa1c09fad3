"""Tables of the network: addresses, ports and hosts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Final

from trimtab.embedded.builtin.printers.cells import (
    NONE,
    Plain,
    Printer,
    Row,
    created,
    labels,
    part,
    printer,
    selector,
    some,
)

_DEFAULT_CLASS: Final = "ingressclass.kubernetes.io/is-default-class"
_AT_MOST: Final = 3


def _service(obj: Plain, now: datetime) -> Row:
    spec = part(obj, "spec")
    addresses = spec.get("clusterIPs") or (NONE,)
    ports = ",".join(map(_port, spec.get("ports") or ()))
    return [
        obj["metadata"]["name"],
        spec.get("type") or "",
        addresses[0],
        _external(spec, part(obj, "status")),
        ports or NONE,
        created(obj, now),
        labels(spec.get("selector")),
    ]


def _port(given: Plain) -> str:
    node = f":{given['nodePort']}" if given.get("nodePort") else ""
    return f"{given['port']}{node}/{given.get('protocol') or ''}"


def _external(spec: Plain, status: Plain) -> str:
    """The addresses that a service has outside of the cluster."""
    kind, own = spec.get("type"), ",".join(spec.get("externalIPs") or ())
    if kind in ("ClusterIP", "NodePort"):
        return own or NONE
    if kind == "LoadBalancer":
        balancers = _balancers(status)
        return ",".join(filter(None, (balancers, own))) or "<pending>"
    if kind == "ExternalName":
        return spec.get("externalName") or ""
    return "<unknown>"


def _balancers(status: Plain) -> str:
    found = part(status, "loadBalancer").get("ingress") or ()
    places = {each.get("ip") or each.get("hostname") or "" for each in found}
    return ",".join(sorted(places - {""}))


def _endpoints(obj: Plain, now: datetime) -> Row:
    subsets = obj.get("subsets")
    shown = _addresses(subsets) if subsets else NONE
    return [obj["metadata"]["name"], shown, created(obj, now)]


def _addresses(subsets: list[Plain]) -> str:
    total = sum(
        len(each.get("addresses") or ()) * max(1, len(each.get("ports") or ()))
        for each in subsets
    )
    shown = ",".join(islice(_endpoint_texts(subsets), _AT_MOST))
    more = f" + {total - _AT_MOST} more..." if total > _AT_MOST else ""
    return shown + more


def _endpoint_texts(subsets: list[Plain]) -> Iterator[str]:
    for each in subsets:
        addresses = [address["ip"] for address in each.get("addresses") or ()]
        if not each.get("ports"):
            yield from addresses
        for port in each.get("ports") or ():
            for address in addresses:
                host = f"[{address}]" if ":" in address else address
                yield f"{host}:{port.get('port') or 0}"


def _endpoint_slice(obj: Plain, now: datetime) -> Row:
    ports = [_slice_port(each) for each in obj.get("ports") or ()]
    addresses = [
        address
        for each in obj.get("endpoints") or ()
        for address in each.get("addresses") or ()
    ]
    return [
        obj["metadata"]["name"],
        obj.get("addressType") or "",
        some(ports[:_AT_MOST], of=len(ports)),
        some(addresses[:_AT_MOST], of=len(addresses)),
        created(obj, now),
    ]


def _slice_port(port: Plain) -> str:
    if port.get("port") is not None:
        return str(port["port"])
    name = port.get("name")
    return "*" if name is None else name


def _ingress(obj: Plain, now: datetime) -> Row:
    spec = part(obj, "spec")
    of_class = spec.get("ingressClassName")
    return [
        obj["metadata"]["name"],
        NONE if of_class is None else of_class,
        _hosts(spec.get("rules") or []),
        _balancers(part(obj, "status")),
        "80, 443" if spec.get("tls") else "80",
        created(obj, now),
    ]


def _hosts(rules: list[Plain]) -> str:
    """The first hosts. Only a rule that comes after them makes it say there are more,
    and then it counts the rules, whether they have a host or not."""
    shown: list[str] = []
    for each in rules:
        if len(shown) == _AT_MOST:
            return f"{','.join(shown)} + {len(rules) - _AT_MOST} more..."
        if each.get("host"):
            shown.append(each["host"])
    return ",".join(shown) or "*"


def _ingress_class(obj: Plain, now: datetime) -> Row:
    meta, spec = obj["metadata"], part(obj, "spec")
    default = (meta.get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    return [
        meta["name"] + (" (default)" if default else ""),
        spec.get("controller") or "",
        _parameters(spec.get("parameters")),
        created(obj, now),
    ]


def _parameters(given: Plain | None) -> str:
    if given is None:
        return NONE
    group = given.get("apiGroup")
    kind = given["kind"] if group is None else f"{given['kind']}.{group}"
    return f"{kind}/{given['name']}"


def _network_policy(obj: Plain, now: datetime) -> Row:
    shown = selector(part(obj, "spec").get("podSelector")) or NONE
    return [obj["metadata"]["name"], shown, created(obj, now)]


def _service_cidr(obj: Plain, now: datetime) -> Row:
    shown = ",".join(part(obj, "spec").get("cidrs") or ())
    return [obj["metadata"]["name"], shown, created(obj, now)]


def _ip_address(obj: Plain, now: datetime) -> Row:
    # The age stands there without a header, as in the real server's tables.
    owner = part(obj, "spec").get("parentRef")
    return [obj["metadata"]["name"], _owner(owner), created(obj, now)]


def _owner(given: Plain | None) -> str:
    if given is None:
        return NONE
    group = f".{given['group']}" if given.get("group") else ""
    parts = ((given.get("resource") or "") + group).lower(), given.get("namespace")
    return "/".join((*filter(None, parts), given.get("name") or ""))


PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("", "Service"): printer(
        "Name/name, Type, Cluster-IP, External-IP, Port(s), Age, Selector*", _service
    ),
    ("", "Endpoints"): printer("Name/name, Endpoints, Age", _endpoints),
    ("discovery.k8s.io", "EndpointSlice"): printer(
        "Name/name, AddressType, Ports, Endpoints, Age", _endpoint_slice
    ),
    ("networking.k8s.io", "Ingress"): printer(
        "Name/name, Class, Hosts, Address, Ports, Age", _ingress
    ),
    ("networking.k8s.io", "IngressClass"): printer(
        "Name/name, Controller, Parameters, Age", _ingress_class
    ),
    ("networking.k8s.io", "NetworkPolicy"): printer(
        "Name/name, Pod-Selector, Age", _network_policy
    ),
    ("networking.k8s.io", "ServiceCIDR"): printer(
        "Name/name, CIDRs, Age", _service_cidr
    ),
    ("networking.k8s.io", "IPAddress"): printer("Name/name, ParentRef", _ip_address),
}
