"""Tending: one session is looked at, and what is decided of it is carried out.

The looking costs nothing: what is seen is in the caches. Only that there is no pod is
never believed of a cache, which may be behind; the server is asked. Otherwise a pod
that was there all the time would be given up for lost, outlive its session, or have its
token replaced under it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, Final

from msgspec.structs import replace

from trimtab.api.kinds import Namespace, Pod
from trimtab.client import AlreadyExists, Forbidden, Invalid, NotFound
from trimtab.kinds import Service
from trimtab.operators.sessions import applying, copies, evidence, facts, names, podspec
from trimtab.operators.sessions.access import Access
from trimtab.operators.sessions.decisions import Decision, Seen, Stated
from trimtab.operators.sessions.kinds import (
    ACTIVE,
    SETTINGS,
    AgenticSession,
    AgenticSessionStatus,
    ProjectSettings,
)
from trimtab.operators.sessions.lifecycle import decide
from trimtab.operators.sessions.profiles import Registry
from trimtab.operators.sessions.settings import Settings
from trimtab.operators.sessions.warm import (
    CONDITION,
    OFF,
    Taken,
    Waiting,
    Warm,
    why_cold,
)
from trimtab.pool.kinds import WorkerClaim
from trimtab.runtime import Context, Result, Retry

MANAGER: Final = "sessions.pods"
AGAIN: Final = 5.0
"""Seconds until something is tried again that others must mend."""
_EMPTY: Final = "Unknown"


class Tender:
    """Brings sessions to what is decided of them."""

    def __init__(
        self,
        settings: Settings,
        *,
        access: Access,
        registry: Registry,
        warm: Warm | None = None,
    ) -> None:
        self._settings = settings
        self._access = access
        self._registry = registry
        self._warm = warm

    async def reconcile(self, session: AgenticSession, ctx: Context) -> Result:
        """Look at a session, and do what is next."""
        if ctx.get(Namespace, session.metadata.namespace) is None:
            return ctx.done()  # nobody's project: its label brings us back
        seen = await self._seen(session, ctx)
        decided = decide(seen)
        if decided.make:
            made = await self._make(seen, ctx)
            if isinstance(made, Waiting):
                after = made.seconds
                return ctx.done(after=min(after, decided.due or after))
            status = replace(decided.status, worker=made.worker)
            decided = replace(decided, status=status)
        await self._undo(decided, seen, ctx)
        if decided.clear:
            await _patch(ctx, {"annotations": dict.fromkeys(decided.clear)})
        if decided.forget:
            await _patch(ctx, {}, status=dict.fromkeys(decided.forget))
        await _state(await self._status(decided, seen, ctx), decided, ctx)
        return ctx.done(after=await self._due(decided, session, ctx))

    async def _seen(self, session: AgenticSession, ctx: Context) -> Seen:
        name = session.status.worker or names.pod_name(session.metadata.name)
        pod = ctx.get(Pod, name)
        phase = session.status.phase
        if pod is None and phase in ACTIVE:
            pod = await _asked(ctx, name, session.metadata.namespace)
        project = ctx.get(ProjectSettings, SETTINGS)
        refused = ""
        if phase == "Pending":
            refused = podspec.problem(session, project=project) or ""
        return Seen(
            session=session,
            pod=pod,
            project=project,
            now=ctx.now,
            limits=self._settings.limits,
            refused=refused,
        )

    # Making

    async def _make(self, seen: Seen, ctx: Context) -> Taken | Waiting:
        """Make the pod and its Service, or wait where others must mend something."""
        session = seen.session
        try:
            pod = await self._pod(seen, ctx)
            if isinstance(pod, Waiting):
                return pod
            service = podspec.service(
                session,
                pod_uid=pod.pod_uid,
                profile=self._registry.of(session),
                pod=pod.worker,
            )
            await ctx.client.apply(service, manager=MANAGER, force=True)
        except facts.Missing as error:
            _cannot(ctx, session, "SecretsReady", error.reason, str(error))
            return Waiting(AGAIN)
        except (Forbidden, Invalid) as error:
            _cannot(ctx, session, "PodCreated", "CreateFailed", str(error))
            return Waiting(AGAIN)
        ctx.condition("SecretsReady", True, reason="AllRequiredSecretsFound")
        return pod

    async def _pod(self, seen: Seen, ctx: Context) -> Taken | Waiting:
        """Make the pod, unless it is there, or take one that waits."""
        if seen.own is not None:
            return Taken(pod_uid=seen.own.metadata.uid)
        session, settings = seen.session, self._settings
        namespace = session.metadata.namespace
        claim = await self._claim(seen, ctx)
        if isinstance(claim, Waiting):
            return claim
        copied = await copies.ensure(
            ctx.client, namespace, project=seen.project, settings=settings
        )
        found = await facts.gather(
            ctx.client,
            session,
            settings=settings,
            registry=self._registry,
            copied=copied,
        )
        profile = self._registry.of(session)
        for each in facts.conditions(found, profile, settings):
            _say(ctx, each)
        await self._access.ensure_token(ctx, session, fresh=True)
        body = podspec.pod(
            session,
            project=seen.project,
            settings=settings,
            profile=profile,
            facts=found,
        )
        if claim is not None and self._warm is not None:
            problem = why_cold(settings, found)
            runner = body["spec"]["containers"][0]
            taken = await self._warm.bind(ctx, session, claim, runner, problem=problem)
            if taken is not None:
                return taken
        return Taken(pod_uid=await _create(ctx, body))

    async def _claim(self, seen: Seen, ctx: Context) -> WorkerClaim | Waiting | None:
        """A claim of a warm worker; None where the session starts cold."""
        pool = seen.project.spec.warmPool if seen.project is not None else None
        if pool is not None and self._warm is None:
            _say(ctx, Stated(CONDITION, False, "NotEnabled", OFF))
        if pool is None or self._warm is None:
            return None
        return await self._warm.claim(ctx, seen.session, pool)

    # Removing

    async def _undo(self, decided: Decision, seen: Seen, ctx: Context) -> None:
        session, own = seen.session, seen.own
        let_go = decided.finish or (decided.remove and session.status.worker)
        if self._warm is not None and let_go:
            await self._warm.release(ctx, session)
        if decided.remove and own is not None and not own.metadata.deletionTimestamp:
            name = names.service_name(session.metadata.name)
            with suppress(NotFound):  # it goes with its pod, too
                await ctx.client.delete(
                    Service, name, namespace=session.metadata.namespace
                )
            await ctx.delete(own)
        if decided.finish:
            await self._access.revoke(ctx, session)

    # Saying

    async def _status(
        self, decided: Decision, seen: Seen, ctx: Context
    ) -> AgenticSessionStatus:
        status = decided.status
        if decided.evidence is not None and seen.own is not None and status.evidence:
            log = await evidence.tail(ctx.client, seen.own)
            kept = replace(status.evidence, log=log)
            status = replace(status, evidence=kept)
        if status.phase == "Running":
            applied = applying.conditions(seen.session)
            for each in applied:
                stated = Stated(each.type, each.status, each.reason, each.message)
                _say(ctx, stated)
            if all(each.status for each in applied):
                generation = seen.session.metadata.generation
                status = replace(status, observedGeneration=generation)
        return status

    async def _due(
        self, decided: Decision, session: AgenticSession, ctx: Context
    ) -> float | None:
        """When to look again: at the next time that is up, a token's included."""
        due = decided.due
        if decided.status.phase == "Running" and session.status.phase == "Running":
            left = await self._access.ensure_token(ctx, session, fresh=False)
            due = left if due is None else min(due, left)
            if self._warm is not None and session.status.worker:
                due = min(due, await self._warm.renew(ctx, session) or due)
        return None if due is None else max(due, 0.0)


async def _create(ctx: Context, body: dict[str, Any]) -> str:
    """Make a pod; its uid."""
    try:
        made = await ctx.client.create(body, manager=MANAGER)
    except AlreadyExists:
        # Ours, of a try that ended here, or one that has to go first.
        raise Retry("There is a pod of its name already.", after=0.2) from None
    return str(made["metadata"]["uid"])


async def _asked(ctx: Context, name: str, namespace: str) -> Pod | None:
    try:
        return await ctx.client.get(Pod, name, namespace=namespace)
    except NotFound:
        return None


async def _patch(
    ctx: Context, metadata: dict[str, Any], *, status: dict[str, Any] | None = None
) -> None:
    """Take away what was obeyed or is over, if nobody has written anything since."""
    session: AgenticSession = ctx.parent
    version = {"resourceVersion": session.metadata.resourceVersion}
    body: dict[str, Any] = {"metadata": {**version, **metadata}}
    answer = await ctx.client.patch(
        AgenticSession,
        session.metadata.name,
        body if status is None else {**body, "status": status},
        namespace=session.metadata.namespace,
        subresource=None if status is None else "status",
        manager=MANAGER,
    )
    ctx.adopt(answer)


async def _state(status: AgenticSessionStatus, decided: Decision, ctx: Context) -> None:
    """Write what was decided; people are told of it when it is written."""
    for each in decided.conditions:
        _say(ctx, each)
    ctx.status(status)
    await ctx.flush()
    for told in decided.events:
        ctx.event(told.reason, told.message, type=told.type)


def _cannot(
    ctx: Context, session: AgenticSession, type: str, reason: str, message: str
) -> None:
    """Say why a session cannot start yet."""
    _say(ctx, Stated(type, False, reason, message))
    _say(ctx, Stated("Ready", False, reason, message))
    if session.status.startTime is None:
        ctx.status(AgenticSession.status_of()(startTime=ctx.now))


def _say(ctx: Context, stated: Stated) -> None:
    """State a condition; others' words for reasons are made such as a server takes."""
    reason = re.sub(r"[^A-Za-z0-9]", "", stated.reason).lstrip("0123456789")
    ctx.condition(
        stated.type, stated.status, reason=reason or _EMPTY, message=stated.message
    )
