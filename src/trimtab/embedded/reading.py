"""Reading: a body as an object of some kind, as the real server's decoder reads it.

A body says which kind it is of, has fields that the kind does not have, or has a field
twice. What comes of that depends on the ``fieldValidation`` of the write: it is
refused, or the client is warned, or nobody minds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec

from trimtab.embedded import (
    bodies,
    duplicates,
    facts,
    jsontext,
    metadata,
    shaping,
    status,
)
from trimtab.embedded.bodies import Unreadable
from trimtab.embedded.conform import Mistyped
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.patches import json_kind
from trimtab.embedded.settling import note_empty_maps
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.writes import Misfit, Write, number

EVERYWHERE = (
    *("CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions"),
    *("UpdateOptions", "WatchEvent"),
)
"""Types that every group and version has."""


def read(write: Write, body: bytes, content_type: str) -> Plain:
    """The object that a body brings; what is odd about it is told as is wished for.

    Guarantees: the object is of the kind that the write is about, and has nothing that
    the kind does not have.

    Errors: ``ApiProblem``, a ``Misfit`` for what the kind has no room for.
    """
    kind = write.kind
    try:
        parsed = bodies.parse(body, content_type)
    except Unreadable as problem:
        raise bodies.unrecognized(str(problem), body, kind=kind.kind) from None
    obj, told = parsed.obj, list[str]()
    if kind.custom is not None:
        obj = jsontext.whole(obj, body)
    if kind.custom is not None and not obj.get("kind"):
        raise _without_kind(write, body, obj)
    if write.name and not number(metadata_of(obj).get("resourceVersion")):
        _check_custom_version(write, obj)
    if kind.custom is not None and write.validation == "Warn":
        write.warnings.extend(_unserved(kind, obj))
    check_kind(kind, obj)
    if parsed.pairs is not None:
        told, obj = _twice(kind, obj, parsed.pairs)
    given = told if kind.custom is None else []
    note_empty_maps(write, obj)
    unknown = conformed(kind, obj, lambda: bodies.parse(body, content_type).obj)
    told = given or told + [_unknown(each) for each in unknown]
    complain(write, [*told_in_yaml(parsed.lines), *told], [*parsed.lines, *told])
    metadata.drop_equal_owners(obj, write.warnings)
    return obj


def _unserved(kind: Kind, obj: Plain) -> list[str]:
    """What is said of a body of a version that the kind does not have."""
    version = str(obj.get("apiVersion") or "")
    if version == kind.api_version or not version.startswith(f"{kind.group}/"):
        return []
    return [_unknown(key) for key in sorted(obj) if key not in shaping.META_FIELDS]


def _without_kind(write: Write, body: bytes, obj: Plain) -> ApiProblem:
    """That a body does not say its kind, as those say it who try to read it."""
    missing = "Object 'Kind' is missing in '{}'"
    if write.validation != "Ignore":
        text = missing.format(body.decode(errors="replace"))
        return bodies.unrecognized(text, body, kind=write.kind.kind)
    shown = body
    if body.lstrip()[:1] != b"{":
        shown = msgspec.json.encode(obj)
    text = missing.format(shown.decode(errors="replace"))
    return Misfit(handled(write.kind, write.kind.kind), text)


def _check_custom_version(write: Write, obj: Plain) -> None:
    """A custom object of another kind is first asked for its version."""
    kind = write.kind
    if kind.custom is None or obj.get("kind") == kind.kind:
        return
    if obj.get("apiVersion") == kind.api_version:
        problem = status.invalid(
            "metadata.resourceVersion", 0, "must be specified for an update"
        )
        raise status.invalid_object(kind.about, write.name, [problem])


def intent_of(body: bytes) -> tuple[Plain, tuple[str, ...]]:
    """What an apply wants, which is read as YAML; and lines that set a key again."""
    try:
        value, lines = bodies.read_yaml(body)
    except Unreadable as problem:
        raise status.bad_request(
            f"error decoding YAML: error converting YAML to JSON: {problem}"
        ) from None
    if value is not None and not isinstance(value, dict):
        raise status.bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: "
            f"cannot unmarshal {json_kind(value)} into Go value of type "
            "map[string]interface {}"
        )
    return jsontext.whole(value or {}, body), lines


def complain_of_lines(write: Write, lines: Sequence[str]) -> None:
    """Say which lines of an apply set a key again; it is said of a good one only."""
    if lines and write.validation == "Strict":
        raise status.bad_request(
            "error strict decoding YAML: error converting YAML to JSON: "
            f"{told_in_yaml(lines)[0]}"
        )
    if write.validation == "Warn":
        write.warnings.extend(lines)


def _twice(kind: Kind, obj: Plain, pairs: duplicates.Pairs) -> tuple[list[str], Plain]:
    """What is said of a body that has a field twice, and what it comes to."""
    if kind.custom is not None:
        return [duplicate(each) for each in duplicates.untyped(pairs)], obj
    told, read = duplicates.typed(kind.type, pairs)
    check_kind(kind, read)
    return told, read


def duplicate(field: str) -> str:
    return f"duplicate field {status.quoted(field)}"


def _unknown(field: str) -> str:
    return f"unknown field {status.quoted(field)}"


def told_in_yaml(lines: Sequence[str]) -> list[str]:
    """What the strict decoder of YAML says about lines, all in one."""
    if not lines:
        return []
    return ["yaml: unmarshal errors:\n  " + "\n  ".join(lines)]


def conformed(kind: Kind, obj: Plain, again: Callable[[], Plain]) -> list[str]:
    """Drop, in place, what a kind does not have; the fields that it does not know.

    ``again`` makes the object once more, as it was.
    """
    meta = obj.get("metadata")
    forgets = isinstance(meta, dict) and meta.get("managedFields") == []
    try:
        unknown = kind.conform(obj, again)
    except Mistyped as problem:
        raise Misfit(handled(kind, kind.kind), str(problem)) from None
    if forgets:  # no entries at all, which is not the same as nothing about them
        metadata_of(obj)["managedFields"] = []
    return unknown


def unknown_texts(fields: Sequence[str]) -> list[str]:
    return [_unknown(each) for each in fields]


def complain(
    write: Write, strictly: Sequence[str], warnings: Sequence[str] | None = None
) -> None:
    """Say what is odd about a body, as the write wants to hear it."""
    if write.validation == "Strict" and strictly:
        told = f"strict decoding error: {', '.join(strictly)}"
        raise Misfit(handled(write.kind, write.kind.kind), told)
    if write.validation == "Warn":
        write.warnings.extend(strictly if warnings is None else warnings)


def check_kind(kind: Kind, obj: Plain, *, patched: bool = False) -> None:
    """That an object is of the kind it is meant to be; a built-in one may not say."""
    given = obj["kind"] = obj.get("kind") or kind.kind
    version = obj.get("apiVersion") or ("" if kind.custom else kind.api_version)
    if version != kind.api_version and not (kind.custom and patched):
        raise _wrong_version(kind, str(given), str(version))
    if (given, version) == (kind.kind, kind.api_version):
        obj["apiVersion"] = version
    elif kind.custom is not None:
        raise _wrong_custom(kind, obj, str(version))
    else:
        raise _unregistered(kind, str(given), str(version))


def _wrong_custom(kind: Kind, obj: Plain, version: str) -> ApiProblem:
    given = obj["kind"]
    problems = []
    if given != kind.kind:
        problems.append(status.invalid("kind", given, f"must be {kind.kind}"))
    if version != kind.api_version:
        detail = f"must be {kind.api_version}"
        problems.append(status.invalid("apiVersion", version, detail))
    group = version.rpartition("/")[0]
    name = metadata_of(obj).get("name", "")
    return status.invalid_object(status.GroupResource(group, given), name, problems)


@lru_cache(maxsize=1)
def _registered() -> frozenset[tuple[str, str]]:
    """What types a body can name: served ones, lists of them, and a few that are
    everywhere."""
    served = {(each.api_version, each.kind) for each in facts.resources()}
    versions = {version for version, _ in served}
    return frozenset(
        {
            *served,
            *((version, f"{kind}List") for version, kind in served),
            *((version, kind) for version in versions for kind in EVERYWHERE),
            ("v1", "Status"),
        }
    )


def _unregistered(kind: Kind, given: str, version: str) -> ApiProblem:
    """That a body is of another type, or of none that anybody knows."""
    short = version.rpartition("/")[2]
    start = f'{given} in version "{short}" cannot be handled as a {kind.kind}: '
    if (version, given) in _registered():
        package = kind.group.partition(".")[0] or "core"
        text = f"converting ({short}.{given}) to ({package}.{kind.kind})"
        return Misfit(start, f"{text}: unknown conversion")
    return Misfit(
        start,
        f'no kind "{given}" is registered for version "{version}" in scheme '
        '"pkg/runtime/scheme.go:111"',
    )


def _wrong_version(kind: Kind, given: str, version: str) -> ApiProblem:
    if kind.custom is not None:
        return status.bad_request(
            f"the API version in the data ({version}) does not match the expected API "
            f"version ({kind.api_version})"
        )
    return _unregistered(kind, given, version)


def handled(kind: Kind, given: str) -> str:
    return f'{given} in version "{kind.version}" cannot be handled as a {kind.kind}: '
