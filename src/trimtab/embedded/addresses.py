"""Addresses: URLs, IPs and CIDRs, read as strictly or loosely as Go reads them.

Formats of schemas and the functions of rules share these readers. Each returns a value
or raises :class:`AddressError` with the words of Go's parser.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

import msgspec

from trimtab.embedded.gotext import quoted
from trimtab.embedded.netip import why_not_address

IP = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface

_UNRESERVED: Final = (
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~"
)
_IN_HOST: Final = frozenset(_UNRESERVED + "!$&'()*+,;=:[]<>\"")
_IN_PATH: Final = frozenset((_UNRESERVED + "$&+,/:;=@").encode())
_ENCODED_PATH: Final = frozenset(_UNRESERVED + "$&+,/:;=@!'()*[]%")
_IN_USER: Final = frozenset(_UNRESERVED + ":!$&'()*+,;=%@")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_PORT = re.compile(r"(:[0-9]*)?", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?")
_DECIMAL = re.compile(r"[0-9]+", re.ASCII)


class AddressError(ValueError):
    """A text that is no address, in the words of Go's parser."""


class Url(msgspec.Struct, frozen=True):
    """What a URL consists of."""

    scheme: str = ""
    host: str = ""
    raw_path: str = ""
    query: str = ""
    opaque: str = ""
    user: str = ""
    fragment: str = ""

    @property
    def hostname(self) -> str:
        host, _ = self._split()
        return host

    @property
    def port(self) -> str:
        return self._split()[1]

    def _split(self) -> tuple[str, str]:
        host, port = self.host, ""
        head, colon, tail = host.rpartition(":")
        if colon and tail.isdecimal() | (tail == ""):
            host, port = head, tail
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        return host, port

    @property
    def escaped_path(self) -> str:
        if self.raw_path == "*" or _ENCODED_PATH.issuperset(self.raw_path):
            return self.raw_path
        return escaped_path(unescaped(self.raw_path))

    @property
    def parameters(self) -> dict[str, list[str]]:
        """The query, each name with all its values; what is malformed is left out."""
        found: dict[str, list[str]] = {}
        for pair in self.query.split("&"):
            if not pair or ";" in pair:
                continue
            key, _, value = pair.replace("+", " ").partition("=")
            try:
                name, held = unescaped(key), unescaped(value)
            except AddressError:
                continue
            found.setdefault(name, []).append(held)
        return found


def escaped_path(path: str) -> str:
    return "".join(
        chr(byte) if byte in _IN_PATH else f"%{byte:02X}" for byte in path.encode()
    )


def unescaped(text: str) -> str:
    """Percent escapes resolved.

    Errors: ``AddressError`` for an escape that is none.
    """
    if "%" not in text:
        return text
    for found in _ESCAPE.finditer(text):
        if found[1] is None:
            shown = text[found.start() : found.start() + 3]
            raise AddressError(f"invalid URL escape {quoted(shown)}")
    raw = re.sub(
        rb"%([0-9A-Fa-f]{2})", lambda hit: bytes([int(hit[1], 16)]), text.encode()
    )
    return raw.decode(errors="replace")


def request_url(text: str) -> Url:
    """An absolute URL or path, as a request line may have it (``ParseRequestURI``)."""
    return _parse(text, request=True)


def url(text: str) -> Url:
    """Any URL reference (``url.Parse``)."""
    text, _, fragment = text.partition("#")
    return msgspec.structs.replace(_parse(text, request=False), fragment=fragment)


def _parse(text: str, *, request: bool) -> Url:
    try:
        return _parts(text, request=request)
    except AddressError as error:
        raise AddressError(f"parse {quoted(text)}: {error}") from None


def _parts(text: str, *, request: bool) -> Url:
    if _CONTROL.search(text):
        raise AddressError("net/url: invalid control character in URL")
    if text == "" and request:
        raise AddressError("empty url")
    if text == "*":
        return Url(raw_path="*")
    if text.startswith(":"):
        raise AddressError("missing protocol scheme")
    found = _SCHEME.match(text)
    scheme = found[1].lower() if found else ""
    rest, _, query = text[found.end() if found else 0 :].partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme=scheme, opaque=rest, query=query)
        if request:
            raise AddressError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise AddressError("first path segment in URL cannot contain colon")
    user = host = ""
    with_host = scheme or (not request and not rest.startswith("///"))
    if with_host and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = _authority(scheme, authority)
    unescaped(rest)
    return Url(scheme=scheme, host=host, raw_path=rest, query=query, user=user)


def _authority(scheme: str, authority: str) -> tuple[str, str]:
    user, at, host = authority.rpartition("@")
    host = _host(scheme, host)
    if at:
        if not _IN_USER.issuperset(user):
            raise AddressError("net/url: invalid userinfo")
        unescaped(user)
    return user, host


def _host(scheme: str, host: str) -> str:
    opening = host.rfind("[")
    if opening > 0:
        raise AddressError("invalid IP-literal")
    if opening == 0:
        return _bracketed(host)
    colon = host.find(":") if scheme in ("http", "https") else host.rfind(":")
    if colon >= 0:
        _check_port(host[colon:])
    return _host_text(host)


def _check_port(text: str) -> None:
    if not _PORT.fullmatch(text):
        raise AddressError(f"invalid port {quoted(text)} after host")


def _bracketed(host: str) -> str:
    closing = host.rfind("]")
    if closing < 0:
        raise AddressError("missing ']' in host")
    _check_port(host[closing + 1 :])
    inner = _host_text(host[1:closing])
    address, _, zone = inner.partition("%")
    try:
        if ip(address).version == 4:
            raise AddressError("invalid IP-literal")
    except AddressError as error:
        if str(error) == "invalid IP-literal":
            raise
        raise AddressError(f"invalid host: {error}") from None
    return f"[{address}{'%' + zone if zone else ''}]{host[closing + 1 :]}"


def _host_text(text: str) -> str:
    for letter in text:
        if letter.isascii() and letter != "%" and letter not in _IN_HOST:
            raise AddressError(f"invalid character {quoted(letter)} in host name")
    for found in _ESCAPE.finditer(text):
        if found[1] is None or (int(found[1], 16) < 0x80 and found[1] != "25"):
            shown = text[found.start() : found.start() + 3]
            raise AddressError(f"invalid URL escape {quoted(shown)}")
    return unescaped(text)


def ip(text: str) -> IP:
    """An IP address without a zone and without leading zeros (``netip.ParseAddr``)."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        raise AddressError(why_not_address(text)) from None


def loose_ip(text: str) -> IP:
    """An IP address whose decimal parts may begin with zeros."""
    head, dot, tail = text.rpartition(":")
    parts = (
        [
            str(int(part)) if _DECIMAL.fullmatch(part) else part
            for part in tail.split(".")
        ]
        if "." in tail
        else [tail]
    )
    address = ip(head + dot + ".".join(parts))
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id:
        raise AddressError(f"invalid IP address: {text}")
    return address


def cidr(text: str, *, loose: bool = False) -> Network:
    """An address with the length of its prefix."""
    address, slash, bits = text.partition("/")
    found = loose_ip(address) if loose else ip(address)
    if not slash or not _DECIMAL.fullmatch(bits) or int(bits) > found.max_prefixlen:
        raise AddressError(f"invalid CIDR address: {text}")
    return ipaddress.ip_interface(f"{found}/{int(bits)}")
