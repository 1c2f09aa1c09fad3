"""The operator of agent sessions: which objects it watches, and who tends to them.

Several controllers share the sessions, each with workers of its own: one moves them
through their lives, one asks new runners whether they answer, one brings repositories
and workflows into them. None waits for another; what one finds out is in the status.
Sessions that are over cost a key, and nothing is ever done for them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import Any

import trimtab
from trimtab.api.kinds import Namespace, Pod
from trimtab.cache import Scope
from trimtab.cache.keeping import Kept
from trimtab.client.calling import Caller
from trimtab.kinds import ConfigMap, Service
from trimtab.operators.sessions import (
    access,
    applying,
    copies,
    health,
    locating,
    projects,
    retention,
)
from trimtab.operators.sessions.access import Access
from trimtab.operators.sessions.calling import Runner, Runners
from trimtab.operators.sessions.decisions import PHASE, is_wanted
from trimtab.operators.sessions.kinds import (
    APP,
    MANAGED,
    SESSION_LABEL,
    AgenticSession,
    ProjectSettings,
)
from trimtab.operators.sessions.profiles import Registry
from trimtab.operators.sessions.settings import Settings
from trimtab.operators.sessions.tending import Tender
from trimtab.operators.sessions.triggering import Backend
from trimtab.operators.sessions.warm import Warm
from trimtab.pool.kinds import WorkerClaim
from trimtab.runtime import By, Context, Result, Watched

CHANGES = (
    "metadata.annotations",
    "spec",
    "status.phase",
    "status.answeredBy",
    "status.appliedTo",
    "status.reconciledRepos",
    "status.reconciledWorkflow",
)
"""What brings a session back; not ``lastActivityTime``, which changes all the time."""


def kept(session: AgenticSession) -> Kept:
    """What is remembered of a session: of one that is over, that it is there."""
    return "slice" if is_wanted(session) else "key"


def make(
    settings: Settings,
    *,
    random: Random,
    scope: Scope | None = None,
    caller: Caller | None = None,
) -> trimtab.Operator:
    """The operator, over all namespaces or some.

    ``caller`` is how runners are called. Default: by connections of this process, which
    are closed when the operator ends.
    """
    where = scope or Scope(everything=True)
    app = trimtab.Operator("sessions")
    calls = caller or Caller()
    app.opens(partial(_closing, calls))
    runners = Runners(calls, random=random)
    registry = Registry(settings)
    tender = Tender(
        settings,
        access=Access(settings, random=random),
        registry=registry,
        warm=Warm(calls, runners) if settings.warm else None,
    )
    _tends(app, tender, settings, where)
    _talks(app, runners, registry, where, random=random)
    copies.register(app, settings, sessions=where, keep=kept)
    retention.register(app, scope=where, sessions=where, keep=kept)
    tell = Backend(calls, namespace=settings.backend).tell
    projects.register(app, settings, registry=registry, scope=where, tell=tell)
    _permissions(app)
    access.permissions(app, settings)
    if settings.warm:
        app.needs(WorkerClaim, "get", "create", "delete")
        app.needs(Pod, "patch")
    return app


def _tends(
    app: trimtab.Operator, tender: Tender, settings: Settings, where: Scope
) -> None:
    """Who moves sessions through their lives."""

    @app.reconciles(
        AgenticSession,
        scope=where,
        keep=kept,
        when=is_wanted,
        on_change=CHANGES,
        watches=[
            _pods(where),
            *_projects(where),
            *(_claims(where) if settings.warm else ()),
        ],
        indexes=(copies.ACTIVE_IN, PHASE),
        concurrency=settings.concurrency,
    )
    async def session(seen: AgenticSession, ctx: Context) -> Result:
        return await tender.reconcile(seen, ctx)


def _talks(
    app: trimtab.Operator,
    runners: Runners,
    registry: Registry,
    where: Scope,
    *,
    random: Random,
) -> None:
    """Who asks runners whether they answer, and brings them what sessions wish for."""

    async def locate(seen: AgenticSession, ctx: Context) -> Runner:
        port = registry.of(seen).container.port
        return await locating.find(ctx.client, seen, port=port)

    primary: dict[str, Any] = {"scope": where, "keep": kept, "when": is_wanted}
    watches = [_pods(where)]
    health.register(app, runners, registry=registry, watches=watches, **primary)
    applying.register(app, runners, locate=locate, random=random, **primary)


def _pods(where: Scope) -> Watched:
    return Watched(kind=Pod, scope=_runner_pods(where), to=_session_of)


def _projects(where: Scope) -> tuple[Watched, Watched]:
    """What holds for all sessions of a namespace, and whether it is a project."""
    index = copies.ACTIVE_IN.name
    return (
        Watched(
            kind=ProjectSettings,
            scope=where,
            to=By(index, lambda project: (project.metadata.namespace,)),
            on_change=("spec",),
        ),
        Watched(
            kind=Namespace,
            scope=Scope(labels=f"{MANAGED}=true"),
            to=By(index, lambda namespace: (namespace.metadata.name,)),
            on_change=("metadata.labels",),
        ),
    )


def _claims(where: Scope) -> tuple[Watched]:
    """Wishes for warm workers; the server knows their kind only where there are any."""
    return (
        Watched(
            kind=WorkerClaim,
            scope=_runner_pods(where),
            to=_session_of,
            on_change=("status.state", "metadata.deletionTimestamp"),
        ),
    )


def _runner_pods(where: Scope) -> Scope:
    return Scope(
        namespaces=where.namespaces,
        namespaces_where=where.namespaces_where,
        labels=f"app={APP}",
    )


def _session_of(child: Pod | WorkerClaim) -> list[str]:
    name = child.metadata.labels.get(SESSION_LABEL)
    return [name] if name else []


@asynccontextmanager
async def _closing(calls: Caller) -> AsyncIterator[Caller]:
    try:
        yield calls
    finally:
        await calls.close()


def _permissions(app: trimtab.Operator) -> None:
    """What is used and no declaration shows."""
    app.needs(Pod, "get", "create", "delete")
    app.needs(Pod, "get", subresource="log")
    app.needs(Service, "create", "patch", "delete")
    app.needs(ConfigMap, "get")
