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
from trimtab.operators.sessions import applying, evidence, facts, names, podspec
from trimtab.operators.sessions.access import Access
from trimtab.operators.sessions.decisions import Decision, Seen, Stated
from trimtab.operators.sessions.environment import Facts
from trimtab.operators.sessions.kinds import (
    ACTIVE,
    SETTINGS,
    AgenticSession,
    AgenticSessionStatus,
    ProjectSettings,
)
from trimtab.operators.sessions.lifecycle import decide, started_warm
from trimtab.operators.sessions.preparing import Prepared, Preparer
from trimtab.operators.sessions.profiles import Registry
from trimtab.operators.sessions.settings import Settings
from trimtab.operators.sessions.together import both
from trimtab.operators.sessions.warm import (
    CONDITION,
    OFF,
    Taken,
    Waiting,
    Warm,
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
        self._preparer = Preparer(settings, access=access, registry=registry)
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
            if made.running is not None:
                warm = started_warm(replace(seen, pod=made.running))
                decided = warm or decided
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
            made = await self._pod(seen, ctx)
        except facts.Missing as error:
            _cannot(ctx, session, "SecretsReady", error.reason, str(error))
            return Waiting(AGAIN)
        except (Forbidden, Invalid) as error:
            _cannot(ctx, session, "PodCreated", "CreateFailed", str(error))
            return Waiting(AGAIN)
        if isinstance(made, Taken):
            ctx.condition("SecretsReady", True, reason="AllRequiredSecretsFound")
        return made

    async def _pod(self, seen: Seen, ctx: Context) -> Taken | Waiting:
        """Make the pod, unless it is there, or take one that waits."""
        if seen.own is not None:
            there = Taken(pod_uid=seen.own.metadata.uid)
            await self._serve(seen, ctx, there)
            return there
        prepared, claim = await self._prepared(seen, ctx)
        if isinstance(claim, Waiting):
            self._preparer.keep(seen.session, prepared)
            return claim
        self._preparer.forget(seen.session)
        profile = self._preparer.profile(seen.session)
        for each in facts.conditions(prepared.ground.facts, profile, self._settings):
            _say(ctx, each)
        warm = await self._warmed(seen, ctx, prepared, claim)
        if warm is not None:
            return warm
        made = Taken(pod_uid=await _create(ctx, prepared.body))
        await self._serve(seen, ctx, made)
        return made

    async def _prepared(
        self, seen: Seen, ctx: Context
    ) -> tuple[Prepared, WorkerClaim | Waiting | None]:
        """What the runner is told, and meanwhile a claim of one that waits."""
        kept = self._preparer.kept(seen)
        if kept is not None:
            return kept, await self._claim(seen, ctx, kept.ground.facts)
        ground = await self._preparer.ground(seen, ctx)
        return await both(
            self._preparer.prepare(seen, ctx, ground),
            self._claim(seen, ctx, ground.facts),
        )

    async def _serve(self, seen: Seen, ctx: Context, taken: Taken) -> None:
        """Have the Service by which a pod is found."""
        service = podspec.service(
            seen.session,
            pod_uid=taken.pod_uid,
            profile=self._preparer.profile(seen.session),
            pod=taken.worker,
        )
        await ctx.client.apply(service, manager=MANAGER, force=True)

    async def _warmed(
        self, seen: Seen, ctx: Context, prepared: Prepared, claim: WorkerClaim | None
    ) -> Taken | None:
        """Take the worker that was claimed; None where the session starts cold."""
        warm, session = self._warm, seen.session
        if warm is None or claim is None:
            return None
        told = await prepared.environment()
        pod = await warm.bind(ctx, session, claim, told, token=prepared.token)
        if pod is None:
            return None
        # Not before: a worker that did not take the session is no pod of it.
        port = self._preparer.profile(session).container.port
        worker = Taken(worker=pod.metadata.name, pod_uid=pod.metadata.uid)
        taken, _ = await both(
            warm.adopt(ctx, session, pod, port=port), self._serve(seen, ctx, worker)
        )
        return taken

    async def _claim(
        self, seen: Seen, ctx: Context, found: Facts
    ) -> WorkerClaim | Waiting | None:
        """A claim of a warm worker; None where the session starts cold."""
        pool = seen.project.spec.warmPool if seen.project is not None else None
        if self._warm is None:
            if pool is not None:
                _say(ctx, Stated(CONDITION, False, "NotEnabled", OFF))
            return None
        problem = facts.why_cold(found, self._settings)
        if pool is not None and problem is None:
            return await self._warm.claim(ctx, seen.session, pool)
        if problem is not None and pool is not None:
            _say(ctx, Stated(CONDITION, False, "Cold", problem))
        await self._warm.forgo(ctx, seen.session)
        return None

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
            self._preparer.forget(session)
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
