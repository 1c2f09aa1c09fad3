"""Cron schedules: five fields, or a word for them, as the real server reads them."""

from __future__ import annotations

import re
from typing import Final

from trimtab.api.times import Duration
from trimtab.embedded.builtin.remembered import remembered
from trimtab.embedded.status import quoted

_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_DAYS: Final = "sun mon tue wed thu fri sat".split()
_NAMES: Final[tuple[dict[str, int], ...]] = (
    {},
    {},
    {},
    {name: number for number, name in enumerate(_MONTHS, start=1)},
    {name: number for number, name in enumerate(_DAYS)},
)
_BOUNDS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_WORDS: Final = frozenset(
    "@yearly @annually @monthly @weekly @daily @midnight @hourly".split()
)


class _Wrong(Exception):
    pass


@remembered
def problem(schedule: str) -> str:
    """What is wrong with a schedule; empty if nothing is."""
    try:
        _schedule(schedule)
    except _Wrong as wrong:
        return str(wrong)
    return ""


def _schedule(text: str) -> None:
    if not text:
        raise _Wrong("empty spec string")
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone, space, text = text.partition(" ")
        if not space:
            raise _Wrong(
                "invalid schedule format: runtime error: slice bounds out of range "
                f"[{zone.index('=') + 1}:-1]"
            )
        text = text.strip()
    if text.startswith("@"):
        _word(text)
        return
    fields = text.split()
    if len(fields) != 5:
        shown = f"[{' '.join(fields)}]"
        raise _Wrong(f"expected exactly 5 fields, found {len(fields)}: {shown}")
    for place, field in enumerate(fields):
        for part in field.split(","):
            if part:
                _range(part, place)


def _word(text: str) -> None:
    if text in _WORDS:
        return
    if not text.startswith("@every "):
        raise _Wrong(f"unrecognized descriptor: {text}")
    length = text.removeprefix("@every ")
    try:
        Duration(length)
    except ValueError:
        reason = f"time: invalid duration {quoted(length)}"
        raise _Wrong(f"failed to parse duration {text}: {reason}") from None


def _range(text: str, place: int) -> None:
    """One part of a field: ``*``, ``5``, ``1-5``, ``*/15`` and the like."""
    least, most = _BOUNDS[place]
    span, *steps = text.split("/")
    low, *high = span.split("-")
    single = not high
    if low in ("*", "?"):
        start, end = least, most
    else:
        start = _number(low, place)
        if len(high) > 1:
            raise _Wrong(f"too many hyphens: {text}")
        end = _number(high[0], place) if high else start
    if len(steps) > 1:
        raise _Wrong(f"too many slashes: {text}")
    step = _integer(steps[0]) if steps else 1
    if steps and single:
        end = most
    _check(text, start, end, step, least=least, most=most)


def _check(
    text: str, start: int, end: int, step: int, *, least: int, most: int
) -> None:
    if start < least:
        raise _Wrong(f"beginning of range ({start}) below minimum ({least}): {text}")
    if end > most:
        raise _Wrong(f"end of range ({end}) above maximum ({most}): {text}")
    if start > end:
        raise _Wrong(
            f"beginning of range ({start}) beyond end of range ({end}): {text}"
        )
    if step == 0:
        raise _Wrong(f"step of range should be a positive number: {text}")


def _number(text: str, place: int) -> int:
    named = _NAMES[place].get(text.lower())
    return _integer(text) if named is None else named


_is_integer = re.compile(r"[+-]?[0-9]+", re.ASCII).fullmatch


def _integer(text: str) -> int:
    if not _is_integer(text):
        reason = f"strconv.Atoi: parsing {quoted(text)}: invalid syntax"
        raise _Wrong(f"failed to parse int from {text}: {reason}")
    number = int(text)
    if number < 0:
        raise _Wrong(f"negative number ({number}) not allowed: {text}")
    return number


_is_zone_part = re.compile(r"[A-Za-z.\-_0-9+]{1,14}", re.ASCII).fullmatch


def zone_problem(zone: str) -> str:
    """What is wrong with the name of a time zone; empty if nothing is."""
    if not zone:
        return "timeZone must be nil or non-empty string"
    for part in zone.split("/"):
        dots = part in (".", "..")
        if dots or part.startswith("-") or not _is_zone_part(part):
            return f"unknown time zone {zone}"
    if zone.lower() == "local":
        return (
            "timeZone must be an explicit time zone as defined in "
            "https://www.iana.org/time-zones"
        )
    return "" if _is_known(zone) else f"unknown time zone {zone}"


@remembered
def _is_known(zone: str) -> bool:
    # Only who names a zone pays for reading them.
    import zoneinfo

    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        # A machine without any zones cannot tell.
        return not zoneinfo.available_timezones()
    return True
