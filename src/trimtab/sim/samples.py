"""Samples: objects of a kind, made up from its schema.

What the schema says is obeyed: bounds, enums, lengths, required fields. A pattern is
met by trying a few words of the kind that people write; where none fits, or where a
rule between fields refuses everything, the scenario has to give a sample itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import Any, Final

from trimtab.api.crd import crd
from trimtab.api.resource import Resource
from trimtab.sim.scenario import BadScenario, is_builtin
from trimtab.sim.server import Plain

WORDS: Final = (
    "alpha beta gamma example-1 web:1.2 registry.example.com/team/app:7 10Gi 100m 1h30m"
    " 15s 10 0 3.14 true https://example.com/path example.com team@example.com 10.0.0.7"
    " 10.0.0.0/24 2026-01-02T03:04:05Z 2026-01-02 12:30 a/b v1 main s3://bucket/key"
    " 0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d *"
).split()
FORMATS: Final = {
    "date-time": "2026-01-02T03:04:05Z",
    "date": "2026-01-02",
    "duration": "90s",
    "uuid": "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d",
    "email": "team@example.com",
    "uri": "https://example.com/path",
    "hostname": "example.com",
    "ipv4": "10.0.0.7",
    "byte": "YWJj",
}
NOT_MADE_UP: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
BUILTIN: Final[dict[str, Plain]] = {
    "ConfigMap": {"data": {"a": "b"}},
    "Secret": {"stringData": {"a": "b"}},
    "Namespace": {},
    "ServiceAccount": {},
    "Pod": {"spec": {"containers": [{"name": "main", "image": "example:1"}]}},
}


def sample(kind: type[Resource], random: Random) -> Plain:
    """The body of an object, without its metadata.

    Errors: :class:`BadScenario` if nobody can guess.
    """
    if is_builtin(kind):
        if kind.kind not in BUILTIN:
            raise _unknown(kind, "is a built-in kind that no sample is known of")
        return dict(BUILTIN[kind.kind])
    schema = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    properties = schema.get("properties", {})
    return {
        name: _value(each, random, f"{kind.__name__}.{name}")
        for name, each in properties.items()
        if name not in NOT_MADE_UP
    }


def _value(schema: Mapping[str, Any], random: Random, where: str) -> Any:
    if "enum" in schema:
        return random.choice([each for each in schema["enum"] if each is not None])
    if schema.get("x-kubernetes-int-or-string"):
        return random.choice((1, 2, "50%"))
    match schema.get("type"):
        case "object":
            return _object(schema, random, where)
        case "array":
            least = schema.get("minItems", 0)
            most = min(schema.get("maxItems", least + 2), least + 2)
            size = random.randint(least, most)
            each = schema.get("items", {})
            made = [_value(each, random, f"{where}[]") for _ in range(size)]
            return _distinct(made, schema) if len(made) > 1 else made
        case "integer" | "number":
            return _number(schema, random)
        case "boolean":
            return random.random() < 0.5
        case "string":
            return _text(schema, random, where)
    return {} if schema.get("x-kubernetes-preserve-unknown-fields") else None


def _object(schema: Mapping[str, Any], random: Random, where: str) -> Plain:
    required = set(schema.get("required", ()))
    made = {}
    for name, each in schema.get("properties", {}).items():
        if name in required or random.random() < 0.7:
            made[name] = _value(each, random, f"{where}.{name}")
    more = schema.get("additionalProperties")
    if isinstance(more, Mapping) and random.random() < 0.7:
        made["key"] = _value(more, random, f"{where}.key")
    return made


def _distinct(made: list[Any], schema: Mapping[str, Any]) -> list[Any]:
    """Without what a set or a map would have twice."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if schema.get("x-kubernetes-list-type") not in ("set", "map"):
        return made
    found = {
        repr([each.get(key) for key in keys] if keys else each): each for each in made
    }
    return list(found.values())


def _number(schema: Mapping[str, Any], random: Random) -> float:
    least = schema.get("minimum", 0)
    most = schema.get("maximum", least + 5)
    # Small numbers: ten replicas show whatever a hundred would, sooner.
    value: float = random.randint(int(least), int(min(most, least + 5)))
    step = schema.get("multipleOf")
    return value - value % step if step else value


def _text(schema: Mapping[str, Any], random: Random, where: str) -> str:
    if schema.get("format") in FORMATS:
        return FORMATS[str(schema["format"])]
    least, most = schema.get("minLength", 0), schema.get("maxLength", 1 << 20)
    words = [*WORDS, "x" * max(least, 1)]
    fitting = [
        word
        for word in words
        if least <= len(word) <= most
        and ("pattern" not in schema or re.search(schema["pattern"], word))
    ]
    if not fitting:
        raise BadScenario(
            f"Nobody can guess what {where} looks like ({schema.get('pattern')}); give "
            "the scenario a sample of it."
        )
    return str(random.choice(fitting))


def _unknown(kind: type[Resource], why: str) -> BadScenario:
    return BadScenario(
        f"{kind.__name__} {why}; give the scenario one: "
        f"Scenario(operator=app, samples={{{kind.__name__}: make}})."
    )
