"""Costs: what an expression may cost at most, before anybody evaluates it.

The estimate is cel-go's with Kubernetes' additions, because it decides which rules a
server accepts. How large a value may be comes from the bounds in the schema; where
there are none, a request's size is the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from trimtab.embedded.expressions.kinds import Type, is_optional
from trimtab.embedded.expressions.nodes import (
    Call,
    Entries,
    Fold,
    Ident,
    Items,
    Literal,
    Node,
    Select,
)
from trimtab.embedded.expressions.signatures import Signature

LARGEST: Final = 2**64 - 1
_TRAVERSAL: Final = 0.1
_PATTERN: Final = 0.25
_LIST: Final = 10
_MAP: Final = 30
_FORMAT_PATTERN: Final = 128 * _PATTERN


class Sized(Protocol):
    """A declaration, as far as sizes go."""

    @property
    def largest(self) -> int: ...
    @property
    def fields(self) -> Mapping[str, Any]: ...
    @property
    def element(self) -> Any: ...


class Size(msgspec.Struct, frozen=True, gc=False):
    """How many characters, items or entries: at least, at most."""

    least: int
    most: int

    def union(self, other: Size) -> Size:
        return Size(min(self.least, other.least), max(self.most, other.most))

    def plus(self, other: Size) -> Size:
        return Size(_capped(self.least + other.least), _capped(self.most + other.most))

    def times(self, other: Size) -> Size:
        return Size(_capped(self.least * other.least), _capped(self.most * other.most))

    def cost(self, factor: float) -> int:
        """The most that going over it costs."""
        return _scaled(self.most, factor)


_UNKNOWN: Final = Size(0, LARGEST)
_ONE: Final = Size(1, 1)


class Inside(msgspec.Struct, frozen=True, gc=False):
    """The sizes of what a list or a map contains."""

    kind: str
    key: Size
    value: Size


def _capped(value: int) -> int:
    return min(value, LARGEST)


def _scaled(value: int, factor: float) -> int:
    return _capped(math.ceil(float(value) * factor))


class _Local(msgspec.Struct, frozen=True):
    """What is known of a variable of a loop."""

    path: tuple[str, ...]
    size: Size | None = None
    inside: Inside | None = None


def estimate(tree: Node, declaration: Sized) -> int:
    """The most that evaluating an expression over a declared value can cost."""
    try:
        return _Estimator(declaration).cost(tree)
    except RecursionError:
        return LARGEST  # so deep that nobody can tell


class _Estimator:
    def __init__(self, declaration: Sized) -> None:
        self._root = declaration
        self._paths: dict[int, tuple[str, ...]] = {}
        self._sizes: dict[int, Size] = {}
        self._insides: dict[int, Inside] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> int:
        """The most that a node costs."""
        if isinstance(node, Literal):
            return 0
        if isinstance(node, Ident):
            local = self._local(node.name)
            self._paths[id(node)] = local.path if local is not None else (node.name,)
            return 1
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Items):
            return self._items(node)
        if isinstance(node, Entries):
            return self._entries(node)
        return self._fold(node) if isinstance(node, Fold) else 0

    def _local(self, name: str) -> _Local | None:
        held = self._locals.get(name)
        return held[-1] if held else None

    def _path(self, node: Node) -> tuple[str, ...]:
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.path
        return self._paths.get(id(node), ())

    def _select(self, node: Select) -> int:
        total = self.cost(node.operand)
        if node.test:
            return total
        if node.operand.type.kind in ("map", "struct", "param"):
            total += 1
        self._paths[id(node)] = (*self._path(node.operand), node.field)
        return _capped(total)

    def _items(self, node: Items) -> int:
        total = sum(map(self.cost, node.items))
        held = Size(LARGEST if node.items else 0, 0)
        for item in node.items:
            held = held.union(self.size(item))
        self._insides[id(node)] = Inside("list", _ONE, held)
        return _capped(total + _LIST)

    def _entries(self, node: Entries) -> int:
        total = 0
        least = LARGEST if node.entries else 0
        key = value = Size(least, 0)
        for entry in node.entries:
            total += self.cost(entry.key) + self.cost(entry.value)
            key = key.union(self.size(entry.key))
            value = value.union(self.size(entry.value))
        self._insides[id(node)] = Inside("map", key, value)
        return _capped(total + _MAP)

    def size(self, node: Node) -> Size:
        """How large the value of a node may be."""
        return self._known(node) or _UNKNOWN

    def _known(self, node: Node) -> Size | None:
        if id(node) in self._sizes:
            return self._sizes[id(node)]
        written = _written(node)
        if written is not None:
            return written
        declared = self._declared(self._path(node))
        if declared is not None:
            self._sizes[id(node)] = declared
            return declared
        if _is_scalar(node.type):
            return _ONE
        local = self._local(node.name) if isinstance(node, Ident) else None
        return local.size if local is not None else None

    def _declared(self, path: tuple[str, ...]) -> Size | None:
        """The bound that the schema sets for what stands at a path."""
        if not path:
            return None
        place: Any = self._root
        for step in path[1:]:
            if step in ("@items", "@values"):
                place = place.element
            elif step in ("@keys", "@indices"):
                return None if place.element is None else Size(0, 0)
            else:
                place = place.fields.get(step)
            if place is None:
                return None
        return Size(0, place.largest)

    def inside(self, node: Node) -> Inside | None:
        """The sizes of what the value of a node contains, if they are known."""
        if id(node) in self._insides:
            return self._insides[id(node)]
        local = self._local(node.name) if isinstance(node, Ident) else None
        return local.inside if local is not None else None

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _loop_local(self, over: Node, part: str) -> _Local:
        """A variable that goes over the keys or the values of something."""
        inside = self.inside(over)
        kind = inside.kind if inside is not None else over.type.kind
        steps = {"key": "@indices", "value": "@items"}
        if kind != "list":
            steps = {"key": "@keys", "value": "@values"}
        held = None
        if inside is not None:
            held = inside.key if part == "key" else inside.value
        return _Local((*self._path(over), steps[part]), held)

    def _fold(self, node: Fold) -> int:
        total = self.cost(node.range) + self.cost(node.init)
        bound = _Local(self._path(node.init), self._known(node.init))
        bound = msgspec.structs.replace(bound, inside=self.inside(node.init))
        self._push(node.accu, bound)
        if node.is_binding:
            total += self.cost(node.result)
            self._locals[node.accu].pop()
            self._copy(node, node.result)
            return _capped(total)
        names = self._enter(node)
        each = self.cost(node.condition) + self.cost(node.step)
        for name in names:
            self._locals[name].pop()
        total += self.cost(node.result)
        self._locals[node.accu].pop()
        rounds = self.size(node.range)
        total += _capped(rounds.most * each)
        self._fold_size(node, rounds)
        return _capped(total)

    def _enter(self, node: Fold) -> list[str]:
        if node.var2:
            self._push(node.var, self._loop_local(node.range, "key"))
            self._push(node.var2, self._loop_local(node.range, "value"))
            return [node.var, node.var2]
        inside = self.inside(node.range)
        kind = inside.kind if inside is not None else node.range.type.kind
        part = "value" if kind == "list" else "key"
        self._push(node.var, self._loop_local(node.range, part))
        return [node.var]

    def _fold_size(self, node: Fold, rounds: Size) -> None:
        if isinstance(node.init, Literal):
            known = self._known(node.init)
            if known is not None:
                self._sizes[id(node)] = known
        elif isinstance(node.init, (Items, Entries)):
            self._sizes[id(node)] = rounds
            inside = self.inside(node.step)
            if inside is not None:
                self._insides[id(node)] = inside

    def _copy(self, node: Node, source: Node) -> None:
        known, inside = self._known(source), self.inside(source)
        if known is not None:
            self._sizes[id(node)] = known
        if inside is not None:
            self._insides[id(node)] = inside

    def _call(self, node: Call) -> int:
        if node.function == "dyn":
            total = 1 + self.cost(node.args[0])
            self._copy(node, node.args[0])
            return _capped(total)
        costs = [self.cost(arg) for arg in node.args]
        total = self.cost(node.target) if node.target is not None else 0
        if node.function in ("_&&_", "_||_"):
            return _capped(total + sum(costs))
        most, result = 0, None
        for signature in node.overloads or [None]:
            price, size = self._price(node, signature, costs)
            most = max(most, price)
            if size is not None:
                result = size if result is None else result.union(size)
            result = self._indexed(node, signature) or result or self._known(node)
        if result is not None:
            self._sizes[id(node)] = result
        return _capped(total + most)

    def _indexed(self, node: Call, signature: Signature | None) -> Size | None:
        """An item of a list or a map is as large as they are there."""
        if node.function != "_[_]" or signature is None:
            return None
        kind = signature.args[0].kind
        if kind not in ("list", "map"):
            return None
        step = "@items" if kind == "list" else "@values"
        self._paths[id(node)] = (*self._path(node.args[0]), step)
        inside = self.inside(node.args[0])
        return inside.value if inside is not None else None

    def _price(
        self, node: Call, signature: Signature | None, costs: list[int]
    ) -> tuple[int, Size | None]:
        """What a call costs with its arguments, and the size of what comes out."""
        from trimtab.embedded.expressions.prices import PRICES

        spent = sum(costs)
        price = PRICES.get(node.function)
        if price is not None and signature is not None:
            found = price(self, node, signature)
            if found is not None:
                return _capped(found[0] + spent), found[1]
        if node.function == "_?_:_":
            test, yes, no = costs
            self._join(node, node.args[1], node.args[2])
            size = self.size(node.args[1]).union(self.size(node.args[2]))
            return _capped(test + max(yes, no)), size
        return _capped(1 + spent), None

    def _join(self, node: Node, one: Node, other: Node) -> None:
        first, second = self.inside(one), self.inside(other)
        if first is not None and second is not None:
            self._insides[id(node)] = Inside(
                first.kind, first.key.union(second.key), first.value.union(second.value)
            )

    def added(self, node: Call) -> Size:
        """The size of two things put together."""
        self._join(node, node.args[1], node.args[0])
        return self.size(node.args[0]).plus(self.size(node.args[1]))

    def item_size(self, node: Node) -> tuple[Type, Size] | None:
        """The type and the size of the items of a list."""
        if not node.type.params:
            return None
        path = self._path(node)
        if path and path[0] in ("__result__", "@result"):
            path = ()
        declared = self._declared((*path, "@items")) if path else None
        return node.type.params[0], declared or _UNKNOWN


def _written(node: Node) -> Size | None:
    if isinstance(node, Literal):
        if isinstance(node.value, (str, bytes)):
            return Size(len(node.value), len(node.value))
        return _ONE
    if isinstance(node, Items):
        return Size(len(node.items), len(node.items))
    if isinstance(node, Entries):
        return Size(len(node.entries), len(node.entries))
    return None


def _is_scalar(type: Type) -> bool:
    if is_optional(type):
        return _is_scalar(type.params[0])
    return type.kind in ("bool", "double", "duration", "int", "timestamp", "uint")


Price = Callable[[_Estimator, Call, Signature], tuple[int, Size | None] | None]
Estimator = _Estimator
