"""Prices: what calling a function costs beyond one, for those that read long values."""

from __future__ import annotations

import math
from typing import Final

from trimtab.embedded.expressions.costs import LARGEST, Estimator, Price, Size
from trimtab.embedded.expressions.nodes import Call, Literal, Node
from trimtab.embedded.expressions.signatures import Signature

_TRAVERSAL: Final = 0.1
_PATTERN: Final = 0.25
_ONE: Final = Size(1, 1)
_ADDRESS: Final = Size(4, 16)
_CHEAP: Final = frozenset(
    {"net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"}
)
Priced = tuple[int, Size | None] | None


def _capped(value: int) -> int:
    return min(value, LARGEST)


def _constant(node: Node, otherwise: int) -> int:
    known = isinstance(node, Literal) and type(node.value) is int
    return node.value if known else otherwise  # type: ignore[attr-defined]


def _compared(costs: Estimator, node: Call, signature: Signature) -> Priced:
    """Equality, and the order of texts: as long as the shorter of the two."""
    texts = signature.args[0].kind in ("string", "bytes")
    if node.function not in ("_==_", "_!=_") and not texts:
        return None
    names = {each.type.name for each in node.args}
    if node.function == "_==_" and len(names) == 1 and names <= _CHEAP:
        return 1, None
    if node.function == "_==_" and names == {"kubernetes.NamedFormat"}:
        return Size(1, 64).cost(_TRAVERSAL), None
    shorter = min(costs.size(each).most for each in node.args)
    return Size(0, shorter).cost(_TRAVERSAL), None


def _added(costs: Estimator, node: Call, signature: Signature) -> Priced:
    kind = signature.args[0].kind
    if kind not in ("string", "bytes", "list"):
        return None
    size = costs.added(node)
    return (1 if kind == "list" else size.cost(_TRAVERSAL)), size


def _in(costs: Estimator, node: Call, signature: Signature) -> Priced:
    if signature.args[1].kind != "list":
        return None
    return costs.size(node.args[1]).most, None


def _affix(costs: Estimator, node: Call, signature: Signature) -> Priced:
    return costs.size(node.args[0]).cost(_TRAVERSAL), None


def _contains(costs: Estimator, node: Call, signature: Signature) -> Priced:
    assert node.target is not None
    text = costs.size(node.target).cost(_TRAVERSAL)
    return _capped(text * costs.size(node.args[0]).cost(_TRAVERSAL)), None


def _searched(costs: Estimator, text: Node, pattern: Node) -> int:
    length = costs.size(text).plus(_ONE).cost(_TRAVERSAL)
    return _capped(length * costs.size(pattern).cost(_PATTERN))


def _matches(costs: Estimator, node: Call, signature: Signature) -> Priced:
    if node.target is None:
        return None
    return _searched(costs, node.target, node.args[0]), None


def _found(costs: Estimator, node: Call, signature: Signature) -> Priced:
    assert node.target is not None
    size = Size(0, costs.size(node.target).most)
    return _searched(costs, node.target, node.args[0]), size


def _over_items(costs: Estimator, node: Call, signature: Signature) -> Priced:
    """Once over a list, or over a text."""
    assert node.target is not None
    size = costs.size(node.target)
    item = costs.item_size(node.target)
    if item is None:
        return size.cost(_TRAVERSAL), None
    each = 1
    if item[0].kind in ("string", "bytes"):
        each = _capped(1 + item[1].cost(_TRAVERSAL))
    return _capped(size.most * each), None


def _same_length(costs: Estimator, node: Call, signature: Signature) -> Priced:
    size = costs.size(node.operands[0])
    return size.cost(_TRAVERSAL), size


def _parsed(costs: Estimator, node: Call, signature: Signature) -> Priced:
    return costs.size(node.args[0]).cost(_TRAVERSAL), None


def _ip(costs: Estimator, node: Call, signature: Signature) -> Priced:
    return (1, None) if node.target is not None else _parsed(costs, node, signature)


def _canonical(costs: Estimator, node: Call, signature: Signature) -> Priced:
    return costs.size(node.args[0]).cost(2 * _TRAVERSAL), None


def _within(costs: Estimator, node: Call, signature: Signature) -> Priced:
    price = _ADDRESS.plus(_ADDRESS).cost(_TRAVERSAL)
    if node.function == "containsCIDR":
        price += _ADDRESS.cost(_TRAVERSAL) + 1
    if signature.args[1].kind == "string":
        price += costs.size(node.args[0]).cost(_TRAVERSAL)
    return _capped(price), None


def _validated(costs: Estimator, node: Call, signature: Signature) -> Priced:
    length = costs.size(node.args[0]).cost(_TRAVERSAL)
    return Size(0, length).cost(128 * _PATTERN), None


def _nominal(costs: Estimator, node: Call, signature: Signature) -> Priced:
    return 1, None


def _split(costs: Estimator, node: Call, signature: Signature) -> Priced:
    assert node.target is not None
    size = costs.size(node.target)
    most = _constant(node.args[1], size.most) if len(node.args) > 1 else size.most
    most = most if most >= 0 else LARGEST + 1 + most
    return size.cost(2 * _TRAVERSAL), Size(0, most)


def _joined(costs: Estimator, node: Call, signature: Signature) -> Priced:
    assert node.target is not None
    size = Size(0, 0)
    items = costs.size(node.target)
    item = costs.item_size(node.target)
    if item is not None:
        size = items.times(item[1])
    if node.args:
        marks = Size(max(0, items.least - 1), max(0, items.most - 1))
        size = size.plus(costs.size(node.args[0]).times(marks))
    return size.cost(_TRAVERSAL), size


def _replaced(costs: Estimator, node: Call, signature: Signature) -> Priced:
    assert node.target is not None
    size = costs.size(node.target)
    old, new = costs.size(node.args[0]), costs.size(node.args[1])
    most = least = kept_most = kept_least = 0
    if old.least == 0:
        most, kept_most = _capped(size.most + 1), size.most
    elif new.most <= old.least:
        kept_most = size.most
    else:
        most = math.ceil(size.most / old.least)
    if old.most == 0:
        least, kept_least = _capped(size.least + 1), size.least
    elif old.most <= new.least:
        kept_least = size.least
    else:
        least = math.ceil(size.least / old.most)
    result = Size(least, most).times(new).plus(Size(kept_least, kept_most))
    return size.cost(2 * _TRAVERSAL), result


def _formatted(costs: Estimator, node: Call, signature: Signature) -> Priced:
    assert node.target is not None
    return costs.size(node.target).cost(_TRAVERSAL), None


def _encoded(costs: Estimator, node: Call, signature: Signature) -> Priced:
    """``bytes(text)``, ``string(bytes)`` and quoting; other conversions cost one."""
    size, kind = costs.size(node.args[0]), signature.args[0].kind
    if node.function == "bytes" and kind == "string":
        return size.cost(_TRAVERSAL), Size(size.least, _capped(size.most * 4))
    if node.function == "string" and kind == "bytes":
        return size.cost(_TRAVERSAL), Size(size.least // 4, size.most)
    if node.function == "strings.quote":
        longest = _capped(size.most * 2 + 2)
        return size.cost(_TRAVERSAL), Size(size.least + 2, longest)
    return None


def _listed(size: Size, factor: float) -> Priced:
    return _capped(size.cost(factor) + 1 + 10), size


def _sliced(costs: Estimator, node: Call, signature: Signature) -> Priced:
    assert node.target is not None
    end = _constant(node.args[1], costs.size(node.target).most)
    length = end - _constant(node.args[0], 0)
    if length < 0:  # which is a very large number without a sign
        length += LARGEST + 1
    return _listed(Size(length, length), 1)


def _ranged(costs: Estimator, node: Call, signature: Signature) -> Priced:
    length = _constant(node.args[0], LARGEST)
    return _listed(Size(length, length), 1)


def _reversed(costs: Estimator, node: Call, signature: Signature) -> Priced:
    return _listed(costs.size(node.operands[0]), 1)


def _flattened(costs: Estimator, node: Call, signature: Signature) -> Priced:
    depth = _constant(node.args[0], LARGEST) if node.args else 1
    return _listed(costs.size(node.operands[0]), depth)


def _distinct(costs: Estimator, node: Call, signature: Signature) -> Priced:
    size = costs.size(node.operands[0])
    return _listed(size.times(size), 2)


def _sorted(costs: Estimator, node: Call, signature: Signature) -> Priced:
    keys = node.operands[-1]
    size = costs.size(keys)
    texts = signature.args[-1].params[0].kind in ("string", "bytes")
    return _listed(size.times(size), 2 + (_TRAVERSAL if texts else 0))


def _sets(costs: Estimator, node: Call, signature: Signature) -> Priced:
    product = costs.size(node.args[0]).times(costs.size(node.args[1]))
    factor = 2 if node.function == "sets.equivalent" else 1
    return _capped(product.cost(factor) + 1), None


PRICES: Final[dict[str, Price]] = {
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _compared),
    "_+_": _added,
    "@in": _in,
    **dict.fromkeys(("startsWith", "endsWith"), _affix),
    "contains": _contains,
    "matches": _matches,
    **dict.fromkeys(("find", "findAll"), _found),
    **dict.fromkeys(("isSorted", "sum", "max", "min"), _over_items),
    **dict.fromkeys(("indexOf", "lastIndexOf"), _over_items),
    **dict.fromkeys(
        ("url", "lowerAscii", "upperAscii", "substring", "trim"), _same_length
    ),
    "replace": _replaced,
    "split": _split,
    "join": _joined,
    "format": _formatted,
    **dict.fromkeys(("bytes", "string", "strings.quote"), _encoded),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity"), _parsed),
    **dict.fromkeys(("semver", "isSemver"), _parsed),
    "ip": _ip,
    "ip.isCanonical": _canonical,
    **dict.fromkeys(("containsIP", "containsCIDR"), _within),
    "validate": _validated,
    "slice": _sliced,
    "lists.range": _ranged,
    "reverse": _reversed,
    "flatten": _flattened,
    "distinct": _distinct,
    **dict.fromkeys(("sort", "@sortByAssociatedKeys"), _sorted),
    **dict.fromkeys(("sets.contains", "sets.equivalent", "sets.intersects"), _sets),
}
"""By function; a price of None means that the call costs one."""
