"""A session's life on paper: decisions are carried out on values, step by step."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from tests.operators.sessions.pods import NOW, pod
from trimtab import Metadata
from trimtab.api.kinds import Pod
from trimtab.operators.sessions.decisions import Decision, Seen
from trimtab.operators.sessions.kinds import (
    DESIRED,
    AgenticSession,
    AgenticSessionSpec,
    AgenticSessionStatus,
    ProjectSettings,
)
from trimtab.operators.sessions.lifecycle import decide
from trimtab.operators.sessions.settings import Limits

STEPS = 12
"""More decisions in a row than any session needs before it waits for something."""


class Walk:
    """One session, its pod, and the time."""

    def __init__(self, *, limits: Limits | None = None, **spec: Any) -> None:
        self.now = NOW
        self.limits = limits or Limits()
        self.pod: Pod | None = None
        self.pods = 0
        self.project: ProjectSettings | None = None
        self.refused = ""
        self.session = AgenticSession(
            metadata=Metadata(
                name="one", namespace="team", uid="session-1", generation=1
            ),
            spec=AgenticSessionSpec(**spec),
        )
        self.phases: list[str] = []
        self.told: list[str] = []

    @property
    def phase(self) -> str:
        return self.session.status.phase

    @property
    def status(self) -> AgenticSessionStatus:
        return self.session.status

    @property
    def reason(self) -> str:
        return self.status.conditions["Ready"].reason

    @property
    def annotations(self) -> dict[str, str]:
        return self.session.metadata.annotations

    def annotate(self, **values: str) -> None:
        self._annotated({**self.annotations, **values})

    def command(self, phase: str) -> None:
        self._annotated({**self.annotations, DESIRED: phase})

    def _annotated(self, annotations: dict[str, str]) -> None:
        metadata = replace(self.session.metadata, annotations=annotations)
        self.session = replace(self.session, metadata=metadata)

    def stated(self, **fields: Any) -> None:
        self.session = replace(self.session, status=replace(self.status, **fields))

    def decided(self) -> Decision:
        return decide(
            Seen(
                session=self.session,
                pod=self.pod,
                project=self.project,
                now=self.now,
                limits=self.limits,
                refused=self.refused,
            )
        )

    def act(self, decided: Decision) -> None:
        """What is done before the status: others see it even if we end here."""
        if decided.make and self.pod is None:
            self.pods += 1
            self.pod = pod(phase="Pending", node="", uid=f"pod-{self.pods}")
        if decided.remove and self.pod is not None:
            # Where no node has it, it is gone at once.
            if not self.pod.spec.nodeName:
                self.pod = None
            elif self.pod.metadata.deletionTimestamp is None:
                self.going(60)
        left = {k: v for k, v in self.annotations.items() if k not in decided.clear}
        self._annotated(left)

    def write(self, decided: Decision) -> None:
        conditions = self.status.conditions
        for each in decided.conditions:
            conditions = conditions.set(
                each.type,
                each.status,
                reason=each.reason,
                message=each.message,
                now=self.now,
            )
        status = replace(decided.status, conditions=conditions)
        if status.phase != self.phase:
            self.phases.append(status.phase)
        self.told += [each.reason for each in decided.events]
        self.session = replace(self.session, status=status)

    def settle(self) -> float | None:
        """Decide until something is waited for; for how long."""
        for _ in range(STEPS):
            before = (self.session, self.pod)
            decided = self.decided()
            self.act(decided)
            self.write(decided)
            if decided.due != 0.0 and before == (self.session, self.pod):
                return decided.due
        raise AssertionError(f"{self.phases}: it comes to no rest")

    # What others do

    def going(self, grace: float) -> None:
        assert self.pod is not None
        metadata = replace(
            self.pod.metadata,
            deletionTimestamp=self.now + timedelta(seconds=grace),
            deletionGracePeriodSeconds=int(grace),
        )
        self.pod = replace(self.pod, metadata=metadata)

    def gone(self) -> None:
        self.pod = None

    def becomes(self, found: Pod) -> None:
        """The node says something else of the pod."""
        if self.pod is None:
            return
        held, uid = self.pod.metadata, self.pod.metadata.uid
        metadata = replace(
            found.metadata,
            uid=uid,
            deletionTimestamp=held.deletionTimestamp,
            deletionGracePeriodSeconds=held.deletionGracePeriodSeconds,
        )
        self.pod = replace(found, metadata=metadata)

    def answers(self) -> None:
        if self.pod is not None:
            self.stated(answeredBy=self.pod.metadata.uid)

    def passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def at(self, seconds: float) -> datetime:
        return self.now + timedelta(seconds=seconds)
