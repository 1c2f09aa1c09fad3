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
from datetime import timedelta
from functools import lru_cache, partial
from typing import Any, NamedTuple

import msgspec

from trimtab.api.times import Duration, parse_rfc3339
from trimtab.embedded.protobuf import EPOCH, MAGIC, UNSIGNED, lines, message_name

SHORT = 128
"""Lengths below it are one byte."""
SECOND = timedelta(seconds=1)
ENVELOPE_END = b"\x1a\x00\x22\x00"
"""Neither the encoding nor the type of what is in the envelope has a name."""

Plain = dict[str, Any]
Data = Callable[[Any], bytes]
Add = Callable[[bytes], None]
Write = Callable[[Add, Any], None]


class Step(NamedTuple):
    """What is written for one field."""

    name: str
    """In JSON; empty if the field is inlined."""
    absent: bytes
    """What stands for a value that is not there."""
    write: Write
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
    types = _field(1, api_version.encode()) + _field(2, kind.encode())
    return MAGIC + _field(1, types) + _tag(2, 2) + varint(size)


def listed(
    api_version: str, kind: str, meta: Plain, items: Iterable[bytes]
) -> Iterator[bytes]:
    """A list, in pieces; its items are messages already.

    It begins with its size, so all items are made first: for each there is an empty
    piece, where others may be let in.
    """
    parts = [_field(1, message("meta.v1.ListMeta", meta))]
    for item in items:
        parts += (b"\x12" + varint(len(item)), item)
        yield b""
    yield envelope_head(api_version, kind, sum(map(len, parts)))
    yield from parts
    yield ENVELOPE_END


def event(type: str, body: bytes) -> bytes:
    """A frame of a watch: its size in four bytes, then an object and what it did."""
    data = _field(1, type.encode()) + _field(2, _field(1, body))
    return struct.pack(">I", len(data)) + data


def message(name: str, obj: Plain) -> bytes:
    """An object as the message of that name."""
    parts: list[bytes] = []
    add = parts.append
    steps, rest = _layout(name, tuple(obj))
    for field, absent, write, before in steps:
        if before:
            add(before)
        value = obj[field] if field else obj
        if value is not None:
            write(add, value)
        elif absent:
            add(absent)
    add(rest)
    return b"".join(parts)


@lru_cache(maxsize=4096)
def _layout(name: str, keys: tuple[str, ...]) -> Layout:
    """The plan for objects with these keys: most have few, and many have the same."""
    steps = []
    before = b""
    for step in _plan(name):
        if step.name and step.name not in keys:
            before += step.absent
        else:
            steps.append(step._replace(before=before))
            before = b""
    return Layout(tuple(steps), before)


@lru_cache(maxsize=1024)
def _plan(name: str) -> tuple[Step, ...]:
    fields = []
    line = lines()[name]
    for part in line.split("\t") if line else ():
        number, field, kind = part.split(" ")
        fields.append((int(number), field, kind))
    return tuple(_step(*each) for each in sorted(fields))


def _step(number: int, name: str, kind: str) -> Step:
    bare = kind.lstrip("!^?*{")
    data = _data(bare)
    tag = _tag(number, _WIRES.get(bare, 2))
    sized = bare not in _WIRES
    if "{" in kind:
        return Step(name, b"", _entries(_tag(number, 2), bare))
    write = _sized(tag, data) if sized else _fixed(tag, data)
    if "*" in kind:
        return Step(name, b"", _repeated(write))
    absent = b""
    if "!" in kind:
        empty = data(_EMPTY.get(bare, {}))
        absent = tag + varint(len(empty)) + empty if sized else tag + empty
    return Step("" if "^" in kind else name, absent, write)


def _sized(tag: bytes, data: Data) -> Write:
    """Writes a value after its length."""
    heads = _heads(tag)

    def write(add: Add, value: Any) -> None:
        body = data(value)
        size = len(body)
        add(heads[size] if size < SHORT else tag + varint(size))
        add(body)

    return write


@lru_cache(maxsize=64)
def _heads(tag: bytes) -> tuple[bytes, ...]:
    return tuple(tag + bytes([size]) for size in range(SHORT))


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
    value_tag = _tag(2, 2 if wire is None else wire)
    write_key = _sized(_tag(1, 2), str.encode)
    write_value = _sized(value_tag, data) if wire is None else _fixed(value_tag, data)

    def write(add: Add, value: Plain) -> None:
        for key in sorted(value):
            parts: list[bytes] = []
            write_key(parts.append, key)
            item = value[key]
            if item is not None:
                write_value(parts.append, item)
            elif kind != "b":
                write_value(parts.append, _EMPTY.get(kind, {}))
            entry = b"".join(parts)
            add(tag + varint(len(entry)))
            add(entry)

    return write


def varint(value: int) -> bytes:
    """A number, seven bits in each byte."""
    if 0 <= value < SHORT:
        return _BYTES[value]
    value &= UNSIGNED
    found = bytearray()
    while value >= SHORT:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def _field(number: int, data: bytes) -> bytes:
    return _tag(number, 2) + varint(len(data)) + data


def _data(kind: str) -> Data:
    """How a value of a type becomes bytes."""
    if not kind.startswith("@"):
        return _SCALARS[kind]
    name = kind[1:]
    special = _SPECIAL.get(name)
    if special is not None:
        return special
    return partial(message, name)


def _double(value: float) -> bytes:
    return struct.pack("<d", value)


def _boolean(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


@lru_cache(maxsize=1024)
def _time(text: Any) -> bytes:
    """An instant in whole seconds; none is no bytes at all."""
    if not text:
        return b""
    return b"\x08" + varint((parse_rfc3339(text) - EPOCH) // SECOND) + b"\x10\x00"


def _micro_time(text: Any) -> bytes:
    if not text:
        return b""
    since = parse_rfc3339(text) - EPOCH
    nanos = since.microseconds * 1000
    return b"\x08" + varint(since // SECOND) + b"\x10" + varint(nanos)


def _duration(text: Any) -> bytes:
    return b"\x08" + varint(Duration(text).nanoseconds if text else 0)


def _quantity(value: Any) -> bytes:
    return _field(1, str(value or "0").encode())


def _int_or_string(value: Any) -> bytes:
    if isinstance(value, str):
        return b"\x08\x01\x10\x00" + _field(3, value.encode())
    return b"\x08\x00\x10" + varint(value or 0) + b"\x1a\x00"


def _raw(value: Any) -> bytes:
    """JSON inside of protobuf."""
    return _field(1, msgspec.json.encode(value))


def _extension(value: Any) -> bytes:
    """JSON of an object that may not be there."""
    return b"" if value is None else _raw(value)


def _items(value: Any) -> bytes:
    return b"".join(_field(1, item.encode()) for item in value or ())


def _schema_or_bool(value: Any) -> bytes:
    if isinstance(value, dict):
        return b"\x08\x01" + _field(2, message(SCHEMA, value))
    return b"\x08" + _boolean(value)


def _schema_or_array(value: Any) -> bytes:
    if isinstance(value, dict):
        return _field(1, message(SCHEMA, value))
    return b"".join(_field(2, message(SCHEMA, item)) for item in value or ())


def _schema_or_strings(value: Any) -> bytes:
    if isinstance(value, dict):
        return _field(1, message(SCHEMA, value))
    return b"".join(_field(2, item.encode()) for item in value or ())


SCHEMA = "apiextensions.v1.JSONSchemaProps"
_BYTES = tuple(bytes([each]) for each in range(SHORT))
_WIRES = {"i": 0, "B": 0, "d": 1}
_SCALARS: dict[str, Data] = {
    "s": str.encode,
    "b": b64decode,
    "i": varint,
    "B": _boolean,
    "d": _double,
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
    "meta.v1.Time": _time,
    "meta.v1.MicroTime": _micro_time,
    "meta.v1.Duration": _duration,
    "meta.v1.Verbs": _items,
    "meta.v1.FieldsV1": _raw,
    "resource.Quantity": _quantity,
    "intstr.IntOrString": _int_or_string,
    "runtime.RawExtension": _extension,
    "apiextensions.v1.JSON": _raw,
    "apiextensions.v1.JSONSchemaPropsOrArray": _schema_or_array,
    "apiextensions.v1.JSONSchemaPropsOrBool": _schema_or_bool,
    "apiextensions.v1.JSONSchemaPropsOrStringArray": _schema_or_strings,
    "authentication.v1.ExtraValue": _items,
    "authorization.v1.ExtraValue": _items,
    "certificates.v1.ExtraValue": _items,
}
