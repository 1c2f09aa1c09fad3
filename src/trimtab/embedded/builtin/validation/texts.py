"""Texts: what may stand in a field that holds one, in the words of the real server.

Each function gives the problems of a value, and nothing for a good one. Values repeat
from object to object, so the answers are kept.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Final

from trimtab.api import names
from trimtab.embedded.builtin.remembered import remembered

Problems = tuple[str, ...]
NameCheck = Callable[[str], Problems]

NONE: Final[Problems] = ()
IMMUTABLE: Final = "field is immutable"
NEGATIVE: Final = "must be greater than or equal to 0"
NOT_POSITIVE: Final = "must be greater than zero"
FILE_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"


def _problems(check: names.Check, value: str) -> Problems:
    try:
        check(value)
    except names.InvalidName as error:
        return error.problems
    return NONE


@remembered
def label(value: str) -> Problems:
    """A DNS-1123 label."""
    return _problems(names.check_label, value)


@remembered
def subdomain(value: str) -> Problems:
    """A DNS-1123 subdomain."""
    return _problems(names.check_subdomain, value)


@remembered
def label_1035(value: str) -> Problems:
    return _problems(names.check_label_1035, value)


@remembered
def key(value: str) -> Problems:
    """A qualified name, which is what the keys of labels are."""
    return _problems(names.check_label_key, value)


@remembered
def label_value(value: str) -> Problems:
    return _problems(names.check_label_value, value)


def prefix_of(check: NameCheck) -> NameCheck:
    """The check of a name that something will be appended to: it may end with ``-``."""

    def checked(value: str) -> Problems:
        if len(value) > 1 and value.endswith("-"):
            value = value[:-2] + "a"
        return check(value)

    return checked


@remembered
def path_segment(value: str) -> Problems:
    """A name that can stand in a URL: the least that any name must be."""
    if value in (".", ".."):
        return (f"may not be '{value}'",)
    return tuple(f"may not contain '{each}'" for each in "/%" if each in value)


@remembered
def path_segment_prefix(value: str) -> Problems:
    return tuple(f"may not contain '{each}'" for each in "/%" if each in value)


def _wrong(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{each}', " for each in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


_HTTP_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
HTTP_PATH: Final = f"Invalid path (regex used for validation is '{_HTTP_PATH}')"
is_http_path: Final = re.compile(_HTTP_PATH).fullmatch


_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_UNDERSCORED: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_UNDERSCORED: Final = rf"{_UNDERSCORED}(\.{_UNDERSCORED})*"
_WILDCARD: Final = rf"\*\.{_SUBDOMAIN}"
_CONFIG_KEY: Final = "[-._a-zA-Z0-9]+"
_HEADER: Final = "[-A-Za-z0-9]+"
_PERCENT: Final = "[0-9]+%"

_is_underscored = re.compile(_SUBDOMAIN_UNDERSCORED).fullmatch
_is_wildcard = re.compile(_WILDCARD).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_header = re.compile(_HEADER).fullmatch
_is_percent = re.compile(_PERCENT, re.ASCII).fullmatch
_is_port_name = re.compile("[-a-z0-9]+").fullmatch
_has_letter = re.compile("[a-z]").search
_is_printable = re.compile("[ -<>-~]+").fullmatch


def _longer(value: str, limit: int) -> list[str]:
    if len(value.encode("utf-8", "surrogatepass")) <= limit:
        return []
    return [f"must be no more than {limit} characters"]


@remembered
def underscored_subdomain(value: str) -> Problems:
    """A DNS subdomain where ``_`` is taken too, as in search lists."""
    problems = _longer(value, 253)
    if not _is_underscored(value):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
            "characters, '_', '-' or '.', and must start and end with an alphanumeric "
            "character"
        )
        problems.append(_wrong(rule, _SUBDOMAIN_UNDERSCORED, "example.com"))
    return tuple(problems)


@remembered
def wildcard_subdomain(value: str) -> Problems:
    problems = _longer(value, 253)
    if not _is_wildcard(value):
        rule = (
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid "
            "DNS subdomain, which must consist of lower case alphanumeric characters, "
            "'-' or '.' and end with an alphanumeric character"
        )
        problems.append(_wrong(rule, _WILDCARD, "*.example.com"))
    return tuple(problems)


@remembered
def config_key(value: str) -> Problems:
    """The key of a ConfigMap or a Secret."""
    problems = _longer(value, 253)
    if not _is_config_key(value):
        rule = (
            "a valid config key must consist of alphanumeric characters, '-', '_' or "
            "'.'"
        )
        examples = ("key.name", "KEY_NAME", "key-name")
        problems.append(_wrong(rule, _CONFIG_KEY, *examples))
    if value in (".", ".."):
        problems.append(f"must not be '{value}'")
    elif value.startswith(".."):
        problems.append("must not start with '..'")
    return tuple(problems)


@remembered
def port_name(value: str) -> Problems:
    problems = _longer(value, 15)
    if not _is_port_name(value):
        problems.append(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
        )
    if not _has_letter(value):
        problems.append("must contain at least one letter (a-z)")
    if "--" in value:
        problems.append("must not contain consecutive hyphens")
    if value[:1] == "-" or value[-1:] == "-":
        problems.append("must not begin or end with a hyphen")
    return tuple(problems)


def between(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


PORT_RANGE: Final = between(1, 65535)
ID_RANGE: Final = between(0, 2**31 - 1)


@remembered
def environment_name(value: str) -> Problems:
    if not value:
        return ("environment variable name must be non-empty",)
    if _is_printable(value):
        return NONE
    rule = (
        "a valid environment variable name must consist only of printable ASCII "
        "characters other than '='"
    )
    return (rule,)


@remembered
def header_name(value: str) -> Problems:
    if _is_header(value):
        return NONE
    rule = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return (_wrong(rule, _HEADER, "X-Header-Name"),)


@remembered
def percent(value: str) -> Problems:
    if _is_percent(value):
        return NONE
    rule = "a valid percent string must be a numeric string followed by an ending '%'"
    return (_wrong(rule, _PERCENT, "1%", "93%"),)


_BAD_IP: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
BAD_CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_leading_zeros = re.compile(r"(?<![0-9a-fA-F:])0+(?=\d)", re.ASCII)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@remembered
def parse_ip(value: str) -> Address | None:
    """An address, forgiving about leading zeros; None if it is not one."""
    if "%" in value:
        return None
    if "." in value:
        value = _leading_zeros.sub("", value)
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        return None


@remembered
def ip(value: str) -> Problems:
    """An address in a field that is older than the rule that it be canonical."""
    address = parse_ip(value)
    if address is None:
        return (_BAD_IP,)
    if "." in value and _leading_zeros.sub("", value) != value:
        return ("must not have leading 0s",)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return ("must not be an IPv4-mapped IPv6 address",)
    return NONE


@remembered
def cidr(value: str) -> Problems:
    """A range of addresses in a field that is older than the strict rule."""
    address, slash, bits = value.partition("/")
    parsed = parse_ip(address)
    if parsed is None or not slash or not bits.isdecimal() or not bits.isascii():
        return (BAD_CIDR,)
    if int(bits) > parsed.max_prefixlen:
        return (BAD_CIDR,)
    zeros = "." in address and _leading_zeros.sub("", address) != address
    if zeros or (len(bits) > 1 and bits[0] == "0"):
        return ("must not have leading 0s in IP or prefix length",)
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped:
        return ("must not have an IPv4-mapped IPv6 address",)
    if ipaddress.ip_interface(f"{parsed}/{bits}").network.network_address != parsed:
        return ("must not have bits set beyond the prefix length",)
    return NONE


@remembered
def endpoint_ip(value: str) -> Problems:
    """An address that traffic can be sent to."""
    address = parse_ip(value)
    if address is None:
        return ("must be a valid IP address",)
    problems = []
    if address.is_unspecified:
        problems.append(f"may not be unspecified ({value})")
    if address.is_loopback:
        problems.append("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        problems.append(
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
        )
    if _is_local_multicast(address):
        problems.append(
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        )
    return tuple(problems)


def _is_local_multicast(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in ipaddress.IPv4Network("224.0.0.0/24")
    return address in ipaddress.IPv6Network("ff02::/16")


def steps_back(path: str) -> bool:
    """Whether a path has an element ``..``."""
    return ".." in path and ".." in path.split("/")


def descending(path: str) -> Problems:
    """A relative path that stays below where it starts."""
    if not path or (path[0] not in "/." and ".." not in path):
        return NONE
    problems = ["must be a relative path"] if path.startswith("/") else []
    if steps_back(path):
        problems.append("must not contain '..'")
    return tuple(problems)


def local_path(path: str) -> Problems:
    """A relative path whose name is not reserved either."""
    problems = descending(path)
    if path.startswith("..") and not path.startswith("../"):
        return (*problems, "must not start with '..'")
    return problems
