"""Networking: policies about who may talk to whom, and EndpointSlices."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from trimtab.embedded.builtin.validation import meta, texts
from trimtab.embedded.builtin.validation.containers import PROTOCOLS
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

_TYPES: Final = ("Ingress", "Egress")
_PEERS: Final = (("ingress", "from"), ("egress", "to"))


def create_policy(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    _policy(found, obj["spec"], ())


def update_policy(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    _policy(found, obj["spec"], set(_ranges(old["spec"])))


def _ranges(spec: JSON) -> Iterator[str]:
    """Every range of addresses that a policy has."""
    for direction, side in _PEERS:
        for rule in spec.get(direction) or ():
            for peer in rule.get(side) or ():
                if "ipBlock" in peer:
                    yield peer["ipBlock"]["cidr"]
                    yield from peer["ipBlock"].get("except") or ()


def _policy(found: Found, spec: JSON, known: Collection[str]) -> None:
    meta.selector(found, spec.get("podSelector"), "spec.podSelector")
    for direction, side in _PEERS:
        for index, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                _port(found, port, f"{path}.ports[{number}]")
            for number, peer in enumerate(rule.get(side) or ()):
                _peer(found, peer, known, f"{path}.{side}[{number}]")
    types = spec.get("policyTypes") or ()
    if len(types) > 2:
        detail = "may not specify more than two policyTypes"
        found.invalid("spec.policyTypes", types, detail)
        return
    for index, each in enumerate(types):
        found.one_of(f"spec.policyTypes[{index}]", each, _TYPES)


def _port(found: Found, port: JSON, path: str) -> None:
    protocol = port.get("protocol")
    if protocol is not None:
        found.one_of(f"{path}.protocol", protocol, ("TCP", "UDP", "SCTP"))
    number, end = port.get("port"), port.get("endPort")
    if number is None:
        if end is not None:
            detail = "may not be specified when `port` is not specified"
            found.invalid(f"{path}.endPort", end, detail)
    elif isinstance(number, str):
        if end is not None:
            detail = "may not be specified when `port` is non-numeric"
            found.invalid(f"{path}.endPort", end, detail)
        found.each(f"{path}.port", number, texts.port_name(number))
    else:
        _number(found, number, end, path)


def _number(found: Found, number: int, end: int | None, path: str) -> None:
    if not 1 <= number <= 65535:
        found.invalid(f"{path}.port", number, texts.PORT_RANGE)
    if end is None:
        return
    if end < number:
        detail = "must be greater than or equal to `port`"
        found.invalid(f"{path}.endPort", number, detail)
    if not 1 <= end <= 65535:
        found.invalid(f"{path}.endPort", end, texts.PORT_RANGE)


def _peer(found: Found, peer: JSON, known: Collection[str], path: str) -> None:
    for field in ("podSelector", "namespaceSelector"):
        meta.selector(found, peer.get(field), f"{path}.{field}")
    if "ipBlock" in peer:
        _block(found, peer["ipBlock"], known, f"{path}.ipBlock")
    if not peer:
        found.required(path, "must specify a peer")
    elif len(peer) > 1 and "ipBlock" in peer:
        found.forbidden(path, "may not specify both ipBlock and another peer")


def _network(value: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    if not value.partition("/")[2].isdecimal():
        return None
    try:
        return ipaddress.ip_network(value, strict=False)
    except ValueError:
        return None


def _block(found: Found, block: JSON, known: Collection[str], path: str) -> None:
    whole = block["cidr"]
    if not whole:
        found.required(f"{path}.cidr")
        return
    if whole not in known:
        found.each(f"{path}.cidr", whole, texts.cidr(whole))
    network = _network(whole)
    if network is None:
        return
    for index, each in enumerate(block.get("except") or ()):
        where = f"{path}.except[{index}]"
        if each not in known:
            found.each(where, each, texts.cidr(each))
        part = _network(each)
        if part is None:
            continue
        inside = part.version == network.version and part.network_address in network
        if not inside or network.prefixlen >= part.prefixlen:
            found.invalid(where, each, "must be a strict subset of `cidr`")


_slice_name = texts.subdomain
_ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")


def create_slice(found: Found, obj: JSON) -> None:
    _slice(found, obj, None)


def update_slice(found: Found, obj: JSON, old: JSON) -> None:
    _slice(found, obj, old)
    found.immutable("addressType", obj["addressType"], old["addressType"])


def _slice(found: Found, obj: JSON, old: JSON | None) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    found.choice("addressType", obj["addressType"], _ADDRESS_TYPES)
    _slice_ports(found, obj.get("ports") or [])
    if old is None or obj.get("endpoints") != old.get("endpoints"):
        _endpoints(found, obj.get("endpoints") or [], obj["addressType"])


def _slice_ports(found: Found, given: list[JSON]) -> None:
    if len(given) > 20000:
        found.too_many("ports", len(given), 20000)
        return
    names: set[str] = set()
    for index, port in enumerate(given):
        path, name = f"ports[{index}]", port.get("name", "")
        if name:
            found.each(f"{path}.name", name, texts.label(name))
        if name in names:
            found.duplicate(f"{path}.name", name)
        names.add(name)
        found.one_of(f"{path}.protocol", port.get("protocol", ""), PROTOCOLS)
        protocol = port.get("appProtocol")
        if protocol is not None:
            found.each(f"{path}.appProtocol", protocol, texts.key(protocol))


def _endpoints(found: Found, given: list[JSON], kind: str) -> None:
    if len(given) > 1000:
        found.too_many("endpoints", len(given), 1000)
        return
    for index, endpoint in enumerate(given):
        path = f"endpoints[{index}]"
        addresses = endpoint["addresses"] or ()
        if not addresses:
            detail = "must contain at least 1 address"
            found.required(f"{path}.addresses", detail)
        elif len(addresses) > 100:
            found.too_many(f"{path}.addresses", len(addresses), 100)
        for number, address in enumerate(addresses):
            where = f"{path}.addresses"
            _address(found, address, kind, where, f"{where}[{number}]")
        node = endpoint.get("nodeName")
        if node is not None:
            found.each(f"{path}.nodeName", node, texts.subdomain(node))
        name = endpoint.get("hostname")
        if name is not None:
            found.each(f"{path}.hostname", name, texts.label(name))
        _hints(found, endpoint.get("hints") or {}, f"{path}.hints")


def _address(found: Found, address: str, kind: str, listed: str, path: str) -> None:
    if kind == "FQDN":
        _domain(found, address, path)
        return
    problems = texts.ip(address)
    if not problems and kind in ("IPv4", "IPv6"):
        if (":" in address) != (kind == "IPv6"):
            found.invalid(listed, address, f"must be an {kind} address")
        problems = texts.endpoint_ip(address)
    if kind in ("IPv4", "IPv6"):
        found.each(path, address, problems)


def _domain(found: Found, name: str, path: str) -> None:
    if not name:
        found.required(path)
        return
    plain = name.removesuffix(".")
    if problems := texts.subdomain(plain):
        found.each(path, plain, problems)
    elif "." not in plain:
        found.invalid(
            path,
            name,
            "should be a domain with at least two segments separated by dots",
        )


def _hints(found: Found, hints: JSON, path: str) -> None:
    for field, check in (
        ("forZones", texts.label_value),
        ("forNodes", texts.subdomain),
    ):
        given = hints.get(field) or ()
        if len(given) > 8:
            found.too_many(f"{path}.{field}", len(given), 8)
            return
        names: set[str] = set()
        for index, each in enumerate(given):
            where, name = f"{path}.{field}[{index}].name", each["name"]
            if name in names:
                found.duplicate(where, name)
            names.add(name)
            found.each(where, name, check(name))
