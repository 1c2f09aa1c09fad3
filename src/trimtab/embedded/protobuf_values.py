"""Values in protobuf: what the bytes of a single field are, whatever it stands in."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache
from typing import Any

import msgspec

from trimtab.api.times import Duration, parse_rfc3339
from trimtab.embedded.protobuf import EPOCH, UNSIGNED

SHORT = 128
"""Lengths below it are one byte."""
SECOND = timedelta(seconds=1)

Data = Callable[[Any], bytes]


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


def tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def field_of(number: int, data: bytes) -> bytes:
    """A field that begins with its length."""
    return tag(number, 2) + varint(len(data)) + data


def double(value: float) -> bytes:
    return struct.pack("<d", value)


def boolean(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


@lru_cache(maxsize=1024)
def time(text: Any) -> bytes:
    """An instant in whole seconds; none is no bytes at all."""
    if not text:
        return b""
    return b"\x08" + varint((parse_rfc3339(text) - EPOCH) // SECOND) + b"\x10\x00"


def micro_time(text: Any) -> bytes:
    if not text:
        return b""
    since = parse_rfc3339(text) - EPOCH
    nanos = since.microseconds * 1000
    return b"\x08" + varint(since // SECOND) + b"\x10" + varint(nanos)


def duration(text: Any) -> bytes:
    return b"\x08" + varint(Duration(text).nanoseconds if text else 0)


def quantity(value: Any) -> bytes:
    return field_of(1, str(value or "0").encode())


def int_or_string(value: Any) -> bytes:
    if isinstance(value, str):
        return b"\x08\x01\x10\x00" + field_of(3, value.encode())
    return b"\x08\x00\x10" + varint(value or 0) + b"\x1a\x00"


def raw(value: Any) -> bytes:
    """JSON inside of protobuf."""
    return field_of(1, msgspec.json.encode(value))


def extension(value: Any) -> bytes:
    """JSON of an object that may not be there."""
    return b"" if value is None else raw(value)


def items(value: Any) -> bytes:
    return b"".join(field_of(1, item.encode()) for item in value or ())


_BYTES = tuple(bytes([each]) for each in range(SHORT))
