"""Trimtab on the scoreboard: an operator as anybody would write it, with our defaults.

Run as ``trimtab run FILE --port 0``: queue, causes, budgets, metrics and endpoints are
on, as they are for everybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import trimtab
from bench.peers.scoreboard_probe import (
    GROUP,
    RUNNERS,
    STAMP,
    VERSION,
    WORKLOAD,
    Probe,
    size,
)
from trimtab import Context, Object, Resource, Scope, Watched

app = trimtab.Operator("scoreboard")
probe = Probe()


class Repository(Object):
    url: str = ""


class Condition(Object):
    type: str = ""
    status: str = ""


class SessionSpec(Object):
    timeout: int = 0
    repos: tuple[Repository, ...] = ()


class SessionStatus(Object):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class AgenticSession(
    Resource, group=GROUP, version=VERSION, plural="agenticsessions", builtin=True
):
    """What is read of a session."""

    spec: SessionSpec = SessionSpec()
    status: SessionStatus = SessionStatus()


class ProjectSettings(
    Resource, group=GROUP, version=VERSION, plural="projectsettings", builtin=True
):
    """What is read of a project's settings."""


class PodStatus(Object):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class Pod(Resource, version="v1", builtin=True):
    """What is read of a Pod."""

    status: PodStatus = PodStatus()


def words(
    obj: Resource,
    *,
    phase: str,
    conditions: Iterable[Condition],
    repos: Iterable[Repository],
) -> Iterator[str]:
    """What is read of an object besides its labels and annotations."""
    metadata = obj.metadata
    yield metadata.namespace
    yield metadata.name
    for owner in metadata.ownerReferences:
        yield owner.name
    yield phase
    for condition in conditions:
        yield condition.type
        yield condition.status
    for repository in repos:
        yield repository.url


def note(obj: Any, *, status: Any, spec: Any) -> None:
    metadata = obj.metadata
    read = words(
        obj,
        phase=status.phase if status else "",
        conditions=status.conditions if status else (),
        repos=spec.repos if spec else (),
    )
    probe.note(
        obj.kind,
        metadata.namespace,
        metadata.name,
        size=size(
            read,
            labels=metadata.labels,
            annotations=metadata.annotations,
            timeout=spec.timeout if spec else 0,
        ),
        stamp=metadata.annotations.get(STAMP),
    )


def owners(pod: Pod) -> Iterable[str]:
    return [
        each.name
        for each in pod.metadata.ownerReferences
        if each.kind == "AgenticSession"
    ]


if WORKLOAD == "S":
    runners = Watched(kind=Pod, scope=Scope(labels=RUNNERS), to=owners)

    @app.reconciles(AgenticSession, scope=Scope(everything=True), watches=[runners])
    async def session(obj: AgenticSession, ctx: Context) -> None:
        note(obj, status=obj.status, spec=obj.spec)

    @app.reconciles(ProjectSettings, scope=Scope(everything=True))
    async def settings(obj: ProjectSettings, ctx: Context) -> None:
        note(obj, status=None, spec=None)

else:

    @app.reconciles(Pod, scope=Scope(everything=True))
    async def pod(obj: Pod, ctx: Context) -> None:
        note(obj, status=obj.status, spec=None)
