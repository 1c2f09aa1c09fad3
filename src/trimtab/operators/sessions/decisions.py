"""Decisions about a session: what they depend on, and what they say. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from trimtab.api.kinds import Pod
from trimtab.cache import Index
from trimtab.operators.sessions.judging import Verdict, judge
from trimtab.operators.sessions.kinds import (
    DESIRED,
    TERMINAL,
    AgenticSession,
    AgenticSessionStatus,
    ProjectSettings,
)
from trimtab.operators.sessions.settings import Limits
from trimtab.runtime.events import EventType


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """All that a decision depends on."""

    session: AgenticSession
    pod: Pod | None
    project: ProjectSettings | None
    now: datetime
    limits: Limits
    refused: str = ""
    """Why this session can never start, in a sentence."""

    @property
    def status(self) -> AgenticSessionStatus:
        return self.session.status

    @property
    def own(self) -> Pod | None:
        """The pod, if it is this session's and not that of an earlier one."""
        if self.pod is None:
            return None
        uid = self.session.metadata.uid
        mine = any(each.uid == uid for each in self.pod.metadata.ownerReferences)
        return self.pod if mine else None

    @property
    def command(self) -> str:
        return self.session.metadata.annotations.get(DESIRED, "")

    @property
    def answered(self) -> bool:
        """Whether the runner of this very pod was heard to answer."""
        uid = self.own.metadata.uid if self.own is not None else ""
        return bool(uid) and self.status.answeredBy == uid

    def since(self, moment: datetime | None) -> float:
        """Seconds since a moment; none where it is not known."""
        return (self.now - moment).total_seconds() if moment else 0.0

    def left(self, seconds: float, *, since: datetime | None) -> float:
        """Seconds that are left of so many since a moment."""
        return seconds - self.since(since)

    def verdict(self) -> Verdict:
        told = self.status.conditions.get("ImagesAvailable")
        troubled = told is not None and told.status == "False"
        return judge(
            self.own,
            now=self.now,
            troubled_since=told.lastTransitionTime if told and troubled else None,
            grace=self.limits.image_grace,
        )


class Stated(msgspec.Struct, frozen=True):
    """A condition to state."""

    type: str
    status: bool | None
    reason: str
    message: str = ""


class Told(msgspec.Struct, frozen=True):
    """An event to tell people of."""

    reason: str
    message: str
    type: EventType = "Normal"


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What to do, in the order in which it is done."""

    make: bool = False
    """Make the pod, and all that it needs before."""
    remove: bool = False
    """Remove the pod and its Service."""
    finish: bool = False
    """Remove what only a living session needs."""
    clear: tuple[str, ...] = ()
    """Annotations that have been obeyed."""
    forget: tuple[str, ...] = ()
    """Fields of the status that another operator wrote, and that are to be empty."""
    status: AgenticSessionStatus
    conditions: tuple[Stated, ...] = ()
    events: tuple[Told, ...] = ()
    evidence: Verdict | None = None
    """Of what the end of the log is worth keeping."""
    due: float | None = None
    """Look again after so many seconds."""


PHASE: Final = Index(
    "phase",
    lambda session: (session.status.phase,),
    counted=("Pending", "Creating", "Running", "Stopping", *sorted(TERMINAL)),
)
"""Sessions by their phase, counted as they come and go: nobody has to list them."""


def is_wanted(session: AgenticSession) -> bool:
    """Whether there is anything to do for a session: not for one that is over."""
    phase = session.status.phase
    return phase not in TERMINAL or (
        session.metadata.annotations.get(DESIRED) == "Running"
    )


def changed(status: AgenticSessionStatus, **fields: Any) -> AgenticSessionStatus:
    """The status with some fields that are other."""
    return msgspec.structs.replace(status, **fields)


def cut(text: str, limit: int) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= limit else text[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"
