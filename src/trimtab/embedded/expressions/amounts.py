"""Amounts: the functions for quantities, semantic versions and named formats."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import total_ordering
from typing import Any, Final

import msgspec

from trimtab.api import names
from trimtab.api.quantity import Quantity as Plain
from trimtab.embedded import addresses, formats
from trimtab.embedded.addresses import AddressError
from trimtab.embedded.expressions.values import (
    LARGEST,
    NONE,
    SMALLEST,
    EvaluationError,
    Optional,
)
from trimtab.embedded.gotext import quoted

_NOT_A_QUANTITY: Final = (
    "quantities must match the regular expression "
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


class Quantity(msgspec.Struct, frozen=True, eq=False):
    """An amount with a suffix."""

    cel_name = "kubernetes.Quantity"
    amount: Plain
    wide: bool = False
    """Whether it was too large for 64 bits, which its value does not show."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.amount == other.amount

    def __hash__(self) -> int:
        return hash(self.amount)


def to_quantity(text: str) -> Quantity:
    try:
        amount = Plain(text)
    except ValueError:
        raise EvaluationError(_NOT_A_QUANTITY) from None
    most = abs(amount.fraction) == LARGEST
    return Quantity(amount, most and text.strip("+-") != str(LARGEST))


def is_quantity(text: str) -> bool:
    try:
        Plain(text)
    except ValueError:
        return False
    return True


def _amount(value: Quantity | int) -> Plain:
    return value.amount if isinstance(value, Quantity) else Plain(int(value))


def is_integer(quantity: Quantity) -> bool:
    value = quantity.amount.fraction
    fits = value.denominator == 1 and SMALLEST <= value <= LARGEST
    return fits and not quantity.wide


def as_integer(quantity: Quantity) -> int:
    if not is_integer(quantity):
        raise EvaluationError("cannot convert value to integer")
    return int(quantity.amount.fraction)


def _order(one: Any, other: Any) -> int:
    a, b = (
        each.amount if isinstance(each, Quantity) else each for each in (one, other)
    )
    return int(a > b) - int(a < b)


@total_ordering
class Semver(msgspec.Struct, frozen=True, eq=False):
    """A semantic version; what was built does not count in comparisons."""

    cel_name = "kubernetes.Semver"
    numbers: tuple[int, int, int]
    stages: tuple[tuple[int, int, str], ...] = ()

    def _key(self) -> tuple[Any, ...]:
        return (self.numbers, not self.stages, self.stages)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._key() == other._key()

    def __lt__(self, other: Semver) -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def to_semver(text: str, normalize: bool = False) -> Semver:
    if normalize:
        text = _normalized(text)
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "major"), _number(parts[1], "minor")
    patch, plus, build = parts[2].partition("+")
    patch, dash, stage = patch.partition("-")
    number = _number(patch, "patch")
    stages = tuple(map(_stage, stage.split("."))) if dash else ()
    for part in build.split(".") if plus else ():
        if not part:
            raise EvaluationError("Build meta data is empty")
        if not re.fullmatch("[0-9A-Za-z-]*", part):
            text = "Invalid character(s) found in build meta data"
            raise EvaluationError(f"{text} {quoted(part)}")
    return Semver((major, minor, number), stages)


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            bare = part.lstrip("0")
            parts[index] = bare if bare[:1].isdecimal() else f"0{bare}"
    if len(parts) < 3 and re.search("[+-]", parts[-1]):
        text = "short version cannot contain PreRelease/Build meta data"
        raise EvaluationError(text)
    return ".".join([*parts, "0", "0"][: max(3, len(parts))])


def _number(text: str, name: str) -> int:
    if not re.fullmatch("[0-9]*", text):
        said = f"Invalid character(s) found in {name} number {quoted(text)}"
        raise EvaluationError(said)
    if len(text) > 1 and text.startswith("0"):
        said = f"{name.capitalize()} number must not contain leading zeroes"
        raise EvaluationError(f"{said} {quoted(text)}")
    if not text:
        raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    if int(text) >= 2**64:
        said = f"strconv.ParseUint: parsing {quoted(text)}: value out of range"
        raise EvaluationError(said)
    return int(text)


def _stage(text: str) -> tuple[int, int, str]:
    if not text:
        raise EvaluationError("Prerelease is empty")
    if re.fullmatch("[0-9]+", text):
        if len(text) > 1 and text.startswith("0"):
            said = "Numeric PreRelease version must not contain leading zeroes"
            raise EvaluationError(f"{said} {quoted(text)}")
        return (0, int(text), "")
    if not re.fullmatch("[0-9A-Za-z-]+", text):
        said = "Invalid character(s) found in prerelease"
        raise EvaluationError(f"{said} {quoted(text)}")
    return (1, 0, text)


def is_semver(text: str, normalize: bool = False) -> bool:
    try:
        to_semver(text, normalize)
    except EvaluationError:
        return False
    return True


class Format(msgspec.Struct, frozen=True):
    """A named format that texts may have."""

    cel_name = "kubernetes.NamedFormat"
    name: str


def _problems(check: names.Check) -> Callable[[str], list[str]]:
    def problems(text: str) -> list[str]:
        try:
            check(text)
        except names.InvalidName as error:
            return list(error.problems)
        return []

    return problems


def _prefix(check: names.Check) -> Callable[[str], list[str]]:
    problems = _problems(check)

    def of_prefix(text: str) -> list[str]:
        if len(text) > 1 and text.endswith("-"):
            text = f"{text[:-2]}a"
        return problems(text)

    return of_prefix


def _uri(text: str) -> list[str]:
    try:
        addresses.request_url(text)
    except AddressError as error:
        return [str(error)]
    return []


def _named(form: str, complaint: str) -> Callable[[str], list[str]]:
    check = formats.CHECKS[form]
    return lambda text: [] if check(text) else [complaint]


FORMATS: Final[dict[str, Callable[[str], list[str]]]] = {
    "dns1123Label": _problems(names.check_label),
    "dns1123Subdomain": _problems(names.check_subdomain),
    "dns1035Label": _problems(names.check_label_1035),
    "qualifiedName": _problems(names.check_label_key),
    "dns1123LabelPrefix": _prefix(names.check_label),
    "dns1123SubdomainPrefix": _prefix(names.check_subdomain),
    "dns1035LabelPrefix": _prefix(names.check_label_1035),
    "labelValue": _problems(names.check_label_value),
    "uri": _uri,
    "uuid": _named("uuid", "does not match the UUID format"),
    "byte": _named("byte", "invalid base64"),
    "date": _named("date", "invalid date"),
    "datetime": _named("datetime", "invalid datetime"),
}


def validate(form: Format, text: str) -> Optional:
    found = FORMATS[form.name](text)
    return Optional((found,)) if found else NONE


def named_format(name: str) -> Optional:
    return Optional((Format(name),)) if name in FORMATS else NONE


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "quantity": to_quantity,
    "isQuantity": is_quantity,
    "sign": lambda value: _order(value.amount, Plain(0)),
    "isGreaterThan": lambda one, other: _order(one, other) > 0,
    "isLessThan": lambda one, other: _order(one, other) < 0,
    "compareTo": _order,
    "asApproximateFloat": lambda value: float(value.amount.fraction),
    "asInteger": as_integer,
    "isInteger": is_integer,
    "add": lambda one, other: Quantity(one.amount + _amount(other)),
    "sub": lambda one, other: Quantity(one.amount - _amount(other)),
    "semver": to_semver,
    "isSemver": is_semver,
    "major": lambda version: version.numbers[0],
    "minor": lambda version: version.numbers[1],
    "patch": lambda version: version.numbers[2],
    "validate": validate,
    "format.named": named_format,
    **{f"format.{name}": (lambda name=name: Format(name)) for name in FORMATS},
}
