"""Instants and durations in the text forms that Kubernetes gives them.

Nothing here reads a clock: *now* is always somebody's argument.

===================  ==========================================================
``metav1.Time``      a plain aware ``datetime``; whole seconds on the wire
``metav1.MicroTime``  :class:`MicroTime`; exactly six fractional digits on the wire
``metav1.Duration``  :class:`Duration`; Go's notation, exact in nanoseconds
===================  ==========================================================
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import total_ordering
from typing import Any, Final, NoReturn, TypeVar, final

T = TypeVar("T", bound=datetime)

# `fromisoformat` alone also reads week dates, dates without a time and times without
# a zone, none of which a Kubernetes API server takes.
_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?"
    r"(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)


def parse_rfc3339(text: str) -> datetime:
    """Read an RFC 3339 instant, of any zone and precision, as a UTC ``datetime``.

    Digits past the microsecond are cut off, as no Python time could hold them.

    Errors: ``ValueError`` when the text is not RFC 3339, or names an instant outside
    the years 1 to 9999.
    """
    return _parsed(datetime, text)


def _parsed(kind: type[T], text: str) -> T:
    if _RFC3339.fullmatch(text) is None:
        raise ValueError(
            f"{_shown(text)} is not an RFC 3339 time; "
            "write it like 2026-01-02T03:04:05Z."
        )
    try:
        moment = kind.fromisoformat(text.upper())
        return moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{_shown(text)} is not a real time: {error}.") from None


def rfc3339(moment: datetime) -> str:
    """An instant as ``metav1.Time`` is written: UTC, the fraction of a second cut off.

    Errors: ``ValueError`` when the ``datetime`` has no time zone.
    """
    return _utc(moment).isoformat(timespec="seconds") + "Z"


def _utc(moment: datetime) -> datetime:
    """The same instant in UTC, naive, so that it prints without an offset."""
    if moment.utcoffset() is None:
        raise ValueError(
            f"{moment.isoformat()} has no time zone; give it one, for example "
            "tzinfo=datetime.UTC."
        )
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return utc.replace(tzinfo=None)


class MicroTime(datetime):
    """An instant whose wire form keeps microseconds, as Leases and Events need it.

    It is a ``datetime`` in every other way: it compares with one, and adding a
    ``timedelta`` gives a ``MicroTime`` again. Reading takes any RFC 3339 precision;
    writing gives six fractional digits, because the server refuses any other number.
    """

    __slots__ = ()

    @classmethod
    def of(cls, moment: datetime) -> MicroTime:
        """The same instant, in UTC."""
        if type(moment) is cls and moment.tzinfo is UTC:
            return moment
        utc = _utc(moment)
        return cls(
            utc.year,
            utc.month,
            utc.day,
            utc.hour,
            utc.minute,
            utc.second,
            utc.microsecond,
            tzinfo=UTC,
        )

    @classmethod
    def __decode__(cls, builtin: str) -> MicroTime:
        if not isinstance(builtin, str):
            raise ValueError(f"A time is a string, not {type(builtin).__name__}.")
        return cls.of(_parsed(cls, builtin))

    def __encode__(self) -> str:
        return _utc(self).isoformat(timespec="microseconds") + "Z"

    @classmethod
    def __schema__(cls) -> dict[str, Any]:
        return {"type": "string", "format": "date-time"}


_MICROSECOND: Final = 1_000
_MILLISECOND: Final = 1_000_000
_SECOND: Final = 1_000_000_000
_UNITS: Final = {
    "ns": 1,
    "us": _MICROSECOND,
    "\u00b5s": _MICROSECOND,  # the micro sign, which is what Go prints
    "\u03bcs": _MICROSECOND,  # the Greek letter mu
    "ms": _MILLISECOND,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_LONGEST: Final = 2**63 - 1

_TERM = re.compile(r"(\d*)(?:\.(\d*))?([^\d.]+)", re.ASCII)
# A number with more digits is out of range in every unit, and as a fraction too fine to
# matter. The bound also keeps hostile text from costing quadratic time.
_DIGITS: Final = 19


@final
@total_ordering
class Duration:
    """A length of time, exact in nanoseconds, written as Go writes it: ``1h30m0s``.

    Made of Go's notation (``"1.5h"``, ``"-2m3.5s"``, ``"100ms"``), of a ``timedelta``,
    or of a number of seconds. Immutable. The range is Go's: 63 bits of nanoseconds,
    about 292 years either way.

    Errors: ``ValueError`` when the text is not a duration or the length is out of
    range.
    """

    __slots__ = ("nanoseconds",)

    nanoseconds: int

    def __init__(self, value: str | timedelta | float) -> None:
        if isinstance(value, str):
            nanoseconds = _parse(value)
        elif isinstance(value, timedelta):
            nanoseconds = value // timedelta(microseconds=1) * _MICROSECOND
        else:
            nanoseconds = _of_seconds(value)
        object.__setattr__(self, "nanoseconds", _in_range(nanoseconds))

    @classmethod
    def of_nanoseconds(cls, nanoseconds: int) -> Duration:
        """The duration of so many nanoseconds."""
        made = object.__new__(cls)
        object.__setattr__(made, "nanoseconds", _in_range(nanoseconds))
        return made

    @property
    def seconds(self) -> float:
        """The length in seconds, as sleeping and deadlines take it."""
        return self.nanoseconds / _SECOND

    @property
    def timedelta(self) -> timedelta:
        """The length as a ``timedelta``; what is below a microsecond is cut off."""
        sign = -1 if self.nanoseconds < 0 else 1
        return sign * timedelta(microseconds=abs(self.nanoseconds) // _MICROSECOND)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("A Duration does not change; make a new one.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("A Duration does not change; make a new one.")

    def __reduce__(self) -> tuple[type[Duration], tuple[str]]:
        return (type(self), (str(self),))

    def __str__(self) -> str:
        return _print(self.nanoseconds)

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Duration):
            return NotImplemented
        return self.nanoseconds == other.nanoseconds

    def __lt__(self, other: Duration) -> bool:
        if not isinstance(other, Duration):
            return NotImplemented
        return self.nanoseconds < other.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)

    def __bool__(self) -> bool:
        return self.nanoseconds != 0

    def __add__(self, other: Duration) -> Duration:
        if not isinstance(other, Duration):
            return NotImplemented
        return self.of_nanoseconds(self.nanoseconds + other.nanoseconds)

    def __sub__(self, other: Duration) -> Duration:
        if not isinstance(other, Duration):
            return NotImplemented
        return self.of_nanoseconds(self.nanoseconds - other.nanoseconds)

    def __neg__(self) -> Duration:
        return self.of_nanoseconds(-self.nanoseconds)

    def __mul__(self, factor: int) -> Duration:
        if not isinstance(factor, int):
            return NotImplemented
        return self.of_nanoseconds(self.nanoseconds * factor)

    __rmul__ = __mul__

    @classmethod
    def __decode__(cls, builtin: str) -> Duration:
        if not isinstance(builtin, str):
            raise ValueError(f"A duration is a string, not {type(builtin).__name__}.")
        return cls(builtin)

    def __encode__(self) -> str:
        return str(self)

    @classmethod
    def __schema__(cls) -> dict[str, Any]:
        return {"type": "string"}


def _in_range(nanoseconds: int) -> int:
    if not -_LONGEST - 1 <= nanoseconds <= _LONGEST:
        raise ValueError("A duration is at most 2562047h47m16.854775807s either way.")
    return nanoseconds


def _of_seconds(value: float) -> int:
    try:
        return round(Fraction(value) * _SECOND)
    except (ValueError, OverflowError):
        raise ValueError(f"{value} is not a number of seconds.") from None


def _parse(text: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if digits == "0":
        return 0
    total = position = 0
    while position < len(digits) or not digits:
        term = _TERM.match(digits, position)
        if term is None:
            raise _not_a_duration(text)
        total += _term(text, *term.groups())
        position = term.end()
    return -total if text[0] == "-" else total


def _term(text: str, whole: str, fraction: str | None, name: str) -> int:
    unit = _UNITS.get(name)
    if unit is None or not (whole or fraction):
        raise _not_a_duration(text)
    whole = whole.lstrip("0")
    if len(whole) > _DIGITS:
        raise ValueError(f"{_shown(text)} is longer than any duration can be.")
    nanoseconds = int(whole or "0") * unit
    return nanoseconds + _fraction(fraction, unit) if fraction else nanoseconds


def _fraction(digits: str, unit: int) -> int:
    """A fraction of a unit in nanoseconds, to the same bit as Go computes it.

    Go scales in double precision, so that a third of an hour written with nineteen
    digits is twenty minutes. What a server reads and what we read must agree.
    """
    significant = digits.lstrip("0")
    zeros = len(digits) - len(significant)
    if not significant or zeros > _DIGITS:
        return 0
    kept = significant[:_DIGITS]
    if int(kept) > _LONGEST + 1:
        kept = kept[:-1]
    return int(float(int(kept)) * (float(unit) / 10.0 ** (zeros + len(kept))))


def _print(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return "0s"
    sign, size = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if size < _MICROSECOND:
        return f"{sign}{size}ns"
    if size < _MILLISECOND:
        return f"{sign}{_decimal(size, _MICROSECOND)}\u00b5s"
    if size < _SECOND:
        return f"{sign}{_decimal(size, _MILLISECOND)}ms"
    minutes, rest = divmod(size, 60 * _SECOND)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_decimal(rest, _SECOND)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


def _decimal(size: int, unit: int) -> str:
    """``size / unit`` in digits, exactly, without trailing zeros; units are 10**3n."""
    whole, rest = divmod(size, unit)
    if not rest:
        return str(whole)
    places = len(str(unit)) - 1
    return f"{whole}.{rest:0{places}d}".rstrip("0")


def _not_a_duration(text: str) -> ValueError:
    return ValueError(
        f"{_shown(text)} is not a duration; write numbers with the units h, m, s, ms, "
        "us or ns, like 1h30m."
    )


def _shown(text: str) -> str:
    """The text quoted for an error message, cut where it would drown the message."""
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
