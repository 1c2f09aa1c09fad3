"""Scheduling: when a session of a schedule is due, and what it looks like. Pure.

A turn has the time that it was planned for, and everything about it follows from that
time: whoever comes to run it, and however often, makes the same session. A turn that
nobody could run in time is left out, as a CronJob leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from trimtab.api import fit
from trimtab.operators.sessions.kinds import (
    GROUP,
    SCHEDULED_NAME,
    SCHEDULED_RUN,
    VERSION,
    Schedule,
)

Plain = dict[str, Any]

LATE: Final = timedelta(seconds=300)
"""How long after its time a turn is still run."""
NAME_LIMIT: Final = 40
_FIELDS: Final = 5
_WORDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class BadSchedule(ValueError):
    """A schedule that no clock could follow; the message says what to mend."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What the clock says of a schedule."""

    run: datetime | None = None
    """The turn to run now, by the time that it was planned for."""
    missed: datetime | None = None
    """The last turn that came and went while nobody was there."""
    following: datetime | None = None
    """When the next turn is; None if there is none in fifty years."""


class Cron(msgspec.Struct, frozen=True):
    """A cron expression in a time zone."""

    expression: str
    zone: ZoneInfo

    def latest(self, now: datetime) -> datetime | None:
        """The last turn up to now."""
        # A turn at this very second is up to now, and the search begins before it.
        turns = self._turns(now + timedelta(seconds=1), reverse=True)
        return next((each for each in turns if each <= now), None)

    def following(self, now: datetime) -> datetime | None:
        """The first turn after now."""
        # In an hour that comes twice, the search begins in the first of the two.
        turns = self._turns(now, reverse=False)
        return next((each for each in turns if each > now), None)

    def _turns(self, start: datetime, *, reverse: bool) -> Iterator[datetime]:
        from cronsim import CronSim

        local = start.astimezone(self.zone).replace(microsecond=0)
        for each in CronSim(self.expression, local, reverse=reverse):
            yield each.astimezone(UTC)


@lru_cache(maxsize=1024)
def parse(expression: str, zone: str = "UTC") -> Cron:
    """Read what a schedule says.

    Errors: :class:`BadSchedule`.
    """
    from cronsim import CronSim, CronSimError

    text = _WORDS.get(expression.strip().lower(), expression.strip())
    if len(text.split()) != _FIELDS:
        raise BadSchedule(
            f"{expression!r} has not the five fields of a cron expression: minute, "
            "hour, day, month and day of the week."
        )
    try:
        CronSim(text, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as problem:
        raise BadSchedule(
            f"{expression!r} is not a cron expression ({problem}); write it like "
            "30 6 * * MON-FRI."
        ) from None
    try:
        return Cron(text, ZoneInfo(zone))
    except (KeyError, ValueError, OSError):  # not there, or no name of a file
        raise BadSchedule(
            f"There is no time zone {zone!r}; name one like Europe/Berlin, or UTC."
        ) from None


def turn(schedule: Schedule, *, last: datetime | None, now: datetime) -> Turn:
    """What is due, when the last turn that is settled was at ``last``.

    ``last`` of a schedule that is new is when it was first seen: it has no past.

    Errors: :class:`BadSchedule`.
    """
    cron = parse(schedule.cron, schedule.timeZone)
    if schedule.suspend:
        return Turn()
    following, latest = cron.following(now), cron.latest(now)
    if last is None or latest is None or latest <= last:
        return Turn(following=following)
    if now - latest > LATE:
        return Turn(missed=latest, following=following)
    return Turn(run=latest, following=following)


def label_of(schedule: str) -> str:
    """What the sessions of a schedule carry, so that they are found together."""
    return fit(schedule)


def name_of(schedule: str, at: datetime) -> str:
    """The name of the session of one turn; another turn has another name."""
    return f"{fit(schedule, limit=NAME_LIMIT)}-{int(at.timestamp())}"


def session_of(
    template: Plain, *, schedule: str, namespace: str, name: str, at: datetime
) -> Plain:
    """The session of a turn; where it has a title, its time is part of it."""
    spec = dict(template)
    if title := spec.get("displayName"):
        spec["displayName"] = f"{title} ({at:%b %d, %Y - %H:%M:%S})"
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "AgenticSession",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {SCHEDULED_NAME: label_of(schedule), SCHEDULED_RUN: "true"},
        },
        "spec": spec,
    }
