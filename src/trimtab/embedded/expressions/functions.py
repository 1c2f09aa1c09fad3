"""Functions: what runs when an expression calls something.

Each is called with values that fit one of its signatures; whoever calls with values
whose types were not known before makes sure of that with :func:`guarded`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trimtab.embedded.expressions import (
    amounts,
    authorization,
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
    entries,
    kind_name,
)

Function = Callable[..., Any]
_WORDLESS: Final = frozenset(
    {"contains", "startsWith", "endsWith", "matches", "find", "findAll"}
)


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
    **authorization.FUNCTIONS,
    "indexOf": _by_first(texts.index_of, sequences.index_of),
    "lastIndexOf": _by_first(texts.last_index_of, sequences.last_index_of),
    "cel.@mapInsert": _insert,
    "jsonpatch.escapeKey": lambda key: key.replace("~", "~0").replace("/", "~1"),
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
            raise NoSuchOverload(_described(function, args))
        return run(*args)

    return call


def _described(function: str, args: tuple[Any, ...]) -> str:
    """How a call that nothing fits is described; of some functions, not at all."""
    if function in _WORDLESS:
        return ""
    if function in ("size", "sort"):
        return function
    return f"{function}({', '.join(map(kind_name, args))})"


def _takes(signature: Signature, args: tuple[Any, ...]) -> bool:
    return all(map(has_kind, args, signature.args))


def has_kind(value: Any, type: Type) -> bool:
    """Whether a value is of a type, as far as the outermost kind goes."""
    if type.kind in ("param", "dyn"):
        return True
    kind = KINDS.get(value.__class__) or getattr(value, "cel_name", "")
    return kind == (type.name if type.kind == "opaque" else type.kind)
