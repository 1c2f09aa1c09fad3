"""Numbers: their bounds, their multiples, and whether they fit their format.

Go compares a whole number with the whole part of a bound, and complains about a bound
that the format has no room for with every value. Both are followed here.
"""

from __future__ import annotations

import math
from typing import Final

from trimtab.embedded import formats
from trimtab.embedded.findings import Finding, Result
from trimtab.embedded.gotext import number
from trimtab.embedded.schemas import Schema

INT64: Final = (-(2**63), 2**63 - 1)
_INT32: Final = (-(2**31), 2**31 - 1)
_SAFE: Final = float(2**53 - 1)
_LARGEST_FLOAT32: Final = 3.4028235677973366e38


def is_whole(value: float) -> bool:
    """Whether a number counts as an integer of JSON: whole, or as good as."""
    if not math.isfinite(value) or abs(value) > _SAFE:
        return False
    if value == int(value):
        return True
    if value < 1:
        return False
    below = float(int(value))
    return (value - below) / (value + below) < 1e-9


def number_findings(schema: Schema, value: float, path: str) -> Result:
    """What is wrong with a number; the bounds themselves may be wrong too."""
    result = Result()
    _check_range(schema, value, "Checked", path, result)
    if schema.multiple is not None:
        exact = _check_range(schema, schema.multiple, "MultipleOf", path, result)
        finding = _multiple_finding(schema.multiple, value, path, exact=exact)
        if finding is not None:
            result.add(finding)
    for bound, what in ((schema.minimum, "Minimum"), (schema.maximum, "Maximum")):
        if bound is None:
            continue
        exact = _check_range(schema, bound, f"{what} boundary", path, result)
        finding = _bound_finding(schema, bound, value, path, what, exact=exact)
        if finding is not None:
            result.add(finding)
    result.passed += 1
    return result


def _check_range(
    schema: Schema, value: float, what: str, path: str, result: Result
) -> bool:
    """Whether a value, or a bound, fits the type and format that the schema gives."""
    kind = schema.types[0] if len(schema.types) == 1 else ""
    form = schema.format if formats.known(kind, schema.format) and kind else ""
    form = form if kind in ("integer", "number") else ""
    if fits_format(kind, form, value):
        return True
    described = f"with format {form}" if form else "(default format)"
    result.unplaced(f"{what} value must be of type {kind} {described} in {path}")
    return False


def fits_format(kind: str, form: str, value: float) -> bool:
    """Whether a number has a place in the type and format."""
    if kind == "integer":
        low, high = _INT32 if form == "int32" else INT64
        whole = isinstance(value, int) or (math.isfinite(value) and value == int(value))
        return whole and low <= int(value) <= high
    return not (form == "float" and abs(value) >= _LARGEST_FLOAT32)


def _is_integer(value: float) -> bool:
    return isinstance(value, int) and INT64[0] <= value <= INT64[1]


def _shown(value: float, bound: float, *, exact: bool) -> tuple[float, str]:
    """The value and the bound as the message shows them: both whole, or neither."""
    if exact and _is_integer(value):
        return value, str(int(bound))
    return float(value), number(float(bound))


def _bound_finding(
    schema: Schema, bound: float, value: float, path: str, what: str, *, exact: bool
) -> Finding | None:
    """A whole number is compared with the whole part of the bound, as Go does."""
    limit = int(bound) if exact and _is_integer(value) else bound
    if what == "Maximum":
        strict = schema.below
        words = "less than"
        wrong = value >= limit if strict else value > limit
    else:
        strict = schema.above
        words = "greater than"
        wrong = value <= limit if strict else value < limit
    if not wrong:
        return None
    shown, text = _shown(value, bound, exact=exact)
    words = words if strict else f"{words} or equal to"
    return Finding(f"{path} in body should be {words} {text}", path, value=shown)


def _multiple_finding(
    factor: float, value: float, path: str, *, exact: bool
) -> Finding | None:
    if exact and _is_integer(value):
        step = int(factor)
        fits = step > 0 and value % step == 0
        positive, printed = step > 0, str(step)
    else:
        positive, printed = factor > 0, number(float(factor))
        fits = positive and is_whole(
            1 / factor * value if factor < 1 else value / factor
        )
    if not positive:
        text = f"factor MultipleOf declared for {path} must be positive: {printed}"
        bad = int(factor) if exact and _is_integer(value) else factor
        return Finding(text, path, value=bad)
    if fits:
        return None
    shown = _shown(value, factor, exact=exact)[0]
    text = f"{path} in body should be a multiple of {printed}"
    return Finding(text, path, value=shown)
