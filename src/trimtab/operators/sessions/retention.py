"""Retention: which sessions that are over are to go, by what their project says.

Of a session that is over nothing is kept but its key, and in an index when it ended.
That is enough to choose; the object itself is read once, when it goes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

import trimtab
from trimtab.cache import Index, Key, Scope
from trimtab.client import Conflict, NotFound
from trimtab.operators.sessions.kinds import (
    DESIRED,
    KEEP,
    SETTINGS,
    TERMINAL,
    AgenticSession,
    ProjectSettings,
    Retention,
)
from trimtab.runtime import Context, Result, Watched

AT_ONCE: Final = 50
"""Sessions that go in one pass: others of the same process have a turn meanwhile."""
_AT, _KEPT = "@", "!"


class Finished(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A session that is over, in short."""

    name: str
    ended: datetime
    keep: bool = False


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What goes now, the oldest first, and when something goes next."""

    gone: list[str]
    due: float | None = None


# Pure


def chosen(
    finished: Iterable[Finished], *, retention: Retention | None, now: datetime
) -> Plan:
    """Which sessions of one project are to go.

    Guarantees: what is to be kept never goes, and does not count. Of the others, at
    most ``maxCount`` stay, the youngest, and none that ended ``maxAgeSeconds`` ago.
    """
    if retention is None:
        return Plan(gone=[])
    loose = [each for each in finished if not each.keep]
    loose.sort(key=lambda each: (each.ended, each.name))
    many = len(loose) if retention.maxCount is None else retention.maxCount
    over = max(0, len(loose) - many)
    gone, stay = loose[:over], loose[over:]
    if retention.maxAgeSeconds is None:
        return Plan(gone=[each.name for each in gone])
    left = {
        each.name: retention.maxAgeSeconds - (now - each.ended).total_seconds()
        for each in stay
    }
    old = [name for name, seconds in left.items() if seconds <= 0]
    dues = [seconds for seconds in left.values() if seconds > 0]
    return Plan(gone=[*(each.name for each in gone), *old], due=min(dues, default=None))


def finished(session: AgenticSession) -> Finished | None:
    """A session in short, if it is over and nobody wants it back."""
    metadata, status = session.metadata, session.status
    ended = status.completionTime or metadata.creationTimestamp
    wanted = metadata.annotations.get(DESIRED) == "Running"
    going = metadata.deletionTimestamp is not None
    if status.phase not in TERMINAL or wanted or going or ended is None:
        return None
    keep = metadata.annotations.get(KEEP, "").lower() == "true"
    return Finished(name=metadata.name, ended=ended, keep=keep)


def _values(session: AgenticSession) -> tuple[str, ...]:
    """Where it is found, and the rest that matters, as short as can be."""
    found = finished(session)
    if found is None:
        return ()
    mark = _KEPT if found.keep else _AT
    # Thousands of sessions share a namespace, and then its name.
    where = sys.intern(session.metadata.namespace)
    return where, f"{mark}{int(found.ended.timestamp()):x}"


FINISHED: Final = Index("finished", _values)
"""The sessions of a namespace that are over."""


def _read(key: Key, values: tuple[str, ...]) -> Finished | None:
    for value in values:
        if value[0] in (_AT, _KEPT):
            ended = datetime.fromtimestamp(int(value[1:], 16), UTC)
            return Finished(name=key[1], ended=ended, keep=value[0] == _KEPT)
    return None


# The controller


async def reconcile(project: ProjectSettings, ctx: Context) -> Result:
    """Let the sessions of one project go whose time is up."""
    retention, namespace = project.spec.retention, project.metadata.namespace
    if retention is None:
        return ctx.done()
    index = FINISHED.name
    keys = ctx.keys(AgenticSession, index, namespace)
    found = (_read(key, ctx.values_of(AgenticSession, key, index)) for key in keys)
    plan = chosen(
        (each for each in found if each is not None), retention=retention, now=ctx.now
    )
    for name in plan.gone[:AT_ONCE]:
        await _remove(ctx, name, namespace)
    return ctx.done(after=0.0 if len(plan.gone) > AT_ONCE else plan.due)


async def _remove(ctx: Context, name: str, namespace: str) -> None:
    """Delete a session, if it is still what it was when it was chosen."""
    try:
        seen = await ctx.client.get(AgenticSession, name, namespace=namespace)
        now = finished(seen)
        if now is None or now.keep:
            return  # the watch tells what it became
        await ctx.client.delete(
            AgenticSession,
            name,
            namespace=namespace,
            uid=seen.metadata.uid,
            resource_version=seen.metadata.resourceVersion,
        )
    except (NotFound, Conflict):
        return  # somebody was faster
    ctx.writes += 1
    ctx.log.info("The session %s was over for long enough, and is gone.", name)


def register(
    app: trimtab.Operator, *, scope: Scope, sessions: Scope, keep: Any
) -> None:
    """Have an operator let sessions go; ``keep`` is that of its other controllers."""

    @app.reconciles(
        ProjectSettings,
        scope=scope,
        on_change=("spec.retention",),
        watches=[
            Watched(
                kind=AgenticSession,
                scope=sessions,
                to=lambda each: [SETTINGS],
                on_change=("status.phase", "metadata.annotations"),
                keep=keep,
                indexes=(FINISHED,),
            )
        ],
        name="retention",
    )
    async def retention(seen: ProjectSettings, ctx: Context) -> Result:
        return await reconcile(seen, ctx)

    app.needs(AgenticSession, "get", "delete")
