"""Keeping: parts of an object that a request cannot change stay what they were."""

from __future__ import annotations

from typing import Any, Final

JSON = dict[str, Any]

_KEPT: Final = (
    "deletionTimestamp",
    "generation",
    "selfLink",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
)


def keep(obj: JSON, old: JSON, field: str) -> None:
    """A field is what it was, or absent if it was."""
    if field in old:
        obj[field] = old[field]
    else:
        obj.pop(field, None)


def keep_metadata(obj: JSON, old: JSON) -> None:
    """Through a subresource, metadata cannot change."""
    for field in _KEPT:
        keep(obj["metadata"], old["metadata"], field)


def keep_spec(obj: JSON, old: JSON) -> None:
    """What writing the status of most kinds leaves alone."""
    keep(obj, old, "spec")


def keep_status(obj: JSON, old: JSON) -> None:
    """What writing most kinds leaves alone."""
    keep(obj, old, "status")


def nothing(obj: JSON, old: JSON) -> None:
    """All of the object is the client's."""
