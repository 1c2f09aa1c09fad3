"""Object metadata of custom objects: their own, and that of objects inside of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from trimtab.api import names
from trimtab.embedded import status
from trimtab.embedded.builtin.validation import meta as rules
from trimtab.embedded.builtin.validation import texts
from trimtab.embedded.builtin.validation.problems import Found
from trimtab.embedded.gotext import quoted
from trimtab.embedded.schemas import Schema
from trimtab.embedded.status import FieldProblem

Plain = dict[str, Any]

_STANDARD_FINALIZERS: Final = ("orphan", "foregroundDeletion", "kubernetes")


def created_problems(metadata: Mapping[str, Any], *, namespaced: bool) -> Found:
    """What is wrong with the metadata of a new custom object."""
    found = Found()
    if generate := metadata.get("generateName"):
        check = texts.prefix_of(texts.subdomain)
        found.each("metadata.generateName", generate, check(generate))
    name = metadata.get("name")
    if not name:
        found.required("metadata.name", "name or generateName is required")
    else:
        found.each("metadata.name", name, texts.subdomain(name))
    rules.common(found, _unnamed(metadata), namespaced=namespaced)
    return found


def _unnamed(metadata: Mapping[str, Any]) -> Plain:
    """The same metadata with a name that nobody objects to."""
    return {**metadata, "name": "fakename", "generateName": ""}


def updated_problems(
    metadata: Mapping[str, Any], old: Mapping[str, Any], *, namespaced: bool
) -> Found:
    """What is wrong with the metadata of a changed custom object."""
    found = Found()
    rules.common_update(found, metadata, old, namespaced=namespaced)
    # Finalizers need no prefix in custom objects.
    rules.updated(found, metadata, old, qualified=False)
    return found


def finalizer_warnings(
    metadata: Mapping[str, Any], old: Mapping[str, Any] | None = None
) -> list[str]:
    """What is said of new finalizers that may collide with somebody else's."""
    had = set((old or {}).get("finalizers") or ())
    new = set(metadata.get("finalizers") or ()) - had
    return [text for name in sorted(new) for text in _finalizer_warnings(name)]


def _finalizer_warnings(name: str) -> Iterator[str]:
    head = f"metadata.finalizers: {quoted(name)}"
    for problem in texts.key(name):
        yield f"{head}: {problem}"
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        path = " including a path (/)" if "." in name else ""
        yield (
            f"{head}: prefer a domain-qualified finalizer name{path} to avoid "
            "accidental conflicts with other finalizer writers"
        )


def embedded_problems(
    schema: Schema | None, value: Any, path: str = ""
) -> Iterator[FieldProblem]:
    """What is wrong with the objects that stand inside of a value."""
    if schema is None:
        return
    if isinstance(value, dict):
        if schema.embedded:
            yield from object_problems(value, path)
        for key, item in value.items():
            inner = f"{path}.{key}" if path else key
            if key not in schema.properties:
                inner = f"{path}[{key}]"
            yield from embedded_problems(schema.child(key), item, inner)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from embedded_problems(schema.items, item, f"{path}[{index}]")


def object_problems(value: Plain, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the type and the metadata of one embedded object."""
    prefix = f"{path}." if path else ""
    for key in ("apiVersion", "kind"):
        if key not in value:
            yield status.required(f"{prefix}{key}")
    for key in ("apiVersion", "kind"):
        if key in value:
            yield from _type_problems(key, value[key], f"{prefix}{key}")
    if isinstance(value.get("metadata"), dict):
        metadata = value["metadata"]
        found = Found()
        named = {**metadata, "name": metadata.get("name") or "fakename"}
        rules.common(found, named, namespaced=bool(metadata.get("namespace")))
        for problem in found:
            yield msgspec.structs.replace(problem, field=f"{prefix}{problem.field}")


def _type_problems(key: str, value: Any, path: str) -> Iterator[FieldProblem]:
    if not isinstance(value, str):
        yield status.invalid(path, value, "must be a string")
    elif not value:
        yield status.invalid(path, value, "must not be empty")
    elif key == "apiVersion":
        if value.count("/") > 1:
            detail = f"unexpected GroupVersion string: {value}"
            yield status.invalid(path, value, detail)
    else:
        try:
            names.check_kind(value)
        except names.InvalidName as error:
            # The words in front stand once, however many problems follow.
            first, *more = error.problems
            _, mark, _ = first.partition("otherwise match: ")
            rest = [each.partition(mark or "match: ")[2] for each in more]
            yield status.invalid(path, value, ",".join([first, *rest]))
