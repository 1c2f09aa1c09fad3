"""A CRD's parts as the real server's own structs print, where a message shows one.

Its internal types have no JSON names, so such a message shows Go's field names, each of
them, set or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from trimtab.embedded.gotext import Struct
from trimtab.embedded.schemas import (
    EITHER,
    EMBEDDED,
    KEEP,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    RULES,
)

Plain = Mapping[str, Any]


def _same(value: Any) -> Any:
    return value


def _schema_or_none(value: Any) -> Any:
    return None if value is None else schema(value)


def _schemas(value: Any) -> Any:
    return None if value is None else [schema(each) for each in value]


def _schema_map(value: Any) -> Any:
    return None if value is None else {key: schema(each) for key, each in value.items()}


def _items(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return Struct(Schema=None, JSONSchemas=_schemas(value))
    return Struct(Schema=schema(value), JSONSchemas=None)


def _schema_or_bool(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, Mapping):
        return Struct(Allows=True, Schema=schema(value))
    return Struct(Allows=value, Schema=None)


def _dependencies(value: Any) -> Any:
    if value is None:
        return None
    return {
        key: Struct(Schema=None, Property=each)
        if isinstance(each, list)
        else Struct(Schema=None if each is None else schema(each), Property=None)
        for key, each in value.items()
    }


def _documentation(value: Any) -> Any:
    if value is None:
        return None
    url, text = value.get("url", ""), value.get("description", "")
    return Struct(Description=text, URL=url)


def _rules(value: Any) -> Any:
    return None if value is None else [rule(each) for each in value]


Show = Callable[[Any], Any]
# Go's name, the name in JSON, what it is when unset, and how it is shown.
_FIELDS: Final[tuple[tuple[str, str, Any, Show], ...]] = (
    ("ID", "id", "", _same),
    ("Schema", "$schema", "", _same),
    ("Ref", "$ref", None, _same),
    ("Description", "description", "", _same),
    ("Type", "type", "", _same),
    ("Nullable", "nullable", False, _same),
    ("Format", "format", "", _same),
    ("Title", "title", "", _same),
    ("Default", "default", None, _same),
    ("Maximum", "maximum", None, _same),
    ("ExclusiveMaximum", "exclusiveMaximum", False, _same),
    ("Minimum", "minimum", None, _same),
    ("ExclusiveMinimum", "exclusiveMinimum", False, _same),
    ("MaxLength", "maxLength", None, _same),
    ("MinLength", "minLength", None, _same),
    ("Pattern", "pattern", "", _same),
    ("MaxItems", "maxItems", None, _same),
    ("MinItems", "minItems", None, _same),
    ("UniqueItems", "uniqueItems", False, _same),
    ("MultipleOf", "multipleOf", None, _same),
    ("Enum", "enum", None, _same),
    ("MaxProperties", "maxProperties", None, _same),
    ("MinProperties", "minProperties", None, _same),
    ("Required", "required", None, _same),
    ("Items", "items", None, _items),
    ("AllOf", "allOf", None, _schemas),
    ("OneOf", "oneOf", None, _schemas),
    ("AnyOf", "anyOf", None, _schemas),
    ("Not", "not", None, _schema_or_none),
    ("Properties", "properties", None, _schema_map),
    ("AdditionalProperties", "additionalProperties", None, _schema_or_bool),
    ("PatternProperties", "patternProperties", None, _schema_map),
    ("Dependencies", "dependencies", None, _dependencies),
    ("AdditionalItems", "additionalItems", None, _schema_or_bool),
    ("Definitions", "definitions", None, _schema_map),
    ("ExternalDocs", "externalDocs", None, _documentation),
    ("Example", "example", None, _same),
    ("XPreserveUnknownFields", KEEP, None, _same),
    ("XEmbeddedResource", EMBEDDED, False, _same),
    ("XIntOrString", EITHER, False, _same),
    ("XListMapKeys", LIST_KEYS, None, _same),
    ("XListType", LIST_TYPE, None, _same),
    ("XMapType", MAP_TYPE, None, _same),
    ("XValidations", RULES, None, _rules),
)
GO_NAMES: Final = {json: go for go, json, _, _ in _FIELDS}
IN_ORDER: Final = tuple((go, json, unset) for go, json, unset, _ in _FIELDS)


def schema(raw: Plain) -> Struct:
    """A schema."""
    return Struct(
        (go, show(raw[json]) if raw.get(json) is not None else unset)
        for go, json, unset, show in _FIELDS
    )


def rule(given: Plain) -> Struct:
    """A validation rule."""
    return Struct(
        Rule=given.get("rule", ""),
        Message=given.get("message", ""),
        MessageExpression=given.get("messageExpression", ""),
        Reason=given.get("reason"),
        FieldPath=given.get("fieldPath", ""),
        OptionalOldSelf=given.get("optionalOldSelf"),
    )


def version(given: Plain) -> Struct:
    """A version, with only what is not the same in all versions."""
    wrapped = given.get("schema")
    inner = (wrapped or {}).get("openAPIV3Schema")
    return Struct(
        Name=given.get("name", ""),
        Served=bool(given.get("served")),
        Storage=bool(given.get("storage")),
        Deprecated=bool(given.get("deprecated")),
        DeprecationWarning=given.get("deprecationWarning"),
        Schema=None
        if wrapped is None
        else Struct(OpenAPIV3Schema=_schema_or_none(inner)),
        Subresources=_subresources(given.get("subresources")),
        AdditionalPrinterColumns=_columns(given.get("additionalPrinterColumns")),
        SelectableFields=_selectable(given.get("selectableFields")),
    )


def _subresources(given: Any) -> Any:
    if given is None:
        return None
    scale = given.get("scale")
    return Struct(
        Status=None if given.get("status") is None else Struct(),
        Scale=None
        if scale is None
        else Struct(
            SpecReplicasPath=scale.get("specReplicasPath", ""),
            StatusReplicasPath=scale.get("statusReplicasPath", ""),
            LabelSelectorPath=scale.get("labelSelectorPath"),
        ),
    )


def _columns(given: Any) -> Any:
    if given is None:
        return None
    return [
        Struct(
            Name=each.get("name", ""),
            Type=each.get("type", ""),
            Format=each.get("format", ""),
            Description=each.get("description", ""),
            Priority=each.get("priority", 0),
            JSONPath=each.get("jsonPath", ""),
        )
        for each in given
    ]


def _selectable(given: Any) -> Any:
    if given is None:
        return None
    return [Struct(JSONPath=each.get("jsonPath", "")) for each in given]
