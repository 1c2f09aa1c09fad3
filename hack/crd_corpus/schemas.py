"""Schemas: one with every keyword by hand, and any number of random ones by seed."""

from __future__ import annotations

import random
from typing import Any

JSON = dict[str, Any]

FORMATS = (
    "bsonobjectid uri email hostname ipv4 ipv6 cidr mac uuid uuid3 uuid4 uuid5 isbn "
    "isbn10 isbn13 creditcard ssn hexcolor rgbcolor byte password date duration "
    "datetime date-time k8s-short-name k8s-long-name nonsense"
).split()


def string(**more: Any) -> JSON:
    return {"type": "string", **more}


def integer(**more: Any) -> JSON:
    return {"type": "integer", **more}


def number(**more: Any) -> JSON:
    return {"type": "number", **more}


def array(items: JSON, **more: Any) -> JSON:
    return {"type": "array", "items": items, **more}


def record(properties: JSON, **more: Any) -> JSON:
    return {"type": "object", "properties": properties, **more}


def table(values: JSON | bool, **more: Any) -> JSON:
    return {"type": "object", "additionalProperties": values, **more}


_PORT = record(
    {
        "name": string(),
        "port": integer(minimum=1, maximum=65535),
        "protocol": string(default="TCP", enum=["TCP", "UDP"]),
    },
    required=["port"],
)
_EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True}
_KEPT = {"x-kubernetes-preserve-unknown-fields": True}
_SCALAR_WORDS: JSON = {
    "short": string(minLength=2, maxLength=4),
    "letters": string(pattern="^[a-z]+$"),
    "colour": string(enum=["red", "green"]),
    "digit": integer(minimum=0, maximum=9),
    "open": number(minimum=0, maximum=1, exclusiveMinimum=True, exclusiveMaximum=True),
    "dozen": integer(multipleOf=12),
    "quarter": number(multipleOf=0.25),
    "small": integer(format="int32"),
    "large": integer(format="int64"),
    "single": number(format="float"),
    "double": number(format="double"),
    "pick": integer(enum=[1, 2, 4]),
    "level": number(enum=[1, 2.5]),
    "flag": {"type": "boolean"},
    "bound": integer(minimum=-1000000, maximum=3000000000, format="int32"),
    "half": integer(minimum=0.5, maximum=2.5),
    "wide": number(minimum=-1e21, maximum=1e6),
    "either": {"x-kubernetes-int-or-string": True, "maxLength": 5},
    "either2": {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": "^[0-9]+%?$",
    },
    "either3": {
        "x-kubernetes-int-or-string": True,
        "allOf": [
            {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            {"maxLength": 3},
        ],
    },
    "either4": {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"maximum": 5}, {"minLength": 3}],
    },
    "maybe": string(nullable=True, minLength=1),
    "maybeEnum": string(nullable=True, enum=["a", "b"]),
    "unicode": string(maxLength=3, pattern="^\\p{L}+$"),
}
_LISTS: JSON = {
    "few": array(integer(), minItems=1, maxItems=3),
    "tags": array(string(), **{"x-kubernetes-list-type": "set"}),
    "sizes": array(number(), **{"x-kubernetes-list-type": "set"}),
    "pairs": array(
        {**record({"a": integer(), "b": string()}), "x-kubernetes-map-type": "atomic"},
        **{"x-kubernetes-list-type": "set"},
    ),
    "ports": array(
        _PORT,
        **{"x-kubernetes-list-type": "map"},
        **{"x-kubernetes-list-map-keys": ["port", "protocol"]},
    ),
    "named": array(
        record({"name": string(), "value": string()}, required=["name"]),
        **{"x-kubernetes-list-type": "map"},
        **{"x-kubernetes-list-map-keys": ["name"]},
    ),
    "grid": array(array(integer(maximum=5), maxItems=2)),
    "holes": array(string(nullable=True)),
    "records": array(record({"x": integer(), "y": integer(default=7)})),
    "words": array(string(default="word")),
}
_OBJECTS: JSON = {
    "labels": table(string(maxLength=5), maxProperties=2),
    "counts": table(integer(minimum=1), minProperties=1),
    "lookup": table(record({"x": integer(), "y": string(default="why")})),
    "nothing": {"type": "object"},
    "anything": table(True),
    "closed": table(False),
    "kept": {"type": "object", **_KEPT},
    "keptShape": record({"known": record({"a": integer()})}, **_KEPT),
    "keptAny": dict(_KEPT),
    "raw": {**_EMBEDDED, **_KEPT},
    "template": {
        **_EMBEDDED,
        "properties": {"spec": record({"size": integer(default=3)})},
    },
    "needs": record(
        {"one": string(), "two": string()},
        required=["one", "two"],
        minProperties=1,
        maxProperties=3,
    ),
    "nested": record(
        {
            "level": record(
                {"deep": record({"name": string(default="n")}, default={})},
                default={"deep": {}},
            )
        }
    ),
    "defaulted": record(
        {
            "text": string(default="hello"),
            "count": integer(default=3),
            "ratio": number(default=0.5),
            "list": array(string(), default=["a", "b"]),
            "shape": record(
                {"x": integer(default=1), "y": integer()}, default={"y": 2}
            ),
            "null": string(default="set", nullable=True),
            "off": {"type": "boolean", "default": False},
        }
    ),
    "dotted.name-with/all": string(maxLength=2),
    "namespace": string(maxLength=2),
}
_CHOICES: JSON = {
    "any": record(
        {"a": integer(), "b": integer(), "c": string()},
        anyOf=[
            {"required": ["a"]},
            {"required": ["b"], "properties": {"b": {"minimum": 5}}},
        ],
    ),
    "one": record(
        {"a": integer(), "b": integer(), "c": string()},
        oneOf=[
            {"required": ["a"]},
            {"required": ["b"]},
            {"required": ["c"], "properties": {"c": {"pattern": "^x"}}},
        ],
    ),
    "all": record(
        {"a": integer(), "b": integer()},
        allOf=[
            {"properties": {"a": {"minimum": 3}}},
            {"properties": {"b": {"maximum": 4}, "a": {"multipleOf": 2}}},
            {"required": ["a"]},
        ],
    ),
    "not": record({"a": integer(), "b": integer()}, **{"not": {"required": ["a"]}}),
    "notBig": integer(**{"not": {"minimum": 10}}),
    "nestedAny": array(
        record(
            {"kind": string(), "size": integer(), "tags": array(string())},
            anyOf=[
                {
                    "properties": {
                        "kind": {"enum": ["big"]},
                        "size": {"minimum": 100},
                    }
                },
                {
                    "properties": {
                        "kind": {"enum": ["small"]},
                        "size": {"maximum": 10},
                        "tags": {"items": {"maxLength": 3}, "maxItems": 2},
                    }
                },
            ],
        )
    ),
    "oneScalar": number(
        oneOf=[{"minimum": 10}, {"maximum": 20}, {"multipleOf": 7}, {"enum": [3]}]
    ),
    "deepAll": string(
        allOf=[
            {"minLength": 3},
            {"anyOf": [{"pattern": "^a"}, {"pattern": "z$"}]},
            {"not": {"enum": ["abcz"]}},
        ]
    ),
}


def everything() -> JSON:
    """A root schema in which every keyword occurs."""
    formats = {f"f{name.replace('-', '')}": name for name in FORMATS}
    spec = record(
        {
            **_SCALAR_WORDS,
            **_LISTS,
            **_OBJECTS,
            **_CHOICES,
            **{key: string(format=name) for key, name in formats.items()},
            "numberFormat": integer(format="int16"),
            "eitherFormat": {"x-kubernetes-int-or-string": True, "format": "ipv4"},
        },
    )
    status = record(
        {
            "phase": string(enum=["On", "Off"]),
            "replicas": integer(minimum=0),
            "conditions": array(
                record({"type": string(), "status": string()}, required=["type"]),
                **{"x-kubernetes-list-type": "map"},
                **{"x-kubernetes-list-map-keys": ["type"]},
            ),
            "defaulted": string(default="yes"),
        },
    )
    return record({"spec": spec, "status": status}, required=["spec"])


class Maker:
    """Random structural schemas, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def root(self) -> JSON:
        schema = record({"spec": self._record(3), "status": self._record(1)})
        if self._chance(0.5):
            schema["required"] = ["spec"]
        return schema

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _any(self, depth: int) -> JSON:
        makers = [self._string, self._integer, self._number, self._boolean]
        if depth > 0:
            makers += [
                lambda: self._record(depth - 1),
                lambda: self._record(depth - 1),
                lambda: self._array(depth - 1),
                lambda: self._table(depth - 1),
                self._either,
                self._kept,
            ]
        schema = self.random.choice(makers)()
        if self._chance(0.15):
            schema["nullable"] = True
        return schema

    def _string(self) -> JSON:
        schema = string()
        if self._chance(0.3):
            schema["minLength"] = self.random.randint(0, 3)
        if self._chance(0.3):
            schema["maxLength"] = self.random.randint(2, 6)
        if self._chance(0.2):
            schema["pattern"] = self.random.choice(["^[a-c]*$", "[0-9]", "b+", "^.$"])
        if self._chance(0.2):
            schema["enum"] = self.random.sample(["a", "ab", "b", "7", "abc"], 3)
        if self._chance(0.15):
            schema["format"] = self.random.choice(FORMATS)
        if self._chance(0.1):
            schema["allOf"] = [{"minLength": 1}, {"maxLength": 4}]
        return schema

    def _integer(self) -> JSON:
        schema = integer()
        self._bounds(schema, -3, 12)
        if self._chance(0.2):
            schema["multipleOf"] = self.random.choice([2, 3, 5])
        if self._chance(0.2):
            schema["format"] = self.random.choice(["int32", "int64", "double"])
        if self._chance(0.1):
            schema["enum"] = [1, 2, 3]
        return schema

    def _number(self) -> JSON:
        schema = number()
        self._bounds(schema, -2.5, 7.25)
        if self._chance(0.2):
            schema["multipleOf"] = self.random.choice([0.5, 2, 0.1])
        return schema

    def _bounds(self, schema: JSON, least: float, most: float) -> None:
        if self._chance(0.4):
            schema["minimum"] = least
            schema["exclusiveMinimum"] = self._chance(0.3)
        if self._chance(0.4):
            schema["maximum"] = most
            schema["exclusiveMaximum"] = self._chance(0.3)

    def _boolean(self) -> JSON:
        return {"type": "boolean"}

    def _either(self) -> JSON:
        return {"x-kubernetes-int-or-string": True}

    def _kept(self) -> JSON:
        if self._chance(0.5):
            return dict(_KEPT)
        return {**self._record(1), **_KEPT}

    def _record(self, depth: int) -> JSON:
        names = self.random.sample("abcdefgh", self.random.randint(1, 4))
        properties = {name: self._any(depth) for name in names}
        schema = record(properties)
        if self._chance(0.4):
            schema["required"] = self.random.sample(names, 1)
        if self._chance(0.2):
            schema["minProperties"] = 1
        if self._chance(0.2):
            schema["maxProperties"] = 2
        if self._chance(0.25):
            word = self.random.choice(["anyOf", "oneOf", "allOf"])
            schema[word] = [self._narrowed(properties) for _ in range(2)]
        if self._chance(0.1):
            schema["not"] = self._narrowed(properties)
        for name in names:
            if self._chance(0.2):
                self._add_default(properties[name])
        return schema

    def _narrowed(self, properties: JSON) -> JSON:
        """A schema that may stand in anyOf: values only, no types."""
        name = self.random.choice(sorted(properties))
        if self._chance(0.5):
            return {"required": [name]}
        bounds = {
            "string": {"minLength": 2},
            "integer": {"minimum": 2},
            "number": {"maximum": 3},
            "array": {"minItems": 1},
            "object": {"minProperties": 1},
        }
        kind = properties[name].get("type", "")
        return {"properties": {name: bounds.get(kind, {})}, "required": [name]}

    def _array(self, depth: int) -> JSON:
        schema = array(self._any(depth))
        if self._chance(0.3):
            schema["minItems"] = 1
        if self._chance(0.3):
            schema["maxItems"] = 2
        scalar = schema["items"].get("type") in ("string", "integer", "number")
        if scalar and self._chance(0.4) and not schema["items"].get("nullable"):
            schema["x-kubernetes-list-type"] = "set"
        return schema

    def _table(self, depth: int) -> JSON:
        schema = table(self._any(depth))
        if self._chance(0.2):
            schema["maxProperties"] = 2
        return schema

    def _add_default(self, schema: JSON) -> None:
        plain = {"type", "nullable", "properties", "items"}
        values = {
            "string": "ab",
            "integer": 2,
            "number": 1.5,
            "boolean": True,
            "array": [],
            "object": {},
        }
        kind = schema.get("type", "")
        if kind in values and set(schema) <= plain:
            schema["default"] = values[kind]
