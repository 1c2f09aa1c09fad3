"""Unreadable objects: what can be said of one that is not as its class has it."""

from __future__ import annotations

import logging
from typing import TypeVar

import msgspec

from trimtab.api import codec
from trimtab.api.resource import Resource
from trimtab.cache.changes import Key
from trimtab.client.answers import UNREADABLE

R = TypeVar("R", bound=Resource)

logger = logging.getLogger("trimtab.cache")


class Name(msgspec.Struct, frozen=True, gc=False):
    """The part of an object's metadata that says which one it is."""

    namespace: str = ""
    name: str = ""
    resourceVersion: str = ""


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """As much as can be read of an object that is not of its class."""

    metadata: Name = Name()

    @property
    def key(self) -> Key:
        return (self.metadata.namespace, self.metadata.name)


def read(kind: type[R], item: msgspec.Raw, *, about: object) -> R | Unreadable:
    """One object; a line in the log and only its name if it is not of its class."""
    try:
        return codec.decode(kind, item)
    except UNREADABLE as error:
        found = _what_is_it(item)
        logger.warning(
            "%s: %s cannot be read as %s (%s); its last readable state is kept.",
            about,
            "/".join(filter(None, found.key)),
            kind.__name__,
            error,
        )
        return found


def _what_is_it(item: msgspec.Raw) -> Unreadable:
    """Which object it is, as far as that can be read."""
    try:
        return codec.decode(Unreadable, item)
    except UNREADABLE:
        return Unreadable()


def at_revision(obj: R, revision: str) -> R:
    """An object at another revision."""
    replace = msgspec.structs.replace
    return replace(obj, metadata=replace(obj.metadata, resourceVersion=revision))
