"""Random objects of any class: what its types and bounds allow, by hypothesis."""

from __future__ import annotations

import enum
import json
import typing
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from trimtab.api.annotations import (
    INT_OR_STRING,
    LISTS,
    MAPS,
    SETS,
    Member,
    members,
    peel,
)
from trimtab.api.bounds import merged
from trimtab.api.conditions import Condition, Conditions
from trimtab.api.objects import Object, Schema, builtins_of
from trimtab.api.quantity import Quantity
from trimtab.api.resource import Metadata, Resource
from trimtab.api.times import Duration, MicroTime

Strategy = SearchStrategy[Any]
INT64 = 2**63
FEW = 3
"""How many items a collection has at most, unless its bounds say more."""

_characters = st.characters(codec="utf-8")
_keys = st.text(_characters, max_size=10)
_moments = st.datetimes(timezones=st.just(UTC))
_seconds = _moments.map(lambda moment: moment.replace(microsecond=0))
_plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-INT64, INT64 - 1),
    # Beyond this a server pads the digits of a whole number with zeros, and who reads
    # it back without knowing that it was a float gets that integer.
    st.floats(-(2**53), 2**53),
    st.text(_characters, max_size=10),
)
_json = st.recursive(
    _plain,
    lambda inner: st.one_of(
        st.lists(inner, max_size=FEW), st.dictionaries(_keys, inner, max_size=FEW)
    ),
    max_leaves=5,
)
_FORMATS: dict[str, Strategy] = {
    "ipv4": st.ip_addresses(v=4).map(str),
    "date": st.dates().map(str),
    "uuid": st.uuids().map(str),
}


def _stated() -> SearchStrategy[Condition]:
    return st.builds(
        Condition,
        type=st.from_regex(r"\A[A-Z][a-z]{0,10}\Z"),
        status=st.sampled_from(["True", "False", "Unknown"]),
        reason=st.from_regex(r"\A[A-Z][A-Za-z_,:]{0,10}[a-z]\Z"),
        message=st.text(_characters, max_size=40),
        lastTransitionTime=_seconds,
        observedGeneration=st.none() | st.integers(0, INT64 - 1),
    )


_OWN: dict[Any, Strategy] = {
    bool: st.booleans(),
    bytes: st.binary(min_size=1, max_size=20),
    datetime: _seconds,
    MicroTime: _moments.map(MicroTime.of),
    Duration: st.integers(-INT64, INT64 - 1).map(Duration.of_nanoseconds),
    Quantity: st.builds(
        lambda number, suffix: Quantity(f"{number}{suffix}"),
        st.integers(-(10**6), 10**6),
        st.sampled_from(["", "m", "k", "Gi", "e3"]),
    ),
    Conditions: st.lists(_stated(), max_size=FEW, unique_by=lambda each: each.type).map(
        Conditions
    ),
    Any: _json,
    INT_OR_STRING: st.integers(-INT64, INT64 - 1) | st.text(_characters, max_size=10),
    Metadata: st.builds(
        Metadata,
        name=st.from_regex(r"\A[a-z]{1,10}\Z"),
        labels=st.dictionaries(
            st.from_regex(r"\A[a-z]{1,5}\Z"), st.from_regex(r"\A[a-z]{0,5}\Z")
        ),
    ),
}


def objects(kind: type[Object], **chosen: Strategy) -> Strategy:
    """Objects of a class; ``chosen`` says how to make some of its fields."""
    only = _ONLY.get(kind.__name__, kind.__struct_fields__)
    drawn = {
        member.attribute: _of_member(member)
        for member in members(kind)
        if member.attribute in only
        and member.attribute not in chosen
        and not member.facts.server_set
    }
    return st.builds(kind, **drawn, **chosen)


def samples(strategy: Strategy, count: int, *, seeded: int) -> list[Any]:
    """So many random values at once, to send to a server in one go.

    A server is too slow to be asked for each value, and to shrink one by.
    """
    drawn: list[Any] = []

    @seed(seeded)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(value: Any) -> None:
        drawn.append(value)

    draw()
    return drawn


def _of_member(member: Member) -> Strategy:
    if member.facts.schema.embedded_resource:
        return st.none() | st.fixed_dictionaries(
            {"apiVersion": st.just("v1"), "kind": st.just("Thing"), "data": _json}
        )
    return values(member.hint, member.facts.schema)


def values(hint: Any, *more: Schema) -> Strategy:
    """Values of an annotated type, within its notes and ``more``."""
    peeled = peel(hint, refuse=TypeError)
    made = _of_bare(peeled.bare, merged((*peeled.notes, *more)))
    return st.none() | made if peeled.optional else made


def _of_bare(bare: Any, note: Schema) -> Strategy:
    for kinds, make in _MAKERS:
        if bare in kinds or typing.get_origin(bare) in kinds:
            return make(bare, note)
    if bare in _OWN:
        return _OWN[bare]
    if issubclass(bare, enum.Enum):
        return st.sampled_from(bare)
    if issubclass(bare, Resource):
        return objects(bare, metadata=_OWN[Metadata])
    return objects(bare, **_SPECIAL.get(bare.__name__, {}))


# Of big classes that have nothing new in them, a part.
_ONLY = {"Container": ("name", "image", "args", "env", "resources")}
# Where a rule of the class ties fields to each other.
_SPECIAL: dict[str, dict[str, Strategy]] = {
    "Span": {"low": st.integers(-INT64, -1), "high": st.integers(0, INT64 - 1)}
}


def _text(bare: Any, note: Schema) -> Strategy:
    if note.pattern is not None:
        ends = note.pattern.removeprefix("^").removesuffix("$")
        made: Strategy = st.from_regex(
            rf"\A{ends}\Z", alphabet=st.characters(codec="ascii")
        )
        return made.filter(lambda text: len(text) <= (note.max_length or 10**6))
    if note.format is not None:
        return _FORMATS[note.format]
    return st.text(
        _characters, min_size=note.min_length or 0, max_size=note.max_length or 20
    )


def _integer(bare: Any, note: Schema) -> Strategy:
    reach = 2**31 if note.format == "int32" else INT64
    low = int(-reach if note.minimum is None else note.minimum)
    high = int(reach - 1 if note.maximum is None else note.maximum)
    step = int(note.multiple_of or 1)
    return st.integers(-(-low // step), high // step).map(lambda number: number * step)


def _float(bare: Any, note: Schema) -> Strategy:
    return st.floats(
        note.minimum,
        note.maximum,
        exclude_max=bool(note.exclusive_maximum),
        allow_nan=False,
        allow_infinity=False,
    )


def _choice(bare: Any, note: Schema) -> Strategy:
    return st.sampled_from(typing.get_args(bare))


def _list(bare: Any, note: Schema) -> Strategy:
    unique: Callable[[Any], Any] | None = None
    if note.list_type == "set":
        unique = _canonical
    if note.list_type == "map":

        def unique(item: Any) -> Any:
            return tuple(getattr(item, key) for key in note.list_keys)

    items = values(typing.get_args(bare)[0])
    made = st.lists(items, max_size=FEW, unique_by=unique)
    # An empty Sequence is (), as it is where nobody wrote one.
    return made if typing.get_origin(bare) is list else made.map(lambda all: all or ())


def _canonical(item: Any) -> str:
    return json.dumps(builtins_of(item), sort_keys=True)


def _set(bare: Any, note: Schema) -> Strategy:
    items = values(typing.get_args(bare)[0])
    kind = typing.get_origin(bare)
    return st.lists(items, max_size=FEW, unique_by=_canonical).map(kind)


def _map(bare: Any, note: Schema) -> Strategy:
    return st.dictionaries(_keys, values(typing.get_args(bare)[1]), max_size=FEW)


_MAKERS: tuple[tuple[tuple[Any, ...], Callable[[Any, Schema], Strategy]], ...] = (
    ((str,), _text),
    ((int,), _integer),
    ((float,), _float),
    ((Literal,), _choice),
    (LISTS, _list),
    (SETS, _set),
    (MAPS, _map),
)
