"""Schedules: the turns of a project's schedules, run by the operator itself."""

from __future__ import annotations

from datetime import datetime

import msgspec

from trimtab.client import TrimtabError
from trimtab.operators.sessions import scheduling, triggering
from trimtab.operators.sessions.kinds import (
    ProjectSettings,
    Schedule,
    ScheduleStatus,
)
from trimtab.operators.sessions.scheduling import BadSchedule, Turn
from trimtab.operators.sessions.triggering import Tell, Wish
from trimtab.runtime import Context

_PAUSE = 10.0
"""Seconds until a turn that failed is tried again, as long as it is not too late."""


class Turns(msgspec.Struct, frozen=True):
    """How the schedules of a project stand, and when to look again."""

    states: list[ScheduleStatus]
    after: float | None
    problem: str = ""


async def run(seen: ProjectSettings, ctx: Context, *, tell: Tell | None) -> Turns:
    """Run what is due in a project.

    Guarantees: a turn is run once, however often this is called with it; one that
    failed is tried again until it is too late. A schedule that is wrong, or fails,
    keeps no other from its turn.
    """
    held = {each.name: each for each in seen.status.schedules}
    states, pauses, problems = [], [], []
    for schedule in seen.spec.schedules:
        before = held.get(schedule.name)
        if before is None or before.settledAt is None:
            before = ScheduleStatus(name=schedule.name, settledAt=ctx.now)
        after, pause = await _one(seen, schedule, before, ctx, tell)
        states.append(after)
        if pause is not None:
            pauses.append(pause)
        if after.message:
            problems.append(f"{schedule.name}: {after.message}")
    return Turns(states, min(pauses, default=None), " ".join(problems))


async def _one(
    seen: ProjectSettings,
    schedule: Schedule,
    before: ScheduleStatus,
    ctx: Context,
    tell: Tell | None,
) -> tuple[ScheduleStatus, float | None]:
    now = ctx.now
    try:
        turn = scheduling.turn(schedule, last=before.settledAt, now=now)
    except BadSchedule as problem:
        return _with(before, message=str(problem)), None
    pause = _until(turn, now)
    if turn.missed is not None:
        text = f"The turn of {schedule.name} at {turn.missed:%F %T} UTC was missed."
        ctx.event("ScheduleMissed", text, type="Warning")
        return _with(before, settledAt=turn.missed, message=""), pause
    if turn.run is None:
        return _with(before, message=""), pause
    try:
        after = await _run(seen, schedule, before, turn.run, ctx, tell)
    except TrimtabError as problem:
        late = min(_PAUSE, pause) if pause is not None else _PAUSE
        return _with(before, message=str(problem)[:1024]), late
    return after, pause


async def _run(
    seen: ProjectSettings,
    schedule: Schedule,
    before: ScheduleStatus,
    at: datetime,
    ctx: Context,
    tell: Tell | None,
) -> ScheduleStatus:
    namespace = seen.metadata.namespace
    last = None
    if schedule.reuseLast:
        last = await triggering.known(
            ctx.client, namespace=namespace, name=before.lastSession
        )
    wish = Wish(
        namespace=namespace,
        schedule=schedule.name,
        name=scheduling.name_of(schedule.name, at),
        at=at,
        template=schedule.template,
        reuse=schedule.reuseLast,
    )
    turned = await triggering.fulfil(ctx.client, wish, last=last, tell=tell)
    if turned.how != "done":
        text = f"{schedule.name}: the session {turned.session} was {turned.how}."
        ctx.event("Scheduled", text)
    return _with(before, settledAt=at, lastSession=turned.session, message="")


def _until(turn: Turn, now: datetime) -> float | None:
    if turn.following is None:
        return None
    return max((turn.following - now).total_seconds(), 0.0)


def _with(
    before: ScheduleStatus,
    *,
    message: str,
    settledAt: datetime | None = None,
    lastSession: str | None = None,
) -> ScheduleStatus:
    return ScheduleStatus(
        name=before.name,
        settledAt=settledAt or before.settledAt,
        lastSession=before.lastSession if lastSession is None else lastSession,
        message=message,
    )
