"""The registry: what create, update, patch, apply and delete mean, on the store.

Everything here is synchronous and happens on one thread, so a write reads, decides and
commits without anybody in between; the compare-and-swap of the store is only an
assertion. Each write goes the same way: read the body, place it, default, admit,
prepare, validate, account for fields, store.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import msgspec

from trimtab.embedded import bodies, metadata, status
from trimtab.embedded.admission import Admission
from trimtab.embedded.apply import ApplyConflict, ApplyFailed, apply
from trimtab.embedded.conform import Mistyped
from trimtab.embedded.deletion import DeleteOptions, Deletion
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.managed import after_update, with_settled_times
from trimtab.embedded.metadata import Stamps, metadata_of
from trimtab.embedded.patches import PatchError, json_patch, merge_patch
from trimtab.embedded.status import ApiProblem, FieldProblem
from trimtab.embedded.store import Row, Store
from trimtab.embedded.strategic import strategic_merge

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCH_REASONS = {400: "BadRequest", 413: "RequestEntityTooLarge", 422: "Invalid"}
GENERATE_TRIES = 8
MAX_MANAGER = 128
SUMMARY = 30
"""How much of a body a refusal repeats."""
MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and "
    "try again"
)
"""What a lost compare-and-swap is called."""


UNSUPPORTED = "415: Unsupported Media Type"


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """Where a write goes and how: all that is not the object."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    manager: str = ""
    dry_run: bool = False
    validation: str = "Warn"
    force: bool = False


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a write came to: an object, or a ``Status``, and things to warn of."""

    obj: Plain
    created: bool = False
    warnings: tuple[str, ...] = ()
    text: bytes | None = None
    """What is answered instead of an object: a log."""


class _Misfit(ApiProblem):
    """A body with a value that its field cannot hold, or a field it cannot have."""

    def __init__(self, handled: str, detail: str) -> None:
        super().__init__(400, "BadRequest", f"{handled}{detail}")
        self.detail = detail


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
        """Make a new object."""
        kind = write.kind
        _check_options(write, "CreateOptions")
        warnings = self._conform(write, obj)
        meta = metadata.place(kind, obj, namespace=write.namespace)
        if _number(meta.pop("resourceVersion", "")):
            raise status.ApiProblem(
                500, "", "resourceVersion should not be set on objects to be created"
            )
        metadata.wipe(meta)
        base = "" if meta.get("name") else meta.get("generateName", "")
        for attempt in range(GENERATE_TRIES):
            candidate = deepcopy(obj) if base and attempt < GENERATE_TRIES - 1 else obj
            try:
                made = self._create_once(write, candidate)
                return Outcome(obj=made, created=True, warnings=warnings)
            except ApiProblem as problem:
                if not base or problem.reason != "AlreadyExists":
                    raise
        raise status.already_exists(kind.about, base)

    def _create_once(self, write: Write, obj: Plain) -> Plain:
        write.kind.default(obj)
        obj = self._account(write, None, obj)
        self._admission.create(write.kind, obj, write.namespace)
        return self._add(write, obj)

    def _add(self, write: Write, obj: Plain) -> Plain:
        """The common end of create and of an apply that creates."""
        kind = write.kind
        metadata.before_create(obj, self.stamps)
        if kind.custom is not None and kind.has_status:
            obj.pop("status", None)
        kind.prepare(obj, None, subresource="", allocate=self._allocate)
        metadata.count_generation(kind, obj, None, subresource="")
        self._check(write, kind.validate(obj, None, subresource=""), obj)
        name = metadata_of(obj)["name"]
        key = kind.key(write.namespace, name)
        if self.store.get(key) is not None:
            raise status.already_exists(kind.about, name)
        if write.dry_run:
            return obj
        return self._put(kind, key, obj, expect=0)

    def update(self, write: Write, obj: Plain) -> Outcome:
        """Replace an object (or, by subresource, a part of it)."""
        kind = write.kind
        _check_options(write, "UpdateOptions")
        warnings = self._conform(write, obj)
        meta = metadata.place(kind, obj, namespace=write.namespace)
        if meta.get("name") != write.name:
            raise _misnamed(meta, write)
        row = self.store.get(kind.key(write.namespace, write.name))
        if row is None:
            if kind.created_by_update and not write.subresource:
                if meta.get("uid"):
                    raise other_uid(write, meta["uid"], "")
                meta.pop("resourceVersion", None)
                metadata.wipe(meta)
                made = self._create_once(write, obj)
                return Outcome(obj=made, created=True, warnings=warnings)
            raise status.not_found(kind.about, write.name)
        old = kind.decode(row.value)
        uid = metadata_of(old)["uid"]
        if meta.get("uid", uid) not in ("", uid):
            raise other_uid(write, meta["uid"], uid)
        self._check_version(write, meta, row)
        made = self._replace(write, obj, old, row)
        return Outcome(obj=made, warnings=warnings)

    def patch(self, write: Write, body: bytes, content_type: str) -> Outcome:
        """Change an object by one of the four kinds of patch."""
        media = content_type.split(";")[0].strip()
        _check_options(write, "PatchOptions", force=media == APPLY_PATCH)
        if media == APPLY_PATCH:
            return self.apply(write, bodies.decode(body, bodies.YAML))
        old, row = self.read(write.kind, write.namespace, write.name)
        obj = self._patched(write.kind, old, body, media)
        if not isinstance(obj, dict):
            raise _unprocessable("the patch does not leave an object")
        if media == STRATEGIC_PATCH:  # it changes a struct, which has neither
            obj.update(apiVersion=write.kind.api_version, kind=write.kind.kind)
        warnings = self._conform_patched(write, obj)
        meta = metadata_of(obj)
        if meta.get("name") != write.name:
            raise _misnamed(meta, write)
        metadata.place(write.kind, obj, namespace=write.namespace)
        self._check_version(write, meta, row)
        made = self._replace(write, obj, old, row)
        return Outcome(obj=made, warnings=warnings)

    def apply(self, write: Write, intent: Plain) -> Outcome:
        """Server-side apply; creates the object if it is not there."""
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
        if old is None or row is None:
            return Outcome(obj=self._apply_new(write, obj), created=True)
        if metadata_of(intent).get("resourceVersion"):
            self._check_version(write, metadata_of(obj), row)
        kind.conform(obj)
        return Outcome(obj=self._replace(write, obj, old, row, applied=True))

    def _apply_new(self, write: Write, obj: Plain) -> Plain:
        write.kind.conform(obj)
        write.kind.default(obj)
        self._admission.create(write.kind, obj, write.namespace)
        return self._add(write, obj)

    def check_apply(
        self, write: Write, intent: Plain, *, type: tuple[str, str] | None = None
    ) -> None:
        """That an apply says who it is by, and is of the right apiVersion and kind."""
        if not write.manager:
            raise status.invalid_object(
                status.GroupResource("meta.k8s.io", "PatchOptions"),
                "",
                [status.required("fieldManager", "is required for apply patch")],
            )
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
            raise _misnamed(meta, write)
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
            return Outcome(obj=_deleted(kind, name, old))
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
        obj = _keep(write, obj, old)
        metadata.before_update(obj, old)
        kind.prepare(obj, old, subresource=write.subresource, allocate=self._allocate)
        metadata.count_generation(kind, obj, old, subresource=write.subresource)
        problems = kind.validate(obj, old, subresource=write.subresource)
        self._check(write, problems, obj)
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
        if _number(metadata_of(obj).get("resourceVersion")):
            self._check_version(write, metadata_of(obj), row)
        metadata_of(obj)["resourceVersion"] = str(row.revision)
        return self._replace(write, obj, old, row, applied=True)

    def _patched(self, kind: Kind, old: Plain, body: bytes, media: str) -> Any:
        try:
            patch = msgspec.json.decode(body)
        except msgspec.DecodeError as error:
            raise status.bad_request(f"error decoding patch: {error}") from None
        document = deepcopy(old)
        try:
            if media == JSON_PATCH:
                return json_patch(document, patch)
            if media == MERGE_PATCH:
                return merge_patch(document, patch)
            if media == STRATEGIC_PATCH and kind.custom is None:
                return strategic_merge(document, patch, kind.type)
        except PatchError as error:
            raise ApiProblem(
                error.code, PATCH_REASONS.get(error.code, ""), str(error)
            ) from None
        if kind.custom is None:
            raise ApiProblem(415, "UnsupportedMediaType", UNSUPPORTED)
        raise status.unsupported_media_type([JSON_PATCH, MERGE_PATCH, APPLY_PATCH])

    def _conform(self, write: Write, obj: Plain) -> tuple[str, ...]:
        """Check what kind the body says it is, and drop what the kind does not have."""
        self._check_kind(write.kind, obj)
        return self._unknown(write, obj)

    def _check_kind(self, kind: Kind, obj: Plain) -> None:
        if kind.custom is not None and not obj.get("kind"):
            text = msgspec.json.encode(obj).decode()
            short = text if len(text) <= SUMMARY else f"{text[:SUMMARY]} ..."
            raise status.bad_request(
                f"the object provided is unrecognized (must be of type {kind.kind}): "
                f"Object 'Kind' is missing in '{text}' ({short})"
            )
        given = obj.setdefault("kind", kind.kind)
        version = obj.get("apiVersion") or ("" if kind.custom else kind.api_version)
        if version != kind.api_version:
            raise _wrong_version(kind, str(given), str(version))
        obj["apiVersion"] = version
        if given != kind.kind and kind.custom is not None:
            named = status.GroupResource(kind.group, str(given))
            problem = status.invalid("kind", given, f"must be {kind.kind}")
            name = metadata_of(obj).get("name", "")
            raise status.invalid_object(named, name, [problem])
        if given != kind.kind:
            package = kind.group.partition(".")[0] or "core"
            raise _Misfit(
                _handled(kind, str(given)),
                f"converting ({kind.version}.{given}) to ({package}.{kind.kind}): "
                "unknown conversion",
            )

    def _conform_patched(self, write: Write, obj: Plain) -> tuple[str, ...]:
        """A patch that leaves a value of the wrong type is itself what is wrong."""
        text = msgspec.json.encode(obj).decode()
        try:
            self._check_kind(write.kind, obj)
            return self._unknown(write, obj, ordered=sorted)
        except _Misfit as misfit:
            problem = status.invalid("patch", text, misfit.detail)
            nothing = status.GroupResource("", "")
            raise status.invalid_object(nothing, "", [problem]) from None

    def _unknown(
        self,
        write: Write,
        obj: Plain,
        *,
        ordered: Callable[[list[str]], list[str]] = list,
    ) -> tuple[str, ...]:
        kind = write.kind
        handled = _handled(kind, kind.kind)
        try:
            unknown = kind.conform(obj)
        except Mistyped as problem:
            raise _Misfit(handled, str(problem)) from None
        texts = [f"unknown field {status.quoted(field)}" for field in ordered(unknown)]
        if not texts or write.validation == "Ignore":
            return ()
        if write.validation == "Strict":
            raise _Misfit(handled, f"strict decoding error: {', '.join(texts)}")
        return tuple(texts)

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

    def _check(self, write: Write, problems: list[FieldProblem], obj: Plain) -> None:
        if problems:
            name = metadata_of(obj).get("name", "") or write.name
            raise status.invalid_object(write.kind.named, name, problems)

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
            return kind.encode(obj)

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


def _deleted(kind: Kind, name: str, old: Plain) -> Plain:
    """The ``Status`` that answers a deletion which is done."""
    details = {
        "name": name,
        "group": kind.group,
        "kind": kind.plural,
        "uid": metadata_of(old).get("uid", ""),
    }
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


def _check_options(write: Write, kind: str, *, force: bool = True) -> None:
    """That a write is asked for as it may be."""
    problems = []
    if write.force and not force:
        detail = "may not be specified for non-apply patch"
        problems.append(status.forbidden_value("force", detail))
    if len(write.manager.encode()) > MAX_MANAGER:
        problems.append(status.too_long("fieldManager", MAX_MANAGER))
    for index, letter in enumerate(write.manager):
        if not letter.isprintable():
            detail = f"invalid character U+{ord(letter):04X} (at position {index})"
            problems.append(status.invalid("fieldManager", write.manager, detail))
    if problems:
        named = status.GroupResource("meta.k8s.io", kind)
        raise status.invalid_object(named, "", problems)


def _number(text: Any) -> int:
    """A version as a number; 0 if it is none."""
    return int(text) if isinstance(text, str) and text.isdecimal() else 0


def other_uid(write: Write, wanted: str, found: str) -> ApiProblem:
    """That an object is not the one that a write is about, as the storage says it."""
    key = write.kind.etcd_key(write.namespace, write.name)
    return status.conflict(
        write.kind.about,
        write.name,
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, "
        f"UID in object meta: {found}",
    )


def _misnamed(meta: Plain, write: Write) -> ApiProblem:
    if not meta.get("name"):
        return status.bad_request(
            f"the name of the object ({write.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    return status.bad_request(
        f"the name of the object ({meta.get('name', '')}) does not match the name on "
        f"the URL ({write.name})"
    )


def _wrong_version(kind: Kind, given: str, version: str) -> ApiProblem:
    if kind.custom is not None:
        return status.bad_request(
            f"the API version in the data ({version}) does not match the expected API "
            f"version ({kind.api_version})"
        )
    short = version.rpartition("/")[2]
    return _Misfit(
        f'{given} in version "{short}" cannot be handled as a {kind.kind}: ',
        f'no kind "{given}" is registered for version "{version}" in scheme '
        '"pkg/runtime/scheme.go:111"',
    )


def _handled(kind: Kind, given: str) -> str:
    return f'{given} in version "{kind.version}" cannot be handled as a {kind.kind}: '


def _unprocessable(message: str) -> ApiProblem:
    return ApiProblem(422, "Invalid", message)
