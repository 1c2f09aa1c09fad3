"""Schema checks: whether a schema may stand in a CustomResourceDefinition.

Beyond being structural: only the words that are supported, list types that make sense,
defaults that are valid themselves, and rules that compile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from trimtab.embedded import goschema, rule_checks, status
from trimtab.embedded.default_checks import default_problems
from trimtab.embedded.rule_words import rule_words
from trimtab.embedded.schemas import (
    EMBEDDED,
    KEEP,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    RULES,
)
from trimtab.embedded.status import FieldProblem
from trimtab.embedded.structural import structural_problems, unsupported

Plain = Mapping[str, Any]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_AT_ROOT: Final = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum "
    "MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required "
    "Items Properties ExternalDocs Example XPreserveUnknownFields XValidations"
).split()
_NOT_SUPPORTED: Final = (
    *("id", "additionalItems", "patternProperties"),
    *("definitions", "dependencies", "$ref"),
)


class Place(msgspec.Struct, frozen=True):
    """What is known of where a schema stands."""

    path: str
    root: bool = False
    no_defaults: str = ""
    """Why there may be no default here; empty if there may."""
    defaults: bool = True
    in_metadata: bool = False
    unrelated: str = ""
    """The first place above whose parts cannot be found again in an older object."""


class Found:
    """Complaints of two kinds: rules are only compiled where the schema is fine."""

    def __init__(self) -> None:
        self.schema: list[FieldProblem] = []
        self.rules: list[FieldProblem] = []


def validation_problems(
    validation: Plain | None, path: str, *, with_status: bool, trusted: bool
) -> list[FieldProblem]:
    """What is wrong with the schema of a version.

    ``trusted`` schemas were accepted before: the cost of their rules is not held
    against them.
    """
    raw = (validation or {}).get("openAPIV3Schema")
    if raw is None:
        return []
    path = f"{path}.openAPIV3Schema"
    found = list(_root_problems(raw, path)) if with_status else []
    if raw.get("nullable"):
        detail = "nullable cannot be true at the root"
        found.append(status.forbidden_value(f"{path}.nullable", detail))
    refused = unsupported(raw)
    context = None
    if not refused:
        wrong = structural_problems(raw, path) or default_problems(raw, path)
        found += wrong
        context = None if wrong else rule_checks.Context.of_root(raw, trusted=trusted)
    checked = _Checker(context)
    checked.visit(raw, Place(path, root=True), context)
    found += [*checked.found.schema, *checked.found.rules]
    if refused and not found:
        found.append(status.invalid(path, "", refused))
    if context is not None:
        found += context.total_problems(path)
    return found


def _root_problems(raw: Plain, path: str) -> Iterator[FieldProblem]:
    """With a status subresource the root may only say what its parts do not need."""
    for go, word, unset in goschema.IN_ORDER:
        value = raw.get(word)
        if value is None or value == unset:
            continue
        if go == "Type":
            if value != "object":
                detail = (
                    'only "object" is allowed as the type at the root of the schema if '
                    "the status subresource is enabled"
                )
                yield status.invalid(f"{path}.type", value, detail)
                return
        elif go not in _AT_ROOT:
            detail = (
                f"only [{' '.join(_AT_ROOT)}] fields are allowed at the root of the "
                "schema if the status subresource is enabled"
            )
            yield status.invalid(path, goschema.schema(raw), detail)
            return


class _Checker:
    """Walks a schema and every schema in it."""

    def __init__(self, context: rule_checks.Context | None) -> None:
        self.found = Found()

    def visit(
        self, raw: Any, place: Place, context: rule_checks.Context | None
    ) -> None:
        """Check one schema; complaints about rules wait for those about schemas."""
        if not isinstance(raw, Mapping):
            return
        outer, self.found = self.found, Found()
        self.found.schema += _words(raw, place)
        self._additional(raw, place, context)
        self._properties(raw, place, context)
        self._alternatives(raw, place)
        self._items(raw, place, context)
        self.found.schema += _extensions(raw, place.path)
        self.found.schema += _list_types(raw, place.path)
        self.found.schema += _map_lists(raw, place.path)
        self.found.schema += rule_words(raw, place.path)
        if raw.get(RULES) and context is not None and not self.found.schema:
            self.found.rules += context.rule_problems(place.path, place.unrelated)
        inner, self.found = self.found, outer
        self.found.schema += inner.schema
        self.found.rules += inner.rules

    def _additional(
        self, raw: Plain, place: Place, context: rule_checks.Context | None
    ) -> None:
        additional = raw.get("additionalProperties")
        if additional is None:
            return
        path = f"{place.path}.additionalProperties"
        if raw.get("properties") and additional is not True:
            detail = "additionalProperties and properties are mutual exclusive"
            self.found.schema.append(status.forbidden_value(path, detail))
        if place.in_metadata:
            place = msgspec.structs.replace(
                place,
                defaults=False,
                no_defaults="inside additionalProperties applying to object metadata",
            )
        inner = context.additional() if context is not None else None
        below = msgspec.structs.replace(place, path=path, root=False)
        self.visit(additional, below, inner)

    def _properties(
        self, raw: Plain, place: Place, context: rule_checks.Context | None
    ) -> None:
        related = (raw.get(MAP_TYPE) or "granular") in ("granular", "atomic")
        for name, each in (raw.get("properties") or {}).items():
            below = msgspec.structs.replace(
                place,
                path=f"{place.path}.properties[{name}]",
                root=False,
                unrelated=place.unrelated or ("" if related else place.path),
            )
            whole = place.root or raw.get(EMBEDDED)
            if whole and name in ("metadata", "kind", "apiVersion"):
                below = msgspec.structs.replace(below, in_metadata=True)
                if place.root:
                    reason = f"in top-level {name}"
                    below = msgspec.structs.replace(
                        below, defaults=False, no_defaults=reason
                    )
            inner = context.property(name) if context is not None else None
            self.visit(each, below, inner)

    def _alternatives(self, raw: Plain, place: Place) -> None:
        def inside(path: str) -> Place:
            return msgspec.structs.replace(place, path=path, root=False)

        if raw.get("not") is not None:
            self.visit(raw["not"], inside(f"{place.path}.not"), None)
        for word in ("allOf", "oneOf", "anyOf"):
            for index, each in enumerate(raw.get(word) or ()):
                self.visit(each, inside(f"{place.path}.{word}[{index}]"), None)
        for name, each in (raw.get("definitions") or {}).items():
            self.visit(each, inside(f"{place.path}.definitions[{name}]"), None)
        for name, each in (raw.get("dependencies") or {}).items():
            self.visit(each, inside(f"{place.path}.dependencies[{name}]"), None)

    def _items(
        self, raw: Plain, place: Place, context: rule_checks.Context | None
    ) -> None:
        items = raw.get("items")
        if items is None:
            return
        related = raw.get(LIST_TYPE) == "map"
        below = msgspec.structs.replace(
            place,
            path=f"{place.path}.items",
            root=False,
            unrelated=place.unrelated or ("" if related else place.path),
        )
        if isinstance(items, list):
            for index, each in enumerate(items):
                at = msgspec.structs.replace(below, path=f"{below.path}[{index}]")
                self.visit(each, at, None)
        else:
            inner = context.items() if context is not None else None
            self.visit(items, below, inner)


def _words(raw: Plain, place: Place) -> Iterator[FieldProblem]:
    path, kind = place.path, raw.get("type") or ""
    if kind and kind not in _TYPES:
        yield status.not_supported(f"{path}.type", kind, _TYPES)
    if raw.get("default") is not None and not place.defaults:
        detail = f"must not be set {place.no_defaults}".rstrip()
        yield status.forbidden_value(f"{path}.default", detail)
    for word in _NOT_SUPPORTED:
        empty = word in ("id", "patternProperties", "definitions")
        if raw.get(word) or (not empty and raw.get(word) is not None):
            detail = f"{word} is not supported"
            yield status.forbidden_value(f"{path}.{word}", detail)
    if kind == "null":
        detail = "type cannot be set to null, use nullable as an alternative"
        yield status.forbidden_value(f"{path}.type", detail)
    if isinstance(raw.get("items"), list) and raw["items"]:
        detail = "items must be a schema object and not an array"
        yield status.forbidden_value(f"{path}.items", detail)
    if place.in_metadata and raw.get(EMBEDDED):
        detail = "must not be used inside of resource meta"
        yield status.forbidden_value(f"{path}.{EMBEDDED}", detail)
    if raw.get("uniqueItems"):
        detail = (
            "uniqueItems cannot be set to true since the runtime complexity becomes "
            "quadratic"
        )
        yield status.forbidden_value(f"{path}.uniqueItems", detail)


def _extensions(raw: Plain, path: str) -> Iterator[FieldProblem]:
    if raw.get(KEEP) is False:
        yield status.invalid(f"{path}.{KEEP}", False, "must be true or undefined")
    map_type = raw.get(MAP_TYPE)
    if map_type is not None:
        yield from _needs_type(raw, path, "object", MAP_TYPE)
        if map_type not in ("atomic", "granular"):
            where = f"{path}.{MAP_TYPE}"
            yield status.not_supported(where, map_type, ("atomic", "granular"))


def _needs_type(
    raw: Plain, path: str, wanted: str, word: str
) -> Iterator[FieldProblem]:
    kind = raw.get("type") or ""
    detail = f"must be {wanted} if {word} is specified"
    if not kind:
        yield status.required(f"{path}.type", detail)
    elif kind != wanted:
        yield status.invalid(f"{path}.type", kind, detail)


def _list_types(raw: Plain, path: str) -> Iterator[FieldProblem]:
    list_type = raw.get(LIST_TYPE)
    if list_type is not None:
        items = raw.get("items")
        if (raw.get("type") or "") != "array":
            yield from _needs_type(raw, path, "array", LIST_TYPE)
        elif list_type == "set" and isinstance(items, Mapping):
            yield from _set_items(items, path)
        if list_type not in ("atomic", "set", "map"):
            allowed = ("atomic", "set", "map")
            yield status.not_supported(f"{path}.{LIST_TYPE}", list_type, allowed)
    if raw.get(LIST_KEYS) and list_type != "map":
        where, detail = (
            f"{path}.{LIST_TYPE}",
            f"must be map if {LIST_KEYS} is non-empty",
        )
        if list_type is None:
            yield status.required(where, detail)
        else:
            yield status.invalid(where, list_type, detail)
    if list_type == "map":
        yield from _map_items(raw, path)


def _set_items(items: Plain, path: str) -> Iterator[FieldProblem]:
    detail = f"must be atomic as item of a list with {LIST_TYPE}=set"
    inner = items.get(LIST_TYPE)
    if items.get("type") == "array" and inner not in (None, "atomic"):
        yield status.invalid(f"{path}.items.{LIST_TYPE}", inner, detail)
    if items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        yield status.invalid(f"{path}.items.{MAP_TYPE}", inner, detail)


def _map_items(raw: Plain, path: str) -> Iterator[FieldProblem]:
    keys, items = raw.get(LIST_KEYS) or [], raw.get("items")
    if not keys:
        detail = f"must not be empty if {LIST_TYPE} is map"
        yield status.required(f"{path}.{LIST_KEYS}", detail)
    if items is None:
        detail = f"must have a schema if {LIST_TYPE} is map"
        yield status.required(f"{path}.items", detail)
    if not isinstance(items, Mapping):
        return
    kind = items.get("type") or ""
    if kind != "object":
        detail = f"must be object if parent array's {LIST_TYPE} is map"
        yield status.invalid(f"{path}.items.type", kind, detail)
        return
    seen = set()
    for key in keys:
        inner = (items.get("properties") or {}).get(key)
        if inner is None:
            detail = "entries must all be names of item properties"
            yield status.invalid(f"{path}.{LIST_KEYS}", list(keys), detail)
        elif inner.get("type") in ("array", "object"):
            detail = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            where = f"{path}.items.properties[{key}].type"
            yield status.invalid(where, kind, detail)
        if key in seen:
            detail = "must not contain duplicate entries"
            yield status.invalid(f"{path}.{LIST_KEYS}", list(keys), detail)
        seen.add(key)


def _map_lists(raw: Plain, path: str) -> Iterator[FieldProblem]:
    """Items that have to be told apart are never null, and always have their keys."""
    items, list_type = raw.get("items"), raw.get(LIST_TYPE)
    if not isinstance(items, Mapping) or list_type not in ("set", "map"):
        return
    if items.get("nullable"):
        detail = f"cannot be nullable when {LIST_TYPE} is {list_type}"
        yield status.forbidden_value(f"{path}.items.nullable", detail)
    if list_type == "set":
        return
    for key in raw.get(LIST_KEYS) or ():
        inner = (items.get("properties") or {}).get(key)
        if inner is None:
            continue
        where = f"{path}.items.properties[{key}]"
        listed = f"this property is in {LIST_KEYS}, so it"
        if key not in (items.get("required") or ()) and inner.get("default") is None:
            detail = f"{listed} must have a default or be a required property"
            yield status.required(f"{where}.default", detail)
        if inner.get("nullable"):
            detail = f"{listed} cannot be nullable"
            yield status.forbidden_value(f"{where}.nullable", detail)
