"""Schemas of custom kinds: the JSON of a CRD as a tree that is walked many times.

Every algorithm over custom objects (pruning, defaults, validation, rules) walks the
same nodes. A node is made once, when its CRD is, and never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.embedded import formats

Plain = Mapping[str, Any]

KEEP = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
EITHER = "x-kubernetes-int-or-string"
LIST_TYPE = "x-kubernetes-list-type"
LIST_KEYS = "x-kubernetes-list-map-keys"
MAP_TYPE = "x-kubernetes-map-type"
RULES = "x-kubernetes-validations"


class Schema(msgspec.Struct, eq=False, kw_only=True):
    """One node of a schema."""

    raw: Plain
    """The JSON that it was made of."""
    type: str = ""
    types: tuple[str, ...] = ()
    """What a value may be; two types for int-or-string, none for anything."""
    nullable: bool = False
    format: str = ""
    """Empty where the format means nothing for the type."""
    either: bool = False
    keep: bool = False
    embedded: bool = False
    default: Any = UNSET
    properties: dict[str, Schema] = {}
    additional: Schema | None = None
    open: bool = False
    """Whether it has ``additionalProperties`` at all."""
    closed: bool = False
    """Whether it says ``additionalProperties: false``."""
    items: Schema | None = None
    required: tuple[str, ...] = ()
    enum: tuple[Any, ...] = ()
    maximum: float | None = None
    minimum: float | None = None
    above: bool = False
    """Whether the minimum itself is too small."""
    below: bool = False
    """Whether the maximum itself is too large."""
    multiple: float | None = None
    max_length: int | None = None
    min_length: int | None = None
    max_items: int | None = None
    min_items: int | None = None
    max_properties: int | None = None
    min_properties: int | None = None
    pattern: str = ""
    all_of: tuple[Schema, ...] = ()
    any_of: tuple[Schema, ...] = ()
    one_of: tuple[Schema, ...] = ()
    not_: Schema | None = None
    list_type: str = ""
    keys: tuple[str, ...] = ()
    map_type: str = ""
    rules: tuple[Plain, ...] = ()
    accepts: Callable[[Any], bool] | None = None
    """A quick test for whether a value is valid; see ``quickcheck``."""

    def child(self, key: str) -> Schema | None:
        """The schema of the value under a key, if there is one."""
        return self.properties.get(key, self.additional)

    def walk(self) -> Iterator[Schema]:
        """This node and every one below that a value of its own may have."""
        yield self
        for each in (*self.properties.values(), self.additional, self.items):
            if each is not None:
                yield from each.walk()


def schema_of(raw: Plain, *, published: bool = False) -> Schema:
    """The tree of a schema.

    ``published`` reads it as the real server does where it checks defaults: a format
    counts even where it means nothing, and int-or-string is any value.
    """

    def of(each: Plain) -> Schema:
        return schema_of(each, published=published)

    kind = raw.get("type") or ""
    either = bool(raw.get(EITHER))
    node = Schema(raw=raw, type=kind, either=either)
    node.types = (kind,) if kind else ()
    if either and not published:
        node.types = ("integer", "string")
    _constrain(node, raw)
    single = node.types[0] if len(node.types) == 1 else ""
    if not published and not formats.known(single, node.format):
        node.format = ""
    _extend(node, raw)
    node.properties = {
        name: of(each) for name, each in (raw.get("properties") or {}).items()
    }
    if isinstance(raw.get("items"), Mapping):
        node.items = of(raw["items"])
    _open(node, raw, of)
    node.all_of = tuple(map(of, raw.get("allOf") or ()))
    node.any_of = tuple(map(of, raw.get("anyOf") or ()))
    node.one_of = tuple(map(of, raw.get("oneOf") or ()))
    if isinstance(raw.get("not"), Mapping):
        node.not_ = of(raw["not"])
    return node


def _constrain(node: Schema, raw: Plain) -> None:
    node.nullable = bool(raw.get("nullable"))
    node.format = raw.get("format") or ""
    node.required = tuple(raw.get("required") or ())
    node.enum = tuple(raw.get("enum") or ())
    node.maximum = raw.get("maximum")
    node.minimum = raw.get("minimum")
    node.below = bool(raw.get("exclusiveMaximum"))
    node.above = bool(raw.get("exclusiveMinimum"))
    node.multiple = raw.get("multipleOf")
    node.max_length = raw.get("maxLength")
    node.min_length = raw.get("minLength")
    node.max_items = raw.get("maxItems")
    node.min_items = raw.get("minItems")
    node.max_properties = raw.get("maxProperties")
    node.min_properties = raw.get("minProperties")
    node.pattern = raw.get("pattern") or ""


def _extend(node: Schema, raw: Plain) -> None:
    node.keep = bool(raw.get(KEEP))
    node.embedded = bool(raw.get(EMBEDDED))
    node.list_type = raw.get(LIST_TYPE) or ""
    node.keys = tuple(raw.get(LIST_KEYS) or ())
    node.map_type = raw.get(MAP_TYPE) or ""
    node.rules = tuple(raw.get(RULES) or ())
    default = raw.get("default")
    node.default = UNSET if default is None else default


def _open(node: Schema, raw: Plain, of: Callable[[Plain], Schema]) -> None:
    additional = raw.get("additionalProperties")
    if additional is None:
        return
    node.open = True
    if isinstance(additional, Mapping):
        node.additional = of(additional)
    else:
        node.closed = not additional


def has_default(node: Schema) -> bool:
    """Whether there is anything to set in a value of this schema."""
    return any(not isinstance(each.default, UnsetType) for each in node.walk())
