"""Quick checks: one function for each schema that says whether a value is valid.

Nearly every object is valid, so the common question is only *whether*; functions are
put together once for each schema and say it in microseconds. When one says no, or does
not know, ``validation`` finds out *what* is wrong, slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from trimtab.embedded import formats
from trimtab.embedded.numeric import fits_format
from trimtab.embedded.patterns import PatternError, compiled
from trimtab.embedded.schemas import EITHER, KEEP, Schema
from trimtab.embedded.validation import examine, in_enum

Check = Callable[[Any], bool]

_INT64 = range(-(2**63), 2**63)


def check_of(schema: Schema) -> Check:
    """The quick check of a schema; made once and kept in the node.

    Guarantees: it says yes exactly when ``validation`` finds nothing wrong.
    """
    if schema.accepts is None:
        schema.accepts = _with_alternatives(schema)
    return schema.accepts


def _with_alternatives(schema: Schema) -> Check:
    own = _with_enum(schema)
    checks = [own, *map(check_of, schema.all_of)]
    if schema.any_of:
        any_of = tuple(map(check_of, schema.any_of))
        checks.append(lambda value: any(check(value) for check in any_of))
    if schema.one_of:
        one_of = tuple(map(check_of, schema.one_of))
        checks.append(lambda value: sum(check(value) for check in one_of) == 1)
    if schema.not_ is not None:
        refused = check_of(schema.not_)
        checks.append(lambda value: not refused(value))
    if len(checks) == 1:
        return own
    every = tuple(checks)

    def check(value: Any) -> bool:
        # Of null only the type and the enum are asked.
        if value is None:
            return own(value)
        return all(each(value) for each in every)

    return check


def _with_enum(schema: Schema) -> Check:
    own = _of_type(schema)
    if not schema.enum:
        return own
    allowed = schema.enum
    if all(isinstance(each, str) for each in allowed):
        texts = frozenset(allowed)
        return lambda value: type(value) is str and value in texts and own(value)
    return lambda value: own(value) and in_enum(allowed, value)


def _of_type(schema: Schema) -> Check:
    makers: dict[str, Callable[[Schema], Check | None]] = {
        "string": _string,
        "integer": _integer,
        "number": _number,
        "boolean": _boolean,
        "array": _array,
        "object": _object,
    }
    made = None
    if len(schema.types) == 1 and schema.types[0] in makers:
        made = makers[schema.types[0]](schema)
    elif not schema.raw.keys() - {KEEP, "nullable"}:
        return _anything
    elif not schema.raw.keys() - {EITHER, "nullable"}:
        made = _either(schema)
    if made is None:
        return _slow(schema)
    check = made
    if not schema.nullable:
        return check
    return lambda value: value is None or check(value)


def _anything(value: Any) -> bool:
    return True


def _slow(schema: Schema) -> Check:
    """For what is rare: the full examination, without alternatives and enum."""
    alone = schema_alone(schema)
    return lambda value: not examine(alone, value, "").findings


def schema_alone(schema: Schema) -> Schema:
    """The same node without what is checked beside it."""
    return msgspec.structs.replace(
        schema, all_of=(), any_of=(), one_of=(), not_=None, enum=(), accepts=None
    )


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def _is_text(value: Any) -> bool:
    return type(value) is str


def _string(schema: Schema) -> Check | None:
    form = formats.check_of(schema.format)
    if schema.format:
        return _slow(schema) if form is None else _formatted(schema, form)
    if not schema.pattern:
        if schema.max_length is None and schema.min_length is None:
            return _is_text
        return _sized(schema)
    try:
        search = compiled(schema.pattern).search
    except PatternError:
        return _slow(schema)
    sized = _sized(schema)
    return lambda value: sized(value) and search(value) is not None


def _sized(schema: Schema) -> Check:
    least = schema.min_length or 0
    most = schema.max_length if schema.max_length is not None else 2**63
    return lambda value: type(value) is str and least <= len(value) <= most


def _formatted(schema: Schema, form: Callable[[str], bool]) -> Check:
    slow = _slow(schema)
    if schema.pattern or schema.max_length is not None or schema.min_length is not None:
        return slow
    return lambda value: form(value) if type(value) is str else slow(value)


def _bounds(schema: Schema) -> tuple[int, int] | None:
    """The least and the greatest whole number; None when that is not so simple."""
    low, high = _INT64.start, _INT64.stop - 1
    if schema.format == "int32":
        low, high = -(2**31), 2**31 - 1
    for bound in (schema.minimum, schema.maximum):
        if bound is not None and not fits_format("integer", schema.format, bound):
            return None
    if schema.minimum is not None:
        low = max(low, int(schema.minimum) + schema.above)
    if schema.maximum is not None:
        high = min(high, int(schema.maximum) - schema.below)
    return low, high


def _integer(schema: Schema) -> Check | None:
    bounds = _bounds(schema)
    if bounds is None or schema.multiple is not None:
        return None
    low, high = bounds
    slow = _slow(schema)
    return lambda value: low <= value <= high if type(value) is int else slow(value)


def _number(schema: Schema) -> Check | None:
    if schema.multiple is not None or schema.format == "float":
        return None
    slow = _slow(schema)
    if schema.minimum is None and schema.maximum is None:
        return lambda value: type(value) is float or slow(value)
    low = schema.minimum if schema.minimum is not None else float("-inf")
    high = schema.maximum if schema.maximum is not None else float("inf")
    if schema.above or schema.below:
        return slow
    return lambda value: low <= value <= high if type(value) is float else slow(value)


def _boolean(schema: Schema) -> Check | None:
    return None if schema.format else _is_flag


def _either(schema: Schema) -> Check:
    slow = _slow(schema)
    return lambda value: type(value) is str or slow(value)


def _array(schema: Schema) -> Check | None:
    if schema.format or schema.items is None:
        return None
    item = check_of(schema.items)
    least = schema.min_items or 0
    most = schema.max_items if schema.max_items is not None else 2**63

    def check(value: Any) -> bool:
        if type(value) is not list or not least <= len(value) <= most:
            return False
        for each in value:  # noqa: SIM110 (twice as fast as all() here)
            if not item(each):
                return False
        return True

    return check


def _object(schema: Schema) -> Check | None:
    if schema.format or schema.closed:
        return None
    wanted = {name: _wanted(child) for name, child in schema.properties.items()}
    other = _wanted(schema.additional) if schema.additional is not None else None
    lookup = wanted.get
    required = frozenset(schema.required)
    least = schema.min_properties or 0
    most = schema.max_properties if schema.max_properties is not None else 2**63

    def check(value: Any) -> bool:
        if type(value) is not dict or not least <= len(value) <= most:
            return False
        if required and not required <= value.keys():
            return False
        for name, item in value.items():
            want = lookup(name, other)
            if want is None or type(item) is want:
                continue
            if want is str or want is bool or not want(item):
                return False
        return True

    return check


def _wanted(schema: Schema) -> Any:
    """What a value has to be: of a type, if that is all, or what a check takes.

    A type is told apart from a check at a glance, and most fields are plain texts.
    """
    check = check_of(schema)
    if check is _anything:
        return None
    if check is _is_text:
        return str
    return bool if check is _is_flag else check
