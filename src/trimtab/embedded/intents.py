"""Intents: what a server-side apply wants of an object, merged into what is there."""

from __future__ import annotations

from collections.abc import Callable

from trimtab.embedded import shaping, status
from trimtab.embedded.apply import ApplyConflict, ApplyFailed, apply
from trimtab.embedded.conform import Mistyped
from trimtab.embedded.kinds import Plain
from trimtab.embedded.managed import Others, Reset
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.settling import note_empty_maps, note_unread
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.types import Type
from trimtab.embedded.unstructured import convert as convert_type
from trimtab.embedded.writes import Write


def check(write: Write, intent: Plain, *, type: tuple[str, str] | None = None) -> None:
    """That an apply is of the right apiVersion and kind."""
    meta = metadata_of(intent)
    if meta.get("managedFields"):
        raise status.bad_request("metadata.managedFields must be nil")
    version, kind = intent.get("apiVersion") or "", intent.get("kind") or ""
    if (version, kind) != (type or (write.kind.api_version, write.kind.kind)):
        group, _, short = version.rpartition("/")
        raise status.bad_request(f"invalid object type: {group}/{short}, Kind={kind}")


def applied(
    write: Write,
    old: Plain | None,
    intent: Plain,
    *,
    type: Type,
    api_version: str,
    now: str,
    reset: Reset | None = None,
    others: Others | None = None,
) -> Plain:
    """An object after an intent was applied to it.

    Errors: ``ApiProblem`` in the real server's words; 409 if others own what would
    change.
    """
    try:
        return apply(
            old,
            intent,
            type=type,
            api_version=api_version,
            manager=write.manager,
            force=write.force,
            subresource=write.subresource,
            now=now,
            reset=reset,
            others=others,
        )
    except ApplyConflict as conflict:
        raise ApiProblem(
            409, "Conflict", conflict.message, causes=conflict.causes
        ) from None
    except ApplyFailed as failure:
        reason = "BadRequest" if failure.code == 400 else ""
        raise ApiProblem(failure.code, reason, failure.message) from None


def convert(
    write: Write, obj: Plain, intent: Plain, judge: Callable[[Plain], None]
) -> None:
    """Make what was applied an object of its kind.

    Nulls that no kind has room for go only after ``judge`` has looked at them.
    """
    kind = write.kind
    part = write.subresource or "status"
    if kind.custom is not None and kind.has_status and obj.get(part, obj) is None:
        del obj[part]
        if write.subresource:  # elsewhere it is nobody's to write
            write.emptied.append("object")
    before = shaping.copied(obj) if kind.custom is not None else obj
    try:
        if kind.custom is None:
            convert_type(kind.type, obj)
        note_empty_maps(write, obj)
        kind.conform(obj, dict)
        if kind.custom is not None:
            note_unread(write, before, obj)
        before["metadata"] = obj["metadata"]
        if kind.custom is not None and kind.has_status and not write.subresource:
            before["status"] = obj.get("status")  # it is not written, nor looked at
            if before["status"] is None:
                del before["status"]
        if obj != before:
            kind.default(before)
            judge(before)
    except Mistyped as problem:
        start = "error decoding from json: " if "base64" in str(problem) else ""
        of = f"{kind.group}/{kind.version}, Kind={kind.kind}"
        where = metadata_of(intent).get("namespace", "")
        raise ApiProblem(
            500,
            "",
            f"failed to convert new object ({where}/{write.name}; {of}) to proper "
            f"version: unable to convert unstructured object to {of}: {start}{problem}",
        ) from None
