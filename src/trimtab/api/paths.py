"""JSON paths into a schema: does what a path names exist, and what is it?

Printer columns, the scale subresource, selectable fields and rules point at fields by
path. A path that points at nothing is an empty column or a refused CRD, so it is looked
up in the schema that the same class generates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_STEP = re.compile(
    r"\.(?P<name>(?:[^.\[\]\\]|\\.)+)"
    r"|\['(?P<quoted>(?:[^'\\]|\\.)*)'\]"
    r"|\[(?P<items>\d+|\*|-?\d*:-?\d*|\?\(.*?\))\]"
)
_ESCAPED = re.compile(r"\\(.)")

ITEMS: Final = None
"""The step of a path that goes to the items of a list."""

# What `metadata` has; a CRD does not say, because the server knows.
_METADATA: Final = (
    *("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink"),
    *("generation", "creationTimestamp", "deletionTimestamp"),
    *("deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences"),
    *("finalizers", "managedFields"),
)
_ANYTHING: Final[Mapping[str, Any]] = {"x-kubernetes-preserve-unknown-fields": True}


def steps(path: str) -> list[str | None]:
    """The names along a path; ``ITEMS`` where it goes into a list.

    Errors: ``ValueError`` when the path is not of the form ``.spec.ports[0].name``.
    """
    return list(_steps(path))


def _steps(path: str) -> Iterator[str | None]:
    position = 0
    while position < len(path) or not path:
        step = _STEP.match(path, position)
        if step is None:
            raise ValueError(
                f"{path!r} is not a JSON path; write it like .spec.replicas"
            )
        if step["items"] is not None:
            yield ITEMS
        else:
            yield _ESCAPED.sub(r"\1", step["name"] or step["quoted"])
        position = step.end()


def find(schema: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
    """The schema of what a path names; None when there is no such thing.

    The metadata at the root and whatever is below a value without a schema exist, as
    far as anybody can know.

    Errors: ``ValueError`` when the path cannot be read.
    """
    walked = steps(path)
    if walked[0] == "metadata":
        known = len(walked) > 1 and walked[1] in _METADATA
        return _ANYTHING if known else None
    here: Mapping[str, Any] | None = schema
    for step in walked:
        here = _child(here, step)
        if here is None:
            return None
    return here


def _child(schema: Mapping[str, Any] | None, step: str | None) -> Any:
    if schema is None:
        return None
    if step is ITEMS:
        child = schema.get("items")
    else:
        child = schema.get("properties", {}).get(step)
        child = child or schema.get("additionalProperties")
    if child is None and schema.get("x-kubernetes-preserve-unknown-fields"):
        return _ANYTHING
    return child
