"""The second version of OpenAPI in protobuf, as client-go asks for it.

The messages are gnostic's: a map is a message of named values, a value that may be of
several types a message with a field for each, and what has no type of its own is YAML,
of which JSON is a part. Field numbers stand in the table at the end.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

import msgspec

from trimtab.embedded.protobuf_values import field_of, varint

MEDIA = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
DEPRECATED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""How old clients name it; they are answered with the name of today."""

EXTENSION = "x-"

JSON = Mapping[str, Any]
Data = Callable[[Any], bytes]


def encode(document: JSON) -> bytes:
    """A whole document; fields that this version does not have are left out."""
    return _message("Document", document)


def _message(name: str, value: JSON) -> bytes:
    """The fields that are there, in the order of their numbers."""
    fields, extensions = _TABLE[name]
    parts: list[tuple[int, bytes]] = []
    for key, each in value.items():
        if key.startswith(EXTENSION):
            parts.append((extensions, field_of(extensions, _named(key, _any(each)))))
        elif key in fields:
            number, kind = fields[key]
            parts.append((number, _value(number, kind, each)))
    return b"".join(data for _, data in sorted(parts, key=itemgetter(0)))


def _value(number: int, kind: str, value: Any) -> bytes:
    """A field, or as many as a list has items."""
    if kind.startswith("*"):
        return b"".join(_value(number, kind[1:], item) for item in value)
    if kind in ("integer", "boolean"):
        return varint(number << 3) + varint(value) if value else b""
    if kind == "double":
        return varint(number << 3 | 1) + struct.pack("<d", value) if value else b""
    if kind in _SPECIAL:
        return field_of(number, _SPECIAL[kind](value))
    return field_of(number, _message(kind, value))


def _named(name: str, data: bytes) -> bytes:
    return field_of(1, name.encode()) + field_of(2, data)


def _names(number: int, data: Data) -> Data:
    """A map, as a message that has a named value for each key."""

    def encoded(value: JSON) -> bytes:
        items = (_named(key, data(each)) for key, each in value.items())
        return b"".join(field_of(number, item) for item in items)

    return encoded


def _any(value: Any) -> bytes:
    return field_of(2, msgspec.json.encode(value) + b"\n")


def _type(value: str | list[str]) -> bytes:
    names = [value] if isinstance(value, str) else value
    return b"".join(field_of(1, name.encode()) for name in names)


def _schema(value: JSON) -> bytes:
    return _message("Schema", value)


def _one_schema(value: JSON) -> bytes:
    return field_of(1, _schema(value))


def _schema_or_boolean(value: JSON | bool) -> bytes:
    if isinstance(value, bool):
        return varint(2 << 3) + varint(value)
    return _one_schema(value)


def _parameter(value: JSON) -> bytes:
    """A parameter: in the body, or one of four others, in a message for each choice."""
    if value["in"] == "body":
        return field_of(1, field_of(1, _message("BodyParameter", value)))
    number = ("header", "formData", "query", "path").index(value["in"]) + 1
    name = "Parameter" if number in (1, 4) else "EmptyParameter"
    return field_of(1, field_of(2, field_of(number, _message(name, value))))


def _response(value: JSON) -> bytes:
    return field_of(1, _message("Response", value))


def _numbered(text: str, *, first: int = 1) -> dict[str, tuple[int, str]]:
    """A table's fields: ``name:kind``, a text if it has no kind, and its place."""
    pairs = [word.partition(":") for word in text.split()]
    return {
        name: (number, kind or "text")
        for number, (name, _, kind) in enumerate(pairs, first)
    }


_SPECIAL: dict[str, Data] = {
    "text": lambda value: str(value).encode(),
    "any": _any,
    "type": _type,
    "schema": _schema,
    "one-schema": _one_schema,
    "schema-or-boolean": _schema_or_boolean,
    "schemas": _names(1, _schema),
    "parameter": _parameter,
    "paths": _names(2, lambda value: _message("PathItem", value)),
    "responses": _names(1, _response),
}
_LIMITS = """default:any maximum:double exclusiveMaximum:boolean minimum:double
 exclusiveMinimum:boolean maxLength:integer minLength:integer pattern maxItems:integer
 minItems:integer uniqueItems:boolean enum:*any multipleOf:double"""
_PLAIN = f"type format items:Items collectionFormat {_LIMITS}"
# Each message with its fields in the order of their numbers, which begin at one and
# leave none out, and the number of its extensions.
_TABLE = {
    "Document": (
        _numbered(
            """swagger info:Info host basePath schemes:*text consumes:*text
            produces:*text paths:paths definitions:schemas"""
        ),
        16,
    ),
    "Info": (_numbered("title version description termsOfService"), 7),
    "PathItem": (
        _numbered(
            """$ref get:Operation put:Operation post:Operation delete:Operation
            options:Operation head:Operation patch:Operation parameters:*parameter"""
        ),
        10,
    ),
    "Operation": (
        _numbered(
            """tags:*text summary description externalDocs:ExternalDocs operationId
            produces:*text consumes:*text parameters:*parameter responses:responses
            schemes:*text deprecated:boolean"""
        ),
        13,
    ),
    "ExternalDocs": (_numbered("description url"), 3),
    "BodyParameter": (
        _numbered("description name in required:boolean schema:schema"),
        6,
    ),
    "Parameter": (
        _numbered(f"required:boolean in description name {_PLAIN}"),
        22,
    ),
    "EmptyParameter": (
        _numbered(
            f"required:boolean in description name allowEmptyValue:boolean {_PLAIN}"
        ),
        23,
    ),
    "Items": (_numbered(_PLAIN), 18),
    "Response": (_numbered("description schema:one-schema"), 5),
    "Schema": (
        _numbered(
            """$ref format title description default:any multipleOf:double
            maximum:double exclusiveMaximum:boolean minimum:double
            exclusiveMinimum:boolean maxLength:integer minLength:integer pattern
            maxItems:integer minItems:integer uniqueItems:boolean maxProperties:integer
            minProperties:integer required:*text enum:*any
            additionalProperties:schema-or-boolean type:type items:one-schema
            allOf:*schema properties:schemas discriminator readOnly:boolean xml:any
            externalDocs:ExternalDocs example:any"""
        ),
        31,
    ),
}
