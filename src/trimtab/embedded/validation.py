"""Validation: everything that is wrong with a value, in the real server's words.

This is the slow half: it runs when the quick test of ``quickcheck`` says no, finds each
mistake, and chooses among the alternatives of ``anyOf`` and ``oneOf`` the one to
complain about as the real server does, by counting what did hold. The order of
complaints is the order of the schema where the real one has none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from trimtab.embedded import formats, status
from trimtab.embedded.findings import Finding, Result
from trimtab.embedded.gotext import json_text, quoted
from trimtab.embedded.numeric import INT64, is_whole, number_findings
from trimtab.embedded.patterns import PatternError, compiled
from trimtab.embedded.ratcheting import Pair, same
from trimtab.embedded.schemas import Schema
from trimtab.embedded.status import FieldProblem

_JSON_TYPES: Final = {
    bool: ("boolean", ""),
    str: ("string", ""),
    int: ("integer", "int64"),
    float: ("number", "float64"),
    list: ("array", ""),
    dict: ("object", ""),
}


def problems(
    schema: Schema, value: Any, *, path: str = "", pair: Pair | None = None
) -> list[FieldProblem]:
    """What is wrong with a value; ``path`` is where it stands in the object.

    With a ``pair``, mistakes in a part that is unchanged are forgiven.
    """
    result = examine(schema, value, "", pair)
    return [_problem(finding, path) for finding in result.findings.values()]


def _problem(finding: Finding, path: str) -> FieldProblem:
    if finding.name is None:
        return status.invalid(path or "<nil>", "", finding.text)
    inner = finding.name.removeprefix(".")
    field = f"{path}.{inner}" if path and inner else path or inner or "<nil>"
    if finding.kind == "required":
        return status.required(field)
    if finding.kind == "enum":
        return status.not_supported(field, finding.value, _allowed(finding.allowed))
    if finding.kind == "long":
        return status.too_long(field, finding.limit)
    if finding.kind == "many":
        return status.too_many(field, finding.value, finding.limit)
    if finding.kind == "type":
        return status.type_invalid(field, finding.value, finding.text)
    return status.invalid(field, finding.value, finding.text)


def _allowed(values: Iterable[Any]) -> list[str]:
    return [each if isinstance(each, str) else json_text(each) for each in values]


def examine(schema: Schema, value: Any, path: str, pair: Pair | None = None) -> Result:
    """Every check of one node and of what is below it."""
    result = Result()
    if value is None:
        _check_type(schema, value, path, result)
        _check_enum(schema, value, path, result)
        return result
    if schema.types or schema.format:
        _check_type(schema, value, path, result)
        result.passed += 1
    result.merge(_alternatives(schema, value, path))
    result.passed += 1
    if isinstance(value, str):
        _check_string(schema, value, path, result)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        result.merge(number_findings(schema, value, path))
        result.passed += 1
    elif isinstance(value, list):
        _check_list(schema, value, path, result, pair)
        result.passed += 1
    _check_enum(schema, value, path, result)
    result.passed += 1
    if isinstance(value, dict):
        _check_object(schema, value, path, result, pair)
        result.passed += 1
    result.passed += 1
    if pair is not None and result.findings and pair.unchanged():
        result.findings = {}
    return result


def _json_type(value: Any) -> tuple[str, str]:
    if isinstance(value, int) and not isinstance(value, bool):
        inside = INT64[0] <= value <= INT64[1]
        return _JSON_TYPES[int if inside else float]
    return _JSON_TYPES[type(value)]


def _check_type(schema: Schema, value: Any, path: str, result: Result) -> None:
    types = schema.types
    if value is None:
        if types and not schema.nullable:
            _mistyped(result, path, ",".join(types), "null")
        else:
            result.passed += 1
        return
    found, form = _json_type(value)
    texts = isinstance(value, (str, list))
    whole = found == "number" and is_whole(value) and "integer" in types
    fits = found in types or whole or (found == "integer" and "number" in types)
    if not texts and schema.format and not fits and form != schema.format:
        _mistyped(result, path, schema.format, form)
    elif schema.format and texts and not {"number", "integer"} & set(types):
        result.passed += 1
    elif not fits:
        _mistyped(result, path, ",".join(types), found)
    else:
        result.passed += 1


def _mistyped(result: Result, path: str, wanted: str, found: str) -> None:
    text = f"{path} in body must be of type {wanted}: {quoted(found)}"
    result.add(Finding(text, path, "type", found))


def _check_enum(schema: Schema, value: Any, path: str, result: Result) -> None:
    if schema.enum and not in_enum(schema.enum, value):
        allowed = " ".join(map(str, schema.enum))
        text = f"{path} in body should be one of [{allowed}]"
        finding = Finding(text, path, "enum", value, allowed=schema.enum)
        result.add(finding)


def in_enum(allowed: tuple[Any, ...], value: Any) -> bool:
    """Whether a value is one of those listed; a number may be of the other kind."""
    return any(_equals(value, each) for each in allowed if each is not None)


def _equals(value: Any, each: Any) -> bool:
    if type(value) is float and type(each) is int:
        return math.isfinite(value) and int(value) == each
    if type(value) is int and type(each) is float:
        return float(value) == each
    return same(value, each)


def _alternatives(schema: Schema, value: Any, path: str) -> Result:
    result = Result()
    if schema.any_of:
        _check_any(schema, value, path, result)
    if schema.one_of:
        _check_one(schema, value, path, result)
    if schema.all_of:
        _check_all(schema, value, path, result)
    if schema.not_ is not None and not examine(schema.not_, value, path).findings:
        result.unplaced(f"{quoted(path)} must not validate the schema (not)")
    result.passed += 1
    return result


def _check_any(schema: Schema, value: Any, path: str, result: Result) -> None:
    best: Result | None = None
    for each in schema.any_of:
        found = examine(each, value, path)
        if not found.findings:
            result.merge(found)
            return
        if best is None or found.passed > best.passed:
            best = found
    text = f"{quoted(path)} must validate at least one schema (anyOf)"
    result.unplaced(text)
    if best is not None:
        result.merge(best)


def _check_one(schema: Schema, value: Any, path: str, result: Result) -> None:
    best: Result | None = None
    valid: list[Result] = []
    for each in schema.one_of:
        found = examine(each, value, path)
        if not found.findings:
            valid.append(found)
            best = None
        elif not valid and (best is None or found.passed > best.passed):
            best = found
    if len(valid) == 1:
        result.merge(valid[0])
        return
    count = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
    text = f"{quoted(path)} must validate one and only one schema (oneOf). {count}"
    result.unplaced(text)
    if best is not None:
        result.merge(best)


def _check_all(schema: Schema, value: Any, path: str, result: Result) -> None:
    valid = 0
    for each in schema.all_of:
        found = examine(each, value, path)
        valid += not found.findings
        result.merge(found)
    if valid != len(schema.all_of):
        none = "" if valid else ". None validated"
        text = f"{quoted(path)} must validate all the schemas (allOf){none}"
        result.unplaced(text)


def _check_string(schema: Schema, value: str, path: str, result: Result) -> None:
    finding = _string_finding(schema, value, path)
    if finding is not None:
        result.add(finding)
    result.passed += 1
    check = formats.check_of(schema.format)
    if check is not None:
        if not check(value):
            wanted = f"{path} in body must be of type {schema.format}"
            finding = Finding(f"{wanted}: {quoted(value)}", path, "type", value)
            result.add(finding)
        result.passed += 1


def _string_finding(schema: Schema, value: str, path: str) -> Finding | None:
    """The first thing wrong with a text."""
    length = len(value)
    if schema.max_length is not None and length > schema.max_length:
        text = f"{path} in body should be at most {schema.max_length} chars long"
        return Finding(text, path, "long", value, schema.max_length)
    if schema.min_length is not None and length < schema.min_length:
        text = f"{path} in body should be at least {schema.min_length} chars long"
        return Finding(text, path, value=value)
    if schema.pattern:
        shown = schema.pattern
        try:
            if compiled(schema.pattern).search(value):
                return None
        except PatternError as error:
            shown = f"{shown}, but pattern is invalid: {error}"
        return Finding(f"{path} in body should match '{shown}'", path, value=value)
    return None


def _check_list(
    schema: Schema, value: list[Any], path: str, result: Result, pair: Pair | None
) -> None:
    if schema.items is not None:
        for index, item in enumerate(value):
            child = pair.index(index) if pair is not None else None
            result.merge(examine(schema.items, item, f"{path}[{index}]", child))
    size = len(value)
    if schema.min_items is not None and size < schema.min_items:
        text = f"{path} in body should have at least {schema.min_items} items"
        result.add(Finding(text, path, value=size))
    if schema.max_items is not None and size > schema.max_items:
        text = f"{path} in body should have at most {schema.max_items} items"
        result.add(Finding(text, path, "many", size, schema.max_items))
    result.passed += 1


def _check_object(
    schema: Schema, value: dict[str, Any], path: str, result: Result, pair: Pair | None
) -> None:
    size = len(value)
    if schema.min_properties is not None and size < schema.min_properties:
        text = f"{path} in body should have at least {schema.min_properties} properties"
        result.add(Finding(text, path, value=size))
    if schema.max_properties is not None and size > schema.max_properties:
        text = f"{path} in body should have at most {schema.max_properties} properties"
        result.add(Finding(text, path, "many", size, schema.max_properties))
    _check_additional(schema, value, path, result, pair)
    for name, child in schema.properties.items():
        if name in value:
            inner = f"{path}.{name}" if path else name
            old = _child_pair(pair, name, path)
            result.merge(examine(child, value[name], inner, old))
    for name in schema.required:
        if name not in value:
            inner = f"{path}.{name}"
            result.add(Finding(f"{inner} in body is required", inner, "required"))


def _check_additional(
    schema: Schema, value: dict[str, Any], path: str, result: Result, pair: Pair | None
) -> None:
    if schema.additional is None and not schema.closed:
        return
    for name, item in value.items():
        if name in schema.properties:
            continue
        if schema.closed:
            text = f"{path}.{name} in body is a forbidden property"
            result.add(Finding(text, path, value=name))
        elif schema.additional is not None:
            old = _child_pair(pair, name, path)
            result.merge(examine(schema.additional, item, f"{path}.{name}", old))


def _child_pair(pair: Pair | None, name: str, path: str) -> Pair | None:
    # Both sides are converted to one version, so these two always look unchanged.
    if pair is None or (not path and name in ("kind", "apiVersion")):
        return None
    return pair.key(name)
