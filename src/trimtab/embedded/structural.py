"""Structural: whether a schema says, outside of its alternatives, what each value is.

Only a structural schema can be pruned, defaulted, merged and published. The complaints
are the real server's, sorted by their text as it sorts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trimtab.embedded import status
from trimtab.embedded.patterns import PatternError, compiled
from trimtab.embedded.schemas import (
    EITHER,
    EMBEDDED,
    KEEP,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    RULES,
)
from trimtab.embedded.status import FieldProblem

Plain = Mapping[str, Any]

_UNSUPPORTED: Final = {
    "id": "id",
    "$schema": "schema",
    "$ref": "$ref",
    "patternProperties": "patternProperties",
    "dependencies": "dependencies",
    "additionalItems": "additionalItems",
    "definitions": "definitions",
}
_EITHER_TYPES: Final = [{"type": "integer"}, {"type": "string"}]
_EMPTY_TYPE: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
# What only the schema itself may say, and how an alternative is told so.
_FORBIDDEN: Final = {
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    KEEP: "must be false to be structural",
    EMBEDDED: "must be false to be structural",
    EITHER: "must be false to be structural",
    LIST_KEYS: "must be empty to be structural",
    LIST_TYPE: "must be undefined to be structural",
    MAP_TYPE: "must be undefined to be structural",
    RULES: "must be empty to be structural",
}


def unsupported(raw: Plain) -> str:
    """Why a schema cannot be structural at all; empty if it may be."""
    for each in _every(raw):
        for word, shown in _UNSUPPORTED.items():
            value = each.get(word)
            if value or (word == "additionalItems" and value is not None):
                return f"OpenAPIV3Schema '{shown}' is not supported"
        if isinstance(each.get("items"), list):
            return "OpenAPIV3Schema 'items' must be a schema, but is an array"
        if each.get(KEEP) is False:
            return f"internal error: '{KEEP}' must be true or undefined"
    return ""


def _every(raw: Plain) -> Iterator[Plain]:
    yield raw
    for child in children(raw):
        yield from _every(child)


def children(raw: Plain) -> Iterator[Plain]:
    """The schemas that stand directly inside of a schema."""
    for word in ("items", "not", "additionalProperties"):
        if isinstance(raw.get(word), Mapping):
            yield raw[word]
    for word in ("allOf", "anyOf", "oneOf"):
        yield from raw.get(word) or ()
    yield from (raw.get("properties") or {}).values()


def structural_problems(raw: Plain, path: str) -> list[FieldProblem]:
    """Why a schema is not structural; nothing if it is.

    Assumptions: ``unsupported`` has no complaint.
    """
    found = [*_invariants(raw, "root", path), *_completeness(raw, raw, path, path)]
    return sorted(found, key=str)


def _invariants(raw: Plain, level: str, path: str) -> Iterator[FieldProblem]:
    if raw.get("type") == "array" and raw.get("items") is None:
        yield status.required(f"{path}.items", "must be specified")
    if raw.get("items") is not None:
        yield from _invariants(raw["items"], "item", f"{path}.items")
    properties = raw.get("properties") or {}
    for name, each in properties.items():
        yield from _invariants(each, "field", f"{path}.properties[{name}]")
    additional = raw.get("additionalProperties")
    if additional is not None and level == "root":
        detail = "must not be used at the root"
        yield status.forbidden_value(f"{path}.additionalProperties", detail)
    if isinstance(additional, Mapping):
        yield from _invariants(additional, "field", f"{path}.additionalProperties")
    yield from _extensions(raw, path)
    yield from _values(raw, path, level, own=True)
    yield from _type(raw, level, path)
    yield from _object_fields(raw, level, path)


def _extensions(raw: Plain, path: str) -> Iterator[FieldProblem]:
    for word in (KEEP, EMBEDDED):
        if raw.get(EITHER) and raw.get(word):
            detail = f"must be false if {EITHER} is true"
            yield status.invalid(f"{path}.{word}", True, detail)


def _type(raw: Plain, level: str, path: str) -> Iterator[FieldProblem]:
    kind = raw.get("type") or ""
    where = f"{path}.type"
    embedded = raw.get(EMBEDDED)
    if embedded and kind != "object":
        detail = f"must be object if {EMBEDDED} is true"
        yield (
            status.invalid(where, kind, detail)
            if kind
            else status.required(where, detail)
        )
    elif not kind and not raw.get(EITHER) and not raw.get(KEEP):
        yield status.required(where, _EMPTY_TYPE[level])
    if embedded and raw.get("additionalProperties") is not None:
        detail = f"must not be used if {EMBEDDED} is set"
        yield status.forbidden_value(f"{path}.additionalProperties", detail)
    if level == "root" and kind and kind != "object":
        yield status.invalid(where, kind, "must be object at the root")


def _object_fields(raw: Plain, level: str, path: str) -> Iterator[FieldProblem]:
    """What a schema may say of the fields that every object has."""
    properties = raw.get("properties") or {}
    whole = level == "root" or bool(raw.get(EMBEDDED))
    for name in ("kind", "apiVersion"):
        kind = properties.get(name, {}).get("type", "")
        if whole and name in properties and kind != "string":
            where = f"{path}.properties[{name}].type"
            yield status.invalid(where, kind, "must be string")
    if "metadata" in properties:
        metadata = properties["metadata"]
        where = f"{path}.properties[metadata]"
        if whole and metadata.get("type") != "object":
            shown = metadata.get("type") or ""
            yield status.invalid(f"{where}.type", shown, "must be object")
        if level == "root" and not _restricts_only_names(metadata):
            detail = (
                "must not specify anything other than name and generateName, but "
                "metadata is implicitly specified"
            )
            yield status.forbidden_value(where, detail)
    if raw.get(EMBEDDED) and not raw.get(KEEP) and not properties:
        detail = f"must not be empty if {EMBEDDED} is true without {KEEP}"
        yield status.required(f"{path}.properties", detail)


def _restricts_only_names(metadata: Plain) -> bool:
    properties = (metadata.get("properties") or {}).keys()
    said = {word for word, value in metadata.items() if value not in (None, "", [], {})}
    return properties <= {"name", "generateName"} and said <= {
        "type",
        "properties",
        "default",
    }


def _is_either(alternatives: Any) -> bool:
    return bool(alternatives == _EITHER_TYPES)


def _values(
    raw: Plain, path: str, level: str, *, own: bool, skip_any: bool = False
) -> Iterator[FieldProblem]:
    """The alternatives of a schema, and its pattern."""
    any_of = raw.get("anyOf") or []
    all_of = raw.get("allOf") or []
    if own:
        skip_any = _is_either(any_of)
    skip_first = own and bool(all_of) and _is_either(all_of[0].get("anyOf"))
    if not skip_any:
        for index, each in enumerate(any_of):
            yield from _nested(each, f"{path}.anyOf[{index}]", level)
    for index, each in enumerate(all_of):
        skip = skip_first and index == 0
        yield from _nested(each, f"{path}.allOf[{index}]", level, skip_any=skip)
    for index, each in enumerate(raw.get("oneOf") or []):
        yield from _nested(each, f"{path}.oneOf[{index}]", level)
    if raw.get("not") is not None:
        yield from _nested(raw["not"], f"{path}.not", level)
    if raw.get("pattern"):
        try:
            compiled(raw["pattern"])
        except PatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            yield status.invalid(f"{path}.pattern", raw["pattern"], detail)


def _nested(
    raw: Plain, path: str, level: str, *, skip_any: bool = False
) -> Iterator[FieldProblem]:
    """A schema inside of an alternative: it may narrow values, and nothing else."""
    yield from _values(raw, path, level, own=False, skip_any=skip_any)
    if raw.get("items") is not None:
        yield from _nested(raw["items"], f"{path}.items", level)
    properties = raw.get("properties") or {}
    for name, each in properties.items():
        yield from _nested(each, f"{path}.properties[{name}]", "field")
    if raw.get("type"):
        detail = "must be empty to be structural"
        yield status.forbidden_value(f"{path}.type", detail)
    additional = raw.get("additionalProperties")
    if isinstance(additional, Mapping) or additional is True:
        detail = "must be undefined to be structural"
        yield status.forbidden_value(f"{path}.additionalProperties", detail)
    for word, detail in _FORBIDDEN.items():
        if raw.get(word):
            yield status.forbidden_value(f"{path}.{word}", detail)
    if "metadata" in properties:
        detail = "must not be specified in a nested context"
        yield status.forbidden_value(f"{path}.properties[metadata]", detail)


def _completeness(
    values: Plain, raw: Plain, spine: str, path: str
) -> Iterator[FieldProblem]:
    """What alternatives speak of has to exist outside of them."""
    if values.get("not") is not None:
        yield from _nested_complete(values["not"], raw, spine, f"{path}.not")
    for word in ("allOf", "anyOf", "oneOf"):
        for index, each in enumerate(values.get(word) or []):
            yield from _nested_complete(each, raw, spine, f"{path}.{word}[{index}]")


def _nested_complete(
    values: Plain, raw: Plain | None, spine: str, path: str
) -> Iterator[FieldProblem]:
    if raw is None:
        yield status.required(spine, f"because it is defined in {path}")
        return
    yield from _completeness(values, raw, spine, path)
    if values.get("items") is not None:
        inner = raw.get("items")
        yield from _nested_complete(
            values["items"], inner, f"{spine}.items", f"{path}.items"
        )
    properties = raw.get("properties") or {}
    for name, each in (values.get("properties") or {}).items():
        where, said = f"{spine}.properties[{name}]", f"{path}.properties[{name}]"
        yield from _nested_complete(each, properties.get(name), where, said)
