"""Cron: when a schedule is due, next and last. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

import msgspec

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
MINUTE = timedelta(minutes=1)
YEARS = 5


class Schedule(msgspec.Struct, frozen=True):
    """The minutes at which something is due."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    """Whether days of the month are not chosen, so that those of the week decide."""
    any_weekday: bool

    @classmethod
    def of(cls, text: str) -> Schedule:
        """Errors: ``ValueError`` for a text that is no schedule."""
        fields = MACROS.get(text.strip().lower(), text).lower().split()
        if len(fields) != len(RANGES):
            raise ValueError(f"{text!r} is not a schedule: give five fields")
        names = (None, None, None, MONTHS, DAYS)
        minutes, hours, days, months, weekdays = (
            _numbers(field, low, high, words)
            for field, (low, high), words in zip(fields, RANGES, names, strict=True)
        )
        stars = fields[2].startswith(("*", "?")), fields[4].startswith(("*", "?"))
        return cls(minutes, hours, days, months, weekdays, *stars)

    def next(self, after: datetime, zone: tzinfo) -> datetime | None:
        """The first minute after a moment that is due; None if none is in years."""
        moment = after.astimezone(zone).replace(second=0, microsecond=0) + MINUTE
        last = moment.year + YEARS
        while moment.year <= last:
            if moment.month not in self.months or not self._is_day(moment):
                midnight = moment.replace(hour=0, minute=0)
                moment = midnight + timedelta(days=1)
            elif moment.hour not in self.hours:
                moment = moment.replace(minute=0) + timedelta(hours=1)
            elif moment.minute not in self.minutes:
                moment += MINUTE
            else:
                return moment
        return None

    def last(self, after: datetime, until: datetime, zone: tzinfo) -> datetime | None:
        """The last minute that is due after one moment and not after another."""
        found: datetime | None = None
        upcoming = self.next(after, zone)
        for _ in range(100):
            if upcoming is None or upcoming > until:
                return found
            found, upcoming = upcoming, self.next(upcoming, zone)
        # Far behind: begin again close to the end.
        return self.last(until - timedelta(days=1), until, zone) or found

    def _is_day(self, moment: datetime) -> bool:
        by_month = moment.day in self.days
        by_week = (moment.weekday() + 1) % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return by_month and by_week
        return by_month or by_week


def _numbers(
    field: str, low: int, high: int, words: list[str] | None
) -> frozenset[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, slash, step = part.partition("/")
        stride = int(step) if slash else 1
        if span in ("*", "?"):
            first, last = low, high
        else:
            start, dash, end = span.partition("-")
            first = _number(start, low, words)
            last = _number(end, low, words) if dash else high if slash else first
        if not (low <= first <= last <= high + (words is DAYS)) or stride < 1:
            raise ValueError(f"{part!r} is not within {low} to {high}")
        found.update(range(first, last + 1, stride))
    # Sunday is 0, and 7 as well.
    return frozenset(each % 7 for each in found) if words is DAYS else frozenset(found)


def _number(text: str, low: int, words: list[str] | None) -> int:
    if words and text in words:
        return words.index(text) + low
    return int(text)
