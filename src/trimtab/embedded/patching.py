"""Patching: a patch is read, applied to an object, and the result is read again."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec

from trimtab.embedded import duplicates, jsontext, metadata, reading, status
from trimtab.embedded.bodies import Unrouted
from trimtab.embedded.conform import Mistyped
from trimtab.embedded.gotext import plain
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.patches import PatchError, json_patch, merge_patch
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.strategic import strategic_merge
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
    try:
        obj = applied(kind.type, old, patch, media)
    except PatchError as error:
        raise refused(error) from None
    if not isinstance(obj, dict):
        raise ApiProblem(422, "Invalid", "the patch does not leave an object")
    if media == STRATEGIC_PATCH:  # it changes a struct, which has neither
        obj.update(apiVersion=kind.api_version, kind=kind.kind)
    text = msgspec.json.encode(obj)
    try:
        if media == STRATEGIC_PATCH:
            _convert(kind, obj)
            text = msgspec.json.encode(obj)
        _conform(write, obj, text, _twice(kind, body, patch, media))
    except Misfit as misfit:
        detail = misfit.detail
        if media == STRATEGIC_PATCH:
            shown = plain(_without_retained(patch))
        else:
            shown, detail = text.decode(), _first_detail(kind, text) or detail
        problem = status.invalid("patch", shown, detail)
        nothing = status.GroupResource("", "")
        raise status.invalid_object(nothing, "", [problem]) from None
    metadata.drop_equal_owners(obj, write.warnings, when=metadata.AFTER_MUTATION)
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
    """What a patch makes of an object.

    Errors: ``PatchError``.
    """
    document = deepcopy(old)
    if media == JSON_PATCH:
        return json_patch(document, patch)
    if media == MERGE_PATCH:
        return merge_patch(document, patch)
    return strategic_merge(document, patch, type)


def check_media(kind: Kind, media: str) -> None:
    """That a kind takes this sort of patch; 415 if not."""
    if media in (JSON_PATCH, MERGE_PATCH):
        return
    if kind.custom is not None:
        raise status.unsupported_media_type([JSON_PATCH, MERGE_PATCH, APPLY_PATCH])
    if media != STRATEGIC_PATCH:
        raise Unrouted(415, "UnsupportedMediaType", UNSUPPORTED)


def _first_detail(kind: Kind, text: bytes) -> str:
    """What is wrong first in a patched object, whose fields are read in order."""
    ordered = msgspec.json.encode(msgspec.json.decode(text), order="sorted")
    obj: Plain = msgspec.json.decode(ordered)
    try:
        reading.conformed(kind, obj, dict)
    except Misfit as misfit:
        return misfit.detail
    return ""


def _without_retained(patch: Any) -> Any:
    """A strategic merge as it is left when it has been applied."""
    if isinstance(patch, list):
        return [_without_retained(each) for each in patch]
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":  # nobody looks at the rest
        return {key: value for key, value in patch.items() if key != "$patch"}
    return {k: _without_retained(v) for k, v in patch.items() if k != "$retainKeys"}


def _convert(kind: Kind, obj: Plain) -> None:
    try:
        convert(kind.type, obj)
    except Mistyped as problem:
        raise Misfit("", str(problem)) from None


def _conform(write: Write, obj: Plain, text: bytes, told: list[str]) -> None:
    reading.check_kind(write.kind, obj, patched=True)
    unknown = reading.conformed(write.kind, obj, lambda: msgspec.json.decode(text))
    reading.complain(write, told + reading.unknown_texts(sorted(unknown)))


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
