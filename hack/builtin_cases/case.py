"""Cases: objects to ask a real server about, and how they are written down.

A case is an object to create, or one to create and then to update. Most are variants
of a base object: paths like ``spec/containers/0/image`` with what stands there instead
(``GONE``: nothing; ``-`` as the last part appends to a list; ``~1`` is a slash).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

JSON = dict[str, Any]
Variants = dict[str, dict[str, Any]]
GONE: Final = object()


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One question: may this be created, or changed so, and what comes of it?"""

    kind: str
    """With its version: ``apps/v1/Deployment``."""
    name: str
    create: JSON
    update: Mapping[str, Any] | None = None
    """Changes to the object that creating it gave; None asks about creating."""
    subresource: str = ""
    status: Mapping[str, Any] | None = None
    """Written through the status subresource before anything is asked."""


def changed(base: JSON, changes: Mapping[str, Any]) -> JSON:
    """A copy of an object with other values at some paths."""
    made = copy.deepcopy(base)
    for path, value in changes.items():
        _put(made, path, copy.deepcopy(value) if value is not GONE else GONE)
    return made


def _put(target: Any, path: str, value: Any) -> None:
    *parents, last = (each.replace("~1", "/") for each in path.split("/"))
    for key in parents:
        if isinstance(target, list):
            target = target[int(key)]
        elif key in target and target[key] is not None:
            target = target[key]
        else:
            target = target.setdefault(key, {})
    if isinstance(target, list) and last == "-":
        target.append(value)
    elif value is GONE:
        del target[int(last) if isinstance(target, list) else last]
    else:
        target[int(last) if isinstance(target, list) else last] = value


def creates(
    kind: str, base: JSON, variants: Mapping[str, Mapping[str, Any]]
) -> Iterator[Case]:
    """A case for each variant of an object to create."""
    for name, changes in variants.items():
        yield Case(kind=kind, name=name, create=_whole(kind, changed(base, changes)))


def updates(
    kind: str,
    base: JSON,
    variants: Mapping[str, Mapping[str, Any]],
    *,
    subresource: str = "",
    status: Mapping[str, Any] | None = None,
) -> Iterator[Case]:
    """A case for each way to change one object."""
    for name, changes in variants.items():
        yield Case(
            kind=kind,
            name=name,
            create=_whole(kind, base),
            update=changes,
            subresource=subresource,
            status=status,
        )


def _whole(kind: str, body: JSON) -> JSON:
    version, _, name = kind.rpartition("/")
    return {"apiVersion": version, "kind": name, **copy.deepcopy(body)}
