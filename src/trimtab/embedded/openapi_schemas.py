"""Schemas of an OpenAPI document: types as clients are told of them.

Recorded definitions only need their references written out. What a CRD says gets the
fields that every object has; and the second version of OpenAPI, or rather its readers,
cannot take all that the third can.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.embedded.descriptions import describe
from trimtab.embedded.facts import Definitions, ServedResource
from trimtab.embedded.openapi_paths import KINDS, META, kind_of
from trimtab.embedded.types import INT_OR_STRING, OBJECT_META, QUANTITY

JSON = dict[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
FLEXIBLE = "x-kubernetes-int-or-string"

# What the second version cannot say, and what stands in its place.
_JUNCTORS = ("allOf", "anyOf", "oneOf", "not")
_SECOND: dict[str, JSON] = {
    QUANTITY: {"type": "string"},
    INT_OR_STRING: {"type": "string", "format": "int-or-string"},
}
_TEXT = {"type": "string"}


class Custom(msgspec.Struct, frozen=True, kw_only=True):
    """What a CRD says of the objects of one of its versions."""

    schema: Mapping[str, Any] | None = None
    selectable: tuple[str, ...] = ()
    """The fields that a field selector may name, as ``spec.color``."""


def builtin_schema(name: str, *, definitions: Definitions, second: bool) -> JSON:
    """A recorded definition, described. References are bare names, as in
    :func:`linked`."""
    if second and name in _SECOND:
        return _SECOND[name]
    schema = definitions.schema(name)
    describe(name, schema)
    if kinds := definitions.kinds(name):
        schema[KINDS] = [kind_of(*kind) for kind in kinds]
    return schema


def custom_schema(resource: ServedResource, said: Custom, *, second: bool) -> JSON:
    """What is published of a custom kind."""
    if said.schema is None or (second and said.schema.get(PRESERVE)):
        # Readers take a type with fields to have no others.
        schema: JSON = {"type": "object"}
    else:
        schema = _walked(said.schema, second=second)
        schema["properties"] = {**schema.get("properties", {}), **_object_fields()}
    return schema | _marks(resource, resource.kind, said)


def custom_list(resource: ServedResource, said: Custom) -> JSON:
    """What is published of a list of custom objects."""
    items = {"type": "array", "items": {"$ref": resource.definition}}
    metadata = {"$ref": f"{META}ListMeta"}
    fields = {"apiVersion": _TEXT, "items": items, "kind": _TEXT, "metadata": metadata}
    schema = {"type": "object", "required": ["items"], "properties": fields}
    return schema | _marks(resource, resource.list_kind, said)


def _marks(resource: ServedResource, kind: str, said: Custom) -> JSON:
    marks: JSON = {KINDS: [kind_of(resource.group, resource.version, kind)]}
    if said.selectable:
        paths = [{"fieldPath": path} for path in said.selectable]
        marks["x-kubernetes-selectable-fields"] = paths
    return marks


def _object_fields() -> JSON:
    return {"apiVersion": _TEXT, "kind": _TEXT, "metadata": {"$ref": OBJECT_META}}


def _walked(schema: Mapping[str, Any], *, second: bool) -> JSON:
    """A CRD's schema with what readers expect, and without what they cannot take."""
    node = {key: value for key, value in schema.items() if value is not None}
    if second:
        _simplify(node)
    elif node.get(FLEXIBLE) and "anyOf" not in node and "allOf" not in node:
        node["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), Mapping):
            node[key] = _walked(node[key], second=second)
    if "properties" in node:
        fields = node["properties"].items()
        node["properties"] = {
            name: _walked(each, second=second) for name, each in fields
        }
    if node.get(EMBEDDED) and not (second and node.get(PRESERVE)):
        node["properties"] = {**node.get("properties", {}), **_object_fields()}
        required = [*node.get("required", ()), "kind", "apiVersion"]
        node["required"] = list(dict.fromkeys(required))
    return node


def _simplify(node: JSON) -> None:
    """Take away, from one node, what the second version's readers stumble over."""
    for key in _JUNCTORS:
        node.pop(key, None)
    _forget_nullable_fields(node)
    nullable, preserved = node.pop("nullable", False), node.get(PRESERVE, False)
    if nullable or preserved:
        node.pop("items", None)
        node.pop("properties", None)
    kind = node.get("type")
    bare_list = kind == "array" and "items" not in node
    if nullable or bare_list or (preserved and kind == "object"):
        node.pop("type", None)


def _forget_nullable_fields(node: JSON) -> None:
    """A field that may be null is not required, for it cannot be said to be null."""
    values = node.get("additionalProperties")
    if isinstance(values, Mapping) and values.get("nullable"):
        node.pop("required", None)
    fields = node.get("properties", {})
    required = [
        name
        for name in node.get("required", ())
        if not fields.get(name, {}).get("nullable")
    ]
    if "required" in node:
        node["required"] = required
        if not required:
            del node["required"]


def linked(schema: Mapping[str, Any], *, second: bool, found: list[str]) -> JSON:
    """A schema whose references are links; ``found`` gets the names they lead to.

    What stands beside a reference is ignored by readers of the third version, so there
    the reference moves inward; the second has no defaults.
    """
    node: JSON = {}
    for key, value in schema.items():
        if key == "properties":
            node[key] = {
                name: linked(each, second=second, found=found)
                for name, each in value.items()
            }
        elif key in ("items", "additionalProperties") and isinstance(value, Mapping):
            node[key] = linked(value, second=second, found=found)
        elif key == "$ref":
            found.append(value)
        elif not (second and key == "default"):
            node[key] = value
    if "$ref" in schema:
        prefix = "#/definitions/" if second else "#/components/schemas/"
        link = {"$ref": prefix + schema["$ref"]}
        node = node | (link if second or not node else {"allOf": [link]})
    return node
