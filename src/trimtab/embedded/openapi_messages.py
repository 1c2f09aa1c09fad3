"""Messages of OpenAPI in protobuf: how a document is written by a table of its fields.

The messages are gnostic's: a map is a message of named values, a value that may be of
several types a message with a field for each, and what has no type of its own is YAML,
of which JSON is a part. Each version of OpenAPI has a table of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

import msgspec

from trimtab.embedded.protobuf_values import field_of, varint

EXTENSION = "x-"

JSON = Mapping[str, Any]
Data = Callable[[Any], bytes]
Fields = Mapping[str, tuple[int, str]]
"""Each field by its name in JSON: its number, and what kind of value it has."""


class Messages:
    """The messages of one version.

    ``table`` has the fields of each, and the number of its extensions; ``special`` the
    kinds of values that are neither messages of the table nor plain.
    """

    def __init__(
        self,
        table: Mapping[str, tuple[Fields, int]],
        *,
        special: Mapping[str, Data],
    ) -> None:
        self._table = table
        self._special = {"text": text, "any": anything, **special}

    def message(self, name: str, value: JSON) -> bytes:
        """The fields that are there, in the order of their numbers.

        What this version does not have is left out.
        """
        fields, extensions = self._table[name]
        parts: list[tuple[int, bytes]] = []
        for key, each in value.items():
            if key.startswith(EXTENSION):
                data = field_of(extensions, named(key, anything(each)))
                parts.append((extensions, data))
            elif key in fields:
                number, kind = fields[key]
                parts.append((number, self._value(number, kind, each)))
        return b"".join(data for _, data in sorted(parts, key=itemgetter(0)))

    def _value(self, number: int, kind: str, value: Any) -> bytes:
        """A field, or as many as a list has items; nothing for an empty plain one."""
        if kind.startswith("*"):
            items = (self._data(kind[1:], item) for item in value)
            return b"".join(field_of(number, item) for item in items)
        if kind in ("integer", "boolean"):
            return varint(number << 3) + varint(value) if value else b""
        if kind == "double":
            return double(number, value) if value else b""
        if kind == "text" and not value:
            return b""
        return field_of(number, self._data(kind, value))

    def _data(self, kind: str, value: Any) -> bytes:
        special = self._special.get(kind)
        return self.message(kind, value) if special is None else special(value)


def named(name: str, data: bytes) -> bytes:
    return field_of(1, name.encode()) + field_of(2, data)


def names(number: int, data: Data) -> Data:
    """A map, as a message that has a named value for each key."""

    def encoded(value: JSON) -> bytes:
        items = (named(key, data(each)) for key, each in value.items())
        return b"".join(field_of(number, item) for item in items)

    return encoded


def text(value: Any) -> bytes:
    return str(value).encode()


def anything(value: Any) -> bytes:
    return field_of(2, msgspec.json.encode(value) + b"\n")


def double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def numbered(text: str, *, first: int = 1) -> dict[str, tuple[int, str]]:
    """A table's fields: ``name:kind``, a text if it has no kind, and its place.

    A dash is a place that no document of ours has a value for.
    """
    pairs = [word.partition(":") for word in text.split()]
    return {
        name: (number, kind or "text")
        for number, (name, _, kind) in enumerate(pairs, first)
        if name != "-"
    }
