"""The registry: what create, update, patch, apply and delete mean, on the store.

Everything here is synchronous and happens on one thread, so a write reads, decides and
commits without anybody in between; the compare-and-swap of the store is only an
assertion. Each write goes the same way: read the body, place it, default, admit,
prepare, validate, account for fields, store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import msgspec

from trimtab.embedded import metadata, reading, status
from trimtab.embedded.admission import Admission
from trimtab.embedded.apply import ApplyConflict, ApplyFailed, apply
from trimtab.embedded.conform import Mistyped
from trimtab.embedded.deletion import DeleteOptions, Deletion, deleted
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.managed import after_update, with_settled_times
from trimtab.embedded.metadata import Stamps, metadata_of
from trimtab.embedded.patching import patched
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Row, Store
from trimtab.embedded.writes import (
    APPLY_PATCH,
    Outcome,
    Write,
    misnamed,
    number,
    other_uid,
)

GENERATE_TRIES = 8
MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and "
    "try again"
)
"""What a lost compare-and-swap is called."""


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
    ) -> None:
        self.store = store
        self.stamps = stamps
        self._admission = admission
        self._deletion = deletion
        self._allocate = allocate

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
        base = "" if meta.get("name") else meta.get("generateName", "")
        for attempt in range(GENERATE_TRIES):
            candidate = deepcopy(obj) if base and attempt < GENERATE_TRIES - 1 else obj
            try:
                made = self._create_once(write, candidate)
                return Outcome(obj=made, created=True)
            except ApiProblem as problem:
                if candidate is obj or problem.reason != "AlreadyExists":
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _create_once(self, write: Write, obj: Plain) -> Plain:
        write.kind.default(obj)
        obj = self._account(write, None, obj)
        self._admission.create(write.kind, obj, write.namespace)
        return self._add(write, obj)

    def _add(self, write: Write, obj: Plain) -> Plain:
        """The common end of create and of an apply that creates."""
        kind = write.kind
        if write.guard is not None:
            write.guard(obj, None)
        metadata.before_create(obj, self.stamps)
        if kind.custom is not None and kind.has_status:
            obj.pop("status", None)
        kind.prepare(obj, None, subresource="", allocate=self._allocate)
        metadata.count_generation(kind, obj, None, subresource="")
        self._check(write, obj, None)
        name = metadata_of(obj)["name"]
        key = kind.key(write.namespace, name)
        if self.store.get(key) is not None:
            if metadata_of(obj).get("generateName"):
                raise status.name_conflict(kind.about, name)
            raise status.already_exists(kind.about, name)
        if write.dry_run:
            return obj
        return self._put(kind, key, obj, expect=0)

    def update(self, write: Write, obj: Plain) -> Outcome:
        """Replace an object (or, by subresource, a part of it)."""
        kind = write.kind
        meta = metadata.place(kind, obj, namespace=write.namespace)
        if meta.get("name") != write.name:
            raise misnamed(meta, write)
        row = self.store.get(kind.key(write.namespace, write.name))
        if row is None:
            if kind.created_by_update and not write.subresource:
                if meta.get("uid"):
                    raise other_uid(write, meta["uid"], "")
                meta.pop("resourceVersion", None)
                metadata.wipe(meta)
                made = self._create_once(write, obj)
                return Outcome(obj=made, created=True)
            raise status.not_found(kind.about, write.name)
        old = kind.decode(row.value)
        uid = metadata_of(old)["uid"]
        if meta.get("uid", uid) not in ("", uid):
            raise other_uid(write, meta["uid"], uid)
        self._check_version(write, meta, row)
        made = self._replace(write, obj, old, row)
        return Outcome(obj=made)

    def patch(self, write: Write, body: bytes, content_type: str) -> Outcome:
        """Change an object by one of the four kinds of patch."""
        media = content_type.split(";")[0].strip()
        if media == APPLY_PATCH:
            return self.apply(write, *reading.intent_of(body))
        old, row = self.read(write.kind, write.namespace, write.name)
        obj = patched(write, old, body, media)
        meta = metadata_of(obj)
        if meta.get("name") != write.name:
            raise misnamed(meta, write)
        metadata.place(write.kind, obj, namespace=write.namespace)
        self._check_version(write, meta, row)
        made = self._replace(write, obj, old, row)
        return Outcome(obj=made)

    def apply(self, write: Write, intent: Plain, lines: Sequence[str] = ()) -> Outcome:
        """Server-side apply; creates the object if it is not there.

        ``lines`` are those of the intent that set a key again.
        """
        kind = write.kind
        self.check_apply(write, intent)
        row = self.store.get(kind.key(write.namespace, write.name))
        old = None if row is None else kind.decode(row.value)
        if row is None and write.subresource:
            raise status.not_found(kind.about, write.name)
        if row is None and metadata_of(intent).get("uid"):
            raise status.conflict(
                kind.about,
                write.name,
                f"uid mismatch: the provided object specified uid "
                f"{metadata_of(intent)['uid']}, and no existing object was found",
            )
        try:
            obj = apply(
                deepcopy(old),
                intent,
                type=kind.type,
                api_version=kind.api_version,
                manager=write.manager,
                force=write.force,
                subresource=write.subresource,
                now=self.stamps.time(),
                reset=kind.resets(write.subresource),
            )
        except ApplyConflict as conflict:
            raise ApiProblem(
                409, "Conflict", conflict.message, causes=conflict.causes
            ) from None
        except ApplyFailed as failure:
            reason = "BadRequest" if failure.code == 400 else ""
            raise ApiProblem(failure.code, reason, failure.message) from None
        self._check_place(write, obj)
        self._convert(write, obj, intent)
        reading.complain_of_lines(write, lines)
        if old is None or row is None:
            return Outcome(obj=self._apply_new(write, obj), created=True)
        if metadata_of(intent).get("resourceVersion"):
            self._check_version(write, metadata_of(obj), row)
        return Outcome(obj=self._replace(write, obj, old, row, applied=True))

    def _convert(self, write: Write, obj: Plain, intent: Plain) -> None:
        """Make what was applied an object of its kind."""
        try:
            write.kind.conform(obj, dict)
        except Mistyped as problem:
            kind = write.kind
            of = f"{kind.group}/{kind.version}, Kind={kind.kind}"
            where = metadata_of(intent).get("namespace", "")
            raise ApiProblem(
                500,
                "",
                f"failed to convert new object ({where}/{write.name}; {of}) to proper "
                f"version: unable to convert unstructured object to {of}: {problem}",
            ) from None

    def _apply_new(self, write: Write, obj: Plain) -> Plain:
        write.kind.default(obj)
        self._admission.create(write.kind, obj, write.namespace)
        return self._add(write, obj)

    def check_apply(
        self, write: Write, intent: Plain, *, type: tuple[str, str] | None = None
    ) -> None:
        """That an apply is of the right apiVersion and kind."""
        meta = metadata_of(intent)
        if meta.get("managedFields"):
            raise status.bad_request("metadata.managedFields must be nil")
        version, kind = intent.get("apiVersion") or "", intent.get("kind") or ""
        if (version, kind) != (type or (write.kind.api_version, write.kind.kind)):
            group, _, short = version.rpartition("/")
            raise status.bad_request(
                f"invalid object type: {group}/{short}, Kind={kind}"
            )

    def _check_place(self, write: Write, obj: Plain) -> None:
        """That an object is still the one that the request names."""
        meta = metadata_of(obj)
        if meta.setdefault("name", write.name) != write.name:
            raise misnamed(meta, write)
        metadata.place(write.kind, obj, namespace=write.namespace)

    def delete(
        self, kind: Kind, namespace: str, name: str, options: DeleteOptions
    ) -> Outcome:
        """Delete an object, at once or when its finalizers and its grace are done."""
        old, row = self.read(kind, namespace, name)
        self._deletion.check(kind, name, old, options)
        obj, gone = self._deletion.mark(kind, old, options, now=self.stamps.now())
        if gone:
            if not options.dry_run:
                self.remove(kind, row, old)
            return Outcome(obj=deleted(kind, name, old))
        if obj is not old and not options.dry_run:
            obj = self._put(kind, row.key, obj, expect=row.revision)
        return Outcome(obj=obj)

    def remove(self, kind: Kind, row: Row, obj: Plain) -> None:
        """Take an object out of the store; watchers see its last state."""

        def last(revision: int) -> bytes:
            metadata_of(obj)["resourceVersion"] = str(revision)
            return kind.encode(obj)

        self.store.delete(row.key, expect=row.revision, make=last)

    def amend(self, kind: Kind, key: str, change: Callable[[Plain], None]) -> None:
        """Change an object as the server itself, past all rules for clients."""
        row = self.store.get(key)
        if row is None:
            return
        old = kind.decode(row.value)
        obj = deepcopy(old)
        change(obj)
        if self._deletion.is_done(kind, obj):
            self.remove(kind, row, obj)
        elif obj != old:
            self._put(kind, key, obj, expect=row.revision)

    def _replace(
        self, write: Write, obj: Plain, old: Plain, row: Row, *, applied: bool = False
    ) -> Plain:
        """The common end of update, patch and apply."""
        kind = write.kind
        kind.default(obj)
        if not applied:
            obj = self._account(write, old, obj)
        self._admission.update(kind, obj, old)
        if write.guard is not None:
            write.guard(obj, old)
        obj = _keep(write, obj, old)
        metadata.before_update(obj, old)
        kind.prepare(obj, old, subresource=write.subresource, allocate=self._allocate)
        metadata.count_generation(kind, obj, old, subresource=write.subresource)
        self._check(write, obj, old)
        obj = with_settled_times(old, obj)
        metadata_of(obj)["resourceVersion"] = str(row.revision)
        if obj == old:
            return old
        if write.dry_run:
            return obj
        if self._deletion.is_done(kind, obj):
            self.remove(kind, row, obj)
            return obj
        return self._put(kind, row.key, obj, expect=row.revision)

    def replace_scaled(self, write: Write, obj: Plain, old: Plain, row: Row) -> Plain:
        """Store an object whose replicas were changed, and its managed fields."""
        write = msgspec.structs.replace(write, subresource="")
        if number(metadata_of(obj).get("resourceVersion")):
            self._check_version(write, metadata_of(obj), row)
        metadata_of(obj)["resourceVersion"] = str(row.revision)
        return self._replace(write, obj, old, row, applied=True)

    def _check_version(self, write: Write, meta: Plain, row: Row) -> None:
        """That a write is about the present version, or about none if it may be."""
        kind = write.kind
        given = meta.get("resourceVersion", "")
        try:
            wanted = int(given or 0)
        except ValueError:
            message = f'strconv.ParseUint: parsing "{given}": invalid syntax'
            raise ApiProblem(500, "", message) from None
        if wanted and wanted != row.revision:
            raise status.conflict(kind.about, write.name, MODIFIED)
        if not wanted and kind.conditional:
            problem = status.invalid(
                "metadata.resourceVersion", 0, "must be specified for an update"
            )
            raise status.invalid_object(kind.about, write.name, [problem])
        meta["resourceVersion"] = str(row.revision)

    def _check(self, write: Write, obj: Plain, old: Plain | None) -> None:
        """Refuse an object that breaks the rules of its kind; warn of others."""
        kind, told = write.kind, write.warnings
        part = write.subresource if old is not None else ""
        problems = kind.validate(obj, old, subresource=part, warnings=told)
        if problems:
            name = metadata_of(obj).get("name", "") or write.name
            raise status.invalid_object(kind.named, name, problems)
        told += kind.warnings(obj, old, subresource=part)

    def _account(self, write: Write, old: Plain | None, obj: Plain) -> Plain:
        """Write down who set which field."""
        kind = write.kind
        return after_update(
            old,
            obj,
            type=kind.type,
            api_version=kind.api_version,
            manager=write.manager,
            subresource=write.subresource,
            now=self.stamps.time(),
            reset=kind.resets(write.subresource),
        )

    def _put(self, kind: Kind, key: str, obj: Plain, *, expect: int) -> Plain:
        def value(revision: int) -> bytes:
            metadata_of(obj)["resourceVersion"] = str(revision)
            encoded = kind.encode(obj)
            status.check_stored_size(len(encoded))
            return encoded

        self.store.put(key, value, expect=expect)
        return obj


def _keep(write: Write, obj: Plain, old: Plain) -> Plain:
    """What a write may touch: the object without its status, or its status alone."""
    kind = write.kind
    if write.subresource == "status":
        kept = {key: value for key, value in old.items() if key != "status"}
        if "status" in obj:
            kept["status"] = obj["status"]
        if kind.custom is None:
            kept["metadata"] = obj["metadata"]
        else:
            meta = dict(old["metadata"])
            meta.pop("managedFields", None)
            if "managedFields" in obj["metadata"]:
                meta["managedFields"] = obj["metadata"]["managedFields"]
            kept["metadata"] = meta
        return deepcopy(kept)
    if kind.has_status and not write.subresource:
        obj.pop("status", None)
        if "status" in old:
            obj["status"] = deepcopy(old["status"])
    return obj
