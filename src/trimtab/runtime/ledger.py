"""The ledger: what a controller applied last to each object, so that it need not again.

An apply is skipped only if its intent is the one applied last *and* the object is
still as that apply left it. Whoever changes the object in between brings the apply
back: drift is repaired, and a controller at rest writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, TypeAlias

import msgspec

from trimtab.api.resource import Metadata, Resource
from trimtab.cache import Key

Place: TypeAlias = tuple[type[Resource], Key, str]
"""A kind, an object of it, and the part that is written: "" or "status:owner"."""


class Applied(msgspec.Struct, frozen=True, gc=False):
    """One apply that succeeded: its intent, and what it made of the object."""

    digest: int
    uid: str
    version: int | str
    """The generation it returned; the resourceVersion of kinds that count none."""


def digest_of(body: bytes) -> int:
    """A number that stands for an intent; two that differ collide never in practice."""
    return int.from_bytes(blake2b(body, digest_size=8).digest())


def version_of(obj: Resource) -> int | str:
    return obj.metadata.generation or obj.metadata.resourceVersion


SWEPT = 1024
"""Entries from which on it is looked for such as nobody will ever forget."""


class Ledger:
    """The last apply of each place, of objects that the cache has.

    ``forget`` is called for every object that a watch reports as gone. What was applied
    outside of the watched scope is never reported: such entries are swept out, each
    time that the ledger has doubled. ``alive`` tells whether the cache has an object.
    """

    def __init__(self, alive: Callable[[type[Resource], Key], bool]) -> None:
        self._applied: dict[Place, Applied] = {}
        self._alive = alive
        self._full = SWEPT

    def __len__(self) -> int:
        return len(self._applied)

    def record(self, place: Place, digest: int, answer: Resource) -> None:
        self._applied[place] = Applied(digest, answer.metadata.uid, version_of(answer))
        if len(self._applied) > self._full:
            self._sweep()

    def _sweep(self) -> None:
        alive, applied = self._alive, self._applied
        self._applied = {at: applied[at] for at in applied if alive(at[0], at[1])}
        self._full = max(SWEPT, 2 * len(self._applied))

    def same(self, place: Place, digest: int, current: Resource) -> bool:
        """Whether this very intent is what was applied last to this very object."""
        last = self._applied.get(place)
        return (
            last is not None
            and last.digest == digest
            and last.uid == current.metadata.uid
        )

    def stands(self, place: Place, digest: int, current: Resource) -> bool:
        """Whether it was, and the object has not been changed since."""
        return self.same(place, digest, current) and self._applied[
            place
        ].version == version_of(current)

    def clear(self) -> None:
        """Forget everything: from now on nobody is told what is gone."""
        self._applied.clear()

    def forget(self, kind: type[Resource], key: Key, *parts: str) -> None:
        """The object is gone; so is what was known of it."""
        for part in parts or ("",):
            self._applied.pop((kind, key, part), None)


def carries(metadata: Metadata, wanted: Metadata) -> bool:
    """Whether metadata still has all that an intent put there.

    A generation does not count changes of metadata, so they are looked at one by one.
    """
    return (
        _within(wanted.labels, metadata.labels)
        and _within(wanted.annotations, metadata.annotations)
        and all(each in metadata.finalizers for each in wanted.finalizers)
        and {each.uid for each in wanted.ownerReferences}
        <= {each.uid for each in metadata.ownerReferences}
    )


def _within(part: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    return part.items() <= whole.items()
