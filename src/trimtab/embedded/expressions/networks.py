"""Networks: the functions for URLs, IP addresses and CIDRs."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any, Final

import msgspec

from trimtab.embedded import addresses
from trimtab.embedded.addresses import AddressError, Network
from trimtab.embedded.expressions.values import EvaluationError, NoSuchOverload
from trimtab.embedded.gotext import quoted
from trimtab.embedded.netip import why_not_address, why_not_prefix


class Url(msgspec.Struct, frozen=True):
    """A URL."""

    cel_name = "kubernetes.URL"
    url: addresses.Url


class Ip(msgspec.Struct, frozen=True):
    """An IP address."""

    cel_name = "net.IP"
    address: addresses.IP

    def __str__(self) -> str:
        return str(self.address)


class Cidr(msgspec.Struct, frozen=True):
    """An address with the length of its prefix."""

    cel_name = "net.CIDR"
    network: Network

    def __str__(self) -> str:
        return str(self.network)


def to_url(text: str) -> Url:
    try:
        return Url(addresses.request_url(text))
    except AddressError as error:
        said = "URL parse error during conversion from string"
        raise EvaluationError(f"{said}: {error}") from None


def _reads(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except (AddressError, EvaluationError):
            return False
        return True

    return check


def _mapped(address: addresses.IP) -> bool:
    v6 = isinstance(address, ipaddress.IPv6Address)
    return v6 and address.ipv4_mapped is not None  # type: ignore[union-attr]


def to_ip(text: str) -> Ip:
    try:
        address = addresses.ip(text)
    except AddressError as error:
        said = f"IP Address {quoted(text)} parse error during conversion from string"
        raise EvaluationError(f"{said}: {error}") from None
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id:
        said = f"IP address {quoted(text)} with zone value is not allowed"
        raise EvaluationError(said)
    if _mapped(address):
        said = f"IPv4-mapped IPv6 address {quoted(text)} is not allowed"
        raise EvaluationError(said)
    return Ip(address)


def to_cidr(text: str) -> Cidr:
    said = "network address parse error during conversion from string"
    reason = why_not_prefix(text)
    if reason:
        raise EvaluationError(f"{said}: {said}: {reason}")
    network = addresses.cidr(text)
    if _mapped(network.ip):
        text = f"IPv4-mapped IPv6 address {quoted(text)} is not allowed"
        raise EvaluationError(f"{said}: {text}")
    return Cidr(network)


def ip_of(value: str | Cidr) -> Ip:
    """``ip('1.2.3.4')``, or the address of a CIDR."""
    return Ip(value.network.ip) if isinstance(value, Cidr) else to_ip(value)


def is_canonical(text: str) -> bool:
    return str(to_ip(text)) == text


def contains_ip(cidr: Cidr, other: str | Ip) -> bool:
    if isinstance(other, str):
        if why_not_address(other):
            raise NoSuchOverload
        other = to_ip(other)
    return other.address in cidr.network.network


def contains_cidr(cidr: Cidr, other: str | Cidr) -> bool:
    inner = to_cidr(other) if isinstance(other, str) else other
    outer = cidr.network.network
    if inner.network.version != outer.version:
        return False
    same = inner.network.ip in outer
    return same and outer.prefixlen <= inner.network.network.prefixlen


def masked(cidr: Cidr) -> Cidr:
    network = cidr.network.network
    return Cidr(ipaddress.ip_interface(str(network)))


def _global(ip: Ip) -> bool:
    """Not quite what Python means by it: private addresses are global unicast too."""
    address = ip.address
    broadcast = str(address) == "255.255.255.255"
    special = address.is_unspecified or address.is_loopback or address.is_multicast
    return not (special or address.is_link_local or broadcast)


def _local_multicast(ip: Ip) -> bool:
    address = ip.address
    if address.version == 4:
        return address in ipaddress.ip_network("224.0.0.0/24")
    return address.is_multicast and address.packed[1] & 0x0F == 2


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "url": to_url,
    "isURL": _reads(addresses.request_url),
    "getScheme": lambda url: url.url.scheme,
    "getHost": lambda url: url.url.host,
    "getHostname": lambda url: url.url.hostname,
    "getPort": lambda url: url.url.port,
    "getEscapedPath": lambda url: url.url.escaped_path,
    "getQuery": lambda url: url.url.parameters,
    "ip": ip_of,
    "isIP": _reads(to_ip),
    "ip.isCanonical": is_canonical,
    "family": lambda ip: ip.address.version,
    "isUnspecified": lambda ip: ip.address.is_unspecified,
    "isLoopback": lambda ip: ip.address.is_loopback,
    "isLinkLocalMulticast": _local_multicast,
    "isLinkLocalUnicast": lambda ip: ip.address.is_link_local,
    "isGlobalUnicast": _global,
    "cidr": to_cidr,
    "isCIDR": _reads(to_cidr),
    "containsIP": contains_ip,
    "containsCIDR": contains_cidr,
    "prefixLength": lambda cidr: cidr.network.network.prefixlen,
    "masked": masked,
}
