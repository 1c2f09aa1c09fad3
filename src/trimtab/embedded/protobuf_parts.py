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
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from trimtab.embedded.protobuf_compiling import Part, Writer, compiled
from trimtab.embedded.protobuf_encoding import fields, is_special
from trimtab.embedded.protobuf_values import field_of

MANY = 4096
MOST = 2048
"""So many messages of at most so many bytes are remembered."""
FIELDS = "meta.v1.FieldsV1"
"""JSON in protobuf too, so it is served as it is stored."""

OWN = frozenset(
    {"meta.v1.ObjectMeta", "meta.v1.ManagedFieldsEntry", "core.v1.Container"}
)
"""Messages that two objects hardly ever have alike, besides specs and statuses."""

_LIST: Any = list
"""It makes types at run time, which nobody checks."""


class Remembered:
    """Fields that were written lately, by what they are and their JSON.

    When there are too many all are forgotten: those that are used are soon back, and
    to look for one costs as little as can be.
    """

    def __init__(self) -> None:
        self._kept: dict[str, dict[bytes, bytes]] = {}
        self._count = 0

    def of(self, name: str) -> dict[bytes, bytes]:
        """Those of one sort; the same map for ever."""
        return self._kept.setdefault(name, {})

    def keep(self, name: str, value: bytes, made: bytes) -> None:
        if self._count >= MANY:
            self.forget()
        self._count += 1
        self.of(name)[value] = made

    def forget(self) -> None:
        self._count = 0
        for each in self._kept.values():
            each.clear()


class Message(NamedTuple):
    """How JSON of a message is read, and how it is written then."""

    shape: Any
    decode: Callable[[bytes], Any]
    write: Writer


REMEMBERED = Remembered()


def message(name: str, value: bytes) -> bytes:
    """Stored bytes as the message of that name: as if all of it had been decoded."""
    made = _message(name)
    return made.write(made.decode(value))


@lru_cache(maxsize=1024)
def _message(name: str) -> Message:
    """A message whose shared parts stay as they are."""
    types = dict(_types(name))
    attributes = {field: f"f{at}" for at, field in enumerate(types)}
    shape = msgspec.defstruct(
        "Shape",
        [(attributes[field], types[field], None) for field in types],
        rename={attribute: field for field, attribute in attributes.items()},
        gc=False,
    )
    write = compiled(name, attributes, inner=_part_of)
    return Message(shape, msgspec.json.Decoder(shape).decode, write)


def _types(name: str) -> Iterator[tuple[str, Any]]:
    for _, field, kind in fields(name):
        inner = _inner(kind)
        if "^" in kind:
            yield from _types(inner)
        elif inner:
            one = _message(inner).shape | None if _is_own(inner) else Raw
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


def _part_of(number: int, kind: str, null: bytes) -> Part | None:
    """How a field is written that is a message; None if it is none."""
    name = _inner(kind)
    if not name:
        return None
    if name != FIELDS and _is_own(name):
        return Part(write=_message(name).write)
    if name == FIELDS:
        return Part(known=_never, make=partial(_raw, number, null))
    known = REMEMBERED.of(f"{name} {number}")
    return Part(known=known.get, make=partial(_made, name, number, null))


def _never(value: bytes) -> bytes | None:
    return None


def _raw(number: int, null: bytes, value: bytes) -> bytes:
    return null if value == b"null" else field_of(number, field_of(1, value))


def _made(name: str, number: int, null: bytes, value: bytes) -> bytes:
    """A field that is not remembered, but may be from now on."""
    if value == b"null":
        return null
    made = field_of(number, message(name, value))
    if len(value) <= MOST:
        REMEMBERED.keep(f"{name} {number}", value, made)
    return made
