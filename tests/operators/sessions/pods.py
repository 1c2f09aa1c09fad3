"""Pods as a node would describe them, for the laws of judging and of the lifecycle."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from trimtab import Metadata
from trimtab.api import Conditions
from trimtab.api.kinds import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodStatus,
    PodSummary,
)
from trimtab.api.resource import OwnerReference
from trimtab.operators.sessions.kinds import APP, GROUP, VERSION

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def running() -> ContainerState:
    return ContainerState(running=ContainerStateRunning(startedAt=NOW))


def waiting(reason: str, message: str = "") -> ContainerState:
    return ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))


def ended(code: int, reason: str = "", *, at: datetime = NOW) -> ContainerState:
    return ContainerState(
        terminated=ContainerStateTerminated(exitCode=code, reason=reason, finishedAt=at)
    )


def container(state: ContainerState, name: str = APP) -> ContainerStatus:
    return ContainerStatus(name=name, state=state)


def pod(
    *containers: ContainerStatus,
    phase: str = "Running",
    node: str = "node-1",
    first: tuple[ContainerStatus, ...] = (),
    conditions: dict[str, tuple[bool, str]] | None = None,
    uid: str = "pod-1",
    owner: str = "session-1",
    going: datetime | None = None,
    **status: Any,
) -> Pod:
    """A pod of a session, with what a node says of it."""
    stated = Conditions()
    for type, (is_true, reason) in (conditions or {}).items():
        stated = stated.set(type, is_true, reason=reason, message="", now=NOW)
    metadata = Metadata(
        name="one-runner",
        namespace="team",
        uid=uid,
        deletionTimestamp=going,
        deletionGracePeriodSeconds=60 if going else None,
        ownerReferences=[
            OwnerReference(
                apiVersion=f"{GROUP}/{VERSION}",
                kind="AgenticSession",
                name="one",
                uid=owner,
                controller=True,
            )
        ],
    )
    return Pod(
        metadata=metadata,
        spec=PodSummary(nodeName=node),
        status=PodStatus(
            phase=phase,
            conditions=stated,
            containerStatuses=containers,
            initContainerStatuses=first,
            **status,
        ),
    )


def ready(**others: Any) -> Pod:
    return pod(container(running()), conditions={"Ready": (True, "Ready")}, **others)


def unschedulable(**others: Any) -> Pod:
    conditions = {"PodScheduled": (False, "Unschedulable")}
    return pod(phase="Pending", node="", conditions=conditions, **others)
