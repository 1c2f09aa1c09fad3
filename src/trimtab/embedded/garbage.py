"""Garbage: objects that go because their owners did, and owners that wait for them.

It is collected as the controller does it of which it has its name: by deletions and
patches that others are asked about. What is garbage can always be found again in the
store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import compress

import msgspec

from trimtab.embedded.catalog import Catalog
from trimtab.embedded.deletion import FOREGROUND, ORPHAN, DeleteOptions, Preconditions
from trimtab.embedded.errands import Errands, account, write_by
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.owners import Owners
from trimtab.embedded.registry import Registry
from trimtab.embedded.requests import User
from trimtab.embedded.store import Store

COLLECTOR = account("generic-garbage-collector")


class Reference(msgspec.Struct, gc=False):
    """Of a reference to an owner, what says whether it has to wait."""

    uid: str = ""
    blockOwnerDeletion: bool | None = None


class Meta(msgspec.Struct, gc=False):
    """Of an object's metadata, what its life and that of others hangs on."""

    name: str = ""
    uid: str = ""
    namespace: str = ""
    deletionTimestamp: str | None = None
    finalizers: list[str] | None = None
    ownerReferences: list[Reference] | None = None


class Head(msgspec.Struct, gc=False):
    metadata: Meta


head = msgspec.json.Decoder(Head).decode


class Garbage:
    """Follows who owns whom, and has those removed who are left over.

    Flow: :meth:`seen` and :meth:`gone` with every change; the work is on ``errands``.
    """

    def __init__(
        self, store: Store, *, catalog: Catalog, registry: Registry, errands: Errands
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._registry = registry
        self._errands = errands
        self._owners = Owners()
        self._waiting: dict[str, str] = {}
        """The keys of those who go after their dependents, by their uids."""

    def seen(self, key: str, meta: Meta) -> None:
        """An object is there: whose is it, and is it going?"""
        references = meta.ownerReferences or ()
        self._name(
            key, ((each.uid, bool(each.blockOwnerDeletion)) for each in references)
        )
        if references:
            self._errands.add(self._collect, key)
        if not meta.deletionTimestamp:
            return
        if FOREGROUND in (meta.finalizers or ()) and meta.uid not in self._waiting:
            self._waiting[meta.uid] = key
            self._errands.add(self._foreground, key)
        if ORPHAN in (meta.finalizers or ()):
            self._errands.add(self._orphan, key)

    def gone(self, key: str, meta: Meta) -> None:
        """An object is gone: who was waiting for that?"""
        self._name(key, ())
        self._waiting.pop(meta.uid, None)
        for dependent in self._owners.dependents(meta.uid):
            self._errands.add(self._collect, dependent)

    def _name(self, key: str, references: Iterable[tuple[str, bool]]) -> None:
        """Keep the index of owners; one that waited for this object may be free."""
        for uid in self._owners.name(key, references):
            if uid in self._waiting and not self._owners.is_blocked(uid):
                self._errands.add(self._foreground, self._waiting[uid])

    def object(self, key: str) -> tuple[Kind, Plain] | None:
        """A stored object with its kind, in whatever version it is stored."""
        row = self._store.get(key)
        kind = self._catalog.by_prefix(key)
        if row is None or kind is None:
            return None
        return kind, kind.decode(row.value)

    def _collect(self, key: str) -> None:
        """An object whose owners are all gone goes too."""
        found = self.object(key)
        if found is None:
            return
        kind, obj = found
        meta = metadata_of(obj)
        owners = meta.get("ownerReferences") or []
        states = [self._owner_state(meta, owner) for owner in owners]
        if not owners or "unknown" in states or meta.get("deletionTimestamp"):
            return
        if "solid" in states:
            kept = list(compress(owners, (each == "solid" for each in states)))
            if len(kept) < len(owners):
                self._amend(kind, key, obj, _set_owners(kept))
            return
        policy = "Background"
        if "waiting" in states and self._owners.has_dependents(meta["uid"]):
            policy = "Foreground"
        elif ORPHAN in (meta.get("finalizers") or ()):
            policy = "Orphan"
        self._delete(kind, meta, policy)

    def _owner_state(self, meta: Plain, owner: Plain) -> str:
        """Whether an owner is there (solid), goes after this (waiting) or absent.

        It is unknown, and so nobody's to judge, if we do not serve its kind, or if it
        would be in a namespace and the dependent is in none.
        """
        kind = self._catalog.by_kind(owner.get("apiVersion", ""), owner.get("kind", ""))
        namespace = meta.get("namespace", "")
        if kind is None or (kind.namespaced and not namespace):
            return "unknown"
        row = self._store.get(kind.key(namespace, owner["name"]))
        if row is None:
            return "absent"
        found = head(row.value).metadata
        if found.uid != owner.get("uid"):
            return "absent"
        dying = found.deletionTimestamp and FOREGROUND in (found.finalizers or ())
        return "waiting" if dying else "solid"

    def _delete(self, kind: Kind, meta: Plain, policy: str) -> None:
        wanted = Preconditions(meta["uid"], meta.get("resourceVersion"))
        options = DeleteOptions(propagationPolicy=policy, preconditions=wanted)
        self.delete(COLLECTOR, kind, meta.get("namespace", ""), meta["name"], options)

    def delete(
        self,
        user: User,
        kind: Kind,
        namespace: str,
        name: str,
        options: DeleteOptions,
        *,
        one: bool = True,
    ) -> None:
        """Delete an object as a controller, alone or as one of a collection."""
        kind = self._asked(kind)
        write = write_by(user, kind, namespace, name if one else "")
        self._registry.delete(kind, namespace, name, options, write=write)

    def _asked(self, kind: Kind) -> Kind:
        """The kind in the version that others are asked about, if there are any."""
        versions = self._catalog.versions(kind)
        listens = self._registry.chain.listens(write_by(COLLECTOR, kind, ""))
        return versions[0] if listens and versions[0].conversion else kind

    def _amend(
        self, kind: Kind, key: str, obj: Plain, change: Callable[[Plain], None]
    ) -> None:
        meta, kind = metadata_of(obj), self._asked(kind)
        write = write_by(COLLECTOR, kind, meta.get("namespace", ""), meta["name"])
        self._registry.amend(kind, key, change, write=write)

    def _foreground(self, key: str) -> None:
        """An object that goes after its dependents: start them, or let it go."""
        found = self.object(key)
        if found is None:
            return
        kind, obj = found
        uid = metadata_of(obj)["uid"]
        if not self._owners.is_blocked(uid):
            self._amend(kind, key, obj, drop_finalizer(FOREGROUND))
            return
        for dependent in self._owners.dependents(uid):
            self._errands.add(self._collect, dependent)

    def _orphan(self, key: str) -> None:
        """An object that leaves its dependents behind: unhook them, then let it go."""
        found = self.object(key)
        if found is None:
            return
        kind, obj = found
        uid = metadata_of(obj)["uid"]
        for dependent in self._owners.dependents(uid):
            held = self.object(dependent)
            if held is None:
                continue
            owners = metadata_of(held[1]).get("ownerReferences") or ()
            kept = [each for each in owners if each.get("uid") != uid]
            self._amend(held[0], dependent, held[1], _set_owners(kept))
        self._amend(kind, key, obj, drop_finalizer(ORPHAN))


def _set_owners(kept: list[Plain]) -> Callable[[Plain], None]:
    def change(obj: Plain) -> None:
        meta = metadata_of(obj)
        if kept:
            meta["ownerReferences"] = kept
        else:
            meta.pop("ownerReferences", None)

    return change


def drop_finalizer(name: str) -> Callable[[Plain], None]:
    """A change that takes a finalizer away."""

    def change(obj: Plain) -> None:
        meta = metadata_of(obj)
        left = [each for each in meta.get("finalizers") or () if each != name]
        if left:
            meta["finalizers"] = left
        else:
            meta.pop("finalizers", None)

    return change
