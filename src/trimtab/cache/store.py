"""Stores: the objects of one kind as the watch knows them, with our own writes on top.

A synchronous core: lists and watches put objects in, readers take them out, and each
change that a subscriber should see is what a method returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from sys import intern
from typing import Any, Generic, cast

import msgspec

from trimtab.cache import keeping
from trimtab.cache.accounting import Accountant
from trimtab.cache.changes import Change, Key, R, is_newer
from trimtab.cache.entries import Entries
from trimtab.cache.indexes import OWNER, Buckets, Index
from trimtab.cache.keeping import Form, Keep, Whole
from trimtab.cache.overlay import Overlay, Tombstone
from trimtab.cache.relist import Relist as Relist
from trimtab.cache.sharing import sharer


class StoreStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """How much a store holds, and in which forms."""

    objects: int
    bytes: int
    """Accounted, from sampled sizes; keys, tables and indexes are part of it."""
    overlay: int
    """Own writes that the watch has not confirmed yet."""
    by_form: dict[Form, int]
    counted: dict[tuple[str, str], int]
    """How many objects an index finds by each value that it counts."""


class Store(Generic[R]):
    """The objects of one kind, their indexes, and our own writes.

    Guarantees: an older version of an object never takes the place of a newer one, and
    an event of an object that another has replaced since changes nothing. Another uid
    under the same name is another object: the change is its ADDED, with the DELETED of
    the one before it in ``replaced``. Reads see own writes; changes do not tell of them
    until the watch brings them.

    Of an entry, only the object itself and one key tuple are held; the ``key`` of an
    ADDED, and of a DELETED that a list brought to light, is that tuple.
    """

    __slots__ = (
        "_buckets",
        "_entries",
        "_held",
        "_listed",
        "_overlay",
        "_share",
        "kind",
    )

    def __init__(
        self,
        kind: type[R],
        *,
        indexes: Iterable[Index] = (),
        keep: Keep[R] | None = None,
        accountant: Accountant | None = None,
    ) -> None:
        self.kind = kind
        self._buckets: dict[str, Buckets] = {}
        self._entries = Entries(
            kind, keep=keep, accountant=accountant, buckets=self._buckets
        )
        self._held = self._entries.held
        self._overlay: Overlay[R] = Overlay()
        self._share = sharer(kind)
        self._listed: set[str | None] = set()
        for index in indexes:
            self.add_index(index)

    @property
    def needs_raw(self) -> bool:
        """Whether :meth:`put` wants the bytes of an object as they came."""
        return self._entries.keeper.needs_raw

    # What lists and watches say

    def put(
        self, obj: R, *, raw: bytes | None = None, relist: Relist[R] | None = None
    ) -> Change[R] | None:
        """Take an object as a watch sent it; None where that is nothing new.

        ``raw`` is its JSON, for what is to be kept full; ``relist`` says that it comes
        with a list, as :meth:`Relist.put` does.
        """
        metadata = obj.metadata
        namespace = intern(metadata.namespace)
        # One text for all: the decoder makes a new one for each object.
        msgspec.structs.force_setattr(metadata, "namespace", namespace)
        key = (namespace, metadata.name)
        held = self._held.get(key)
        entries, overlay = self._entries, self._overlay
        change: Change[R] | None
        if held is None:
            if relist is None and overlay.is_before(
                metadata.resourceVersion, namespace
            ):
                return None  # an event from before its DELETED, come late
            change = Change("ADDED", key, None, obj)
            for buckets in self._buckets.values():
                buckets.insert(key, obj)
        else:
            rewound = relist is not None and relist.rewound
            change = self._change(key, held, obj, rewound)
            if change is None:
                return None
        if entries.plain:
            self._share(obj, held)
            self._held[key] = obj
        else:
            entries.put(key, obj, raw=raw, before=held)
        ledger = entries.ledger
        if ledger.unmeasured:
            ledger.unmeasured -= 1
        else:
            ledger.measure(obj)
        if overlay.entries:
            overlay.event(key, metadata.uid, metadata.resourceVersion)
        return change

    def _change(self, key: Key, held: Any, obj: R, rewound: bool) -> Change[R] | None:
        """What an object is to the one that is held; its indexes follow."""
        uid, version = keeping.identity(held)
        metadata = obj.metadata
        if not (rewound or is_newer(metadata.resourceVersion, than=version)):
            return None
        if uid == metadata.uid and version == metadata.resourceVersion:
            return None
        old = self._entries.slice(held)
        self._reindex(key, held, old, obj)
        if uid != metadata.uid:
            self._overlay.removed(key, uid)
            gone: Change[R] = Change("DELETED", key, old, None)
            return Change("ADDED", key, None, obj, replaced=gone)
        change: Change[R] = Change("MODIFIED", key, old, obj)
        if old is None:
            change.fields = keeping.printed_differences(
                self.kind, held.prints, keeping.prints(obj)
            )
        return change

    def remove(self, obj: R) -> Change[R] | None:
        """Take a DELETED event; None where what is held is newer, or nothing.

        ``old`` is the final state that the event carries, or the last known state where
        the event is of a later object under the same name.
        """
        metadata = obj.metadata
        key = (metadata.namespace, metadata.name)
        held = self._held.get(key)
        if self._overlay.entries:
            self._overlay.event(key, metadata.uid, metadata.resourceVersion, gone=True)
        if held is None:
            return None
        uid, version = keeping.identity(held)
        same = uid == metadata.uid
        final = same and version == metadata.resourceVersion
        if not final and not is_newer(metadata.resourceVersion, than=version):
            return None
        change = self._drop(key)
        if change is not None and same:
            change.old = obj
        return change

    def begin(self, namespace: str | None, *, rewound: bool = False) -> Relist[R]:
        """Begin a list of a namespace (None: of all); what it lacks goes at its end.

        ``rewound`` says that the server's revisions went back (a restored backup): then
        what the list has is right even where it is older than what is held.
        """
        if rewound:
            self._overlay.left(namespace)
        return Relist(self, namespace, rewound=rewound)

    def is_listed(self, namespace: str | None) -> bool:
        """Whether a list of this namespace has been finished."""
        return namespace in self._listed

    def held_in(self, namespace: str | None) -> list[Key]:
        """The keys that the watch knows in a namespace (None: in all)."""
        if namespace is None:
            return list(self._held)
        return [key for key in self._held if key[0] == namespace]

    def listed(
        self, namespace: str | None, *, without: Iterable[Key]
    ) -> list[Change[R]]:
        """A list is complete and did not have these keys."""
        self._listed.add(namespace)
        dropped = map(self._drop, without)
        return [change for change in dropped if change is not None]

    def drop(self, namespace: str) -> list[Change[R]]:
        """Forget a namespace that is no longer watched."""
        self._overlay.left(namespace)
        gone = self.listed(namespace, without=self.held_in(namespace))
        self._listed.discard(namespace)
        return gone

    def _drop(self, key: Key) -> Change[R] | None:
        held = self._entries.pop(key)
        if held is None:
            return None
        old = self._entries.slice(held)
        self._reindex(key, held, old, None)
        if self._overlay.entries:
            self._overlay.removed(key, keeping.identity(held)[0])
        return Change("DELETED", key, old, None)

    def _reindex(self, key: Key, held: Any, old: R | None, new: R | None) -> None:
        """Move a key from where the old object is found to where the new one is."""
        for at, buckets in enumerate(self._buckets.values()):
            before = held.found_by(at) if old is None else buckets.values(old)
            after = () if new is None else buckets.values(new)
            buckets.move(key, before, after)

    def observed(self, resource_version: str, namespace: str | None = None) -> None:
        """The watch of a namespace (None: of all) has passed this revision."""
        self._overlay.observed(resource_version, namespace, held=self._held)

    # What we wrote ourselves

    def written(self, obj: R) -> None:
        """Show the answer of an own write until the watch has come as far."""
        held = self._held.get(obj.key)
        known = None if held is None else keeping.identity(held)
        self._overlay.wrote(obj.key, obj, held=known)

    def deleted(self, key: Key, uid: str, *, resource_version: str = "") -> None:
        """Hide an object that we deleted until the watch says so too.

        ``resource_version`` is its last one, where the caller knows it. Assumptions: it
        is gone; one that only began to go, with a finalizer or a grace period, was
        written.
        """
        held = self._held.get(key)
        known = None if held is None else keeping.identity(held)
        self._overlay.deleted(key, uid, version=resource_version, held=known)

    # Reads

    def get(self, key: Key) -> R | None:
        """The object as we or others wrote it last; None if only its key is kept.

        Guarantees: reading a packed object makes it a slice again.
        """
        if self._overlay.entries:
            over = self._overlay.entries.get(key)
            if isinstance(over, Tombstone):
                return None if self._hides(key, over) else self._entries.read(key)
            if over is not None:
                return over
        if self._entries.plain:
            return cast("R | None", self._held.get(key))
        return self._entries.read(key)

    def _hides(self, key: Key, over: Tombstone) -> bool:
        held = self._held.get(key)
        return held is not None and keeping.identity(held)[0] == over.uid

    def __contains__(self, key: Key) -> bool:
        over = self._overlay.entries.get(key)
        if over is None:
            return key in self._held
        if not isinstance(over, Tombstone):
            return True
        return key in self._held and not self._hides(key, over)

    def __len__(self) -> int:
        return len(self._held) + sum(
            (key in self) - (key in self._held) for key in self._overlay.entries
        )

    def keys(self) -> Iterator[Key]:
        """The keys of all objects, whatever is kept of them."""
        over = self._overlay.entries
        yield from (key for key in self._held if key not in over or key in self)
        yield from (key for key in over if key not in self._held and key in self)

    def values(self) -> Iterator[R]:
        """All objects of which more than the key is kept; nothing is promoted."""
        return (obj for _, obj in self.items() if obj is not None)

    def items(self) -> Iterator[tuple[Key, R | None]]:
        """All keys with their objects, None for what is kept as a key only.

        Reading everything is no sign that any of it is needed: nothing is promoted.
        """
        for key in self.keys():
            over = self._overlay.entries.get(key)
            if over is None or isinstance(over, Tombstone):
                yield key, self._entries.slice(self._held[key])
            else:
                yield key, over

    def by(self, index: str, value: str) -> list[R]:
        """The objects that an index finds by a value, without those kept as keys."""
        found = map(self.get, self.keys_by(index, value))
        return [obj for obj in found if obj is not None]

    def keys_by(self, index: str, value: str) -> list[Key]:
        """The keys that an index finds by a value, whatever is kept of the objects."""
        buckets = self._buckets.get(index)
        if buckets is None:
            raise KeyError(
                f"The store of {self.kind.__resource__} has no index {index!r}; name "
                "it where the kind is watched."
            )
        keys = buckets.keys(value)
        if not self._overlay.entries:
            return list(keys)
        own = {
            key: value in buckets.values(obj) for key, obj in self._overlay.objects()
        }
        below = [key for key in keys if key not in own and key in self]
        return below + [key for key, found in own.items() if found]

    def values_of(self, key: Key, index: str) -> tuple[str, ...]:
        """What an index finds an object by, whatever is kept of it."""
        obj = self._overlay.entries.get(key)
        if obj is None or isinstance(obj, Tombstone):
            held = self._held.get(key)
            obj = None if held is None else self._entries.slice(held)
            if held is not None and obj is None:
                stub = cast("keeping.Stub", held)
                return stub.found_by(list(self._buckets).index(index))
        return () if obj is None else self._buckets[index].values(obj)

    def children(self, uid: str) -> list[R]:
        """The objects that this owner has; the index of owners must be there."""
        return self.by(OWNER, uid)

    def add_index(self, index: Index) -> None:
        """Have an index from now on, built from what is there.

        What is kept as a key is found by it after its next change.
        """
        if index.name in self._buckets:
            return
        buckets = self._buckets[index.name] = Buckets(index)
        for key, held in self._held.items():
            obj = self._entries.slice(held)
            if obj is not None:
                buckets.insert(key, obj)

    def form(self, key: Key) -> Form | None:
        """What is kept of an object; None where there is none."""
        over = self._overlay.entries.get(key)
        if over is not None and not isinstance(over, Tombstone):
            return "slice"
        return keeping.form(self._held[key]) if key in self else None

    def full(self, key: Key) -> dict[str, Any] | None:
        """The whole object as the watch last sent it, if it is kept full."""
        held = self._held.get(key)
        if key not in self or not isinstance(held, bytes | Whole):
            return None
        return self._entries.keeper.full(held.data if isinstance(held, Whole) else held)

    def statistics(self) -> StoreStatistics:
        return StoreStatistics(
            objects=len(self),
            bytes=self._entries.accounted(),
            overlay=len(self._overlay),
            by_form=self._entries.by_form(),
            counted={
                (name, value): len(buckets.keys(value))
                for name, buckets in self._buckets.items()
                for value in buckets.index.counted
            },
        )
