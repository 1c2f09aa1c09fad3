"""Reading: a body as an object of some kind, as the real server's decoder reads it.

A body says which kind it is of, has fields that the kind does not have, or has a field
twice. What comes of that depends on the ``fieldValidation`` of the write: it is
refused, or the client is warned, or nobody minds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trimtab.embedded import bodies, duplicates, metadata, status
from trimtab.embedded.bodies import Unreadable
from trimtab.embedded.conform import Mistyped
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.patches import json_kind
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.writes import Misfit, Write


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
    if kind.custom is not None and not obj.get("kind"):
        missing = f"Object 'Kind' is missing in '{body.decode(errors='replace')}'"
        raise bodies.unrecognized(missing, body, kind=kind.kind)
    check_kind(kind, obj)
    if parsed.pairs is not None:
        told, obj = _twice(kind, obj, parsed.pairs)
    given = told if kind.custom is None else []
    unknown = conformed(kind, obj, lambda: bodies.parse(body, content_type).obj)
    told = given or told + [_unknown(each) for each in unknown]
    complain(write, [*told_in_yaml(parsed.lines), *told], [*parsed.lines, *told])
    metadata.drop_equal_owners(obj, write.warnings)
    return obj


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
    return value or {}, lines


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
    try:
        return kind.conform(obj, again)
    except Mistyped as problem:
        raise Misfit(handled(kind, kind.kind), str(problem)) from None


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


def check_kind(kind: Kind, obj: Plain) -> None:
    """That an object is of the kind it is meant to be; a built-in one may not say."""
    given = obj["kind"] = obj.get("kind") or kind.kind
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
        raise Misfit(
            handled(kind, str(given)),
            f"converting ({kind.version}.{given}) to ({package}.{kind.kind}): "
            "unknown conversion",
        )


def _wrong_version(kind: Kind, given: str, version: str) -> ApiProblem:
    if kind.custom is not None:
        return status.bad_request(
            f"the API version in the data ({version}) does not match the expected API "
            f"version ({kind.api_version})"
        )
    short = version.rpartition("/")[2]
    return Misfit(
        f'{given} in version "{short}" cannot be handled as a {kind.kind}: ',
        f'no kind "{given}" is registered for version "{version}" in scheme '
        '"pkg/runtime/scheme.go:111"',
    )


def handled(kind: Kind, given: str) -> str:
    return f'{given} in version "{kind.version}" cannot be handled as a {kind.kind}: '
