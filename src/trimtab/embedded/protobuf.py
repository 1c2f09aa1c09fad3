"""Protobuf bodies: built-in objects as Go clients send them, read into plain JSON.

kubectl and most Go operators write built-in kinds this way. The body is an envelope
that names the kind, around a message whose field numbers are facts of the Go modules
(``data/protobuf.txt``; ``hack/record_protobuf.py`` explains its notation). Answers are
sent as JSON, which every such client accepts.

What a Go client sends for a field that is not a pointer is its zero value; making that
absent again is the business of whoever normalises the object.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

from trimtab.api.times import Duration, MicroTime, rfc3339
from trimtab.embedded import status
from trimtab.embedded.builtin.shapes import PACKAGES

MAGIC = b"k8s\0"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Of any group: what goes along with requests rather than being a resource.
OPTIONS = frozenset({"DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"})

Plain = dict[str, Any]


class Field(NamedTuple):
    """One field of a message: its JSON name and how its value is read."""

    name: str
    read: Callable[[Any], Any]
    repeated: bool
    inlined: bool
    mapped: bool
    packed: bool


class Broken(Exception):
    """Bytes that are no message."""


# What reading can end in when a value is not of the type that its field has.
BROKEN = (
    ArithmeticError,
    AttributeError,
    Broken,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
    struct.error,
)


def decode(body: bytes) -> Plain:
    """The object in a body; 400 if it is not one, or of a kind without a message."""
    try:
        if not body.startswith(MAGIC):
            raise Broken("it does not begin as a Kubernetes object")
        return _object(_message(_envelope(), body[len(MAGIC) :]))
    except BROKEN as error:
        raise status.bad_request(
            f"unable to decode the protobuf body of the request: {error}"
        ) from None


def _object(envelope: Plain) -> Plain:
    api_version, kind = envelope.get("apiVersion", ""), envelope.get("kind", "")
    fields = _fields(_name(api_version, kind))
    if not fields:
        raise Broken(f"no kind {kind} is registered for version {api_version}")
    obj = _message(fields, envelope.get("raw", b""))
    return {"kind": kind, "apiVersion": api_version, **obj}


def _name(api_version: str, kind: str) -> str:
    """The message of a kind."""
    if kind in OPTIONS:
        return f"meta.v1.{kind}"
    group, _, version = api_version.rpartition("/")
    package = PACKAGES.get(group, group.removesuffix(".k8s.io"))
    return f"{package}.{version}.{kind}"


@lru_cache(maxsize=1)
def _lines() -> dict[str, str]:
    data = files("trimtab.embedded").joinpath("data/protobuf.txt").read_text()
    return dict(line.split("\t", 1) for line in data.splitlines() if "\t" in line)


@lru_cache(maxsize=1)
def _envelope() -> dict[int, Field]:
    return {
        1: Field("typeMeta", _reader("@runtime.TypeMeta"), False, True, False, False),
        2: Field("raw", bytes, False, False, False, False),
    }


@lru_cache(maxsize=1024)
def _fields(message: str) -> dict[int, Field]:
    """The fields of a message by number; empty if there is no such message."""
    line = _lines().get(message, "")
    found = {}
    for part in line.split("\t") if line else ():
        number, name, kind = part.split(" ")
        inlined = kind.startswith("^")
        kind = kind.removeprefix("^")
        repeated = kind.startswith("*")
        kind = kind.removeprefix("*")
        mapped = kind.startswith("{")
        read = _entry_reader(kind[1:]) if mapped else _reader(kind)
        found[int(number)] = Field(
            name, read, repeated, inlined, mapped, repeated and kind in "iBd"
        )
    return found


def _message(fields: dict[int, Field], data: bytes) -> Plain:
    """A message as a plain object."""
    obj: Plain = {}
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        value, at = _value(data, at, tag & 7)
        field = fields.get(tag >> 3)
        if field is None:
            continue
        if field.packed and isinstance(value, bytes):
            obj.setdefault(field.name, []).extend(_packed(value))
        elif field.mapped:
            key, item = field.read(value)
            obj.setdefault(field.name, {})[key] = item
        elif field.inlined:
            obj.update(field.read(value))
        elif field.repeated:
            obj.setdefault(field.name, []).append(field.read(value))
        else:
            obj[field.name] = field.read(value)
    return obj


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise Broken("a number is too long")


def _value(data: bytes, at: int, wire: int) -> tuple[int | bytes, int]:
    if wire == 0:
        return _varint(data, at)
    if wire == 2:
        size, at = _varint(data, at)
        if at + size > len(data):
            raise Broken("it ends in the middle of a field")
        return data[at : at + size], at + size
    if wire in (1, 5):
        size = 8 if wire == 1 else 4
        return data[at : at + size], at + size
    raise Broken(f"wire type {wire} is not used by Kubernetes")


def _packed(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        found.append(_integer(value))
    return found


def _integer(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _text(value: bytes) -> str:
    return value.decode()


def _double(value: bytes) -> float:
    number: float = struct.unpack("<d", value)[0]
    return number


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


def _reader(kind: str) -> Callable[[Any], Any]:
    """How a value of a type is read."""
    if kind.startswith("@"):
        name = kind[1:]
        special = _SPECIAL.get(name)
        if special is not None:
            return lambda value: special(_message(_fields(name), value))
        return lambda value: _message(_fields(name), value)
    return _SCALARS[kind]


def _entry_reader(kind: str) -> Callable[[bytes], tuple[str, Any]]:
    """How an entry of a map is read: field 1 is the key, field 2 the value."""
    read = _reader(kind)
    empty = 0 if kind in "iB" else b""
    fields = {
        1: Field("key", _text, False, False, False, False),
        2: Field("value", read, False, False, False, False),
    }

    def entry(value: bytes) -> tuple[str, Any]:
        found = _message(fields, value)
        item = found["value"] if "value" in found else read(empty)
        return found.get("key", ""), item

    return entry


def _moment(obj: Plain) -> datetime | None:
    if not obj:
        return None
    seconds, nanos = obj.get("seconds", 0), obj.get("nanos", 0)
    return EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)


def _time(obj: Plain) -> str | None:
    moment = _moment(obj)
    return None if moment is None else rfc3339(moment)


def _micro_time(obj: Plain) -> str | None:
    moment = _moment(obj)
    return None if moment is None else MicroTime.of(moment).__encode__()


def _int_or_string(obj: Plain) -> int | str:
    value: int | str = (
        obj.get("strVal", "") if obj.get("type") else obj.get("intVal", 0)
    )
    return value


def _raw(obj: Plain) -> Any:
    """JSON inside of protobuf, which the table calls bytes."""
    from base64 import b64decode

    text = b64decode(obj.get("raw") or obj.get("Raw") or "")
    return msgspec.json.decode(text) if text else None


def _items(obj: Plain) -> Any:
    return obj.get("items", [])


def _schema_or_bool(obj: Plain) -> Any:
    return obj.get("schema") or obj.get("allows", False)


def _schema_or_array(obj: Plain) -> Any:
    return obj.get("jSONSchemas") or obj.get("schema") or {}


def _schema_or_strings(obj: Plain) -> Any:
    return obj.get("property") or obj.get("schema") or []


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "s": _text,
    "b": _base64,
    "i": _integer,
    "B": bool,
    "d": _double,
}
_SPECIAL: dict[str, Callable[[Plain], Any]] = {
    "meta.v1.Time": _time,
    "meta.v1.MicroTime": _micro_time,
    "meta.v1.Duration": lambda obj: str(
        Duration.of_nanoseconds(obj.get("duration", 0))
    ),
    "meta.v1.Verbs": _items,
    "meta.v1.FieldsV1": _raw,
    "resource.Quantity": lambda obj: obj.get("string", "0"),
    "intstr.IntOrString": _int_or_string,
    "runtime.RawExtension": _raw,
    "apiextensions.v1.JSON": _raw,
    "apiextensions.v1.JSONSchemaPropsOrArray": _schema_or_array,
    "apiextensions.v1.JSONSchemaPropsOrBool": _schema_or_bool,
    "apiextensions.v1.JSONSchemaPropsOrStringArray": _schema_or_strings,
    "authentication.v1.ExtraValue": _items,
    "authorization.v1.ExtraValue": _items,
    "certificates.v1.ExtraValue": _items,
}
