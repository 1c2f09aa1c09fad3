"""Bytes to objects and back: JSON straight into typed structs, by msgspec.

Value classes that JSON has no type for (``Quantity``, ``MicroTime``, ``Conditions``)
take part through two methods: ``__decode__(cls, builtin)`` and ``__encode__()``.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from trimtab.api.objects import Object, builtins_of, wire

T = TypeVar("T")


def dec_hook(kind: type, value: Any) -> Any:
    """Make a value class out of the builtin that JSON had in its place."""
    decode = getattr(kind, "__decode__", None)
    if decode is None:
        raise NotImplementedError(f"{kind.__name__} cannot be read from JSON")
    return decode(value)


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of a type, made once: building one costs more than using it."""
    made: msgspec.json.Decoder[T] = _decoder(kind)  # type: ignore[arg-type]
    return made


@lru_cache(maxsize=1024)
def _decoder(kind: Hashable) -> Any:
    return msgspec.json.Decoder(kind, dec_hook=dec_hook)


def decode(kind: type[T], data: bytes | bytearray | memoryview | str) -> T:
    """Read one value; ``msgspec.ValidationError`` names the path that is off."""
    return decoder(kind).decode(data)


def convert(kind: type[T], value: Any) -> T:
    """Make a typed value out of plain builtins, as if they had been decoded."""
    return msgspec.convert(value, kind, dec_hook=dec_hook)


# A server reads the body of an apply as YAML: raw, it refuses all of these but U+0085,
# which it turns into a space. What it does take raw, it would refuse escaped.
_NOT_IN_YAML = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xef\xbf[\xbe\xbf]")


def encode(value: Any) -> bytes:
    """The JSON bytes of an object, or of plain builtins; they are YAML too."""
    plain = wire(value) if isinstance(value, Object) else builtins_of(value)
    data = msgspec.json.encode(plain)
    if data.isascii() and b"\x7f" not in data:
        return data
    return _NOT_IN_YAML.sub(lambda found: b"\\u%04x" % ord(found[0].decode()), data)
