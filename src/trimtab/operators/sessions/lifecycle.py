"""The lifecycle: what a session becomes next, by what is seen of it. Pure.

=========  ==============================================================  ==========
phase      what holds                                                      then
=========  ==============================================================  ==========
Pending    wanted; it has no pod, or one that nobody has written down yet  Creating
Creating   it has a pod                                                    Running
Running    the pod was ready and the runner answered                       Stopping
Stopping   the pod has to go, and ``nextPhase`` says what comes then       any below
Stopped    over, and nothing of it is left: somebody wanted it, or a time  Pending
           was up
Completed  over, and nothing of it is left: the runner said so             Pending
Failed     over, and nothing of it is left: see ``evidence``               Pending
=========  ==============================================================  ==========

A session that is given a runner which waited for one runs at once, without Creating.
Every way out leads through Stopping, which is written down before the pod is touched.
So a pod that is gone in Creating or Running was lost, a session that is over has no
pod, and one that waits has none of an earlier try: whoever ends in the middle, the next
one reads where it was.

A decision is carried out in the order of its fields: what it makes, removes and clears
first, then the status. Only the status moves a session on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from trimtab.api.kinds import Pod
from trimtab.operators.sessions.decisions import (
    Decision,
    Seen,
    Stated,
    Told,
    changed,
    cut,
)
from trimtab.operators.sessions.endings import (
    STOPS,
    ending,
    expired,
    judged,
    late,
    stopped,
    times,
    why_stopped,
)
from trimtab.operators.sessions.judging import IMAGE, Verdict
from trimtab.operators.sessions.kinds import (
    DESIRED,
    FORCE_PROMPT,
    STOP_REASON,
    STOP_REQUESTED,
    TERMINAL,
    AgenticSessionStatus,
    Next,
)

STUCK: Final = 30.0
"""Seconds past its grace after which a pod that does not go is talked about."""
_COMMANDS: Final = ("Running", "Stopped")


def decide(seen: Seen) -> Decision:
    """What becomes of a session.

    Guarantees: a stop is obeyed in every phase, and a start that comes while a session
    stops is obeyed when it has stopped. A pod is only ever made in Pending, when there
    is none of that name.
    """
    phase = seen.status.phase
    if phase == "Stopping":
        decided = _stopping(seen)
    elif phase in TERMINAL:
        decided = _over(seen)
    else:
        decided = stopped(seen) or _active(seen)
    return _with_command(seen, decided)


def _active(seen: Seen) -> Decision:
    if seen.status.phase == "Pending":
        return late(seen) or _pending(seen)
    if seen.status.phase == "Creating":
        return judged(seen) or late(seen) or _creating(seen)
    return judged(seen) or expired(seen) or _running(seen)


# The phases


def _pending(seen: Seen) -> Decision:
    status = seen.status
    if seen.refused:
        verdict = Verdict(state="failed", reason="Refused", message=seen.refused)
        return ending(seen, "Failed", verdict=verdict)
    status = changed(status, startTime=status.startTime or seen.now)
    left = seen.left(seen.limits.start_deadline, since=status.startTime)
    own = seen.own
    if own is not None and own.metadata.deletionTimestamp is None:
        # Whoever made it may have ended before it made the rest.
        return _created(seen, status, due=0.0, make=True)
    if seen.pod is not None:
        message = f"A pod {seen.pod.metadata.name} of before has to go first."
        return _waits(seen, status, "PodRemains", message, due=left)
    pause = _pause(seen)
    if pause > 0:
        message = (
            f"A new runner is made in {pause:.0f} s, after {status.restarts} lost."
        )
        # Its words change with each look, so it is looked at once.
        return _waits(seen, status, "Restarting", message, due=min(pause, left))
    return _created(seen, status, due=left, make=True)


def _pause(seen: Seen) -> float:
    status = seen.status
    if not status.restarts or status.evidence is None:
        return 0.0
    return seen.left(seen.limits.pause(status.restarts), since=status.evidence.at)


def _waits(
    seen: Seen, status: AgenticSessionStatus, reason: str, message: str, *, due: float
) -> Decision:
    told = seen.status.conditions.get("Ready")
    if told is not None and told.reason == reason:
        message = told.message
    return Decision(
        clear=_obeyed(seen),
        status=status,
        conditions=(Stated("Ready", False, reason, message),),
        due=due,
    )


def _created(
    seen: Seen, status: AgenticSessionStatus, *, due: float, make: bool = False
) -> Decision:
    return Decision(
        make=make,
        clear=_obeyed(seen),
        status=changed(status, phase="Creating"),
        conditions=(
            Stated("PodCreated", True, "PodCreated"),
            Stated("Ready", False, "Creating", "Its pod is made."),
            *_images(seen, None),
        ),
        due=due,
    )


def _creating(seen: Seen) -> Decision:
    verdict = seen.verdict()
    if verdict.state == "ready" and seen.answered:
        return _started(seen)
    left = seen.left(seen.limits.start_deadline, since=seen.status.startTime)
    reason, message = verdict.reason, verdict.message
    if verdict.state == "ready":
        reason = "AskingRunner"
        message = "Its pod is ready; the runner has not answered at /health yet."
    return Decision(
        clear=_obeyed(seen, FORCE_PROMPT),
        status=seen.status,
        conditions=(
            *_placed(seen, verdict),
            *_images(seen, verdict),
            Stated("Ready", False, reason, message),
        ),
        due=min(left, verdict.look_again or left),
    )


def started_warm(seen: Seen) -> Decision | None:
    """What becomes of a session that has just been given a runner which waited for it.

    None where that runner is not seen to be ready: then its pod is like one that was
    made. The command to start with the prompt stays until the next look, which has a
    session that runs.
    """
    if seen.verdict().state != "ready":
        return None
    started, begun = _started(seen), seen.status.startTime or seen.now
    return msgspec.structs.replace(
        started,
        clear=_obeyed(seen),
        status=changed(started.status, startTime=begun),
        conditions=(Stated("PodCreated", True, "PodCreated"), *started.conditions),
    )


def _started(seen: Seen) -> Decision:
    """The pod is ready and the runner answers."""
    status = seen.status
    again = status.firstStartedAt is not None
    return Decision(
        clear=_obeyed(seen, FORCE_PROMPT),
        status=changed(
            status,
            phase="Running",
            readyAt=seen.now,
            firstStartedAt=status.firstStartedAt or seen.now,
        ),
        conditions=_running_conditions(seen, seen.verdict()),
        events=(Told("Running", "It runs again." if again else "It runs."),),
        due=0.0,
    )


def _running(seen: Seen) -> Decision:
    status = seen.status
    # Whoever wrote Running before there was this field did not write it.
    begun = status.readyAt or seen.now
    status = changed(
        status, readyAt=begun, firstStartedAt=status.firstStartedAt or begun
    )
    dues = [left for _, left in times(seen)]
    return Decision(
        clear=_obeyed(seen, FORCE_PROMPT),
        status=status,
        conditions=_running_conditions(seen, seen.verdict()),
        due=min(dues, default=None),
    )


def _running_conditions(seen: Seen, verdict: Verdict) -> tuple[Stated, ...]:
    ready = verdict.state == "ready"
    return (
        *_placed(seen, verdict),
        *_images(seen, verdict),
        Stated("Ready", ready, "Running" if ready else verdict.reason, verdict.message),
    )


def _placed(seen: Seen, verdict: Verdict) -> Iterator[Stated]:
    pod = seen.own
    if pod is not None and pod.spec.nodeName:
        yield Stated("PodScheduled", True, "Scheduled")
    elif pod is not None:
        yield Stated("PodScheduled", False, verdict.reason, verdict.message)
    runs = verdict.state in ("started", "ready")
    reason = "ContainerRunning" if runs else verdict.reason
    yield Stated("RunnerStarted", runs, reason, "" if runs else verdict.message)


def _images(seen: Seen, verdict: Verdict | None) -> Iterator[Stated]:
    """Since when an image is missing is read from this condition, so it is kept."""
    if verdict is not None and verdict.reason in IMAGE:
        yield Stated("ImagesAvailable", False, verdict.reason, verdict.message)
    elif "ImagesAvailable" in seen.status.conditions:
        yield Stated("ImagesAvailable", True, "Pulled")


def _stopping(seen: Seen) -> Decision:
    status = seen.status
    then: Next = status.nextPhase or "Stopped"
    if then == "Pending" and seen.command == "Stopped":
        return ending(seen, "Stopped", stopped=why_stopped(seen))
    if seen.own is not None:
        return _removing(seen, seen.own)
    if then == "Pending":
        return _again(seen, restarted=True)
    obeyed = () if seen.command == "Running" else (DESIRED,)
    told = status.conditions.get("Ready")
    why = (told.reason, told.message) if told else STOPS["user"]
    return Decision(
        finish=True,
        clear=_present(seen, *obeyed, STOP_REQUESTED, STOP_REASON),
        status=changed(
            status,
            phase=then,
            nextPhase=None,
            completionTime=seen.now,
            readyAt=None,
            worker="",
        ),
        conditions=(
            Stated("Ready", False, *why),
            Stated("PodCreated", False, why[0]),
            Stated("RunnerStarted", False, why[0]),
        ),
        # A start that came meanwhile is obeyed now.
        due=0.0 if seen.command == "Running" else None,
    )


def _removing(seen: Seen, pod: Pod) -> Decision:
    goes = pod.metadata.deletionTimestamp
    left = STUCK if goes is None else STUCK - seen.since(goes)
    conditions: tuple[Stated, ...] = ()
    if left <= 0:
        told = seen.status.conditions.get("Ready")
        message = (
            f"Its pod does not end on {pod.spec.nodeName or 'no node'}; it goes when "
            "the node answers again or is removed, or by kubectl delete --force."
        )
        conditions = (
            Stated("Ready", False, told.reason if told else "Stopping", message),
        )
    return Decision(
        remove=True,
        status=seen.status,
        conditions=conditions,
        due=left if left > 0 else None,
    )


def _over(seen: Seen) -> Decision:
    if seen.command != "Running":
        return Decision(status=seen.status)
    return _again(seen, restarted=False)


def _again(seen: Seen, *, restarted: bool) -> Decision:
    """Back to the beginning, by somebody's wish or because a runner was lost."""
    status = seen.status
    # A start that has not succeeded yet gets no more time by failing.
    anew = not restarted or status.readyAt is not None
    fresh: dict[str, Any] = {} if restarted else {"restarts": 0, "evidence": None}
    return Decision(
        forget=_foreign(status),
        status=changed(
            status,
            phase="Pending",
            nextPhase=None,
            startTime=seen.now if anew else status.startTime,
            completionTime=None,
            stoppedReason=None,
            readyAt=None,
            worker="",
            **fresh,
        ),
        conditions=(
            Stated("Ready", False, "Restarting" if restarted else "Starting"),
            Stated("PodCreated", False, "PodMissing"),
        ),
        due=0.0,
    )


def _foreign(status: AgenticSessionStatus) -> tuple[str, ...]:
    """What the operator before us wrote of an earlier life of the session.

    An apply takes back only what its own applier said. That it was another one is seen
    by a condition without a generation, which we never write.
    """
    told = status.conditions.get("Ready")
    if told is not None and told.observedGeneration is not None:
        return ()
    return tuple(
        name
        for name in ("completionTime", "stoppedReason")
        if getattr(status, name) is not None
    )


# Annotations


def _obeyed(seen: Seen, *others: str) -> tuple[str, ...]:
    """What has been obeyed by a session that is to run: a start, and old stops."""
    started = (DESIRED,) if seen.command == "Running" else ()
    return _present(seen, *started, STOP_REQUESTED, STOP_REASON, *others)


def _present(seen: Seen, *names: str) -> tuple[str, ...]:
    return tuple(each for each in names if each in seen.session.metadata.annotations)


def _with_command(seen: Seen, decided: Decision) -> Decision:
    """Say so where a command is none."""
    said = seen.command
    if said and said not in _COMMANDS:
        stated = Stated(
            "CommandUnderstood",
            False,
            "UnknownDesiredPhase",
            f"{cut(said, 64)!r} is not a phase to wish for; make the annotation "
            f"{DESIRED} Running or Stopped.",
        )
    elif "CommandUnderstood" in seen.status.conditions:
        stated = Stated("CommandUnderstood", True, "Understood")
    else:
        return decided
    return msgspec.structs.replace(decided, conditions=(*decided.conditions, stated))
