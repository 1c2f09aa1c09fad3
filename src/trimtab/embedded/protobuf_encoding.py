"""Protobuf answers: built-in objects as Go clients read them, out of plain JSON.

The other way round to :mod:`trimtab.embedded.protobuf`, from the same table, and byte
for byte what Go writes: fields in the order of their numbers, the entries of a map in
the order of their keys, and a field that is no pointer in Go even if it is empty.

A message becomes a plan, one step for each field, made once. Most of an object's fields
are not there, so what is written for them is worked out beforehand, for each set of
fields that there are.
"""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

from trimtab.embedded import protobuf_values as values
from trimtab.embedded.protobuf import MAGIC, lines, message_name
from trimtab.embedded.protobuf_values import SHORT, Data, field_of, varint

MANY = 512
"""Lengths below it are worked out beforehand."""
ENVELOPE_END = b"\x1a\x00\x22\x00"
"""Neither the encoding nor the type of what is in the envelope has a name."""

Plain = dict[str, Any]
Add = Callable[[bytes], None]
Write = Callable[[Add, Any], None]


class Step(NamedTuple):
    """What is written for one field."""

    name: str
    """In JSON; empty if the field is inlined."""
    absent: bytes
    """What stands for a value that is not there."""
    write: Write
    heads: tuple[bytes, ...] = ()
    """If it is one text: what stands before one of so many bytes."""
    before: bytes = b""
    """What stands for the fields before it that an object does not have."""


class Layout(NamedTuple):
    """How objects that have the same fields are written."""

    steps: tuple[Step, ...]
    rest: bytes


def has_message(api_version: str, kind: str) -> bool:
    """Whether objects of a kind can be written: custom ones and tables cannot."""
    return message_name(api_version, kind) in lines()


def encode(api_version: str, kind: str, obj: Plain) -> bytes:
    """An object as a body.

    Errors: ``LookupError`` for a kind without a message.
    """
    return envelope(api_version, kind, message(message_name(api_version, kind), obj))


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    """A message as a body that says of which kind it is."""
    return b"".join(
        (envelope_head(api_version, kind, len(raw)), raw, ENVELOPE_END),
    )


def envelope_head(api_version: str, kind: str, size: int) -> bytes:
    """How a body begins that has a message of so many bytes."""
    types = field_of(1, api_version.encode()) + field_of(2, kind.encode())
    return MAGIC + field_of(1, types) + values.tag(2, 2) + varint(size)


def listed(
    api_version: str, kind: str, meta: Plain, items: Iterable[bytes]
) -> Iterator[bytes]:
    """A list, in pieces; its items are messages already.

    It begins with its size, so all items are made first: for each there is an empty
    piece, where others may be let in.
    """
    parts = [field_of(1, message("meta.v1.ListMeta", meta))]
    for item in items:
        parts += (b"\x12" + varint(len(item)), item)
        yield b""
    yield envelope_head(api_version, kind, sum(map(len, parts)))
    yield from parts
    yield ENVELOPE_END


def event(type: str, body: bytes) -> bytes:
    """A frame of a watch: its size in four bytes, then an object and what it did."""
    data = field_of(1, type.encode()) + field_of(2, field_of(1, body))
    return struct.pack(">I", len(data)) + data


def message(name: str, obj: Plain) -> bytes:
    """An object as the message of that name."""
    return written(obj, _layout(name, tuple(obj)))


def written(obj: Plain, layout: Layout) -> bytes:
    """An object as its layout says; it has just the fields that the layout is for."""
    parts: list[bytes] = []
    add = parts.append
    for field, absent, write, heads, before in layout.steps:
        if before:
            add(before)
        value: Any = obj[field] if field else obj
        if value is None:
            add(absent)
        elif heads:  # as `write` would do it: most fields are texts
            body = value.encode()
            size = len(body)
            if size < MANY:
                add(heads[size])
                add(body)
            else:
                write(add, value)
        else:
            write(add, value)
    add(layout.rest)
    return b"".join(parts)


@lru_cache(maxsize=4096)
def _layout(name: str, keys: tuple[str, ...]) -> Layout:
    return laid_out(plan(name), keys)


def laid_out(plan: Iterable[Step], keys: tuple[str, ...]) -> Layout:
    """The plan for objects with these keys: most have few, and many have the same."""
    steps = []
    before = b""
    for step in plan:
        if step.name and step.name not in keys:
            before += step.absent
        else:
            steps.append(step._replace(before=before))
            before = b""
    return Layout(tuple(steps), before)


@lru_cache(maxsize=1024)
def plan(name: str) -> tuple[Step, ...]:
    """What is written for each field of a message."""
    return tuple(_step(*each) for each in fields(name))


def fields(name: str) -> list[tuple[int, str, str]]:
    """Number, name and kind of each field of a message, in order."""
    line = lines()[name]
    parts = [part.split(" ") for part in line.split("\t")] if line else []
    return sorted((int(number), field, kind) for number, field, kind in parts)


def is_special(name: str) -> bool:
    """Whether a message's fields are others than those of its JSON."""
    return name in _SPECIAL


def _step(number: int, name: str, kind: str) -> Step:
    bare = kind.lstrip("!^?*{")
    data = _data(bare)
    tag = values.tag(number, _WIRES.get(bare, 2))
    sized = bare not in _WIRES
    if "{" in kind:
        return Step(name, b"", _entries(values.tag(number, 2), bare))
    write = _sized(tag, data) if sized else _fixed(tag, data)
    if "*" in kind:
        return Step(name, b"", _repeated(write))
    absent = b""
    if "!" in kind:
        empty = data(_EMPTY.get(bare, {}))
        absent = tag + varint(len(empty)) + empty if sized else tag + empty
    heads = _heads(tag) if bare == "s" else ()
    return Step("" if "^" in kind else name, absent, write, heads)


def _sized(tag: bytes, data: Data) -> Write:
    """Writes a value after its length."""
    heads = _heads(tag)

    def write(add: Add, value: Any) -> None:
        body = data(value)
        size = len(body)
        add(heads[size] if size < MANY else tag + varint(size))
        add(body)

    return write


def heads_of(number: int) -> tuple[bytes, ...]:
    """What stands before a field of so many bytes, if they are not more than many."""
    return _heads(values.tag(number, 2))


def head_of(number: int) -> Callable[[int], bytes]:
    """What stands before a field of so many bytes, however many."""
    tag = values.tag(number, 2)
    return lambda size: tag + varint(size)


@lru_cache(maxsize=256)
def _heads(tag: bytes) -> tuple[bytes, ...]:
    return tuple([tag + size for size in _sizes()])


@lru_cache(maxsize=1)
def _sizes() -> tuple[bytes, ...]:
    return tuple(varint(size) for size in range(MANY))


def _fixed(tag: bytes, data: Data) -> Write:
    """Writes a value that says itself where it ends."""

    def write(add: Add, value: Any) -> None:
        add(tag + data(value))

    return write


def _repeated(write_item: Write) -> Write:
    def write(add: Add, value: Any) -> None:
        for item in value:
            write_item(add, item)

    return write


def _entries(tag: bytes, kind: str) -> Write:
    """Writes a map: for each key in order a message with the key and the value."""
    data = _data(kind)
    wire = _WIRES.get(kind)
    write_key = _sized(values.tag(1, 2), str.encode)
    write_value = (
        _sized(values.tag(2, 2), data)
        if wire is None
        else _fixed(values.tag(2, wire), data)
    )

    def entry(key: str, item: Any) -> bytes:
        parts: list[bytes] = []
        write_key(parts.append, key)
        if item is not None:
            write_value(parts.append, item)
        elif kind != "b":
            write_value(parts.append, _EMPTY.get(kind, {}))
        return b"".join(parts)

    write_entry = _sized(tag, lambda pair: entry(*pair))

    def write(add: Add, value: Plain) -> None:
        for pair in sorted(value.items()):
            write_entry(add, pair)

    return _texts(tag, otherwise=write) if kind == "s" else write


def _texts(tag: bytes, *, otherwise: Write) -> Write:
    """Writes a map of short texts, such as labels: there are many of them."""
    heads, keys, items = _heads(tag), _heads(values.tag(1, 2)), _heads(values.tag(2, 2))

    def write(add: Add, value: Plain) -> None:
        if None in value.values():
            otherwise(add, value)
            return
        for key in sorted(value):
            name, text = key.encode(), value[key].encode()
            size, length = len(name), len(text)
            if size < SHORT and length < SHORT:
                add(heads[size + length + 4])
                add(keys[size] + name + items[length] + text)
            else:
                otherwise(add, {key: value[key]})

    return write


def _data(kind: str) -> Data:
    """How a value of a type becomes bytes."""
    if not kind.startswith("@"):
        return _SCALARS[kind]
    name = kind[1:]
    special = _SPECIAL.get(name)
    if special is not None:
        return special
    return partial(message, name)


def _schema_or_bool(value: Any) -> bytes:
    if isinstance(value, dict):
        return b"\x08\x01" + field_of(2, message(SCHEMA, value))
    return b"\x08" + values.boolean(value)


def _schema_or_array(value: Any) -> bytes:
    if isinstance(value, dict):
        return field_of(1, message(SCHEMA, value))
    return b"".join(field_of(2, message(SCHEMA, item)) for item in value or ())


def _schema_or_strings(value: Any) -> bytes:
    if isinstance(value, dict):
        return field_of(1, message(SCHEMA, value))
    return b"".join(field_of(2, item.encode()) for item in value or ())


SCHEMA = "apiextensions.v1.JSONSchemaProps"
_WIRES = {"i": 0, "B": 0, "d": 1}
_SCALARS: dict[str, Data] = {
    "s": str.encode,
    "b": b64decode,
    "i": varint,
    "B": values.boolean,
    "d": values.double,
}
_EMPTY: dict[str, Any] = {
    "s": "",
    "i": 0,
    "B": False,
    "d": 0.0,
    "@meta.v1.Time": "",
    "@meta.v1.MicroTime": "",
    "@meta.v1.Duration": "",
    "@resource.Quantity": "",
    "@intstr.IntOrString": 0,
    "@runtime.RawExtension": None,
    "@apiextensions.v1.JSON": None,
    "@apiextensions.v1.JSONSchemaPropsOrStringArray": None,
    "@authentication.v1.ExtraValue": None,
    "@authorization.v1.ExtraValue": None,
    "@certificates.v1.ExtraValue": None,
}
_SPECIAL: dict[str, Data] = {
    "meta.v1.Time": values.time,
    "meta.v1.MicroTime": values.micro_time,
    "meta.v1.Duration": values.duration,
    "meta.v1.Verbs": values.items,
    "meta.v1.FieldsV1": values.raw,
    "resource.Quantity": values.quantity,
    "intstr.IntOrString": values.int_or_string,
    "runtime.RawExtension": values.extension,
    "apiextensions.v1.JSON": values.raw,
    "apiextensions.v1.JSONSchemaPropsOrArray": _schema_or_array,
    "apiextensions.v1.JSONSchemaPropsOrBool": _schema_or_bool,
    "apiextensions.v1.JSONSchemaPropsOrStringArray": _schema_or_strings,
    "authentication.v1.ExtraValue": values.items,
    "authorization.v1.ExtraValue": values.items,
    "certificates.v1.ExtraValue": values.items,
}
