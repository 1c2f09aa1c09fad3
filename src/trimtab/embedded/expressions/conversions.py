"""Conversions: from one type to another, and what times are made of."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
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
from trimtab.embedded.gotext import number

_SECOND: Final = 10**9
_LEAST_SECONDS: Final = -62135596800
_MOST_SECONDS: Final = 253402300799
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_OFFSET = re.compile(r"([+-]?)(\d\d):(\d\d)", re.ASCII)


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
        try:
            return float(value)
        except ValueError:
            raise _unconvertible(value, "double") from None
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
    moment = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z".zfill(20)


def to_duration(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, str):
        try:
            return Duration(times.Duration(value).nanoseconds)
        except ValueError:
            raise _unconvertible(value, "google.protobuf.Duration") from None
    return Duration(checked(int(value)))


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
    zone = "+00:00" if found[4] in "Zz" else found[4]
    moment = datetime.fromisoformat(f"{found[1]}T{found[2]}{zone}")
    nanos = int((found[3] or "0")[:9].ljust(9, "0"))
    since = moment - _EPOCH
    return Timestamp((since.days * 86400 + since.seconds) * _SECOND + nanos)


def _zone(name: str) -> tzinfo:
    offset = _OFFSET.fullmatch(name)
    if offset:
        length = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-length if offset[1] == "-" else length)
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name}") from None


def _local(value: Timestamp, zone: str) -> datetime:
    seconds = value.nanos // _SECOND
    return (_EPOCH + timedelta(seconds=seconds)).astimezone(_zone(zone))


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
