"""Explaining: how a session is, why, and what happens to it next; for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from trimtab.operators.sessions import applying, retention
from trimtab.operators.sessions.decisions import Seen
from trimtab.operators.sessions.endings import times
from trimtab.operators.sessions.kinds import (
    DESIRED,
    KEEP,
    TERMINAL,
    AgenticSession,
    ProjectSettings,
)
from trimtab.operators.sessions.settings import Limits
from trimtab.pool.tables import table as aligned

TITLES: Final = ("PROJECT", "NAME", "PHASE", "REASON", "IDLE", "RESTARTS", "AGE")
_STOPPED: Final = {
    "user": "somebody stopped it",
    "inactivity": "nothing happened in it for as long as it may be idle",
    "run-finished": "its run was finished",
    "timeout": "its time was up",
    "start-deadline": "it did not start in time",
}
_ENDS: Final = {"timeout": "", "inactivity": " if nothing happens until then"}
_UNITS: Final = (("d", 86400), ("h", 3600), ("m", 60))


def row(found: AgenticSession, *, now: datetime) -> tuple[str, ...]:
    """One line of a table."""
    status = found.status
    ready = status.conditions.get("Ready")
    idle = status.lastActivityTime if status.phase == "Running" else None
    return (
        found.metadata.namespace,
        found.metadata.name,
        status.phase,
        ready.reason if ready else "",
        span((now - idle).total_seconds()) if idle else "",
        str(status.restarts),
        _age(found, now),
    )


def table(rows: Sequence[tuple[str, ...]], *, projects: bool) -> list[str]:
    """Lines below a line of titles, in the order of their names."""
    first = 0 if projects else 1
    return aligned(TITLES[first:], [each[first:] for each in sorted(rows)])


def is_active(found: AgenticSession) -> bool:
    return found.status.phase not in TERMINAL


def is_fulfilled(found: AgenticSession, *, starts: bool) -> bool | None:
    """Whether a wish came true; None as long as nobody can tell."""
    phase, wish = found.status.phase, found.metadata.annotations.get(DESIRED)
    if starts and phase == "Running":
        return True
    if phase not in TERMINAL or wish is not None:
        return None
    return phase == "Completed" if starts else True


def span(seconds: float) -> str:
    """A length of time in its largest unit."""
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def session(
    found: AgenticSession, *, project: ProjectSettings | None, now: datetime
) -> list[str]:
    """Sentences about one session.

    Assumptions: the operator has the limits that one has by default.
    """
    return list(_session(found, project, now))


def _session(
    found: AgenticSession, project: ProjectSettings | None, now: datetime
) -> Iterator[str]:
    status = found.status
    yield f"{found.metadata.name} is {status.phase}, {_age(found, now)} old."
    yield from _why(found)
    wish = found.metadata.annotations.get(DESIRED)
    if wish is not None and wish != status.phase:
        yield f"Somebody wishes it to be {wish[:40]}, which is not obeyed yet."
    if status.phase == "Running":
        yield from _runs(found, project, now)
    elif status.phase in TERMINAL:
        yield from _over(found, project, now)
    yield from _evidence(found, now)


def _why(found: AgenticSession) -> Iterator[str]:
    status = found.status
    if status.phase == "Stopped" and status.stoppedReason:
        yield f"It was stopped because {_STOPPED[status.stoppedReason]}."
    for condition in status.conditions.values():
        if condition.status == "False" and condition.message:
            text = _sentence(condition.message)
            yield f"{condition.type} ({condition.reason}): {text}"
    if status.restarts:
        yield f"It lost {status.restarts} runners since it was started."


def _runs(
    found: AgenticSession, project: ProjectSettings | None, now: datetime
) -> Iterator[str]:
    status = found.status
    if status.worker:
        yield f"Its runner is the warm worker {status.worker}."
    left = len(applying.steps(found))
    if left:
        yield f"{left} changes of its repositories or workflow are not applied yet."
    for each in status.reconciledRepos:
        if each.status == "Failed":
            yield f"The repository {each.name} failed: {_sentence(each.message)}"
    seen = Seen(session=found, pod=None, project=project, now=now, limits=Limits())
    for why, rest in times(seen):
        yield f"It is stopped in {span(rest)}{_ENDS[why]}."


def _over(
    found: AgenticSession, project: ProjectSettings | None, now: datetime
) -> Iterator[str]:
    short = retention.finished(found)
    if short is None:
        return
    if short.keep:
        yield f"It stays for good: it has the annotation {KEEP}."
        return
    limits = project.spec.retention if project else None
    if limits is None or limits.maxAgeSeconds is None:
        yield "It stays until somebody deletes it, and can be started again."
        return
    rest = limits.maxAgeSeconds - (now - short.ended).total_seconds()
    yield f"It is deleted in {span(rest)}, and can be started again until then."


def _evidence(found: AgenticSession, now: datetime) -> Iterator[str]:
    evidence = found.status.evidence
    if evidence is None:
        return
    code = "" if evidence.exitCode is None else f" with {evidence.exitCode}"
    when = (
        ""
        if evidence.at is None
        else f" {span((now - evidence.at).total_seconds())} ago"
    )
    yield f"A runner of it ended{code}{when} ({evidence.reason})."
    if evidence.log:
        yield "The end of its log was kept: see trimtab sessions logs."


def _sentence(text: str) -> str:
    plain = " ".join(text.split())
    return plain if plain.endswith((".", "!", "?")) else f"{plain}."


def _age(found: AgenticSession, now: datetime) -> str:
    since = found.metadata.creationTimestamp
    return span((now - since).total_seconds()) if since else ""
