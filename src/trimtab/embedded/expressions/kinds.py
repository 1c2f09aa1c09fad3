"""Kinds: the types that expressions have.

A type is a value: two of the same form are the same type. ``param`` types stand for a
type that is not known yet; checking finds out what they are.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec


class Type(msgspec.Struct, frozen=True, gc=False):
    """One type, such as ``list(string)``."""

    kind: str
    name: str = ""
    params: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if self.kind == "error":
            return "!error!"
        if self.kind in ("struct", "param"):
            return self.name
        name = self.name or self.kind
        if not self.params:
            return name
        return f"{name}({', '.join(map(str, self.params))})"


BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
NULL: Final = Type("null")
DYN: Final = Type("dyn")
ERROR: Final = Type("error")
DURATION: Final = Type("duration")
TIMESTAMP: Final = Type("timestamp")
TYPE: Final = Type("type")

SIMPLE: Final = {
    each.kind: each
    for each in (
        *(BOOL, INT, UINT, DOUBLE, STRING, BYTES),
        *(NULL, DYN, DURATION, TIMESTAMP, TYPE),
    )
}


def list_of(item: Type) -> Type:
    return Type("list", params=(item,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", params=(key, value))


def optional_of(value: Type) -> Type:
    return Type("opaque", "optional_type", (value,))


def type_of(inner: Type) -> Type:
    return Type("type", params=(inner,))


def opaque(name: str) -> Type:
    return Type("opaque", name)


def param(name: str) -> Type:
    return Type("param", name)


def struct(name: str) -> Type:
    return Type("struct", name)


OPAQUE: Final = {
    "url": opaque("kubernetes.URL"),
    "ip": opaque("net.IP"),
    "cidr": opaque("net.CIDR"),
    "quantity": opaque("kubernetes.Quantity"),
    "semver": opaque("kubernetes.Semver"),
    "format": opaque("kubernetes.NamedFormat"),
    "authorizer": opaque("kubernetes.authorization.Authorizer"),
    "pathcheck": opaque("kubernetes.authorization.PathCheck"),
    "groupcheck": opaque("kubernetes.authorization.GroupCheck"),
    "resourcecheck": opaque("kubernetes.authorization.ResourceCheck"),
    "decision": opaque("kubernetes.authorization.Decision"),
}

_TOKEN = re.compile(r"[A-Za-z]+|[(),]")


def read_type(text: str) -> Type:
    """A type from the notation of declarations: ``list(A)``, ``optional(string)``."""
    tokens = _TOKEN.findall(text)
    found = _read(tokens)
    assert not tokens, text
    return found


def _read(tokens: list[str]) -> Type:
    name = tokens.pop(0)
    params = []
    if tokens and tokens[0] == "(":
        tokens.pop(0)
        while tokens[0] != ")":
            if tokens[0] == ",":
                tokens.pop(0)
            params.append(_read(tokens))
        tokens.pop(0)
    if name == "optional":
        return optional_of(params[0])
    if name in ("list", "map") or (name == "type" and params):
        return Type(name, params=tuple(params))
    if name in OPAQUE:
        return OPAQUE[name]
    return SIMPLE.get(name) or param(name)


def is_optional(type: Type) -> bool:
    return type.kind == "opaque" and type.name == "optional_type"


def unwrapped(type: Type) -> tuple[Type, bool]:
    """What an optional holds, and whether it was one."""
    return (type.params[0], True) if is_optional(type) else (type, False)
