"""Patching: a patch is read, applied to an object, and the result is read again."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.embedded import duplicates, jsontext, reading, status
from trimtab.embedded.bodies import Unrouted
from trimtab.embedded.builtin.shapes import go_order, shape_of
from trimtab.embedded.conform import Mistyped
from trimtab.embedded.gotext import plain
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.patches import PatchError, json_patch, merge_patch
from trimtab.embedded.settling import note_empty_maps
from trimtab.embedded.shaping import copied
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.strategic import merge_in_place
from trimtab.embedded.types import Type
from trimtab.embedded.unstructured import convert
from trimtab.embedded.writes import APPLY_PATCH, Misfit, Write

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
PATCH_REASONS = {400: "BadRequest", 413: "RequestEntityTooLarge", 422: "Invalid"}
UNSUPPORTED = "415: Unsupported Media Type"


def patched(write: Write, old: Plain, body: bytes, media: str) -> Plain:
    """An object with a patch applied to it, conforming to its kind.

    Errors: 415 for a patch that the kind does not take, 400 for one that cannot be
    read, 422 for one that does not apply or leaves what the kind has no room for.
    """
    kind = write.kind
    patch = decode(body, media)
    if kind.custom is not None:
        patch = jsontext.whole(patch, body)
    twice = _twice(kind, body, patch, media)
    try:
        made = applied(kind.type, old, patch, media)
    except PatchError as error:
        raise refused(error) from None
    if not isinstance(made, dict):
        raise ApiProblem(422, "Invalid", "the patch does not leave an object")
    obj: Plain = made
    try:
        if media == STRATEGIC_PATCH:
            obj = _converted(kind, obj)
        unknown = _conformed(write, obj)
        if unknown and kind.custom is None and media != STRATEGIC_PATCH:
            unknown = _unknown_in_order(kind, old, body, media)
        else:
            unknown.sort()
        reading.complain(write, twice + reading.unknown_texts(unknown))
    except Misfit as misfit:
        shown, detail = plain(patch), misfit.detail
        if media != STRATEGIC_PATCH:
            text = msgspec.json.encode(_in_order(kind, old, body, media))
            shown, detail = text.decode(), _first_detail(kind, text) or detail
        problem = status.invalid("patch", shown, detail)
        nothing = status.GroupResource("", "")
        raise status.invalid_object(nothing, "", [problem]) from None
    return obj


def refused(error: PatchError) -> ApiProblem:
    """A patch that cannot be read or does not apply, as an answer."""
    reason = PATCH_REASONS.get(error.code, "")
    problem = Unrouted if error.code == 422 else ApiProblem
    return problem(error.code, reason, str(error))


def decode(body: bytes, media: str) -> Any:
    """The patch in a body."""
    try:
        return jsontext.decode(body)
    except jsontext.Malformed as problem:
        start = "" if media == STRATEGIC_PATCH else "error decoding patch: "
        raise status.bad_request(f"{start}{problem}") from None


def applied(type: Type, old: Plain, patch: Any, media: str) -> Any:
    """What a patch makes of an object; a strategic merge is used up by it.

    Errors: ``PatchError``.
    """
    document = copied(old)
    if media == JSON_PATCH:
        return json_patch(document, patch)
    if media == MERGE_PATCH:
        return merge_patch(document, patch)
    return merge_in_place(document, patch, type)


def check_media(kind: Kind, media: str) -> None:
    """That a kind takes this sort of patch; 415 if not."""
    if media in (JSON_PATCH, MERGE_PATCH, APPLY_PATCH):
        return
    if kind.custom is not None:
        raise status.unsupported_media_type([JSON_PATCH, MERGE_PATCH, APPLY_PATCH])
    if media != STRATEGIC_PATCH:
        raise Unrouted(415, "UnsupportedMediaType", UNSUPPORTED)


def _in_order(kind: Kind, old: Plain, body: bytes, media: str) -> Any:
    """What a patch makes of an object, with the fields where the real server has
    them."""
    shape = shape_of(kind.group, kind.kind, kind.version)
    if shape:
        ordered = go_order(shape, old)
    else:
        text = msgspec.json.encode(old, order="sorted")
        ordered = msgspec.json.decode(text)
    return applied(kind.type, ordered, decode(body, media), media)


def _unknown_in_order(kind: Kind, old: Plain, body: bytes, media: str) -> list[str]:
    """The fields of a patched object that its kind does not have, as they are read."""
    text = msgspec.json.encode(_in_order(kind, old, body, media))
    obj: Plain = msgspec.json.decode(text)
    return reading.conformed(kind, obj, lambda: msgspec.json.decode(text))


def _first_detail(kind: Kind, text: bytes) -> str:
    """What is wrong first in a patched object, whose fields are read in order."""
    obj: Plain = msgspec.json.decode(text)
    try:
        reading.conformed(kind, obj, dict)
    except Misfit as misfit:
        return misfit.detail
    return ""


def _converted(kind: Kind, obj: Plain) -> Plain:
    """What a strategic merge leaves: it changes a struct, which has no type. What is
    shown of the patch may be in it, and stays as it is."""
    typed = {**obj, "apiVersion": kind.api_version, "kind": kind.kind}
    made: Plain = msgspec.json.decode(msgspec.json.encode(typed))
    try:
        convert(kind.type, made)
    except Mistyped as problem:
        raise Misfit("", str(problem)) from None
    return made


def _conformed(write: Write, obj: Plain) -> list[str]:
    """The fields that a patched object has and its kind does not, now gone from it."""
    text = msgspec.json.encode(obj)
    reading.check_kind(write.kind, obj, patched=True)
    note_empty_maps(write, obj)
    return reading.conformed(write.kind, obj, lambda: msgspec.json.decode(text))


def _twice(kind: Kind, body: bytes, patch: Any, media: str) -> list[str]:
    """What is said of fields that a patch has twice."""
    pairs = duplicates.pairs_of(body, patch)
    if pairs is None:
        return []
    told = [reading.duplicate(each) for each in duplicates.untyped(pairs)]
    if media != JSON_PATCH:
        return told
    return [f"json patch {each}" for each in told] + _twice_in_values(kind, pairs)


def _twice_in_values(kind: Kind, operations: list[Any]) -> list[str]:
    """What is said again when the values of operations are read as parts of objects."""
    told: list[str] = []
    for operation in map(dict, operations):
        value, path = operation.get("value"), operation.get("path", "")
        if operation.get("op") not in ("add", "replace"):
            continue
        parts = [
            each.replace("~1", "/").replace("~0", "~") for each in path.split("/")[1:]
        ]
        where = "".join(f"[{p}]" if p.isdigit() or p == "-" else f".{p}" for p in parts)
        if kind.custom is None and _type_at(kind.type, parts) is None:
            continue
        found = duplicates.untyped(value, where.removeprefix("."))
        told += [reading.duplicate(each) for each in found]
    return sorted(told)


def _type_at(type: Type | None, parts: list[str]) -> Type | None:
    for part in parts:
        if type is None:
            return None
        type = type.fields.get(part) if type.shape == "object" else type.element
    return type
