"""The overlay: what we wrote ourselves, until the watch has caught up with it.

A read after an own write must see it, although its event is still on the way and a
selector may never let it through. So the answer of each write lies over the store
until the watch says that it has passed that revision.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Generic

import msgspec

from trimtab.cache.changes import Key, R, is_newer

UNDATED: Final = 1024
"""Tombstones without a revision that are kept; past it the oldest goes."""


class Tombstone(msgspec.Struct, frozen=True, gc=False):
    """We deleted the object with this uid; ``version`` is the last that we know of."""

    uid: str
    version: str
    ahead: bool = False
    """Whether the watch had not come to that version: then its DELETED is to come."""


class Overlay(Generic[R]):
    """Own writes by key, and how far each watch has come.

    Flow: :meth:`wrote` and :meth:`deleted` add; an event of the key with that revision
    or a newer one, or a watch that has passed it, removes.
    Guarantees: bounded without timers: by the writes since the last event or bookmark,
    and by the tombstones of objects that the store still holds, whose DELETED is on
    its way. A tombstone of an object that the store does not hold and whose revision
    nobody knows goes as the oldest of more than ``UNDATED``. A write to a namespace
    that no watch covers is not kept: nothing would ever supersede it.
    """

    __slots__ = ("entries", "seen")

    def __init__(self) -> None:
        self.entries: dict[Key, R | Tombstone] = {}
        self.seen: dict[str | None, str] = {}

    def wrote(self, key: Key, obj: R, *, held: tuple[str, str] | None) -> None:
        """Lay the answer of a write over what the store holds (its uid and version)."""
        uid, version = obj.metadata.uid, obj.metadata.resourceVersion
        if held is not None and not is_newer(version, than=held[1]):
            return
        over = self.entries.get(key)
        if over is not None:
            over_uid, over_version = identity(over)
            if over_uid == uid and type(over) is Tombstone:
                return
            if not is_newer(version, than=over_version):
                return
        if self._will_tell(key[0]) and not self.is_before(version, key[0]):
            self.entries[key] = obj

    def deleted(
        self, key: Key, uid: str, *, version: str, held: tuple[str, str] | None
    ) -> None:
        """Hide the object with this uid, whatever the watch still says of it."""
        if not self._will_tell(key[0]):
            return
        over = self.entries.get(key)
        if over is not None:
            over_uid, over_version = identity(over)
            if over_uid != uid and type(over) is not Tombstone:
                return  # it hides what is below it already, and is another object
            if over_uid == uid:
                version = _later(version, over_version)
        if held is not None and held[0] == uid:
            version = _later(version, held[1])
        self.entries[key] = Tombstone(uid, version, self._is_ahead(version, key[0]))
        if not version:
            self._bound()

    def _will_tell(self, namespace: str) -> bool:
        """Whether a watch covers this namespace; before any has spoken, it may."""
        return not self.seen or None in self.seen or namespace in self.seen

    def _bound(self) -> None:
        if len(self.entries) <= UNDATED:
            return
        undated = [
            key
            for key, over in self.entries.items()
            if type(over) is Tombstone and not over.version
        ]
        for key in undated[: max(0, len(undated) - UNDATED)]:
            del self.entries[key]

    def event(self, key: Key, uid: str, version: str, *, gone: bool = False) -> None:
        """An event of this key came; drop what it supersedes."""
        over = self.entries.get(key)
        if over is None:
            return
        over_uid, over_version = identity(over)
        if type(over) is Tombstone and over_uid == uid:
            if gone:
                del self.entries[key]
        elif over_version and _reaches(version, over_version):
            del self.entries[key]

    def removed(self, key: Key, uid: str) -> None:
        """The store no longer holds this object, so nothing has to hide it."""
        over = self.entries.get(key)
        if type(over) is Tombstone and over.uid == uid:
            del self.entries[key]

    def observed(
        self, version: str, namespace: str | None, *, held: dict[Key, Any]
    ) -> None:
        """The watch of this namespace (None: of all) has passed a revision.

        A tombstone over an object that the store holds stays: its DELETED is later
        than any revision that we know.
        """
        self.seen[namespace] = version
        if not self.entries:
            return
        passed = [
            key
            for key, over in self.entries.items()
            if (namespace is None or key[0] == namespace)
            and not (type(over) is Tombstone and (key in held or not over.version))
            and _reaches(version, identity(over)[1])
        ]
        for key in passed:
            over = self.entries.pop(key)
            if type(over) is Tombstone and over.ahead:
                # No event so far was of it; what others did before we deleted it may
                # still let one through, and nobody knows which will be the last.
                self.entries[key] = Tombstone(over.uid, "")
        self._bound()

    def _is_ahead(self, version: str, namespace: str) -> bool:
        mark = self.seen.get(namespace) or self.seen.get(None) or ""
        return not mark or is_newer(version, than=mark)

    def is_before(self, version: str, namespace: str) -> bool:
        """Whether the watch that would bring this revision is past it already."""
        mark = self.seen.get(namespace) or self.seen.get(None) or ""
        return mark.isdigit() and version.isdigit() and int(version) < int(mark)

    def left(self, namespace: str | None) -> None:
        """A namespace (None: all) is no longer watched, or its revisions start anew."""
        self.seen.pop(namespace, None)
        for key in [
            key for key in self.entries if namespace is None or key[0] == namespace
        ]:
            del self.entries[key]

    def objects(self) -> Iterator[tuple[Key, R]]:
        """What was written and not deleted since."""
        for key, over in self.entries.items():
            if not isinstance(over, Tombstone):
                yield key, over

    def __len__(self) -> int:
        return len(self.entries)


def identity(over: Any) -> tuple[str, str]:
    """The uid and the version of an object, or of what a tombstone stands for."""
    if type(over) is Tombstone:
        return over.uid, over.version
    return over.metadata.uid, over.metadata.resourceVersion


def _reaches(version: str, other: str) -> bool:
    return version == other or is_newer(version, than=other)


def _later(version: str, other: str) -> str:
    if not version or not other:
        return version or other
    return version if is_newer(version, than=other) else other
