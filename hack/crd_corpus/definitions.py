"""CustomResourceDefinitions: good ones, that objects are posted to."""

from __future__ import annotations

import copy
from typing import Any

from hack.crd_corpus.schemas import array, integer, record, string, table

JSON = dict[str, Any]

GROUP = "corpus.example.com"
_KEEP = "x-kubernetes-preserve-unknown-fields"


def definition(plural: str, schema: JSON, *, group: str = GROUP, **more: Any) -> JSON:
    """A definition with one version; ``more`` goes into that version."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        **more,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": plural, "kind": plural[:-1].capitalize()},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def base() -> JSON:
    """A small definition that the bad ones are made from."""
    schema = record(
        {
            "spec": record(
                {
                    "size": integer(),
                    "name": string(),
                    "list": array(string()),
                    "map": table(string()),
                    "items": array(record({"key": string(), "value": integer()})),
                }
            ),
            "status": record({"replicas": integer(), "selector": string()}),
        }
    )
    return definition("widgets", schema)


def rivals() -> list[JSON]:
    """Definitions that want names which ``base``, or one before, has already."""
    found = []
    for index, names in enumerate(
        (
            {"kind": "Widget"},
            {"singular": "widget"},
            {"singular": "widgets"},
            {"listKind": "WidgetList"},
            {"shortNames": ["rv", "rw"]},
            {"shortNames": ["rv", "rx", "rw"]},
            {"kind": "Widget", "shortNames": ["rv"], "categories": ["all"]},
        )
    ):
        crd = definition(f"rival{index}s", {"type": "object"})
        crd["spec"]["names"].update(names)
        found.append(crd)
    return found


def served() -> JSON:
    """Two versions, columns of each type, scale, status and selectable fields."""
    crd = definition("panels", record({"spec": _SPEC, "status": _STATUS}))
    crd["spec"]["names"].update(shortNames=["pn"], categories=["all"])
    version = crd["spec"]["versions"][0]
    version["subresources"] = {"status": {}, "scale": _SCALE}
    version["selectableFields"] = [
        {"jsonPath": f".spec.{field}"} for field in ("colour", "size", "ready")
    ]
    version["additionalPrinterColumns"] = _columns()
    second = copy.deepcopy(version)
    second.update({"name": "v2", "storage": False, "deprecated": True})
    del second["additionalPrinterColumns"]
    second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].pop("size")
    second["selectableFields"] = [{"jsonPath": ".spec.colour"}]
    crd["spec"]["versions"].append(second)
    return crd


_SPEC = record(
    {
        "size": integer(),
        "ratio": {"type": "number"},
        "colour": string(),
        "ready": {"type": "boolean"},
        "since": string(format="date-time"),
        "parts": array(record({"name": string(), "weight": integer()})),
        "labels": table(string()),
        "replicas": {_KEEP: True},
    }
)
_STATUS = record(
    {"replicas": {_KEEP: True}, "selector": {_KEEP: True}, "note": string()}
)
_SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
_TYPES = {
    "size": "integer",
    "ratio": "number",
    "colour": "string",
    "ready": "boolean",
    "since": "date",
}


def _columns() -> list[JSON]:
    """Each field as each type, then each form of path, then one with all there is."""
    columns: list[JSON] = [
        {"name": f"{field}-{kind}", "type": kind, "jsonPath": f".spec.{field}"}
        for field in _TYPES
        for kind in _TYPES.values()
    ]
    for name, kind, path in (
        ("first", "string", ".spec.parts[0].name"),
        ("names", "string", ".spec.parts[*].name"),
        ("last", "string", ".spec.parts[-1].name"),
        ("slice", "string", ".spec.parts[0:2].name"),
        ("heavy", "string", ".spec.parts[?(@.weight>2)].name"),
        ("named", "integer", '.spec.parts[?(@.name=="b")].weight'),
        ("parts", "string", ".spec.parts"),
        ("whole", "string", ".spec.labels"),
        ("dotted", "string", ".spec.labels.a\\.b/c"),
        ("quoted", "string", ".spec.labels['a.b/c']"),
        ("missing", "string", ".spec.nope.none"),
    ):
        columns.append({"name": name, "type": kind, "jsonPath": path})
    age = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    return [*columns, {**age, "priority": 1, "description": "how old it is"}]


PANELS: list[JSON] = [
    {"spec": {}},
    {"spec": {"size": 5, "ratio": 2.5, "colour": "red", "ready": True}},
    {"spec": {"size": 5, "ratio": 3, "since": "2020-01-02T03:04:05Z"}},
    {"spec": {"since": "2999-01-01T00:00:00Z", "colour": "1 & 2 <b>"}},
    {
        "spec": {
            "parts": [
                {"name": "a", "weight": 1},
                {"name": "b", "weight": 3},
                {"name": "c", "weight": 5},
            ],
            "labels": {"a.b/c": "x", "d": "y"},
        }
    },
    {"spec": {"replicas": 3}, "status": {"replicas": 2, "selector": "a=b"}},
    {"spec": {"replicas": -1}},
    {"spec": {"replicas": 3000000000}},
    {"spec": {"replicas": "3"}},
    {"spec": {"replicas": 3.5}},
    {"spec": {"replicas": None}},
]
