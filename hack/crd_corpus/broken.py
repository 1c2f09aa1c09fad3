"""Broken definitions: names, versions, conversion, columns and subresources."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from hack.crd_corpus.broken_schemas import broken_schemas
from hack.crd_corpus.definitions import base
from hack.crd_corpus.edits import (
    JSON,
    Edit,
    annotated,
    at,
    drop,
    in_group,
    named,
    put,
    second,
    spec,
    together,
    version,
)
from hack.crd_corpus.schemas import string

_WEBHOOK = {"clientConfig": {"url": "https://a.example.com/convert"}}
_LONG = "x" * 64


def _names() -> Iterator[tuple[str, Edit]]:
    yield "name", lambda crd: crd["metadata"].update(name="other.corpus.example.com")
    yield "name form", lambda crd: crd["metadata"].update(name="Wid_gets")
    yield "group empty", spec(group="")
    yield "group form", spec(group="A_b.c")
    yield "group short", spec(group="example")
    yield "plural empty", named(plural="")
    yield "plural form", named(plural="Wid_gets")
    yield "singular form", named(singular="Wid get")
    yield "kind empty", named(kind="")
    yield "kind form", named(kind="Wid-get.")
    yield "kind long", named(kind="W" + _LONG)
    yield "list kind same", named(listKind="Widget")
    yield "list kind form", named(listKind="1")
    yield "short names", named(shortNames=["wg", "W", "a b"])
    yield "categories", named(categories=["all", "A B"])
    yield "scope empty", spec(scope="")
    yield "scope wrong", spec(scope="Galactic")
    yield "scope missing", drop("spec", "scope")
    yield "names missing", drop("spec", "names")
    yield "no versions", spec(versions=[])
    yield "no spec", drop("spec")


def _versions() -> Iterator[tuple[str, Edit]]:
    yield "no storage", version(storage=False)
    yield "two storages", second(storage=True)
    yield "same names", second(name="v1")
    yield "version name", version(name="1")
    yield "version name long", version(name="v" + _LONG)
    yield "deprecation text", version(deprecationWarning="old")
    yield "deprecation empty", version(deprecated=True, deprecationWarning="")
    yield "deprecation long", version(deprecated=True, deprecationWarning="x" * 257)
    yield "deprecation control", version(deprecated=True, deprecationWarning="a\tb")
    yield "no schema", drop("spec", "versions", "0", "schema")
    yield "empty schema", version(schema={})
    yield "preserve all", spec(preserveUnknownFields=True)
    yield "two versions", second()
    yield (
        "two versions, two schemas",
        second(schema={"openAPIV3Schema": {"type": "object"}}),
    )
    yield (
        "two versions, one bad",
        second(schema={"openAPIV3Schema": {"type": "string", "nullable": True}}),
    )


def _conversions() -> Iterator[tuple[str, Edit]]:
    yield "conversion word", spec(conversion={"strategy": "Magic"})
    yield "conversion empty", spec(conversion={})
    yield "conversion webhook bare", spec(conversion={"strategy": "Webhook"})
    yield (
        "conversion none with webhook",
        spec(
            conversion={
                "strategy": "None",
                "webhook": {**_WEBHOOK, "conversionReviewVersions": ["v1"]},
            }
        ),
    )
    yield (
        "conversion versions",
        spec(
            conversion={
                "strategy": "Webhook",
                "webhook": {
                    **_WEBHOOK,
                    "conversionReviewVersions": ["v9", "v9", "A b"],
                },
            }
        ),
    )
    yield (
        "conversion no versions",
        spec(
            conversion={
                "strategy": "Webhook",
                "webhook": {"clientConfig": {}, "conversionReviewVersions": []},
            }
        ),
    )
    yield (
        "conversion url",
        spec(
            conversion={
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": {"url": "http://a:b@c/?q#f"},
                    "conversionReviewVersions": ["v1"],
                },
            }
        ),
    )
    yield (
        "conversion service",
        spec(
            conversion={
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": {
                        "service": {"name": "", "namespace": "", "path": "x//y"}
                    },
                    "conversionReviewVersions": ["v1"],
                },
            }
        ),
    )


def _approvals() -> Iterator[tuple[str, Edit]]:
    yield "approval missing", in_group("things.k8s.io")
    yield (
        "approval wrong",
        together(in_group("things.k8s.io"), annotated("maybe")),
    )
    yield (
        "approval bypassed",
        together(in_group("things.k8s.io"), annotated("unapproved, a test")),
    )
    yield (
        "approval given",
        together(in_group("things.k8s.io"), annotated("https://a.b/c")),
    )


def _extras() -> Iterator[tuple[str, Edit]]:
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
    yield "column good", version(additionalPrinterColumns=[column])
    for key in ("name", "type", "jsonPath"):
        less = {name: value for name, value in column.items() if name != key}
        yield f"column without {key}", version(additionalPrinterColumns=[less])
    for key, value in {
        "type": "decimal",
        "format": "money",
        "jsonPath": "spec.size",
        "name": "",
    }.items():
        wrong = {**column, key: value}
        yield f"column {key}", version(additionalPrinterColumns=[column, wrong])
    scale = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    yield "scale good", version(subresources={"scale": scale, "status": {}})
    yield "scale empty", version(subresources={"scale": {}})
    for key in scale:
        for text in ("size", ".metadata.x", ""):
            wrong = {**scale, key: text}
            yield f"scale {key} {text}", version(subresources={"scale": wrong})
    paths = [".spec.size", ".spec.name"]
    fields = [{"jsonPath": path} for path in paths]
    yield "fields good", version(selectableFields=fields)
    for path in (
        *("", "spec.size", ".spec.nope", ".spec.list", ".metadata.name", ".spec"),
        *(".spec.size.x", ".spec.list[0]", ".spec.map.a", ".spec['size']", ".spec."),
    ):
        wrong_field = [*fields, {"jsonPath": path}]
        yield f"field {path}", version(selectableFields=wrong_field)
    yield "fields twice", version(selectableFields=[*fields, fields[0]])
    many = {f"p{index}": string() for index in range(9)}
    yield (
        "fields many",
        together(
            put(**many),
            version(selectableFields=[{"jsonPath": f".spec.{n}"} for n in many]),
        ),
    )
    yield (
        "status root enum",
        together(at(enum=["a"]), version(subresources={"status": {}})),
    )
    yield (
        "status root min properties",
        together(at(minProperties=1), version(subresources={"status": {}})),
    )


def broken() -> Iterator[tuple[str, JSON]]:
    """Definitions that a server mostly refuses, each with a label."""
    families = (_names(), _versions(), _conversions(), _approvals(), _extras())
    for label, edit in (*chain(*families), *broken_schemas()):
        crd = base()
        edit(crd)
        yield label, crd


def updates() -> Iterator[tuple[str, JSON]]:
    """What ``base`` is replaced with, each with a label."""
    edits: dict[str, Edit] = {
        "same": lambda crd: None,
        "scope": spec(scope="Cluster"),
        "kind": named(kind="Gadget"),
        "plural": named(plural="gadgets"),
        "group": spec(group="other.example.com"),
        "singular": named(singular="gadget"),
        "short names": named(shortNames=["wg"]),
        "version renamed": version(name="v2"),
        "version added": second(),
        "storage moved": together(second(storage=True), version(storage=False)),
        "not served": version(served=False),
        "schema dropped": version(schema={}),
        "bad schema": put(bad={"maxLength": 5}),
        "column added": version(
            additionalPrinterColumns=[
                {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
            ]
        ),
        "preserve": spec(preserveUnknownFields=True),
    }
    for label, edit in edits.items():
        crd = base()
        edit(crd)
        yield label, crd
