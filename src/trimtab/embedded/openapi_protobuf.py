"""The second version of OpenAPI in protobuf, as client-go asks for it.

Field numbers stand in the table at the end; how they are written, in
:mod:`trimtab.embedded.openapi_messages`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.embedded.openapi_messages import Data, Messages, names, numbered
from trimtab.embedded.protobuf_values import field_of, varint

MEDIA = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
DEPRECATED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""How old clients name it; they are answered with the name of today."""

JSON = Mapping[str, Any]


def encode(document: JSON) -> bytes:
    """A whole document; fields that this version does not have are left out."""
    return _MESSAGES.message("Document", document)


def _type(value: str | list[str]) -> bytes:
    names = [value] if isinstance(value, str) else value
    return b"".join(field_of(1, name.encode()) for name in names)


def _schema(value: JSON) -> bytes:
    return _MESSAGES.message("Schema", value)


def _one_schema(value: JSON) -> bytes:
    return field_of(1, _schema(value))


def _schema_or_boolean(value: JSON | bool) -> bytes:
    if isinstance(value, bool):
        return varint(2 << 3) + varint(value)
    return _one_schema(value)


def _parameter(value: JSON) -> bytes:
    """A parameter: in the body, or one of four others, in a message for each choice."""
    if value["in"] == "body":
        return field_of(1, field_of(1, _MESSAGES.message("BodyParameter", value)))
    number = ("header", "formData", "query", "path").index(value["in"]) + 1
    name = "Parameter" if number in (1, 4) else "EmptyParameter"
    return field_of(1, field_of(2, field_of(number, _MESSAGES.message(name, value))))


def _path(value: JSON) -> bytes:
    return _MESSAGES.message("PathItem", value)


def _response(value: JSON) -> bytes:
    return field_of(1, _MESSAGES.message("Response", value))


_SPECIAL: dict[str, Data] = {
    "type": _type,
    "schema": _schema,
    "one-schema": _one_schema,
    "schema-or-boolean": _schema_or_boolean,
    "schemas": names(1, _schema),
    "parameter": _parameter,
    "paths": names(2, _path),
    "responses": names(1, _response),
}
_LIMITS = """default:any maximum:double exclusiveMaximum:boolean minimum:double
 exclusiveMinimum:boolean maxLength:integer minLength:integer pattern maxItems:integer
 minItems:integer uniqueItems:boolean enum:*any multipleOf:double"""
_PLAIN = f"type format items:Items collectionFormat {_LIMITS}"
# Each message with its fields in the order of their numbers, which begin at one and
# leave none out, and the number of its extensions.
_TABLE = {
    "Document": (
        numbered(
            """swagger info:Info host basePath schemes:*text consumes:*text
            produces:*text paths:paths definitions:schemas"""
        ),
        16,
    ),
    "Info": (numbered("title version description termsOfService"), 7),
    "PathItem": (
        numbered(
            """$ref get:Operation put:Operation post:Operation delete:Operation
            options:Operation head:Operation patch:Operation parameters:*parameter"""
        ),
        10,
    ),
    "Operation": (
        numbered(
            """tags:*text summary description externalDocs:ExternalDocs operationId
            produces:*text consumes:*text parameters:*parameter responses:responses
            schemes:*text deprecated:boolean"""
        ),
        13,
    ),
    "ExternalDocs": (numbered("description url"), 3),
    "BodyParameter": (
        numbered("description name in required:boolean schema:schema"),
        6,
    ),
    "Parameter": (
        numbered(f"required:boolean in description name {_PLAIN}"),
        22,
    ),
    "EmptyParameter": (
        numbered(
            f"required:boolean in description name allowEmptyValue:boolean {_PLAIN}"
        ),
        23,
    ),
    "Items": (numbered(_PLAIN), 18),
    "Response": (numbered("description schema:one-schema"), 5),
    "Schema": (
        numbered(
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
_MESSAGES = Messages(_TABLE, special=_SPECIAL)
