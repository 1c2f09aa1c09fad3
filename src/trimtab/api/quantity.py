"""Quantities of resources: exact numbers with the suffixes of Kubernetes.

``Quantity("16Gi") == Quantity("16384Mi")``, ``Quantity("0.1") + Quantity("200m")`` is
``300m``, and no step of it is a float. The text form is the canonical one: no fraction,
the largest suffix that allows that, in the family of suffixes that the quantity was
written with.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, total_ordering
from typing import Any, Final, Literal, NoReturn, final

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]
"""The families of suffixes: ``1500m 2k``, ``16Gi`` and ``12e6``."""

_NANO: Final = 10**9
_DECIMAL_BY_STEP: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_DECIMAL: Final = {
    suffix: 3 * step for step, suffix in enumerate(_DECIMAL_BY_STEP, start=-3)
}
_BINARY: Final = {
    f"{letter}i": 10 * step for step, letter in enumerate("KMGTPE", start=1)
}
_BINARY_BY_STEP: Final = ("", *_BINARY)

# A binary quantity is never read as more than this; the others have no such cap.
_LARGEST_BINARY: Final = (2**63 - 1) * _NANO
# Anything with more digits before the point saturates. No resource comes near, and
# without a bound ten bytes like 1e2000000000 would cost gigabytes.
_DIGITS: Final = 1000
_LARGEST: Final = 10**_DIGITS * _NANO

_GRAMMAR = re.compile(
    r"([+-]?)(?:(\d+)(?:\.(\d*))?|\.(\d+))([KMGTPE]i|[numkMGTPE]?|[eE]([+-]?)(\d+))",
    re.ASCII,
)
_PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)


@final
@total_ordering
class Quantity:
    """An amount of something: CPU, bytes, devices. Immutable.

    Made of text (``"1.5Gi"``, ``"250m"``, ``"12e6"``) or of an exact number (``int``,
    ``Decimal``, ``Fraction``). ``format`` chooses the family of suffixes of the text
    form; without it that is the family the text was written in, decimal for numbers.

    Guarantees: equality, order and hash are those of the value, whatever the format.
    The value is a whole number of nanos: what is finer is rounded away from zero, so
    that who asks for something gets something. A binary quantity is read as 2**63 - 1
    at most. Past a thousand digits every quantity saturates.

    Errors: ``ValueError`` when the text is not a quantity or the number not finite;
    ``TypeError`` for a ``float``, which would not be exact.
    """

    __slots__ = ("_format", "_nanos")

    _nanos: int
    _format: Format

    def __new__(
        cls,
        value: str | int | Decimal | Fraction,
        *,
        format: Format | None = None,
    ) -> Quantity:
        if isinstance(value, str):
            parsed = _shared(value) if len(value) <= 32 else _parse(value)
            return parsed if format is None else _make(parsed._nanos, format)
        return _make(_nanos_of(value), format or "DecimalSI")

    @property
    def format(self) -> Format:
        """The family of suffixes that the text form uses where it can."""
        return self._format

    @property
    def fraction(self) -> Fraction:
        """The exact value."""
        return Fraction(self._nanos, _NANO)

    @property
    def milli(self) -> int:
        """The value in thousandths, rounded away from zero: 100 for ``100m`` of CPU."""
        return _divide_up(self._nanos, 10**6)

    def __int__(self) -> int:
        """The value, rounded away from zero to a whole number."""
        return _divide_up(self._nanos, _NANO)

    def __bool__(self) -> bool:
        return self._nanos != 0

    def __str__(self) -> str:
        nanos = self._nanos
        if self._format == "BinarySI" and _prints_binary(nanos):
            return _binary_text(nanos // _NANO)
        return _decimal_text(nanos, exponent=self._format == "DecimalExponent")

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __hash__(self) -> int:
        return hash(self._nanos)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self._nanos == other._nanos

    def __lt__(self, other: Quantity) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self._nanos < other._nanos

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, in the format of the left side unless that is zero."""
        if not isinstance(other, Quantity):
            return NotImplemented
        format = self._format if self._nanos else other._format
        return _make(self._nanos + other._nanos, format)

    def __radd__(self, other: int) -> Quantity:
        """``0 + quantity``, which is how ``sum()`` starts."""
        return self if other == 0 else NotImplemented

    def __sub__(self, other: Quantity) -> Quantity:
        """The difference, in the format of the left side unless that is zero."""
        if not isinstance(other, Quantity):
            return NotImplemented
        format = self._format if self._nanos else other._format
        return _make(self._nanos - other._nanos, format)

    def __neg__(self) -> Quantity:
        return _make(-self._nanos, self._format)

    def __mul__(self, factor: int) -> Quantity:
        if not isinstance(factor, int):
            return NotImplemented
        return _make(self._nanos * factor, self._format)

    __rmul__ = __mul__

    def __truediv__(self, other: Quantity) -> Fraction:
        """How many times the other quantity goes into this one, exactly."""
        if not isinstance(other, Quantity):
            return NotImplemented
        if not other._nanos:
            raise ZeroDivisionError(f"{self} cannot be divided by a quantity of zero.")
        return Fraction(self._nanos, other._nanos)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("A Quantity does not change; make a new one.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("A Quantity does not change; make a new one.")

    def __copy__(self) -> Quantity:
        return self

    def __deepcopy__(self, memo: object) -> Quantity:
        return self

    def __reduce__(self) -> tuple[Any, tuple[int, Format]]:
        return (_make, (self._nanos, self._format))

    @classmethod
    def __decode__(cls, builtin: str | int | float) -> Quantity:
        """Read what JSON held. Kubernetes takes numbers, and spaces around the text."""
        if isinstance(builtin, str):
            return cls(builtin.strip())
        if isinstance(builtin, float):
            # The digits as written; the float between them and us is not the value.
            return cls(repr(builtin))
        return cls(builtin)

    def __encode__(self) -> str:
        return str(self)

    @classmethod
    def __schema__(cls) -> dict[str, Any]:
        return {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": _PATTERN,
            "x-kubernetes-int-or-string": True,
        }


def _make(nanos: int, format: Format) -> Quantity:
    if not -_LARGEST <= nanos <= _LARGEST:
        nanos = _LARGEST if nanos > 0 else -_LARGEST
    made = object.__new__(Quantity)
    object.__setattr__(made, "_nanos", nanos)
    object.__setattr__(made, "_format", format)
    return made


def _nanos_of(value: int | Decimal | Fraction) -> int:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | Fraction):
        raise TypeError(
            f"A quantity cannot be made of {value!r}; use a str, int, Decimal or "
            "Fraction."
        )
    if isinstance(value, int):
        return value * _NANO
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{value} is not a quantity; it must be finite.")
        return _parse(str(value))._nanos
    return _divide_up(value.numerator * _NANO, value.denominator)


def _divide_up(numerator: int, denominator: int) -> int:
    """The quotient, rounded away from zero; the denominator is positive."""
    if numerator < 0:
        return numerator // denominator
    return -(-numerator // denominator)


def _parse(text: str) -> Quantity:
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise _not_a_quantity(text)
    sign, whole, fraction, bare, suffix, exponent_sign, exponent = match.groups()
    decimals = fraction or bare or ""
    digits, places = (whole or "") + decimals, len(decimals)
    format: Format
    if suffix in _BINARY:
        nanos = _scaled(digits, -places, factor=1 << _BINARY[suffix])
        # Below one there is no binary form; Kubernetes forgets the family here.
        format = "BinarySI" if not 0 < nanos < _NANO else "DecimalSI"
        nanos = min(nanos, _LARGEST_BINARY)
    elif exponent is None:
        format, nanos = "DecimalSI", _scaled(digits, _DECIMAL[suffix] - places)
    else:
        power = _exponent(text, exponent_sign, exponent)
        format, nanos = "DecimalExponent", _scaled(digits, power - places)
    return _make(-nanos if sign == "-" else nanos, format)


# The same few texts stand in every pod of a cluster: each is read once, and the pods
# share the value.
_shared = lru_cache(maxsize=4096)(_parse)


def _exponent(text: str, sign: str, digits: str) -> int:
    digits = digits.lstrip("0") or "0"
    power = int(digits[:20])
    if power > 2**63 - 1:
        raise _not_a_quantity(text)
    return -power if sign == "-" else power


def _scaled(digits: str, power: int, *, factor: int = 1) -> int:
    """``digits * 10**power * factor`` in nanos, rounded up, saturating.

    Only digits that can reach a nano are ever converted, so that a long text costs no
    more than reading it.
    """
    digits = digits.lstrip("0")
    if not digits:
        return 0
    leading = len(digits) + power
    if leading > _DIGITS:
        return _LARGEST
    if leading < -40:
        return 1
    needed = leading + 40
    if len(digits) > needed:
        # What is cut off still rounds up: one more digit stands for all of it.
        power += len(digits) - needed - 1
        rest = digits[needed:].strip("0")
        digits = digits[:needed] + ("1" if rest else "0")
    shift: int = 10 ** abs(power + 9)
    if power >= -9:
        return int(digits) * factor * shift
    return _divide_up(int(digits) * factor, shift)


def _prints_binary(nanos: int) -> bool:
    """Whether a binary suffix can say this exactly, and be read back the same."""
    return 1024 * _NANO <= abs(nanos) <= _LARGEST_BINARY and nanos % _NANO == 0


def _binary_text(value: int) -> str:
    zero_bits = (value & -value).bit_length() - 1
    step = min(zero_bits // 10, len(_BINARY))
    return f"{value >> 10 * step}{_BINARY_BY_STEP[step]}"


def _decimal_text(nanos: int, *, exponent: bool) -> str:
    if not nanos:
        return "0"
    digits = str(nanos)
    step = (len(digits) - len(digits.rstrip("0"))) // 3
    if not exponent:
        step = min(step, len(_DECIMAL) - 1)
    kept = digits[: len(digits) - 3 * step]
    if not exponent:
        return kept + _DECIMAL_BY_STEP[step]
    power = 3 * step - 9
    return f"{kept}e{power}" if power else kept


def _not_a_quantity(text: str) -> ValueError:
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    return ValueError(
        f"{shown!r} is not a quantity; write a number with a suffix such as m, k, Mi, "
        "Gi or e3, or with none."
    )
