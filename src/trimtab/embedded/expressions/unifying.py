"""Unifying: whether a value of one type may stand where another is wanted.

Types that are not known yet are bound on the way. Bindings only ever grow, and a failed
attempt leaves them as they were.
"""

from __future__ import annotations

from trimtab.embedded.expressions.kinds import DYN, Type

Bindings = dict[str, Type]

_NULLABLE = frozenset({"opaque", "struct", "duration", "timestamp"})
_EXACT = frozenset(
    {
        *("bool", "bytes", "double", "int", "string", "uint"),
        *("duration", "timestamp", "struct"),
    }
)


def assignable(bindings: Bindings, pairs: list[tuple[Type, Type]]) -> Bindings | None:
    """New bindings under which each first type fits its second; None if none do."""
    trial = dict(bindings)
    for one, other in pairs:
        if not _fits(trial, one, other):
            return None
    return trial


def _fits(bindings: Bindings, one: Type, other: Type) -> bool:
    if other.kind == "param":
        valid, bound = _bind(bindings, one, other)
        if valid or bound:
            return valid
    if one.kind == "param":
        return _bind(bindings, other, one)[0]
    if {one.kind, other.kind} & {"dyn", "error"}:
        return True
    if one.kind == "null" or other.kind == "null":
        value = other if one.kind == "null" else one
        return value.kind in _NULLABLE or value.kind == "null"
    if one.kind in _EXACT:
        return one == other
    if one.kind == "type":
        return other.kind == "type"
    if one.kind != other.kind or one.name != other.name:
        return False
    if len(one.params) != len(other.params):
        return False
    return all(map(lambda a, b: _fits(bindings, a, b), one.params, other.params))


def _bind(bindings: Bindings, one: Type, param: Type) -> tuple[bool, bool]:
    """Whether ``param`` can be ``one``, and whether it was something before."""
    if one == param:
        return True, True
    bound = bindings.get(param.name)
    if bound is not None:
        if one == bound:
            return True, True
        if _fits(bindings, one, bound):
            wider = most_general(one, bound)
            if _absent(bindings, param, wider):
                bindings[param.name] = wider
            return True, True
        return False, True
    if _absent(bindings, param, one):
        bindings[param.name] = one
        return True, False
    return False, False


def most_general(one: Type, other: Type) -> Type:
    """The wider of two types that fit."""
    return one if _as_wide(one, other) else other


def _as_wide(one: Type, other: Type) -> bool:
    if one.kind in ("dyn", "param"):
        return True
    if other.kind in ("dyn", "param") or one.kind != other.kind:
        return False
    if one.kind == "type":
        return True
    if one.name != other.name or len(one.params) != len(other.params):
        return False
    return all(map(_as_wide, one.params, other.params))


def _absent(bindings: Bindings, param: Type, within: Type) -> bool:
    """Whether a type that is not known yet does not occur in another."""
    if param == within:
        return False
    if within.kind == "param":
        bound = bindings.get(within.name)
        return bound is None or _absent(bindings, param, bound)
    return all(_absent(bindings, param, each) for each in within.params)


def resolved(bindings: Bindings, type: Type, *, final: bool = False) -> Type:
    """A type with what is known put in; at the end, what is still unknown is dyn."""
    if type.kind == "param":
        bound = bindings.get(type.name)
        if bound is not None:
            return resolved(bindings, bound, final=final)
        return DYN if final else type
    if not type.params:
        return type
    params = tuple(resolved(bindings, each, final=final) for each in type.params)
    return Type(type.kind, type.name, params)
