"""Types: the schema node that merging, patching, validation and publishing share.

Built-in kinds and custom ones have the same nodes, so that each algorithm over objects
exists once. A node says what shape a value has, how lists and maps merge, and keeps the
other constraints as they stand in the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET


class Type(msgspec.Struct, eq=False, kw_only=True):
    """One node. Graphs may be cyclic, so nodes are built in two phases, then fixed."""

    shape: str = "any"
    """``object`` (named fields), ``map`` (string keys, one element type), ``list``,
    ``scalar``, or ``any`` (schemaless: kept as it is)."""
    scalar: str = ""
    """``string``, ``integer``, ``number``, ``boolean`` or ``int-or-string``."""
    format: str = ""
    """As in the schema; ``quantity`` for quantities, which take any number too."""
    fields: dict[str, Type] = {}
    required: tuple[str, ...] = ()
    element: Type | None = None
    """Of a map or a list."""
    atomic: bool = False
    """Owned and replaced as a whole."""
    list_type: str = ""
    """``atomic``, ``set`` or ``map``."""
    keys: tuple[str, ...] = ()
    """What identifies an item of a list of type ``map``."""
    patch_strategy: tuple[str, ...] = ()
    """For strategic merge: ``merge``, ``replace``, ``retainKeys``."""
    patch_key: str = ""
    preserve_unknown: bool = False
    embedded: bool = False
    nullable: bool = False
    default: Any = UNSET
    """As published. The real server fills in a custom kind's; of built-in kinds it uses
    them only as the keys that an item of a list leaves out, and a string that is not a
    pointer in its own types has the default ``""``."""
    facts: dict[str, Any] = {}
    """The other constraints, as in JSON schema."""
    name: str = ""
    """The definition's name, for built-in types."""

    def __repr__(self) -> str:
        # In full it would be the whole graph, time and again.
        return f"<Type {self.shape} {self.name or self.scalar}".rstrip() + ">"


Resolve = Callable[[str], Type]
"""From the name of a definition to its type."""

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"

# These say "object" in their schema and take whatever comes.
_OPEN = frozenset(
    {
        RAW_EXTENSION,
        "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
        "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
    }
)
_SCALARS = frozenset({"string", "integer", "number", "boolean"})
_PLAIN = frozenset({"type", "format", "default", "description", "title"})
# What has a place of its own in Type, and what only people read.
_PLACED = frozenset(
    {
        "$ref",
        "additionalProperties",
        "default",
        "format",
        "items",
        "nullable",
        "properties",
        "required",
        "type",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-patch-merge-key",
        "x-kubernetes-patch-strategy",
        "x-kubernetes-preserve-unknown-fields",
        "description",
        "example",
        "externalDocs",
        "title",
    }
)


def of_structural(schema: Mapping[str, Any]) -> Type:
    """The type of a custom kind, from the ``openAPIV3Schema`` of its CRD.

    Guarantees: ``apiVersion``, ``kind`` and ``metadata`` are there at the root and in
    each embedded resource, whether the schema names them or not. ``metadata`` has the
    fields of ObjectMeta; what the schema demands of them is in its ``facts``, under
    ``properties`` as the schema has it. Whatever else the schema demands is in the
    ``facts`` of the node that it says it of.

    Assumptions: the schema is structural, so it refers to nothing.
    """
    root = Type()
    fill(root, schema, resolve=_no_reference)
    _add_object_fields(root, schema)
    return root


def of_schema(schema: Mapping[str, Any], *, resolve: Resolve) -> Type:
    """The type of one schema; shared with others where it has nothing of its own."""
    if "$ref" in schema:
        return _referred(schema, resolve)
    default = schema.get("default", UNSET)
    plain = schema.keys() <= _PLAIN and isinstance(default, Hashable)
    if plain and schema.get("type") in _SCALARS:
        return _plain(schema["type"], schema.get("format", ""), default)
    node = Type()
    fill(node, schema, resolve=resolve)
    return node


def fill(node: Type, schema: Mapping[str, Any], *, resolve: Resolve) -> None:
    """Make an empty node what its schema says.

    Guarantees: all but what it contains is in place before anything is resolved, so
    that a type may contain itself.
    """
    _shape(node, schema)
    _merging(node, schema)
    node.nullable = schema.get("nullable", False)
    node.default = schema.get("default", UNSET)
    node.required = tuple(schema.get("required") or ())
    # How a schema spells out the two flexible scalars is no constraint on them.
    if node.name not in (QUANTITY, INT_OR_STRING):
        node.facts = {key: schema[key] for key in schema if key not in _PLACED}
    _contents(node, schema, resolve)
    if node.embedded:
        _add_object_fields(node, schema)


@lru_cache(maxsize=256, typed=True)
def _plain(scalar: str, form: str, default: Any) -> Type:
    """A scalar without constraints, made once; 0 and False are two defaults."""
    return Type(shape="scalar", scalar=scalar, format=form, default=default)


def _referred(schema: Mapping[str, Any], resolve: Resolve) -> Type:
    """The type that is referred to, or a copy of it that says what the field says.

    A copy shares the fields, which may not be there yet.
    """
    found = resolve(schema["$ref"])
    if len(schema) == 1:
        return found
    copy = msgspec.structs.replace(found, default=schema.get("default", UNSET))
    strategy = schema.get("x-kubernetes-patch-strategy", "")
    copy.patch_strategy = tuple(strategy.split(",")) if strategy else ()
    if "x-kubernetes-map-type" in schema:
        copy.atomic = schema["x-kubernetes-map-type"] == "atomic"
    return copy


def _shape(node: Type, schema: Mapping[str, Any]) -> None:
    kind = schema.get("type", "")
    node.format = schema.get("format", "")
    node.preserve_unknown = schema.get("x-kubernetes-preserve-unknown-fields", False)
    node.embedded = schema.get("x-kubernetes-embedded-resource", False)
    if node.name == QUANTITY:
        node.shape, node.scalar, node.format = "scalar", "int-or-string", "quantity"
    elif node.name == INT_OR_STRING or schema.get("x-kubernetes-int-or-string"):
        node.shape, node.scalar = "scalar", "int-or-string"
    elif kind in _SCALARS:
        node.shape, node.scalar = "scalar", kind
    elif kind == "array":
        node.shape = "list"
    elif kind == "object" and node.name not in _OPEN:
        values = schema.get("additionalProperties")
        node.shape = "object" if values is None or values is False else "map"


def _merging(node: Type, schema: Mapping[str, Any]) -> None:
    """How it merges: by the markers of server-side apply, else by those of patches."""
    strategy = schema.get("x-kubernetes-patch-strategy", "")
    node.patch_strategy = tuple(strategy.split(",")) if strategy else ()
    node.patch_key = schema.get("x-kubernetes-patch-merge-key", "")
    if node.shape != "list":
        # Of what is open, the server merges into all but a raw extension.
        atomic = schema.get("x-kubernetes-map-type") == "atomic"
        node.atomic = atomic or node.name == RAW_EXTENSION
        return
    node.list_type = schema.get("x-kubernetes-list-type", "")
    node.keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    if not node.list_type and "merge" in node.patch_strategy:
        node.list_type = "map" if node.patch_key else "set"
        node.keys = (node.patch_key,) if node.patch_key else ()
    node.list_type = node.list_type or "atomic"
    node.atomic = node.list_type == "atomic"


def _contents(node: Type, schema: Mapping[str, Any], resolve: Resolve) -> None:
    if node.shape == "list":
        node.element = of_schema(schema.get("items") or {}, resolve=resolve)
    elif node.shape == "map":
        values = schema["additionalProperties"]
        inner = values if isinstance(values, Mapping) else {}
        node.element = of_schema(inner, resolve=resolve)
    else:
        for name, each in (schema.get("properties") or {}).items():
            node.fields[name] = of_schema(each, resolve=resolve)


def _add_object_fields(node: Type, schema: Mapping[str, Any]) -> None:
    """What every object has, in place of what a schema says of its metadata."""
    # Here, because the facts are made of types.
    from trimtab.embedded.facts import definitions

    metadata = definitions().type(OBJECT_META)
    said = (schema.get("properties") or {}).get("metadata") or {}
    kept = ("properties", "required")
    demands = {key: said[key] for key in said if key in kept or key not in _PLACED}
    if demands:
        metadata = msgspec.structs.replace(metadata, facts=demands)
    text = _plain("string", "", UNSET)
    node.fields.setdefault("apiVersion", text)
    node.fields.setdefault("kind", text)
    node.fields["metadata"] = metadata


def _no_reference(name: str) -> Type:
    raise ValueError(f"a structural schema refers to nothing, and this one to {name}.")
