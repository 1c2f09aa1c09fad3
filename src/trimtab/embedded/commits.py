"""Commits: the common end of all writes, from what a request made to what is stored.

Whatever the verb was, an object is defaulted, accounted for, admitted, prepared,
validated and stored here, in this order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from trimtab.embedded import metadata, status
from trimtab.embedded.admission import Admission
from trimtab.embedded.builtin.versions import own_entries
from trimtab.embedded.chain import CREATE, UPDATE, Chain
from trimtab.embedded.deletion import Deletion
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.managed import after_update
from trimtab.embedded.metadata import Stamps, metadata_of
from trimtab.embedded.settling import (
    UNREAD,
    as_given,
    count_unread,
    kept,
    mark_of,
    thawed,
    with_settled_times,
)
from trimtab.embedded.shaping import copied
from trimtab.embedded.store import Row, Store
from trimtab.embedded.writes import Write


class Commits:
    """Brings objects that were made, changed or deleted into a store."""

    def __init__(
        self,
        store: Store,
        *,
        stamps: Stamps,
        admission: Admission,
        deletion: Deletion,
        allocate: Callable[[str, Any], Any],
        chain: Chain,
    ) -> None:
        self.store = store
        self.stamps = stamps
        self._admission = admission
        self.deletion = deletion
        self._allocate = allocate
        self.chain = chain

    def admitted(self, write: Write, obj: Plain, *, applied: bool = False) -> Plain:
        """A new object as those make it who may change it on the way in."""
        write.kind.default(obj)
        if not applied:
            obj = self.account(write, None, obj)

        def built_in(obj: Plain) -> None:
            self._admission.create(write.kind, obj, write.namespace)

        return self.chain.mutated(write, CREATE, obj, None, built_in=built_in)

    def add(self, write: Write, obj: Plain) -> Plain:
        """The common end of create and of an apply that creates."""
        kind = write.kind
        if write.guard is not None:
            write.guard(obj, None)
        metadata.before_create(obj, self.stamps)
        if kind.custom is not None and kind.has_status:
            obj.pop("status", None)
        part = write.subresource
        kind.prepare(obj, None, subresource=part, allocate=self._allocate)
        metadata.count_generation(kind, obj, None, subresource="")
        self.check(write, obj, None)
        self.chain.review(write, CREATE, obj, None)
        name = metadata_of(obj)["name"]
        key = kind.key(write.namespace, name)
        there = self.store.get(key)
        if there is not None:
            if metadata_of(obj).get("generateName"):
                raise status.name_conflict(kind.about, name)
            going = metadata_of(kind.decode(there.value)).get("deletionTimestamp")
            raise status.already_exists(kind.about, name, going=bool(going))
        if write.dry_run:
            return kind.both(obj)[1]
        return self.put(kind, key, obj, expect=0, mark=mark_of(write, new=True))

    def replace(
        self,
        write: Write,
        obj: Plain,
        old: Plain,
        row: Row,
        *,
        applied: bool = False,
        review: Callable[[Plain], None] | None = None,
    ) -> Plain:
        """The common end of update, patch and apply.

        ``review`` is asked instead of the chain, if it is given.
        """
        kind = write.kind
        kind.default(obj)
        if not applied:
            obj = self.account(write, old, obj)

        def built_in(obj: Plain) -> None:
            self._admission.update(kind, obj, old)

        if review is None:
            obj = self.chain.mutated(write, UPDATE, obj, old, built_in=built_in)
        else:
            built_in(obj)
        metadata_of(obj)["resourceVersion"] = str(row.revision)
        if write.guard is not None:
            write.guard(obj, old)
        obj = kept(write, obj, old)
        metadata.before_update(obj, old)
        kind.prepare(obj, old, subresource=write.subresource, allocate=self._allocate)
        metadata.count_generation(kind, obj, old, subresource=write.subresource)
        if kind.custom is not None and "object" in write.emptied:
            count_unread(write, obj, old)
        self.check(write, obj, old)
        obj = with_settled_times(old, obj)
        metadata_of(obj)["resourceVersion"] = str(row.revision)
        if review is None:
            self.chain.review(write, UPDATE, obj, old)
        else:
            review(obj)
        return self._changed(write, obj, old, row)

    def _changed(self, write: Write, obj: Plain, old: Plain, row: Row) -> Plain:
        """Store what a write made of an object, unless that is what it was."""
        kind, mark = write.kind, mark_of(write)
        if obj == old and not mark and not row.value.endswith(UNREAD):
            return old
        if write.dry_run:
            return kind.both(obj)[1]
        if self.deletion.is_done(kind, obj):
            self.remove(kind, row, copied(old))
            return obj
        return self.put(kind, row.key, obj, expect=row.revision, mark=mark)

    def remove(self, kind: Kind, row: Row, obj: Plain) -> None:
        """Take an object out of the store; watchers see its last state."""
        stored = obj if kind.conversion is None else msgspec.json.decode(row.value)

        def last(revision: int) -> bytes:
            metadata_of(stored)["resourceVersion"] = str(revision)
            return kind.encode(stored)

        self.store.delete(row.key, expect=row.revision, make=last)

    def put(
        self, kind: Kind, key: str, obj: Plain, *, expect: int, mark: bytes = b""
    ) -> Plain:
        """Store an object; as it is then, in the version of its kind."""
        stored, obj = kind.both(obj)  # nobody may be asked once it is written

        def value(revision: int) -> bytes:
            version = str(revision)
            metadata_of(obj)["resourceVersion"] = version
            metadata_of(stored)["resourceVersion"] = version
            encoded = kind.encode(stored) + mark
            status.check_stored_size(len(encoded))
            return encoded

        self.store.put(key, value, expect=expect)
        return obj

    def account(self, write: Write, old: Plain | None, obj: Plain) -> Plain:
        """Write down who set which field."""
        kind = write.kind
        made = after_update(
            old,
            obj,
            type=kind.type,
            api_version=kind.api_version,
            manager=write.manager,
            subresource=write.subresource,
            now=self.stamps.time(),
            reset=kind.resets(write.subresource),
            others=kind.others,
        )
        return own_entries(kind.kind, kind.api_version, made)

    def check(self, write: Write, obj: Plain, old: Plain | None) -> None:
        """Refuse an object that breaks the rules of its kind; warn of others."""
        kind, told = write.kind, write.warnings
        part = write.subresource if old is not None else ""
        problems = kind.validate(obj, old, subresource=part, warnings=told)
        problems += thawed(write, old)
        if problems:
            name = metadata_of(obj).get("name", "") or write.name
            shown = as_given(write, problems)
            raise status.invalid_object(kind.named, name, shown)
        told += kind.warnings(obj, old, subresource=part)
