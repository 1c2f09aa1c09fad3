"""Stored objects in protobuf: what many of them have in common is written once.

To write a whole Pod takes as long as to send ten. But the Pods of a workload share most
of what they are made of, and other Pods much: tolerations, probes, conditions. So an
object is taken apart no further than needed: a message inside of it stays JSON, and is
looked for among those that were written lately; only one that is not found is taken
apart in its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, TypedDict

import msgspec
from msgspec import Raw

from trimtab.embedded.protobuf_encoding import (
    MANY,
    Add,
    Layout,
    Plain,
    Step,
    Write,
    fields,
    head_of,
    heads_of,
    is_special,
    laid_out,
    plan,
    written,
)
from trimtab.embedded.protobuf_values import field_of

REMEMBERED = 4096
MOST = 2048
"""So many messages of at most so many bytes are remembered."""
FIELDS = "meta.v1.FieldsV1"
"""JSON in protobuf too, so it is served as it is stored."""

Decode = Callable[[bytes], dict[str, Any]]

OWN = frozenset(
    {"meta.v1.ObjectMeta", "meta.v1.ManagedFieldsEntry", "core.v1.Container"}
)
"""Messages that two objects hardly ever have alike, besides specs and statuses."""

_TYPED: Any = TypedDict
_LIST: Any = list
"""They make types at run time, which nobody checks."""


def message(name: str, value: bytes) -> bytes:
    """Stored bytes as the message of that name: as if all of it had been decoded."""
    return _own(name, _decoder(name)(value))


@lru_cache(maxsize=1024)
def _decoder(name: str) -> Decode:
    made: Decode = msgspec.json.Decoder(_shape(name)).decode
    return made


@lru_cache(maxsize=1024)
def _shape(name: str) -> Any:
    """The type of a message whose shared parts stay as they are."""
    return _TYPED(name, dict(_types(name)), total=False)


def _types(name: str) -> Iterator[tuple[str, Any]]:
    for _, field, kind in fields(name):
        inner = _inner(kind)
        if "^" in kind:
            yield from _types(inner)
        elif inner:
            one = _shape(inner) | None if _is_own(inner) else Raw
            yield field, _LIST[one] | None if "*" in kind else one
        else:
            yield field, Any


def _inner(kind: str) -> str:
    """The message that a field is made of, if its fields are those of its JSON."""
    name = kind.lstrip("!^?*").removeprefix("@")
    if name == FIELDS:
        return name
    return "" if "@" not in kind or "{" in kind or is_special(name) else name


def _is_own(name: str) -> bool:
    """Whether two objects hardly ever have the same message of that name."""
    return name in OWN or name.endswith(("Spec", "Status"))


@lru_cache(maxsize=4096)
def _layout(name: str, keys: tuple[str, ...]) -> Layout:
    return laid_out(_plan(name), keys)


@lru_cache(maxsize=1024)
def _plan(name: str) -> tuple[Step, ...]:
    given = zip(plan(name), fields(name), strict=True)
    return tuple(
        step._replace(write=_writer(number, kind, step.absent))
        if _inner(kind)
        else step
        for step, (number, _, kind) in given
    )


def _writer(number: int, kind: str, absent: bytes) -> Write:
    """How a field is written that is a message, or many."""
    name, head, heads = _inner(kind), head_of(number), heads_of(number)
    part = partial(_own if "^" in kind or _is_own(name) else _part, name)

    def write(add: Add, value: Any) -> None:
        body = part(value)
        if body is None:
            add(absent)
            return
        size = len(body)
        add(heads[size] if size < MANY else head(size))
        add(body)

    def write_items(add: Add, value: list[Any]) -> None:
        for item in value:
            write(add, item)

    return write_items if "*" in kind else write


def _own(name: str, obj: Plain) -> bytes:
    return written(obj, _layout(name, tuple(obj)))


def _part(name: str, value: Raw) -> bytes | None:
    """A message that may be remembered; None if it is null."""
    data = bytes(value)
    if name == FIELDS:
        return None if data == b"null" else field_of(1, data)
    return _remembered(name, data) if len(data) <= MOST else message(name, data)


@lru_cache(maxsize=REMEMBERED)
def _remembered(name: str, value: bytes) -> bytes | None:
    return None if value == b"null" else message(name, value)
