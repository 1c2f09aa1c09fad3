"""The registry: what create, update, patch, apply and delete mean, on the store.

Everything here is synchronous and happens on one thread, so a write reads, decides and
commits without anybody in between; the compare-and-swap of the store is only an
assertion. Each verb finds what is there and makes what should be; how that is stored
is the same for all of them (:mod:`~trimtab.embedded.commits`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from trimtab.embedded import intents, metadata, reading, status
from trimtab.embedded.chain import UPDATE
from trimtab.embedded.commits import Commits
from trimtab.embedded.deletion import DeleteOptions, deleted
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.patching import patched
from trimtab.embedded.shaping import copied
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Row
from trimtab.embedded.writes import (
    APPLY_PATCH,
    Outcome,
    Write,
    check_segment,
    check_version,
    misnamed,
    number,
    other_uid,
)

GENERATE_TRIES = 8


class Registry:
    """The verbs that write, and reading one object."""

    def __init__(self, commits: Commits) -> None:
        self.store = commits.store
        self.stamps = commits.stamps
        self.chain = commits.chain
        self._deletion = commits.deletion
        self._commits = commits

    def row(self, kind: Kind, namespace: str, name: str) -> Row:
        """One stored object; 404 if it is not there."""
        row = self._found(kind, namespace, name)
        if row is None:
            raise status.not_found(kind.about, name)
        return row

    def _found(self, kind: Kind, namespace: str, name: str) -> Row | None:
        """One stored object; 400 for a name that none can have."""
        check_segment(name)
        return self.store.get(kind.key(namespace, name))

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
        obj = self._commits.admitted(write, obj)
        meta = metadata_of(obj)
        base = "" if meta.get("name") else meta.get("generateName", "")
        for attempt in range(GENERATE_TRIES):
            candidate = copied(obj) if base and attempt < GENERATE_TRIES - 1 else obj
            try:
                made = self._commits.add(write, candidate)
                return Outcome(obj=made, created=True)
            except ApiProblem as problem:
                if candidate is obj or problem.reason != "AlreadyExists":
                    raise
        raise AssertionError("the last attempt returns or raises")

    def update(self, write: Write, obj: Plain) -> Outcome:
        """Replace an object (or, by subresource, a part of it)."""
        kind = write.kind
        meta = metadata.place(kind, obj, namespace=write.namespace)
        if meta.get("name") != write.name:
            raise misnamed(meta, write)
        row = self._found(kind, write.namespace, write.name)
        if row is None:
            if kind.created_by_update and write.subresource in ("", "status"):
                if meta.get("uid"):
                    raise other_uid(write, meta["uid"], "")
                meta.pop("resourceVersion", None)
                metadata.wipe(meta)
                made = self._commits.add(write, self._commits.admitted(write, obj))
                return Outcome(obj=made, created=True)
            raise status.not_found(kind.about, write.name)
        old = kind.decode(row.value)
        uid = metadata_of(old)["uid"]
        if meta.get("uid", uid) not in ("", uid):
            raise other_uid(write, meta["uid"], uid)
        check_version(write, meta, row)
        made = self._commits.replace(write, obj, old, row)
        return Outcome(obj=made)

    def patch(self, write: Write, body: bytes, content_type: str) -> Outcome:
        """Change an object by one of the four kinds of patch."""
        media = content_type.split(";")[0].strip()
        if media == APPLY_PATCH:
            self._check_there(write)
            return self.apply(write, *reading.intent_of(body))
        old, row = self.read(write.kind, write.namespace, write.name)
        obj = patched(write, old, body, media)
        meta = metadata_of(obj)
        if meta.get("name") != write.name:
            raise misnamed(meta, write)
        metadata.place(write.kind, obj, namespace=write.namespace)
        metadata.drop_equal_owners(obj, write.warnings, when=metadata.AFTER_MUTATION)
        check_version(write, meta, row)
        made = self._commits.replace(write, obj, old, row)
        return Outcome(obj=made)

    def _check_there(self, write: Write) -> None:
        """That a part which is applied is one of an object; it does not make one."""
        kind = write.kind
        if write.subresource and not kind.created_by_update:
            self.row(kind, write.namespace, write.name)

    def apply(self, write: Write, intent: Plain, lines: Sequence[str] = ()) -> Outcome:
        """Server-side apply; creates the object if it is not there.

        ``lines`` are those of the intent that set a key again.
        """
        kind = write.kind
        intents.check(write, intent)
        row = self._found(kind, write.namespace, write.name)
        old = None if row is None else kind.decode(row.value)
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
        intents.convert(
            write, obj, intent, lambda obj: self._commits.check(write, obj, old)
        )
        reading.complain_of_lines(write, lines)
        if old is None or row is None:
            obj = self._commits.admitted(write, obj, applied=True)
            return Outcome(obj=self._commits.add(write, obj), created=True)
        if metadata_of(intent).get("resourceVersion"):
            check_version(write, metadata_of(obj), row)
        return Outcome(obj=self._commits.replace(write, obj, old, row, applied=True))

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
                    obj = self._commits.put(kind, row.key, obj, expect=row.revision)
                    row = self.row(kind, namespace, name)
                self._commits.remove(kind, row, obj)
            return Outcome(obj=deleted(kind, name, obj))
        made = obj if asked is kind else asked.converted(obj)
        if obj is not old and commit:
            obj = self._commits.put(kind, row.key, obj, expect=row.revision)
            version = metadata_of(obj)["resourceVersion"]
            metadata_of(made)["resourceVersion"] = version
        return Outcome(obj=made)

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
                obj = self._commits.account(write, old, obj)
            obj = self.chain.mutated(write, UPDATE, obj, old)
            self.chain.review(write, UPDATE, obj, old)
        if self._deletion.is_done(kind, obj):
            self._commits.remove(kind, row, old)
        elif obj != old:
            self._commits.put(kind, key, obj, expect=row.revision)

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
        return self._commits.replace(write, obj, old, row, applied=True, review=review)
