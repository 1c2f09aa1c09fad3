"""Settling: a write changes only what it may, and leaves no trace if it is nothing."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.embedded import status
from trimtab.embedded.kinds import Plain
from trimtab.embedded.managed import with_entries
from trimtab.embedded.shaping import copied
from trimtab.embedded.status import FieldProblem
from trimtab.embedded.writes import Write

FROZEN = {"configmaps": ("binaryData",), "secrets": ("data",)}
"""Maps that may be made immutable; an empty one is then not the same as none."""
OPTIONAL = ("labels", "annotations", "finalizers", "ownerReferences", "generateName")
"""What metadata has, or has not: an empty one is dropped when it is read, and a null
in one is an empty text then."""
TEMPLATE_LABELS = "spec.template.metadata.labels"
"""What messages show, empty or not there."""
UNREAD = b" "
"""How the bytes of an object end of which the real server would have stored more."""


def with_settled_times(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The object with its old times if nothing but times changed.

    For after admission: a write that changed nothing must not make a revision. The
    ``resourceVersion`` does not count; the new object may not have one yet.
    """
    old = before["metadata"].get("managedFields") or []
    new = after["metadata"].get("managedFields") or []
    if len(old) != len(new) or not new or old == new:
        return after
    timeless = [{**each, "time": ""} for each in (*old, *new)]
    if timeless[: len(old)] != timeless[len(old) :]:
        return after
    settled_one = with_entries(after, old)
    is_same = _unversioned(settled_one) == _unversioned(before)
    return settled_one if is_same else after


def _unversioned(object: dict[str, Any]) -> dict[str, Any]:
    return {**object, "metadata": {**object["metadata"], "resourceVersion": ""}}


def kept(write: Write, obj: Plain, old: Plain) -> Plain:
    """What a write may touch: the object without its status, or its status alone."""
    kind = write.kind
    if write.subresource == "status":
        left = {key: value for key, value in old.items() if key != "status"}
        if "status" in obj:
            left["status"] = obj["status"]
        if kind.custom is None:
            left["metadata"] = obj["metadata"]
        else:
            meta = dict(old["metadata"])
            meta.pop("managedFields", None)
            if "managedFields" in obj["metadata"]:
                meta["managedFields"] = obj["metadata"]["managedFields"]
            left["metadata"] = meta
        settled: Plain = copied(left)
        return settled
    if kind.has_status and not write.subresource:
        obj.pop("status", None)
        if "status" in old:
            obj["status"] = copied(old["status"])
    return obj


def note_empty_maps(write: Write, obj: Plain) -> None:
    """Remember what is about to be dropped because it is empty."""
    kind = write.kind
    if not kind.group and kind.plural in FROZEN:
        fields = FROZEN[kind.plural]
        write.emptied.extend(field for field in fields if obj.get(field) == {})
    elif kind.group == "apps" and _at(obj, TEMPLATE_LABELS.split(".")) == {}:
        write.emptied.append(TEMPLATE_LABELS)


def _at(value: Any, path: list[str]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def as_given(write: Write, problems: list[FieldProblem]) -> list[FieldProblem]:
    """Problems in which what was empty is shown as that, and not as none."""
    if TEMPLATE_LABELS not in write.emptied:
        return problems
    return [
        msgspec.structs.replace(
            each, body=each.body.replace("value: null", "value: {}")
        )
        if each.field == TEMPLATE_LABELS
        else each
        for each in problems
    ]


def note_unread(write: Write, given: Plain, read: Plain) -> None:
    """Remember whether an applied custom object is another one once it is read."""
    meta, part = read["metadata"], write.subresource
    if part:
        parts = {part}
    else:
        parts = {*given, *read} - {"metadata"}
        parts -= {"status"} if write.kind.has_status else set()
        put = {
            key: given["metadata"][key] for key in OPTIONAL if key in given["metadata"]
        }
        if any(meta.get(key, ...) != value for key, value in put.items()):
            write.emptied.append("metadata")
    if any(given.get(key) != read.get(key) for key in parts):
        write.emptied.append("object")


def mark_of(write: Write, *, new: bool = False) -> bytes:
    """What is appended to the bytes of an object that is stored.

    The real server stores a custom one that was applied as it is, with what it drops
    when it reads it again; and a new Job is stored otherwise than an old one. Then a
    write that changes nothing changes what is stored.
    """
    if new and (write.kind.group, write.kind.plural) == ("batch", "jobs"):
        return UNREAD
    applied = write.kind.custom is not None and write.kind.conversion is None
    return UNREAD if applied and write.emptied else b""


def count_unread(write: Write, obj: Plain, old: Plain) -> None:
    """Count a generation: before it is read, the object is not the one there was."""
    if not write.subresource:
        generation = old["metadata"].get("generation", 0) + 1
        obj["metadata"]["generation"] = generation


def thawed(write: Write, old: Plain | None) -> list[FieldProblem]:
    """What is wrong with writing an empty map where there is none and must be none."""
    if not write.emptied or old is None or not old.get("immutable"):
        return []
    detail = "field is immutable when `immutable` is set"
    return [
        status.forbidden_value(field, detail)
        for field in write.emptied
        if field not in old
    ]
