"""Things: a custom kind that has each way of merging somewhere in its schema."""

from __future__ import annotations

from typing import Any

from hack.apply_corpus.kinds import _META, GROUP, Kind
from hack.apply_corpus.parts import JSON, Parts, one_of, several, some_of

_STRING: JSON = {"type": "string"}
_NUMBER: JSON = {"type": "integer"}
_ANYTHING: JSON = {"x-kubernetes-preserve-unknown-fields": True}
_MIXED: JSON = {"x-kubernetes-int-or-string": True}


def _object(**properties: JSON) -> JSON:
    return {"type": "object", "properties": properties}


def _list(items: JSON, **more: Any) -> JSON:
    extra = {f"x-kubernetes-{name.replace('_', '-')}": v for name, v in more.items()}
    return {"type": "array", "items": items, **extra}


def _map(values: JSON) -> JSON:
    return {"type": "object", "additionalProperties": values}


_PORT = {
    **_object(
        port=_NUMBER, protocol={"type": "string", "default": "TCP"}, name=_STRING
    ),
    "required": ["port"],
}
_ITEM = {
    **_object(
        name=_STRING,
        value=_STRING,
        tags=_list(_STRING, list_type="set"),
        ports=_list(_PORT, list_type="map", list_map_keys=["port", "protocol"]),
        extra=_ANYTHING,
    ),
    "required": ["name"],
}
_PAIR = {**_object(left=_STRING, right=_STRING, value=_NUMBER), "required": ["left"]}
_PAIR["properties"]["right"] = {"type": "string", "default": "r"}

SPEC: JSON = _object(
    text=_STRING,
    number=_NUMBER,
    ratio={"type": "number"},
    flag={"type": "boolean"},
    mixed=_MIXED,
    maybe={"type": "string", "nullable": True},
    labels=_map(_STRING),
    fixed={**_map(_STRING), "x-kubernetes-map-type": "atomic"},
    nested=_object(
        a=_STRING,
        inner=_object(b=_NUMBER, c=_list(_STRING), d=_map(_NUMBER)),
    ),
    whole={**_object(a=_STRING, b=_NUMBER), "x-kubernetes-map-type": "atomic"},
    items=_list(_ITEM, list_type="map", list_map_keys=["name"]),
    pairs=_list(_PAIR, list_type="map", list_map_keys=["left", "right"]),
    words=_list(_STRING, list_type="set"),
    numbers=_list(_NUMBER, list_type="set"),
    list=_list(_STRING),
    objects=_list(_object(a=_STRING, b=_STRING)),
    any=_ANYTHING,
    open={
        **_object(known=_STRING, deep=_object(a=_STRING)),
        "x-kubernetes-preserve-unknown-fields": True,
    },
    table=_map(_object(a=_STRING, b=_NUMBER)),
    lists=_map(_list(_ITEM, list_type="map", list_map_keys=["name"])),
    anythings=_map(_ANYTHING),
    template={
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
)
STATUS: JSON = _object(
    phase=_STRING,
    count=_NUMBER,
    conditions=_list(
        {**_object(type=_STRING, status=_STRING), "required": ["type"]},
        list_type="map",
        list_map_keys=["type"],
    ),
)
SCHEMA: JSON = _object(spec=SPEC, status=STATUS)


def definition(plural: str, schema: JSON) -> JSON:
    """The CRD of things with this schema."""
    kind = plural.removesuffix("s").capitalize()
    names = {"plural": plural, "singular": plural.removesuffix("s"), "kind": kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": names,
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


_WORDS = one_of("red", "green", "blue")
_NUMBERS = one_of(1, 2, 3)


def _port(number: int, protocol: str | None) -> Any:
    def make(random: Any) -> JSON:
        made: JSON = {"port": number}
        if protocol:
            made["protocol"] = protocol
        if random.random() < 0.4:
            made["name"] = random.choice(("http", "web"))
        return made

    return make


_PORTS = several(_port(9, "TCP"), _port(80, None), _port(443, "UDP"), _port(80, "UDP"))
_TAGS = several(one_of("t1"), one_of("t2"), one_of("t3"))
_FREE = one_of(
    1,
    1.5,
    True,
    "text",
    [1, {"a": 1}],
    {},
    {"a": 1},
    {"a": {"b": 1, "c": [1]}, "d": True},
    {"a": {"b": 2}, "d": 1},
    {"a": "x", "e": None},
)


def _item(name: str) -> Any:
    extras = {"value": _WORDS, "tags": _TAGS, "ports": _PORTS, "extra": _FREE}
    return lambda random: {"name": name, **some_of(extras)(random)}


def _pair(left: str, right: str | None) -> Any:
    def make(random: Any) -> JSON:
        made: JSON = {"left": left, **({"right": right} if right else {})}
        return (
            {**made, "value": random.randint(1, 2)} if random.random() < 0.7 else made
        )

    return make


_ITEMS = several(_item("x"), _item("y"), _item("z"), _item("w"))
PARTS: Parts = {
    **_META,
    ("spec", "text"): _WORDS,
    ("spec", "number"): _NUMBERS,
    ("spec", "ratio"): one_of(1, 1.5, 2.0),
    ("spec", "flag"): one_of(True, False),
    ("spec", "mixed"): one_of(1, "10%"),
    ("spec", "maybe"): one_of(None, "x"),
    ("spec", "labels"): some_of({"a": _WORDS, "b": _WORDS}),
    ("spec", "labels", "a"): _WORDS,
    ("spec", "fixed"): some_of({"a": _WORDS, "b": _WORDS}),
    ("spec", "nested"): one_of({}, {"a": "red"}, {"inner": {"b": 1}}),
    ("spec", "nested", "a"): _WORDS,
    ("spec", "nested", "inner", "b"): _NUMBERS,
    ("spec", "nested", "inner", "c"): several(_WORDS, _WORDS),
    ("spec", "nested", "inner", "d"): some_of({"p": _NUMBERS, "q": _NUMBERS}),
    ("spec", "whole"): some_of({"a": _WORDS, "b": _NUMBERS}),
    ("spec", "items"): _ITEMS,
    ("spec", "pairs"): several(
        _pair("l", None), _pair("l", "s"), _pair("m", "r"), _pair("m", "s")
    ),
    ("spec", "words"): several(one_of("red"), one_of("blue"), one_of("<&>")),
    ("spec", "numbers"): several(one_of(3), one_of(20), one_of(100)),
    ("spec", "list"): several(_WORDS, _WORDS),
    ("spec", "objects"): several(one_of({"a": "1"}), one_of({"b": "2"}, {})),
    ("spec", "any"): _FREE,
    ("spec", "any", "a"): _FREE,
    ("spec", "any", "f"): _FREE,
    ("spec", "open"): some_of(
        {"known": _WORDS, "other": _FREE, "deep": some_of({"a": _WORDS})}
    ),
    ("spec", "table"): some_of(
        {"k": some_of({"a": _WORDS, "b": _NUMBERS}), "l": some_of({"a": _WORDS})}
    ),
    ("spec", "table", "k", "a"): _WORDS,
    ("spec", "lists"): some_of({"k": _ITEMS, "l": _ITEMS}),
    ("spec", "anythings"): some_of({"k": _FREE, "l": _FREE}),
    ("spec", "template"): one_of(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}},
        {"apiVersion": "v1", "kind": "Pod", "spec": {"x": [1]}},
    ),
}

THING = Kind(
    name="Thing",
    api_version=f"{GROUP}/v1",
    path=f"/apis/{GROUP}/v1/namespaces/default/things",
    base={"spec": {}},
    parts=PARTS,
    status={
        ("status", "phase"): _WORDS,
        ("status", "count"): _NUMBERS,
        ("status", "conditions"): several(
            *(
                some_of({"type": one_of(t), "status": one_of("True", "False")}, least=2)
                for t in ("A", "B")
            )
        ),
    },
    strategic=False,
    defaults=False,
)
