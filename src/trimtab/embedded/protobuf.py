"""Protobuf bodies: built-in objects as Go clients send them, read into plain JSON.

kubectl and most Go operators write built-in kinds this way. The body is an envelope
that names the kind, around a message whose field numbers are facts of the Go modules
(``data/protobuf.txt``; ``hack/record_protobuf.py`` explains its notation).

What a Go client sends for a field that is not a pointer is its zero value: that is left
out again here if Go leaves it out of JSON.
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from math import isfinite
from typing import Any, NamedTuple

import msgspec

from trimtab.api.times import Duration, MicroTime, rfc3339
from trimtab.embedded import status
from trimtab.embedded.builtin.shapes import PACKAGES

MAGIC = b"k8s\0"
UNSIGNED = (1 << 64) - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Of any group: what goes along with requests rather than being a resource.
OPTIONS = frozenset({"DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"})
# Of no group: what a server says about itself, and how a request went.
ABOUT = frozenset(
    {"Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"}
)

Plain = dict[str, Any]


class Field(NamedTuple):
    """One field of a message: its JSON name and how its value is read."""

    name: str
    read: Callable[[Any], Any]
    wire: int = 2
    """The wire type of its values."""
    left_out: bool = False
    """If its value is empty."""
    several: bool = False
    """Whether values come together: it is inlined, a map or a list."""
    inlined: bool = False
    mapped: bool = False
    packed: bool = False
    """Whether all items may come as one value."""


class Broken(Exception):
    """Bytes that are no message."""


# What reading can end in: besides our own, times out of range, messages within messages
# without end, text that is not UTF-8, and JSON that is none.
BROKEN = (ArithmeticError, Broken, RecursionError, ValueError, msgspec.MsgspecError)


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
    fields = _fields(message_name(api_version, kind))
    if not fields:
        raise Broken(f"no kind {kind} is registered for version {api_version}")
    obj = _message(fields, envelope.get("raw", b""))
    return {"kind": kind, "apiVersion": api_version, **obj}


def message_name(api_version: str, kind: str) -> str:
    """The message of a kind."""
    about = api_version in ("", "v1") and kind in ABOUT
    if about or kind in OPTIONS or api_version.startswith("meta.k8s.io/"):
        return f"meta.v1.{kind}"
    group, _, version = api_version.rpartition("/")
    package = PACKAGES.get(group, group.removesuffix(".k8s.io"))
    return f"{package}.{version}.{kind}"


@lru_cache(maxsize=1)
def lines() -> dict[str, str]:
    """The table: the fields of each message by its name."""
    data = files("trimtab.embedded").joinpath("data/protobuf.txt").read_text()
    parts = (line.partition("\t") for line in data.splitlines())
    return {name: fields for name, _, fields in parts}


@lru_cache(maxsize=1)
def _envelope() -> dict[int, Field]:
    return {
        1: Field("typeMeta", _reader("@runtime.TypeMeta"), several=True, inlined=True),
        2: Field("raw", bytes),
    }


@lru_cache(maxsize=1024)
def _fields(message: str) -> dict[int, Field]:
    """The fields of a message by number; empty if there is no such message."""
    line = lines().get(message, "")
    found = {}
    for part in line.split("\t") if line else ():
        number, name, kind = part.split(" ")
        bare = kind.lstrip("!^?*{")
        mapped, inlined, repeated = ("{" in kind, "^" in kind, "*" in kind)
        found[int(number)] = Field(
            name,
            _entry_reader(bare) if mapped else _reader(bare),
            wire=2 if mapped else _WIRES.get(bare, 2),
            left_out="?" in kind,
            several=mapped or inlined or repeated,
            inlined=inlined,
            mapped=mapped,
            packed=repeated and bare in ("i", "B"),
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
        if tag & 7 != field.wire and not (field.packed and tag & 7 == 2):
            raise Broken(f"{field.name} has the wrong wire type {tag & 7}")
        if field.several:
            _add(obj, field, value)
        elif value or not field.left_out:
            obj[field.name] = field.read(value)
        else:
            obj.pop(field.name, None)
    return obj


def _add(obj: Plain, field: Field, value: Any) -> None:
    """Put a value beside what the object has."""
    if field.inlined:
        obj.update(field.read(value))
    elif field.mapped:
        key, item = field.read(value)
        obj.setdefault(field.name, {})[key] = item
    elif field.packed and isinstance(value, bytes):
        items = obj.setdefault(field.name, [])
        items.extend(field.read(each) for each in _packed(value))
    else:
        obj.setdefault(field.name, []).append(field.read(value))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    if at < len(data) and data[at] < 0x80:  # as most are
        return data[at], at + 1
    value = 0
    for place, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value & UNSIGNED, at + place + 1
    raise Broken("a number has no end")


def _value(data: bytes, at: int, wire: int) -> tuple[int | bytes, int]:
    if wire == 0:
        return _varint(data, at)
    if wire == 2:
        size, at = _varint(data, at)
    elif wire in (1, 5):
        size = 8 if wire == 1 else 4
    else:
        raise Broken(f"wire type {wire} is not used by Kubernetes")
    if at + size > len(data):
        raise Broken("it ends in the middle of a field")
    return data[at : at + size], at + size


def _packed(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        found.append(value)
    return found


def _integer(value: int) -> int:
    return value - UNSIGNED - 1 if value > UNSIGNED >> 1 else value


def _text(value: bytes) -> str:
    return value.decode()


def _double(value: bytes) -> float:
    """A number; as in Go's JSON, a whole one is written without a point."""
    number: float = struct.unpack("<d", value)[0]
    if not isfinite(number):
        raise Broken(f"{number} is no number in JSON")
    return int(number) if abs(number) < 1 << 53 and number.is_integer() else number


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
    fields = {1: Field("key", _text), 2: Field("value", read, _WIRES.get(kind, 2))}

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
    text = b64decode(obj.get("raw") or obj.get("Raw") or "")
    return msgspec.json.decode(text) if text else None


def _items(obj: Plain) -> Any:
    return obj.get("items", [])


def _schema_or_bool(obj: Plain) -> Any:
    return obj["schema"] if "schema" in obj else obj.get("allows", False)


def _schema_or_array(obj: Plain) -> Any:
    return obj.get("jSONSchemas") or obj.get("schema")


def _schema_or_strings(obj: Plain) -> Any:
    return obj.get("property") or obj.get("schema")


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "s": _text,
    "b": _base64,
    "i": _integer,
    "B": bool,
    "d": _double,
}
_WIRES = {"i": 0, "B": 0, "d": 1}
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
