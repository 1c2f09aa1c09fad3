"""The registry: what create, update, patch, apply and delete mean, on the store.

Everything here is synchronous and happens on one thread, so a write reads, decides and
commits without anybody in between; the compare-and-swap of the store is only an
assertion. Each write goes the same way: read the body, place it, default, admit,
prepare, validate, account for fields, store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from trimtab.embedded import intents, metadata, reading, status
from trimtab.embedded.admission import Admission
from trimtab.embedded.builtin.versions import own_entries
from trimtab.embedded.chain import CREATE, UPDATE, Chain
from trimtab.embedded.deletion import DeleteOptions, Deletion, deleted
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.managed import after_update
from trimtab.embedded.metadata import Stamps, metadata_of
from trimtab.embedded.patching import check_media, patched
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
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Row, Store
from trimtab.embedded.writes import (
    APPLY_PATCH,
    Outcome,
    Write,
    check_version,
    misnamed,
    number,
    other_uid,
)

GENERATE_TRIES = 8


class Registry:
    """The verbs that write, and reading one object."""

    def __init__(
        self,
        store: Store,
        *,
        stamps: Stamps,
        admission: Admission,
        deletion: Deletion,
        allocate: Callable[[str, Any], Any],
        chain: Chain | None = None,
    ) -> None:
        self.store = store
        self.stamps = stamps
        self._admission = admission
        self._deletion = deletion
        self._allocate = allocate
        self.chain = chain or Chain()

    def row(self, kind: Kind, namespace: str, name: str) -> Row:
        """One stored object; 404 if it is not there."""
        row = self.store.get(kind.key(namespace, name))
        if row is None:
            raise status.not_found(kind.about, name)
        return row

    def read(self, kind: Kind, namespace: str, name: str) -> tuple[Plain, Row]:
        row = self.row(kind, namespace, name)
        return kind.decode(row.value), row

    def create(self, write: Write, obj: Plain) -> Outcome:
        """Make a new object, which has been read as one of its kind."""
        kind = write.kind
        meta = metadata.place(kind, obj, namespace=write.namespace)
        if number(meta.pop("resourceVersion", "")):
            raise status.ApiProblem(
                500, "", "resourceVersion should not be set on objects to be created"
            )
        metadata.wipe(meta)
        obj = self._admitted(write, obj)
        meta = metadata_of(obj)
        base = "" if meta.get("name") else meta.get("generateName", "")
        for attempt in range(GENERATE_TRIES):
            candidate = copied(obj) if base and attempt < GENERATE_TRIES - 1 else obj
            try:
                made = self._add(write, candidate)
                return Outcome(obj=made, created=True)
            except ApiProblem as problem:
                if candidate is obj or problem.reason != "AlreadyExists":
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _admitted(self, write: Write, obj: Plain, *, applied: bool = False) -> Plain:
        """A new object as those make it who may change it on the way in."""
        write.kind.default(obj)
        if not applied:
            obj = self._account(write, None, obj)

        def built_in(obj: Plain) -> None:
            self._admission.create(write.kind, obj, write.namespace)

        return self.chain.mutated(write, CREATE, obj, None, built_in=built_in)

    def _add(self, write: Write, obj: Plain) -> Plain:
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
        self._check(write, obj, None)
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
        return self._put(kind, key, obj, expect=0, mark=mark_of(write, new=True))

    def update(self, write: Write, obj: Plain) -> Outcome:
        """Replace an object (or, by subresource, a part of it)."""
        kind = write.kind
        meta = metadata.place(kind, obj, namespace=write.namespace)
        if meta.get("name") != write.name:
            raise misnamed(meta, write)
        row = self.store.get(kind.key(write.namespace, write.name))
        if row is None:
            if kind.created_by_update and write.subresource in ("", "status"):
                if meta.get("uid"):
                    raise other_uid(write, meta["uid"], "")
                meta.pop("resourceVersion", None)
                metadata.wipe(meta)
                made = self._add(write, self._admitted(write, obj))
                return Outcome(obj=made, created=True)
            raise status.not_found(kind.about, write.name)
        old = kind.decode(row.value)
        uid = metadata_of(old)["uid"]
        if meta.get("uid", uid) not in ("", uid):
            raise other_uid(write, meta["uid"], uid)
        check_version(write, meta, row)
        made = self._replace(write, obj, old, row)
        return Outcome(obj=made)

    def patch(self, write: Write, body: bytes, content_type: str) -> Outcome:
        """Change an object by one of the four kinds of patch."""
        media = content_type.split(";")[0].strip()
        if media == APPLY_PATCH:
            return self.apply(write, *reading.intent_of(body))
        check_media(write.kind, media)
        old, row = self.read(write.kind, write.namespace, write.name)
        obj = patched(write, old, body, media)
        meta = metadata_of(obj)
        if meta.get("name") != write.name:
            raise misnamed(meta, write)
        metadata.place(write.kind, obj, namespace=write.namespace)
        metadata.drop_equal_owners(obj, write.warnings, when=metadata.AFTER_MUTATION)
        check_version(write, meta, row)
        made = self._replace(write, obj, old, row)
        return Outcome(obj=made)

    def apply(self, write: Write, intent: Plain, lines: Sequence[str] = ()) -> Outcome:
        """Server-side apply; creates the object if it is not there.

        ``lines`` are those of the intent that set a key again.
        """
        kind = write.kind
        intents.check(write, intent)
        row = self.store.get(kind.key(write.namespace, write.name))
        old = None if row is None else kind.decode(row.value)
        if row is None and write.subresource and not kind.created_by_update:
            raise status.not_found(kind.about, write.name)
        if row is None and metadata_of(intent).get("uid"):
            raise status.conflict(
                kind.about,
                write.name,
                f"uid mismatch: the provided object specified uid "
                f"{metadata_of(intent)['uid']}, and no existing object was found",
            )
        obj = intents.applied(
            write,
            copied(old),
            intent,
            type=kind.type,
            api_version=kind.api_version,
            now=self.stamps.time(),
            reset=kind.resets(write.subresource),
            others=kind.others,
        )
        if row is None and not metadata_of(obj).get("name"):
            raise misnamed(metadata_of(obj), write)
        self._check_place(write, obj)
        intents.convert(write, obj, intent, lambda obj: self._check(write, obj, old))
        reading.complain_of_lines(write, lines)
        if old is None or row is None:
            obj = self._admitted(write, obj, applied=True)
            return Outcome(obj=self._add(write, obj), created=True)
        if metadata_of(intent).get("resourceVersion"):
            check_version(write, metadata_of(obj), row)
        return Outcome(obj=self._replace(write, obj, old, row, applied=True))

    def _check_place(self, write: Write, obj: Plain) -> None:
        """That an object is still the one that the request names."""
        meta = metadata_of(obj)
        if meta.setdefault("name", write.name) != write.name:
            raise misnamed(meta, write)
        metadata.place(write.kind, obj, namespace=write.namespace)

    def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        options: DeleteOptions,
        *,
        write: Write | None = None,
        commit: bool = True,
    ) -> Outcome:
        """Delete an object, at once or when its finalizers and its grace are done.

        ``write`` is the request that wants it, for those who may refuse it. Without
        ``commit`` everybody is asked, and nothing happens.
        """
        asked, kind = kind, kind.plain  # only metadata changes, in any version
        old, row = self.read(kind, namespace, name)
        self._deletion.check(kind, name, old, options)
        obj, gone = self._deletion.mark(kind, old, options, now=self.stamps.now())
        if write is not None and not self._deletion.is_pending(kind, old, obj):
            self.chain.review_deletion(write, asked, old, self._deletion, options)
        commit = commit and not options.dry_run
        if gone:
            if commit:
                if obj != old:  # it is first marked, then deleted
                    obj = self._put(kind, row.key, obj, expect=row.revision)
                    row = self.row(kind, namespace, name)
                self.remove(kind, row, obj)
            return Outcome(obj=deleted(kind, name, obj))
        made = obj if asked is kind else asked.converted(obj)
        if obj is not old and commit:
            obj = self._put(kind, row.key, obj, expect=row.revision)
            version = metadata_of(obj)["resourceVersion"]
            metadata_of(made)["resourceVersion"] = version
        return Outcome(obj=made)

    def remove(self, kind: Kind, row: Row, obj: Plain) -> None:
        """Take an object out of the store; watchers see its last state."""
        stored = obj if kind.conversion is None else msgspec.json.decode(row.value)

        def last(revision: int) -> bytes:
            metadata_of(stored)["resourceVersion"] = str(revision)
            return kind.encode(stored)

        self.store.delete(row.key, expect=row.revision, make=last)

    def amend(
        self,
        kind: Kind,
        key: str,
        change: Callable[[Plain], None],
        *,
        write: Write | None = None,
    ) -> None:
        """Change an object as the server itself, past all rules for clients.

        With ``write`` it is by somebody: their fields are written down, and those are
        asked who may have a say in it.
        """
        row = self.store.get(key)
        if row is None:
            return
        old = kind.decode(row.value)
        obj = copied(old)
        change(obj)
        if write is not None and obj != old:
            if not kind.unread:
                obj = self._account(write, old, obj)
            obj = self.chain.mutated(write, UPDATE, obj, old)
            self.chain.review(write, UPDATE, obj, old)
        if self._deletion.is_done(kind, obj):
            self.remove(kind, row, old)
        elif obj != old:
            self._put(kind, key, obj, expect=row.revision)

    def _replace(
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
            obj = self._account(write, old, obj)

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
        self._check(write, obj, old)
        obj = with_settled_times(old, obj)
        metadata_of(obj)["resourceVersion"] = str(row.revision)
        if review is None:
            self.chain.review(write, UPDATE, obj, old)
        else:
            review(obj)
        mark = mark_of(write)
        if obj == old and not mark and not row.value.endswith(UNREAD):
            return old
        if write.dry_run:
            return kind.both(obj)[1]
        if self._deletion.is_done(kind, obj):
            self.remove(kind, row, copied(old))
            return obj
        return self._put(kind, row.key, obj, expect=row.revision, mark=mark)

    def replace_scaled(
        self,
        write: Write,
        obj: Plain,
        old: Plain,
        row: Row,
        *,
        review: Callable[[Plain], None],
    ) -> Plain:
        """Store an object whose replicas were changed, and its managed fields."""
        write = msgspec.structs.replace(write, subresource="")
        if number(metadata_of(obj).get("resourceVersion")):
            check_version(write, metadata_of(obj), row)
        metadata_of(obj)["resourceVersion"] = str(row.revision)
        return self._replace(write, obj, old, row, applied=True, review=review)

    def _check(self, write: Write, obj: Plain, old: Plain | None) -> None:
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

    def _account(self, write: Write, old: Plain | None, obj: Plain) -> Plain:
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

    def _put(
        self, kind: Kind, key: str, obj: Plain, *, expect: int, mark: bytes = b""
    ) -> Plain:
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
