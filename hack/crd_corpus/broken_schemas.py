"""Broken schemas: every way in which one is not structural, or has bad defaults."""

from __future__ import annotations

from collections.abc import Iterator

from hack.crd_corpus.edits import (
    JSON,
    Edit,
    at,
    metadata,
    put,
    root,
    spec,
    together,
)
from hack.crd_corpus.schemas import array, integer, record, string, table

_LIST_TYPE = "x-kubernetes-list-type"
_KEYS = "x-kubernetes-list-map-keys"
_KEEP = "x-kubernetes-preserve-unknown-fields"
_EMBED = "x-kubernetes-embedded-resource"
_EITHER = "x-kubernetes-int-or-string"
_MAP_TYPE = "x-kubernetes-map-type"


def _structural() -> Iterator[tuple[str, Edit]]:
    yield "root type", at(type="string")
    yield "root no type", at(type="")
    yield "root nullable", at(nullable=True)
    yield "root additional", at(additionalProperties={"type": "string"})
    yield "no type", put(bad={"maxLength": 5})
    yield "no type in items", put(bad={"type": "array", "items": {"minimum": 1}})
    yield "no items", put(bad={"type": "array"})
    yield "strange type", put(bad={"type": "int"})
    yield "null type", put(bad={"type": "null"})
    yield "type in anyOf", put(bad=string(anyOf=[{"type": "string"}]))
    yield "default in anyOf", put(bad=string(anyOf=[{"default": "x"}]))
    yield (
        "words in allOf",
        put(bad=string(allOf=[{"title": "t", "description": "d", "nullable": True}])),
    )
    yield (
        "extensions in oneOf",
        put(
            bad=record(
                {"a": string()},
                oneOf=[
                    {_KEEP: True, _EMBED: True, _EITHER: True, _MAP_TYPE: "atomic"},
                    {_LIST_TYPE: "map", _KEYS: ["a"]},
                    {"additionalProperties": {"minLength": 1}},
                ],
            )
        ),
    )
    yield "only in not", put(bad=record({}, **{"not": {"properties": {"a": {}}}}))
    yield (
        "only in anyOf",
        put(
            bad=record(
                {"l": array(string())},
                anyOf=[
                    {"properties": {"z": {"minimum": 1}}},
                    {"properties": {"l": {"items": {"items": {"minimum": 1}}}}},
                ],
            )
        ),
    )


def _metadata() -> Iterator[tuple[str, Edit]]:
    yield "metadata rules", metadata(maxProperties=3)
    yield "metadata name", metadata(properties={"name": string(maxLength=5)})
    yield "metadata label", metadata(properties={"labels": {"type": "object"}})
    yield "metadata type", metadata(type="string")
    yield (
        "metadata nested",
        at(anyOf=[{"properties": {"metadata": {"minProperties": 1}}}]),
    )
    yield "kind type", root(kind=integer(), apiVersion={"type": "boolean"})
    yield "root kind default", root(kind=string(default="x"))


def _patterns() -> Iterator[tuple[str, Edit]]:
    yield "pattern", put(bad=string(pattern="^(a"))
    yield "pattern lookahead", put(bad=string(pattern="^(?=a)"))
    yield "pattern class", put(bad=string(pattern="[b-a]"))
    yield "pattern escape", put(bad=string(pattern="\\8"))
    yield "pattern repeat", put(bad=string(pattern="a**"))


def _extensions() -> Iterator[tuple[str, Edit]]:
    yield "embedded no type", put(bad={_EMBED: True})
    yield "embedded wrong type", put(bad=string(**{_EMBED: True}))
    yield "embedded empty", put(bad={"type": "object", _EMBED: True})
    yield (
        "embedded additional",
        put(
            bad={
                "type": "object",
                _EMBED: True,
                _KEEP: True,
                "additionalProperties": True,
            }
        ),
    )
    yield (
        "embedded metadata",
        put(
            bad=record(
                {"metadata": string(), "kind": integer()}, **{_EMBED: True, _KEEP: True}
            )
        ),
    )
    yield "keep false", put(bad={"type": "object", _KEEP: False})
    yield "either and keep", put(bad={_EITHER: True, _KEEP: True})
    yield "either and embed", put(bad={_EITHER: True, _EMBED: True})
    yield "either typed", put(bad=string(**{_EITHER: True}))
    yield "unique", put(bad=array(string(), uniqueItems=True))
    yield (
        "both properties",
        put(bad=record({"a": string()}, additionalProperties={"type": "string"})),
    )
    yield (
        "both properties, false",
        put(bad=record({"a": string()}, additionalProperties=False)),
    )
    yield (
        "both properties, true",
        put(bad=record({"a": string()}, additionalProperties=True)),
    )


def _unsupported() -> Iterator[tuple[str, Edit]]:
    words: JSON = {
        "id": "x",
        "$schema": "http://json-schema.org/draft-04/schema#",
        "$ref": "#/definitions/x",
        "patternProperties": {"a": {"type": "string"}},
        "dependencies": {"a": ["b"]},
        "additionalItems": True,
        "definitions": {"a": {"type": "string"}},
    }
    for word, value in words.items():
        yield f"word {word}", put(bad=string(**{word: value}))
    yield "items list", put(bad={"type": "array", "items": [string()]})
    yield (
        "nullable in set",
        put(bad=array(string(nullable=True), **{_LIST_TYPE: "set"})),
    )
    yield "list type of object", put(bad={"type": "object", _LIST_TYPE: "set"})
    yield "list type of nothing", put(bad={_LIST_TYPE: "set", _EITHER: True})
    yield "list type word", put(bad=array(string(), **{_LIST_TYPE: "bag"}))
    yield "map type of array", put(bad=array(string(), **{_MAP_TYPE: "atomic"}))
    yield "map type of nothing", put(bad={_EITHER: True, _MAP_TYPE: "atomic"})
    yield "map type word", put(bad={"type": "object", _MAP_TYPE: "loose"})
    yield (
        "set of objects",
        put(bad=array(record({"a": string()}), **{_LIST_TYPE: "set"})),
    )
    yield (
        "set of sets",
        put(
            bad=array(array(string(), **{_LIST_TYPE: "set"}), **{_LIST_TYPE: "set"}),
        ),
    )
    item = record({"a": string(), "b": array(string()), "c": string(nullable=True)})
    yield "map no keys", put(bad=array(item, **{_LIST_TYPE: "map"}))
    yield "keys no map", put(bad=array(item, **{_KEYS: ["a"]}))
    yield "keys of set", put(bad=array(string(), **{_KEYS: ["a"], _LIST_TYPE: "set"}))
    yield "map of strings", put(bad=array(string(), **{_LIST_TYPE: "map"}))
    for keys in (["a"], ["z"], ["b"], ["c"], ["a", "a"]):
        listed = array(item, **{_LIST_TYPE: "map", _KEYS: keys})
        yield f"map keys {keys}", put(bad=listed)
    yield (
        "map of nullable",
        put(
            bad=array(
                {**item, "nullable": True, "required": ["a"]},
                **{_LIST_TYPE: "map", _KEYS: ["a"]},
            )
        ),
    )


def _defaults() -> Iterator[tuple[str, Edit]]:
    yield "default type", put(bad=string(default=5))
    yield "default bound", put(bad=integer(default=50, maximum=10))
    yield "default unknown", put(bad=record({"a": string()}, default={"b": 1}))
    yield (
        "default missing",
        put(bad=record({"a": string()}, required=["a"], default={})),
    )
    yield "default null", put(bad=string(default=None))
    yield (
        "default nested",
        put(bad=record({"a": record({"b": integer(default="x")}, default={"b": "y"})})),
    )
    yield "default in items", put(bad=array(record({"a": integer(default="x")})))
    yield "default in additional", put(bad=table(integer(default="x")))
    yield (
        "default embedded",
        put(
            bad=record(
                {},
                **{_EMBED: True, _KEEP: True},
                default={"apiVersion": "v1", "kind": "", "metadata": {"name": 5}},
            )
        ),
    )
    yield (
        "default embedded metadata",
        put(
            bad=record(
                {
                    "metadata": record(
                        {"name": string(default="A b"), "labels": table(string())}
                    ),
                    "kind": string(default="9"),
                },
                **{_EMBED: True},
            )
        ),
    )
    yield (
        "default in metadata additional",
        put(
            bad=record(
                {"metadata": record({"labels": table(string(default="x"))})},
                **{_EMBED: True},
            )
        ),
    )
    yield "default status", root(status=record({"a": integer(default="x")}))
    yield (
        "several",
        together(
            put(
                bad={"maxLength": 5}, worse=string(pattern="("), awful={"type": "array"}
            ),
            spec(scope="Galactic"),
        ),
    )
    yield "format unknown", put(bad=string(format="money"))
    yield "format of integer", put(bad=integer(format="x"))


def broken_schemas() -> Iterator[tuple[str, Edit]]:
    """Every edit that breaks a schema, with a label."""
    yield from (*_structural(), *_metadata(), *_patterns(), *_extensions())
    yield from (*_unsupported(), *_defaults())
