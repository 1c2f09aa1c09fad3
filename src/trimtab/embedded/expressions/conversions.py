"""Conversions: from one type to another, and what times are made of."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from trimtab.api import times
from trimtab.embedded.expressions.values import (
    LARGEST,
    SMALLEST,
    Duration,
    EvaluationError,
    NoSuchOverload,
    Timestamp,
    TypeName,
    Uint,
    checked,
    checked_uint,
    kind_name,
)
from trimtab.embedded.gotext import number, quoted

_SECOND: Final = 10**9
_LEAST_SECONDS: Final = -62135596800
_MOST_SECONDS: Final = 253402300799
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:[0-5]\d)", re.ASCII
)
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INFINITE = re.compile(r"nan|[+-]?inf(inity)?", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)


def _unconvertible(value: Any, wanted: str) -> EvaluationError:
    return EvaluationError(
        f"type conversion error from '{kind_name(value)}' to '{wanted}'"
    )


def to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if value in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise _unconvertible(value, "bool")


def to_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def to_double(value: Any) -> float:
    if isinstance(value, str):
        if _INFINITE.fullmatch(value):
            return float(value)
        if _FLOAT.fullmatch(value) and math.isfinite(float(value)):
            return float(value)
        raise _unconvertible(value, "double")
    return float(value)


def to_int(value: Any) -> int:
    if isinstance(value, float):
        if not SMALLEST < value < LARGEST:
            raise EvaluationError("integer overflow")
        return int(value)
    if isinstance(value, str):
        if not re.fullmatch(r"[+-]?[0-9]+", value):
            raise _unconvertible(value, "int")
        if not SMALLEST <= int(value) <= LARGEST:
            raise _unconvertible(value, "int")
        return int(value)
    if isinstance(value, Timestamp):
        return value.nanos // _SECOND
    if isinstance(value, Duration):
        return value.nanos
    return checked(int(value))


def to_uint(value: Any) -> Uint:
    if isinstance(value, str):
        if not re.fullmatch(r"[0-9]+", value) or int(value) >= 2**64:
            raise _unconvertible(value, "uint")
        return Uint(value)
    if isinstance(value, float) and not 0 <= value < 2**64:
        raise EvaluationError("unsigned integer overflow")
    return checked_uint(int(value))


def to_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            text = "invalid UTF-8 in bytes, cannot convert to string"
            raise EvaluationError(text) from None
    if isinstance(value, Duration):
        return f"{_plain(value.nanos / _SECOND)}s"
    if isinstance(value, Timestamp):
        return _instant_text(value)
    if isinstance(value, int):
        return str(int(value))
    return str(value)


def _plain(value: float) -> str:
    """A float without an exponent."""
    if value == int(value):
        return str(int(value))
    return f"{value:.9f}".rstrip("0")


def _instant_text(value: Timestamp) -> str:
    seconds, nanos = divmod(value.nanos, _SECOND)
    moment = _EPOCH + timedelta(seconds=seconds + value.offset)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    text = f"{moment:%m-%dT%H:%M:%S}{fraction}"
    return f"{moment.year:04d}-{text}{_zone_text(value.offset)}"


def _zone_text(offset: int) -> str:
    if not offset:
        return "Z"
    hours, minutes = divmod(abs(offset) // 60, 60)
    return f"{'-' if offset < 0 else '+'}{hours:02d}:{minutes:02d}"


def to_duration(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, str):
        try:
            return Duration(times.Duration(value).nanoseconds)
        except ValueError:
            raise _unconvertible(value, "google.protobuf.Duration") from None
    raise _unconvertible(value, "google.protobuf.Duration")


def to_timestamp(value: Any) -> Timestamp:
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, str):
        try:
            return in_range(parse_instant(value))
        except ValueError:
            raise _unconvertible(value, "google.protobuf.Timestamp") from None
    return in_range(Timestamp(value * _SECOND))


def in_range(value: Timestamp) -> Timestamp:
    if not _LEAST_SECONDS <= value.nanos // _SECOND <= _MOST_SECONDS:
        raise EvaluationError("timestamp overflow")
    return value


def parse_instant(text: str) -> Timestamp:
    """An RFC 3339 instant, exact in nanoseconds. Errors: ``ValueError``."""
    found = _RFC3339.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is not an RFC 3339 time.")
    moment = datetime.fromisoformat(f"{found[1]}T{found[2]}+00:00")
    nanos = int((found[3] or "0")[:9].ljust(9, "0"))
    since = moment - _EPOCH
    offset = _offset(found[4])
    seconds = since.days * 86400 + since.seconds - offset
    return Timestamp(seconds * _SECOND + nanos, offset)


def _offset(zone: str) -> int:
    """The seconds that a zone such as ``+02:00`` is ahead."""
    if zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:])
    if hours > 24:
        raise ValueError(f"{zone!r} is no time zone.")
    return (hours * 3600 + minutes * 60) * (-1 if zone[0] == "-" else 1)


def _ahead(zone: str, moment: datetime) -> timedelta:
    """How far a zone is ahead at an instant: a name, or hours and minutes."""
    hours, colon, minutes = zone.partition(":")
    if colon:
        ahead = timedelta(hours=_atoi(hours), minutes=_atoi(minutes))
        if hours.startswith("-"):
            ahead = timedelta(hours=_atoi(hours), minutes=-_atoi(minutes))
        return ahead
    if zone in ("", "UTC", "Local"):
        return timedelta()
    if ".." in zone or zone.startswith(("/", "\\")):
        raise EvaluationError("time: invalid location name")
    try:
        found = ZoneInfo(zone).utcoffset(moment)
    except (KeyError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {zone}") from None
    assert found is not None, zone
    return found


def _atoi(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        said = f"strconv.Atoi: parsing {quoted(text)}: invalid syntax"
        raise EvaluationError(said)
    return int(text)


def _local(value: Timestamp, zone: str) -> datetime:
    moment = _EPOCH + timedelta(seconds=value.nanos // _SECOND)
    return moment if zone == "UTC" else moment + _ahead(zone, moment)


def _getter(part: Callable[[datetime], int]) -> Callable[..., int]:
    def get(value: Timestamp, zone: str = "UTC") -> int:
        return part(_local(value, zone))

    return get


def _hours(value: Any, zone: str = "UTC") -> int:
    if isinstance(value, Duration):
        return _truncated(value.nanos, 3600 * _SECOND)
    return _local(value, zone).hour


def _minutes(value: Any, zone: str = "UTC") -> int:
    if isinstance(value, Duration):
        return _truncated(value.nanos, 60 * _SECOND)
    return _local(value, zone).minute


def _seconds(value: Any, zone: str = "UTC") -> int:
    if isinstance(value, Duration):
        return _truncated(value.nanos, _SECOND)
    return _local(value, zone).second


def _milliseconds(value: Any, zone: str = "UTC") -> int:
    if isinstance(value, Duration):
        return _truncated(value.nanos, 10**6)
    return int(value.nanos % _SECOND // 10**6)


def _truncated(value: int, unit: int) -> int:
    """Whole units, toward zero."""
    return -(-value // unit) if value < 0 else value // unit


def type_of(value: Any) -> TypeName:
    return TypeName(kind_name(value))


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def no_conversion(*args: Any) -> Any:
    raise NoSuchOverload


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "bool": to_bool,
    "bytes": to_bytes,
    "double": to_double,
    "duration": to_duration,
    "dyn": lambda value: value,
    "int": to_int,
    "string": to_string,
    "timestamp": to_timestamp,
    "type": type_of,
    "uint": to_uint,
    "getFullYear": _getter(lambda moment: moment.year),
    "getMonth": _getter(lambda moment: moment.month - 1),
    "getDayOfYear": _getter(lambda moment: moment.timetuple().tm_yday - 1),
    "getDayOfMonth": _getter(lambda moment: moment.day - 1),
    "getDate": _getter(lambda moment: moment.day),
    "getDayOfWeek": _getter(lambda moment: moment.isoweekday() % 7),
    "getHours": _hours,
    "getMinutes": _minutes,
    "getSeconds": _seconds,
    "getMilliseconds": _milliseconds,
}
