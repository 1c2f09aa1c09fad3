"""Metering: what a call costs when it runs, by what it was given and what came out.

Every call costs one unless it is named here. The prices are those of cel-go and of
Kubernetes, which decide when a rule is stopped; sizes are counted as they count them,
in code points here and in bytes there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from trimtab.embedded.expressions.amounts import Format
from trimtab.embedded.expressions.networks import Cidr, Ip
from trimtab.embedded.expressions.nodes import Call, Items, Literal
from trimtab.embedded.expressions.values import Optional, Record

Price = Callable[[tuple[Any, ...], Any], int]
"""From the arguments and the result."""

LIST: Final = 10
MAP: Final = 30
STRUCT: Final = 40
CHECK: Final = 350_000
_TEXT: Final = 0.1
_PATTERN: Final = 0.25
_FORMATS: Final = {
    **dict.fromkeys(("dns1123Label", "dns1035Label"), 30),
    **dict.fromkeys(("dns1123LabelPrefix", "dns1035LabelPrefix"), 30),
    **dict.fromkeys(("dns1123Subdomain", "dns1123SubdomainPrefix"), 60),
    "qualifiedName": 60,
    "labelValue": 40,
    "uri": 1103,
    "byte": 84,
    **dict.fromkeys(("uuid", "date", "datetime"), 72),
}
"""How long the longest pattern of a format is taken to be."""


def size_of(value: Any) -> int:
    """The size of a value as costs count it: one, if it has none."""
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    if isinstance(value, Record):
        return len(value.raw)
    if isinstance(value, Ip):
        return value.address.max_prefixlen // 8
    if isinstance(value, Cidr):
        return math.ceil(value.network.network.prefixlen / 8)
    if isinstance(value, Optional) and value.items:
        return size_of(value.items[0])
    return 1


def _over(size: int, factor: float = _TEXT) -> int:
    return math.ceil(size * factor)


def traversal(value: Any) -> int:
    """What going through all of a value costs."""
    if isinstance(value, str):
        return int(len(value.encode()) * _TEXT)
    if isinstance(value, bytes):
        return int(len(value) * _TEXT)
    if isinstance(value, list):
        return sum(map(traversal, value))
    if isinstance(value, Record):
        value = value.raw
    if isinstance(value, dict):
        return sum(traversal(key) + traversal(item) for key, item in value.items())
    return 1


def _search(text: int, pattern: int) -> int:
    return _over(1 + text) * _over(pattern, _PATTERN)


def _first(args: tuple[Any, ...], result: Any) -> int:
    return _over(size_of(args[0]))


def _twice(args: tuple[Any, ...], result: Any) -> int:
    return math.ceil(size_of(args[0]) * 2 * _TEXT)


def _found(args: tuple[Any, ...], result: Any) -> int:
    return _search(size_of(args[0]), size_of(args[1]))


def _shorter(args: tuple[Any, ...], result: Any) -> int:
    return _over(min(size_of(args[0]), size_of(args[1])))


def _added(args: tuple[Any, ...], result: Any) -> int:
    return _over(size_of(args[0]) + size_of(args[1]))


def _contained(args: tuple[Any, ...], result: Any) -> int:
    return _over(size_of(args[0])) * _over(size_of(args[1]))


def _within(args: tuple[Any, ...], result: Any) -> int:
    size = size_of(args[0])
    price = _over(size + size)
    if isinstance(args[1], str):
        price += _over(len(args[1]))
    return price


def _within_cidr(args: tuple[Any, ...], result: Any) -> int:
    return _within(args, result) + _over(size_of(args[0])) + 1


def _validated(args: tuple[Any, ...], result: Any) -> int:
    form = args[0]
    assert isinstance(form, Format), form
    return _search(size_of(args[1]), _FORMATS[form.name])


def _selector(args: tuple[Any, ...], result: Any) -> int:
    size = size_of(args[1])
    return LIST + _over(size) + math.ceil(size * 0.5) * (LIST + STRUCT)


def _listed(factor: float, size: int) -> int:
    return int(size * factor) + 1 + LIST


def _compared(items: list[Any]) -> int:
    """Each item with each other."""
    texts = bool(items) and isinstance(items[0], (str, bytes))
    return _listed(2 + (_TEXT if texts else 0), len(items) ** 2)


def _flattened(args: tuple[Any, ...], result: Any) -> int:
    return _listed(args[1] if len(args) > 1 else 1, size_of(args[0]))


def _sets(factor: int) -> Price:
    return lambda args, result: 1 + size_of(args[0]) * size_of(args[1]) * factor


_ALWAYS: Final[dict[str, Price]] = {
    "check": lambda args, result: CHECK,
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"),
        lambda args, result: traversal(args[0]),
    ),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _first),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _twice),
    "jsonpatch.escapeKey": _first,
    "join": lambda args, result: math.ceil(size_of(result) * 2 * _TEXT),
    **dict.fromkeys(("find", "findAll"), _found),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity"), _first),
    **dict.fromkeys(("semver", "isSemver"), _first),
    "ip": lambda args, result: _first(args, result) if type(args[0]) is str else 1,
    "containsIP": _within,
    "containsCIDR": _within_cidr,
    "validate": _validated,
    **dict.fromkeys(
        ("slice", "lists.range", "reverse"),
        lambda args, result: _listed(1, size_of(result)),
    ),
    "flatten": _flattened,
    "distinct": lambda args, result: _compared(args[0]),
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
}
_KNOWN: Final[dict[str, Price]] = {
    **dict.fromkeys(("startsWith", "endsWith", "format", "strings.quote"), _first),
    "matches": _found,
    "contains": _contained,
    "sort": lambda args, result: _compared(args[0]),
    "@sortByAssociatedKeys": lambda args, result: _compared(args[1]),
}
"""Of functions that cost one where it is not known which of several they are."""
_SCALARS: Final = frozenset("bool int uint double duration timestamp null type".split())


def price_of(call: Call) -> Price | None:
    """What a call of a function costs; None if it is one."""
    name = call.function
    price = _ALWAYS.get(name)
    if price is not None or len(call.overloads) != 1:
        return price
    if name == "matches" and call.target is None:
        return None
    taken = call.overloads[0].args
    converted = {"bytes": "string", "string": "bytes"}.get(name)
    if converted is not None:
        return _first if taken[0].kind == converted else None
    return _KNOWN.get(name)


def operator_price(call: Call) -> Price | None:
    """What an operator with two sides costs; None if it is one."""
    name, (one, other) = call.function, call.args
    if name in ("_==_", "_!=_"):
        opaque = one.type.kind == "opaque" and one.type.name != "optional_type"
        plain = {one.type.kind, other.type.kind} & _SCALARS
        return None if plain or (opaque and name == "_==_") else _shorter
    if len(call.overloads) != 1:
        return None
    texts = one.type.kind in ("string", "bytes")
    if name == "@in" and call.overloads[0].args[1].kind == "list":
        return lambda args, result: size_of(args[1])
    if name == "_+_":
        return _added if texts else None
    return _shorter if texts and name in ("_<_", "_<=_", "_>_", "_>=_") else None


def is_membership(call: Call) -> bool:
    """Whether it is asked for one of some constants, which costs nothing."""
    items = call.args[1]
    return (
        call.function == "@in"
        and len(call.overloads) == 1
        and isinstance(items, Items)
        and all(
            isinstance(each, Literal) and not isinstance(each.value, bytes)
            for each in items.items
        )
    )
