"""Endings: the ways out of a session that is started or runs. Pure.

All of them only write down how it ends; see :mod:`.lifecycle` for what follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from trimtab.operators.sessions.decisions import Decision, Seen, Stated, Told, cut
from trimtab.operators.sessions.judging import SIDECAR, Verdict
from trimtab.operators.sessions.kinds import STOP_REASON, Evidence, Next, Stopped

STOPS: Final[dict[Stopped, tuple[str, str]]] = {
    "user": ("UserStopped", "It was stopped."),
    "inactivity": ("InactivityTimeout", "Nobody used it for as long as it may idle."),
    "run-finished": ("RunFinished", "Its run has finished."),
    "timeout": ("Timeout", "It ran for as long as its spec.timeout allows."),
    "start-deadline": ("StartDeadline", "Its runner was not ready in time."),
}


def stopped(seen: Seen) -> Decision | None:
    """Somebody wants it stopped."""
    if seen.command != "Stopped":
        return None
    return ending(seen, "Stopped", stopped=why_stopped(seen))


def why_stopped(seen: Seen) -> Stopped:
    """Why somebody wants it stopped, by their own word."""
    said = seen.session.metadata.annotations.get(STOP_REASON, "")
    return next((each for each in STOPS if each == said), "user")


def late(seen: Seen) -> Decision | None:
    """It may not take for ever to start."""
    status = seen.status
    if seen.left(seen.limits.start_deadline, since=status.startTime) > 0:
        return None
    told = status.conditions.get("Ready")
    last = seen.verdict().message if seen.own else told.message if told else ""
    reason, message = STOPS["start-deadline"]
    if last:
        message += f" The last that was seen: {last}"
    verdict = Verdict(state="failed", reason=reason, message=message)
    return ending(seen, "Failed", stopped="start-deadline", verdict=verdict)


def expired(seen: Seen) -> Decision | None:
    """Its time is up, or nobody uses it."""
    for why, left in times(seen):
        if left <= 0:
            return ending(seen, "Stopped", stopped=why)
    return None


def times(seen: Seen) -> Iterator[tuple[Stopped, float]]:
    """The seconds that are left of what a running session may take."""
    status, spec = seen.status, seen.session.spec
    timeout = spec.timeout
    if timeout > 0 and timeout != seen.limits.unset_timeout:
        yield "timeout", seen.left(timeout, since=status.readyAt)
    idle = spec.inactivityTimeout
    if idle is None and seen.project is not None:
        idle = seen.project.spec.inactivityTimeoutSeconds
    if idle is None:
        idle = seen.limits.inactivity
    if idle > 0:
        moments = (status.lastActivityTime, status.startTime, status.readyAt)
        last = max((each for each in moments if each), default=None)
        yield "inactivity", seen.left(idle, since=last)


def judged(seen: Seen) -> Decision | None:
    """What its pod came to, where that is an end; None while it lives."""
    verdict = seen.verdict()
    if verdict.state == "completed":
        return ending(seen, "Completed", verdict=verdict)
    # A runner at work is not ended because what saves its state ended.
    beside = verdict.reason == SIDECAR and seen.status.phase == "Creating"
    if not verdict.over and not beside:
        return None
    lost = _lost_so_far(seen)
    if verdict.retry and lost < seen.limits.restart_budget:
        return ending(seen, "Pending", verdict=verdict, restarts=lost + 1)
    return ending(seen, "Failed", verdict=verdict)


def _lost_so_far(seen: Seen) -> int:
    """Runners lost; one that was ready for long has made good for those before."""
    settled = seen.since(seen.status.readyAt) >= seen.limits.settled
    return 0 if settled else seen.status.restarts


def ending(
    seen: Seen,
    then: Next,
    *,
    stopped: Stopped | None = None,
    verdict: Verdict | None = None,
    restarts: int | None = None,
) -> Decision:
    """Write down how it ends; the pod is removed when that is there to be read."""
    if verdict is not None:
        reason, message = verdict.reason, verdict.message
    else:
        reason, message = STOPS[stopped or "user"]
    bad = verdict is not None and verdict.state != "completed"
    status = msgspec.structs.replace(
        seen.status,
        phase="Stopping",
        nextPhase=then,
        stoppedReason=stopped,
        restarts=seen.status.restarts if restarts is None else restarts,
        evidence=_evidence(seen, verdict) if verdict and bad else seen.status.evidence,
    )
    return Decision(
        status=status,
        conditions=(Stated("Ready", False, reason, message),),
        events=(Told(reason, _told(message, then), "Warning" if bad else "Normal"),),
        evidence=verdict if bad else None,
        due=0.0,
    )


def _told(message: str, then: Next) -> str:
    return f"{message} It is started again." if then == "Pending" else message


def _evidence(seen: Seen, verdict: Verdict) -> Evidence:
    return Evidence(
        reason=verdict.reason,
        exitCode=verdict.exit_code,
        message=cut(verdict.message, 1024),
        at=seen.now,
    )
