"""Annotations: what a class says of its fields, resolved and unwrapped.

The schema generator and the typed partials read classes through this module, so that
both mean the same by a type.
"""

from __future__ import annotations

import collections.abc
import functools
import operator
import re
import types
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, Literal, Union

import msgspec
from msgspec import NODEFAULT, UNSET, UnsetType

from trimtab.api.objects import Facts, Object, Schema

Refuse = Callable[[str], TypeError]
"""Makes the error that names the class and the field, given what is wrong there."""

INT_OR_STRING: Final = int | str
LISTS: Final = (list, collections.abc.Sequence)
SETS: Final = (set, frozenset, collections.abc.Set)
MAPS: Final = (dict, collections.abc.Mapping)


class Unresolved(Exception):
    """An annotation names something that is not there, or not there yet."""


class Member(msgspec.Struct, frozen=True):
    """One field of a class."""

    attribute: str
    name: str
    """The name in JSON."""
    hint: Any
    default: Any
    """NODEFAULT where the field is required."""
    facts: Facts


class Peeled(msgspec.Struct, frozen=True):
    """An annotation without its wrappers: Annotated, NewType, None and UNSET."""

    bare: Any
    notes: tuple[Schema, ...] = ()
    optional: bool = False


@functools.lru_cache(maxsize=1024)
def members(kind: type[Object]) -> tuple[Member, ...]:
    """The fields of a class in their order.

    Errors: ``Unresolved`` when an annotation names what is not defined; ``TypeError``
    when a default is another one each time.
    """
    hints = _hints(kind)
    names = kind.__struct_fields__
    absent = (NODEFAULT,) * (len(names) - len(kind.__struct_defaults__))
    return tuple(
        Member(
            attribute,
            name,
            hints[attribute],
            _default(kind, attribute, default),
            kind.__facts__.get(attribute, Facts()),
        )
        for attribute, name, default in zip(
            names,
            kind.__struct_encode_fields__,
            (*absent, *kind.__struct_defaults__),
            strict=True,
        )
    )


def _hints(kind: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except NameError as error:
        missing = error.name
    except AttributeError as error:
        raise Unresolved(f"{kind.__name__}: {error}") from None
    if missing == kind.__name__:  # it is being defined, so its module lacks it still
        return typing.get_type_hints(kind, None, {missing: kind}, include_extras=True)
    raise Unresolved(f"{kind.__name__}: {missing!r} in its annotations is not defined")


class _Probe(msgspec.Struct):
    items: list[int] = []


# msgspec keeps factories among the defaults, in a class that it does not export.
_Factory: Final[type] = type(_Probe.__struct_defaults__[0])


def _default(kind: type, attribute: str, default: Any) -> Any:
    if not isinstance(default, _Factory):
        return default
    value = default.factory()  # type: ignore[attr-defined]
    if value != default.factory():  # type: ignore[attr-defined]
        raise TypeError(
            f"{kind.__name__}.{attribute}: its default_factory gives another value "
            "each time, and a schema holds one; set the value where objects are made."
        )
    return value


def peel(hint: Any, *, refuse: Refuse) -> Peeled:
    """Take the wrappers off an annotation.

    Errors: what ``refuse`` makes, for a union other than ``T | None`` and
    ``int | str``, and for ``msgspec.Meta``.
    """
    notes: tuple[Schema, ...] = ()
    optional = False
    while True:
        origin = typing.get_origin(hint)
        if origin is Annotated:
            notes = (*_notes(hint, refuse), *notes)
            hint = hint.__origin__
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif hasattr(hint, "__value__"):  # the type statement of Python 3.12
            hint = hint.__value__
        elif origin in (Union, types.UnionType) and hint != INT_OR_STRING:
            optional = optional or types.NoneType in typing.get_args(hint)
            hint = _reduced(hint, refuse)
        elif origin is Literal and None in typing.get_args(hint):
            optional = True
            values = tuple(
                value for value in typing.get_args(hint) if value is not None
            )
            hint = Literal[values] if values else types.NoneType
        else:
            whole = INT_OR_STRING if hint == INT_OR_STRING else hint
            return Peeled(whole, notes, optional)


def _notes(hint: Any, refuse: Refuse) -> Iterator[Schema]:
    for note in hint.__metadata__:
        if isinstance(note, msgspec.Meta):
            raise refuse(
                "msgspec.Meta would be enforced while decoding, and an object that a "
                "server took must stay readable; use field(...) or Schema(...)"
            )
        if isinstance(note, Schema):
            yield note


def _reduced(hint: Any, refuse: Refuse) -> Any:
    """A union without None and UNSET."""
    rest = tuple(
        each
        for each in typing.get_args(hint)
        if each is not types.NoneType and each is not UnsetType
    )
    if not rest:
        return types.NoneType
    union = functools.reduce(operator.or_, rest)
    if len(rest) == 1 or union == INT_OR_STRING:
        return union
    raise refuse(
        f"{shown(hint)} is a union; use T | None, int | str, or a class with one "
        "optional field for each case"
    )


def shown(hint: Any) -> str:
    """An annotation as people write it."""
    if isinstance(hint, type) and typing.get_origin(hint) is None:
        return hint.__name__
    return _MODULES.sub(r"\1", str(hint))


_MODULES = re.compile(r"(?<!['\w.])(?:\w+\.)+(\w+)")


def mismatch(hint: Any, value: Any, *, at: str = "") -> str | None:
    """Where and how a Python value is not of an annotated type; None when it is."""
    peeled = peel(hint, refuse=TypeError)
    bare, origin = peeled.bare, typing.get_origin(peeled.bare)
    if bare is Any or (value is None and peeled.optional):
        return None
    if origin is Literal:
        choices = {(type(choice), choice) for choice in typing.get_args(bare)}
        fits = isinstance(value, str | int) and (type(value), value) in choices
    else:
        fits = isinstance(value, _accepted(bare, origin))
        fits = fits and (bare is bool or not isinstance(value, bool))
    if not fits:
        return f"{at or 'it'} is of type {type(value).__name__}, not {shown(hint)}"
    return _mismatch_inside(bare, origin, value, at)


def _accepted(bare: Any, origin: Any) -> Any:
    if bare is INT_OR_STRING or bare is float:
        return (int, str) if bare is INT_OR_STRING else (int, float)
    if origin is collections.abc.Sequence:  # of which a str is one, but not here
        return (list, tuple)
    return origin or bare


def _mismatch_inside(bare: Any, origin: Any, value: Any, at: str) -> str | None:
    inner: Iterator[tuple[Any, Any, str]] = iter(())
    arguments = typing.get_args(bare)
    if origin in LISTS or origin in SETS:
        inner = ((arguments[0], item, f"{at}[{i}]") for i, item in enumerate(value))
    elif origin in MAPS:
        inner = ((arguments[1], value[key], f"{at}[{key!r}]") for key in value)
    elif isinstance(value, Object):
        inner = _mismatchable(value, at)
    problems = (mismatch(hint, item, at=where) for hint, item, where in inner)
    return next((problem for problem in problems if problem), None)


def _mismatchable(value: Object, at: str) -> Iterator[tuple[Any, Any, str]]:
    for member in members(type(value)):
        held = getattr(value, member.attribute)
        if held is not UNSET:
            yield (member.hint, held, f"{at}.{member.attribute}".lstrip("."))
