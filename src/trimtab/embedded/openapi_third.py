"""The third version of OpenAPI in protobuf, as kubectl and client-go ask for it.

Field numbers stand in the table at the end; how they are written, in
:mod:`trimtab.embedded.openapi_messages`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.embedded.openapi_messages import Data, Messages, double, names, numbered
from trimtab.embedded.protobuf_values import field_of, varint

MEDIA = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
DEPRECATED = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
"""How clients name it still; they are answered with the name of today."""

JSON = Mapping[str, Any]


def encode(document: JSON) -> bytes:
    """A whole document; fields that this version does not have are left out."""
    return _MESSAGES.message("Document", document)


def _or_reference(name: str) -> Data:
    """A message of that name, or a reference that stands for one."""

    def encoded(value: JSON) -> bytes:
        if "$ref" in value:
            return field_of(2, _MESSAGES.message("Reference", value))
        return field_of(1, _MESSAGES.message(name, value))

    return encoded


def _items(value: JSON) -> bytes:
    return field_of(1, _schema(value))


def _schema_or_boolean(value: JSON | bool) -> bytes:
    if isinstance(value, bool):
        return varint(2 << 3) + varint(value)
    return field_of(1, _schema(value))


def _default(value: Any) -> bytes:
    """A default: only a plain one can be told, of others that there is one."""
    if isinstance(value, bool):
        return varint(2 << 3) + varint(value)
    if isinstance(value, str):
        return field_of(3, value.encode())
    return double(1, value) if isinstance(value, int | float) else b""


def _path(value: JSON) -> bytes:
    return _MESSAGES.message("PathItem", value)


def _responses(value: JSON) -> bytes:
    coded = {code: each for code, each in value.items() if code != "default"}
    found = names(2, _response)(coded)
    if "default" in value:
        return field_of(1, _response(value["default"])) + found
    return found


def _media(value: JSON) -> bytes:
    return _MESSAGES.message("MediaType", value)


_schema = _or_reference("Schema")
_response = _or_reference("Response")
_SPECIAL: dict[str, Data] = {
    "schema": _schema,
    "schemas": names(1, _schema),
    "items": _items,
    "schema-or-boolean": _schema_or_boolean,
    "default": _default,
    "parameter": _or_reference("Parameter"),
    "body": _or_reference("RequestBody"),
    "responses": _responses,
    "content": names(1, _media),
    "paths": names(1, _path),
}
# Each message with its fields in the order of their numbers, which begin at one and
# leave none out, and the number of its extensions.
_TABLE = {
    "Document": (
        numbered("openapi info:Info - paths:paths components:Components"),
        9,
    ),
    "Info": (
        numbered("title description termsOfService - - version"),
        7,
    ),
    "Components": (numbered("schemas:schemas"), 10),
    "PathItem": (
        numbered(
            """$ref summary description get:Operation put:Operation post:Operation
            delete:Operation options:Operation head:Operation patch:Operation
            trace:Operation - parameters:*parameter"""
        ),
        14,
    ),
    "Operation": (
        numbered(
            """tags:*text summary description externalDocs:ExternalDocs operationId
            parameters:*parameter requestBody:body responses:responses -
            deprecated:boolean"""
        ),
        13,
    ),
    "ExternalDocs": (numbered("description url"), 3),
    "Reference": (numbered("$ref summary description"), 0),
    "Parameter": (
        numbered(
            """name in description required:boolean deprecated:boolean
            allowEmptyValue:boolean style explode:boolean allowReserved:boolean
            schema:schema example:any"""
        ),
        14,
    ),
    "RequestBody": (numbered("description content:content required:boolean"), 4),
    "Response": (numbered("description - content:content"), 5),
    "MediaType": (numbered("schema:schema example:any"), 5),
    "Schema": (
        numbered(
            """nullable:boolean - readOnly:boolean writeOnly:boolean
            - externalDocs:ExternalDocs example:any deprecated:boolean title
            multipleOf:double maximum:double exclusiveMaximum:boolean minimum:double
            exclusiveMinimum:boolean maxLength:integer minLength:integer pattern
            maxItems:integer minItems:integer uniqueItems:boolean maxProperties:integer
            minProperties:integer required:*text enum:*any type allOf:*schema
            oneOf:*schema anyOf:*schema not:Schema items:items properties:schemas
            additionalProperties:schema-or-boolean default:default description
            format"""
        ),
        36,
    ),
}
_MESSAGES = Messages(_TABLE, special=_SPECIAL)
