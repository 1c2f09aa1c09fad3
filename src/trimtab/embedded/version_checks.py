"""Version checks: what is wrong with one version of a CustomResourceDefinition.

That is its name, what it says to those who still use it, its subresources, the columns
that it prints and the fields that its objects can be selected by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trimtab.embedded import fieldpaths, status
from trimtab.embedded.builtin.validation import texts
from trimtab.embedded.schema_checks import validation_problems
from trimtab.embedded.status import FieldProblem

Plain = Mapping[str, Any]

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = (
    *("byte", "date", "date-time", "double"),
    *("float", "int32", "int64", "password"),
)
_MOST_FIELDS: Final = 8


def version_problems(
    version: Plain, shared: Plain, path: str, unchanged: frozenset[str]
) -> Iterator[FieldProblem]:
    """What is wrong with a version, apart from what it shares with all others."""
    name = version.get("name") or ""
    if texts.label_1035(name):
        yield status.invalid(f"{path}.name", name, ",".join(texts.label_1035(name)))
    yield from _deprecation_problems(version, f"{path}.deprecationWarning")
    parts = version.get("subresources") or shared.get("subresources") or {}
    yield from validation_problems(
        version.get("schema"),
        f"{path}.schema",
        with_status=parts.get("status") is not None,
        trusted=name in unchanged,
    )
    yield from subresource_problems(version.get("subresources"), f"{path}.subresources")
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        where = f"{path}.additionalPrinterColumns[{index}]"
        yield from column_problems(column, where)
    fields = version.get("selectableFields")
    if fields:
        where = f"{path}.selectableFields"
        raw = (version.get("schema") or {}).get("openAPIV3Schema")
        if raw is None:
            detail = (
                "may only be set when `version.schema.openAPIV3Schema` is not included"
            )
            yield status.invalid(where, "", detail)
        else:
            yield from selectable_problems(fields, raw, where)


def _deprecation_problems(version: Plain, path: str) -> Iterator[FieldProblem]:
    text = version.get("deprecationWarning")
    if text is None:
        return
    details = []
    if not version.get("deprecated"):
        details = ["can only be set for deprecated versions"]
    else:
        if len(text.encode()) > 256:
            details.append("must be <= 256 characters long")
        if not text:
            details.append("must not be an empty string")
        hidden = next(
            (at for at, each in enumerate(text) if not each.isprintable()), None
        )
        if hidden is not None:
            place = len(text[:hidden].encode())
            details.append(
                "must only contain printable UTF-8 characters; non-printable character "
                f"found at index {place}"
            )
    for detail in details:
        yield status.invalid(path, text, detail)


def subresource_problems(parts: Plain | None, path: str) -> Iterator[FieldProblem]:
    scale = (parts or {}).get("scale")
    if scale is None:
        return
    for field, under, required in (
        ("specReplicasPath", ".spec", True),
        ("statusReplicasPath", ".status", True),
        ("labelSelectorPath", "either .spec or .status", False),
    ):
        where, given = f"{path}.scale.{field}", scale.get(field) or ""
        roots = tuple(f"{each}." for each in under.split() if each.startswith("."))
        if not given:
            if required:
                yield status.required(where)
        elif not given.startswith("."):
            detail = "must be a simple json path starting with ."
            yield status.invalid(where, given, detail)
        elif not given.startswith(roots):
            detail = f"should be a json path under {under}"
            yield status.invalid(where, given, detail)


def column_problems(column: Plain, path: str) -> Iterator[FieldProblem]:
    if not column.get("name"):
        yield status.required(f"{path}.name")
    kind, form = column.get("type") or "", column.get("format") or ""
    allowed = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        yield status.required(f"{path}.type", allowed)
    elif kind not in _COLUMN_TYPES:
        yield status.invalid(f"{path}.type", kind, allowed)
    if form and form not in _COLUMN_FORMATS:
        detail = f"must be one of {','.join(_COLUMN_FORMATS)}"
        yield status.invalid(f"{path}.format", form, detail)
    where, given = f"{path}.JSONPath", column.get("jsonPath") or ""
    if not given:
        yield status.required(where)
    elif not given.startswith("."):
        detail = "must be a simple json path starting with ."
        yield status.invalid(where, given, detail)


def selectable_problems(fields: Any, raw: Plain, path: str) -> Iterator[FieldProblem]:
    seen = set()
    for index, field in enumerate(fields):
        where, given = f"{path}[{index}].jsonPath", field.get("jsonPath") or ""
        if not given:
            yield status.required(where)
            continue
        try:
            plain, schema = fieldpaths.resolve(given, raw, brackets=False)
        except fieldpaths.FieldPathError as error:
            yield status.invalid(where, given, f"is an invalid path: {error}")
            continue
        if plain.partition(".")[0] == "metadata":
            detail = "must not point to fields in metadata"
            yield status.invalid(where, given, detail)
        if schema.get("type") not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. Enum string "
                "fields and strings with formats are allowed."
            )
            yield status.invalid(where, given, detail)
        if plain in seen:
            yield status.duplicate(where, given)
        seen.add(plain)
    if len(seen) > _MOST_FIELDS:
        yield status.too_many(path, len(seen), _MOST_FIELDS)
