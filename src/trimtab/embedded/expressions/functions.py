"""Functions: what runs when an expression calls something.

Each is called with values that fit one of its signatures; whoever calls with values
whose types were not known before makes sure of that with :func:`guarded`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from trimtab.embedded.expressions import (
    amounts,
    conversions,
    networks,
    sequences,
    texts,
)
from trimtab.embedded.expressions.kinds import Type
from trimtab.embedded.expressions.signatures import Signature, signatures
from trimtab.embedded.expressions.values import (
    KINDS,
    EvaluationError,
    NoSuchOverload,
    Record,
    entries,
)

Function = Callable[..., Any]


def _by_first(of_text: Function, of_list: Function) -> Function:
    def call(first: Any, *rest: Any) -> Any:
        return (of_list if isinstance(first, list) else of_text)(first, *rest)

    return call


def _insert(held: dict[Any, Any], *added: Any) -> dict[Any, Any]:
    """A map with a key and a value, or with another map's, put in."""
    new = {added[0]: added[1]} if len(added) == 2 else dict(entries(added[0]))
    for key in new:
        if key in held:
            shown = conversions.to_string(key)
            raise EvaluationError(f"insert failed: key {shown} already exists")
    return {**held, **new}


FUNCTIONS: Final[dict[str, Function]] = {
    **texts.FUNCTIONS,
    **sequences.FUNCTIONS,
    **conversions.FUNCTIONS,
    **networks.FUNCTIONS,
    **amounts.FUNCTIONS,
    "indexOf": _by_first(texts.index_of, sequences.index_of),
    "lastIndexOf": _by_first(texts.last_index_of, sequences.last_index_of),
    "cel.@mapInsert": _insert,
}


def guarded(function: str, *, method: bool, count: int) -> Function:
    """The function, for values that may not fit it."""
    run = FUNCTIONS[function]
    fitting = [
        each
        for each in signatures()[function]
        if each.method == method and len(each.args) == count
    ]

    def call(*args: Any) -> Any:
        if not any(_takes(signature, args) for signature in fitting):
            raise NoSuchOverload
        return run(*args)

    return call


def _takes(signature: Signature, args: tuple[Any, ...]) -> bool:
    return all(map(has_kind, args, signature.args))


def has_kind(value: Any, type: Type) -> bool:
    """Whether a value is of a type, as far as the outermost kind goes."""
    if type.kind in ("param", "dyn"):
        return True
    kind = KINDS.get(value.__class__) or getattr(value, "cel_name", "")
    return kind == (type.name if type.kind == "opaque" else type.kind)


def cost_of(function: str) -> Callable[..., int] | None:
    """What a call costs beyond being made: by the length of what it reads."""
    return _COSTS.get(function)


def _length(value: Any) -> int:
    if isinstance(value, Record):
        return len(value.raw)
    return len(value) if hasattr(value, "__len__") else 1


def _traversal(*args: Any) -> int:
    return math.ceil(max(map(_length, args)) * 0.1)


def _every(*args: Any) -> int:
    return math.ceil(sum(map(_length, args)) * 0.1)


def _pattern(text: Any, pattern: Any, *rest: Any) -> int:
    return math.ceil((_length(text) + 1) * 0.1) * math.ceil(_length(pattern) * 0.25)


def _each_item(*args: Any) -> int:
    return max(map(_length, args))


def _pairs(one: Any, other: Any) -> int:
    return _length(one) * _length(other)


def _squared(items: Any, *rest: Any) -> int:
    return _length(items) ** 2


_COSTS: Final[dict[str, Callable[..., int]]] = {
    **dict.fromkeys(("matches", "find", "findAll"), _pattern),
    **dict.fromkeys(
        ("contains", "startsWith", "endsWith", "lowerAscii", "upperAscii"), _traversal
    ),
    **dict.fromkeys(("replace", "split", "substring", "trim", "join"), _every),
    **dict.fromkeys(("format", "strings.quote", "string", "bytes"), _every),
    **dict.fromkeys(("isSorted", "sum", "min", "max"), _each_item),
    **dict.fromkeys(("indexOf", "lastIndexOf", "flatten", "slice"), _each_item),
    **dict.fromkeys(("sort", "@sortByAssociatedKeys", "distinct"), _squared),
    **dict.fromkeys(("sets.contains", "sets.equivalent", "sets.intersects"), _pairs),
}
