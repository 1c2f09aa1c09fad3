"""Descriptions: what ``kubectl explain`` says of built-in kinds, in our own words.

Every kind and its own fields have a sentence each, in ``data/descriptions.txt``. Of the
types that they are made of, and of their fields, is said what their schemas tell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from trimtab.embedded.types import INT_OR_STRING, QUANTITY

DATA = Path(__file__).with_name("data") / "descriptions.txt"
ANY = "*"

JSON = dict[str, Any]

_ENDINGS = {
    "Spec": "What is wanted of a {}.",
    "Status": "What is known of a {}.",
    "List": "Objects of the kind {}.",
}
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_REFERENCES = {
    INT_OR_STRING: "A number or a text.",
    QUANTITY: "A quantity, such as 500m or 2Gi.",
    f"{_META}Time": "An instant, such as 2026-01-31T12:00:00Z.",
    f"{_META}MicroTime": "An instant, such as 2026-01-31T12:00:00.000000Z.",
}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+")


@lru_cache(maxsize=1)
def _texts() -> Mapping[str, str]:
    lines = DATA.read_text().splitlines()
    return dict(line.split("\t") for line in lines)


def describe(name: str, schema: JSON) -> None:
    """Put descriptions into the schema of a definition.

    Assumptions: the schema is the caller's own, as it was recorded: without any.
    """
    kind = name.rpartition(".")[2]
    schema["description"] = _of_type(kind)
    for field, each in schema.get("properties", {}).items():
        if text := _of_field(kind, field, each):
            each["description"] = text


def _of_type(kind: str) -> str:
    if kind in _texts():
        return _texts()[kind]
    for ending, text in _ENDINGS.items():
        if (base := kind.removesuffix(ending)) in _texts():
            return text.format(base)
    words = " ".join(
        word if word.isupper() else word.lower() for word in _WORD.findall(kind)
    )
    article = "An" if words[:1] in "aeiou" else "A"
    return f"{article} {words}."


def _of_field(kind: str, field: str, schema: JSON) -> str:
    """What is known of a field; nothing if that is only its type."""
    if text := _texts().get(f"{kind}.{field}"):
        return text
    if kind in _texts() or kind.endswith("List"):
        return _texts().get(f"{ANY}.{field}", "")
    if keys := schema.get("x-kubernetes-list-map-keys"):
        return f"One entry for each {' and '.join(keys)}."
    if schema.get("x-kubernetes-list-type") == "set":
        return "A list in which nothing stands twice."
    if schema.get("format") == "byte":
        return "Bytes, in base64."
    return _REFERENCES.get(schema.get("$ref", ""), "")
