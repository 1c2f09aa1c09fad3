"""Warm starts: a session takes a runner that waits in a pool, or starts a pod as usual.

A worker is asked for by a WorkerClaim that belongs to the session, so whoever operates
may end at any moment and the next one finds what was begun. When it is bound, the
worker is told its session by one call, and its pod is marked as the session's: from
there on it is a pod like any other. It is never used for a second session.

Whatever goes wrong on the way makes a cold start of it, and a condition says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from trimtab.api import Metadata, owner_of, wire
from trimtab.api.times import rfc3339
from trimtab.cache import Key
from trimtab.client import (
    AlreadyExists,
    Client,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TrimtabError,
)
from trimtab.client.calling import Caller, NoReply, Place
from trimtab.kinds import Secret, WholePod
from trimtab.operators.sessions import names
from trimtab.operators.sessions.environment import KUBERNETES_TOKEN, Facts
from trimtab.operators.sessions.kinds import (
    APP,
    SESSION_LABEL,
    AgenticSession,
    WarmPool,
)
from trimtab.operators.sessions.settings import Settings
from trimtab.operators.sessions.variables import variables
from trimtab.pool.kinds import WorkerClaim, WorkerClaimSpec
from trimtab.runtime import Context

Plain = dict[str, Any]

MANAGER: Final = "sessions.warm"
START: Final = "ambient-code.io/start"
"""On a claim: the start of the session that it was made for."""
WAIT: Final = 2.0
"""Seconds that a session waits for a warm worker before it starts cold."""
BIND: Final = 2.0
AGAIN: Final = 30.0
PATH: Final = "/session"
CONDITION: Final = "WarmStart"
OFF: Final = "This operator takes no warm workers; set WARM_POOLS=true on it."
BOT_TOKEN: Final = "bot-token"
"""The file that a runner reads its token for the API server from."""
REMEMBERED: Final = 4096


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that is the session's now."""

    pod_uid: str
    worker: str = ""
    """The worker that it is, if it comes from a pool."""


class Waiting(msgspec.Struct, frozen=True):
    """Not yet: it is looked at again then, or when the claim changes."""

    seconds: float


class Cold(TrimtabError):
    """There is no warm worker for this start; the message says why."""


def why_cold(settings: Settings, facts: Facts) -> str | None:
    """Why the sessions of a project cannot start warm; None if they can.

    A pod that waits has no volume and no container that only one session needs.
    """
    if settings.vertex is not None:
        return "The credentials for Vertex are a volume, which no pod that waits has."
    if facts.storage:
        return "Its state is kept by a container that no pod that waits has."
    return None


def start_of(session: AgenticSession) -> str:
    """Which start of a session this is: another word for each."""
    since = session.status.startTime
    return f"{rfc3339(since) if since else 'first'}.{session.status.restarts}"


class Warm:
    """Takes workers for sessions, and gives them up.

    Flow: ``claim`` until there is one that is bound, then ``bind``; ``renew`` now and
    then; ``release`` when the session is over.

    Guarantees: at most one claim for a session, and at most one worker. A claim of an
    earlier start is given up before one for this start is made. No token is in a log,
    an error or an event.

    Assumptions: what is remembered is only since when a session waits; another process
    that goes on with it waits a full period.
    """

    def __init__(self, caller: Caller, *, wait: float = WAIT) -> None:
        self._caller = caller
        self._wait = wait
        self._since: dict[Key, float] = {}
        self._told: dict[Key, str] = {}
        """The token that each runner was last told."""

    async def claim(
        self, ctx: Context, session: AgenticSession, pool: WarmPool
    ) -> WorkerClaim | Waiting | None:
        """A claim that is bound to a worker, as soon as there is one; None: start cold.

        Errors: whatever the server answers, and nothing is lost by another call.
        """
        try:
            return await self._claimed(ctx, session, pool)
        except (Cold, Forbidden, Invalid) as error:
            await self._cold(ctx, session, str(error))
        return None

    async def bind(
        self,
        ctx: Context,
        session: AgenticSession,
        claim: WorkerClaim,
        container: Plain,
        *,
        problem: str | None,
    ) -> Taken | None:
        """Make a worker the session's runner; ``container`` is what a pod would run.

        None means to start cold: for the problem that there is, or because the worker
        does not take the session.
        """
        try:
            if problem is not None:
                raise Cold(problem)
            taken = await self._bound(ctx, session, claim, container)
        except Cold as error:
            await self._cold(ctx, session, str(error))
            return None
        ctx.condition(CONDITION, True, reason="Warm", message="")
        return taken

    async def _cold(self, ctx: Context, session: AgenticSession, why: str) -> None:
        await self.release(ctx, session)
        ctx.condition(CONDITION, False, reason="Cold", message=why)

    async def _claimed(
        self, ctx: Context, session: AgenticSession, pool: WarmPool
    ) -> WorkerClaim | Waiting:
        claim = await self._claim(ctx, session)
        if claim is None:
            await self._create(ctx.client, session, pool)
            return self._waiting(session)
        going = claim.metadata.deletionTimestamp is not None
        if going or claim.metadata.annotations.get(START) != start_of(session):
            waiting = self._waiting(session)
            if not going:
                await _delete(ctx.client, claim)
            return waiting
        if claim.status.state == "Pending":
            return self._waiting(session)
        self._since.pop(session.key, None)
        if claim.status.state != "Bound":
            told = claim.status.conditions.get("Bound")
            raise Cold(f"The pool {pool.pool} refused: {told.message if told else ''}")
        return claim

    async def _bound(
        self,
        ctx: Context,
        session: AgenticSession,
        claim: WorkerClaim,
        container: Plain,
    ) -> Taken:
        client, namespace = ctx.client, session.metadata.namespace
        worker, token = claim.status.worker, await _token(ctx, session)
        pod = await client.get(WholePod, worker, namespace=namespace)
        if APP not in [each.name for each in pod.spec.containers]:
            raise Cold(f"The pool's template has no container {APP}.")
        environment = await variables(client, namespace, container)
        await self._tell(client, session, claim, environment, token)
        # Not before: a worker that did not take the session is no pod of it.
        await _adopt(client, session, pod)
        return Taken(worker=worker, pod_uid=pod.metadata.uid)

    async def renew(self, ctx: Context, session: AgenticSession) -> float | None:
        """Give a runner its token if that is another; seconds until the next try."""
        token = await _token(ctx, session)
        if self._told.get(session.key) == token:
            return None
        namespace, name = session.key
        environment = {
            "AGENTIC_SESSION_NAME": name,
            "AGENTIC_SESSION_NAMESPACE": namespace,
        }
        try:
            claim = await self._claim(ctx, session)
            if claim is not None and claim.status.state == "Bound":
                await self._tell(ctx.client, session, claim, environment, token)
        except Cold as error:
            ctx.log.warning("Its token was renewed and not taken yet: %s", error)
            return AGAIN
        return None

    async def release(self, ctx: Context, session: AgenticSession) -> None:
        """Give up what a session has of a pool; nothing is fine, too."""
        self._told.pop(session.key, None)
        self._since.pop(session.key, None)
        with suppress(Cold):
            claim = await self._claim(ctx, session)
            if claim is not None and claim.metadata.deletionTimestamp is None:
                await _delete(ctx.client, claim)

    # The claim

    async def _claim(self, ctx: Context, session: AgenticSession) -> WorkerClaim | None:
        """The claim of a session; that there is none is not believed of a cache."""
        namespace, name = session.metadata.namespace, _name(session)
        found = ctx.get(WorkerClaim, name)
        if found is None:
            try:
                found = await ctx.client.get(WorkerClaim, name, namespace=namespace)
            except NotFound:
                return None
        owners = {each.uid for each in found.metadata.ownerReferences}
        if session.metadata.uid not in owners:
            raise Cold(f"The WorkerClaim {name} is somebody else's.")
        return found

    async def _create(
        self, client: Client, session: AgenticSession, pool: WarmPool
    ) -> None:
        namespace, name = session.key
        claim = WorkerClaim(
            metadata=Metadata(
                name=_name(session),
                namespace=namespace,
                labels={SESSION_LABEL: name, "app": APP},
                annotations={START: start_of(session)},
                ownerReferences=[owner_of(session)],
            ),
            # Not parked afterwards: a runner is never another session's.
            spec=WorkerClaimSpec(
                pool=pool.pool, tenant=namespace, shape=pool.shape, ttl=0
            ),
        )
        try:
            await client.create(claim, manager=MANAGER)
        except AlreadyExists:
            return
        except NotFound as error:
            raise Cold("The API server knows no WorkerClaim.") from error

    def _waiting(self, session: AgenticSession) -> Waiting:
        now = asyncio.get_running_loop().time()
        if len(self._since) >= REMEMBERED:
            del self._since[next(iter(self._since))]
        left = self._since.setdefault(session.key, now) + self._wait - now
        if left <= 0:
            raise Cold(f"No warm worker was free within {self._wait:g} s.")
        return Waiting(left)

    # The worker

    async def _tell(
        self,
        client: Client,
        session: AgenticSession,
        claim: WorkerClaim,
        environment: Mapping[str, str],
        token: str,
    ) -> None:
        """Tell the worker its session; one that knows it takes what is new."""
        namespace, name = session.key
        shown = await client.get(Secret, claim.status.tokenSecret, namespace=namespace)
        bearer = shown.data.get("token", b"").decode()
        body = {"environment": environment, "files": {BOT_TOKEN: token}}
        try:
            reply = await self._caller.call(
                _place(claim, ca=shown.data.get("ca.crt")),
                "POST",
                PATH,
                headers=(
                    ("Authorization", f"Bearer {bearer}"),
                    ("Content-Type", "application/json"),
                ),
                body=msgspec.json.encode(body),
                within=BIND,
                limit=64 * 1024,
            )
        except NoReply as error:
            raise Cold(f"The warm worker did not take {name}: {error}.") from error
        if reply.status != 200:
            raise Cold(f"The warm worker answered {name} with {reply.status}.")
        if len(self._told) >= REMEMBERED:
            del self._told[next(iter(self._told))]
        self._told[session.key] = token


async def _adopt(client: Client, session: AgenticSession, pod: WholePod) -> None:
    """Mark a worker's pod as the session's own."""
    owners = [wire(each) for each in pod.metadata.ownerReferences]
    if session.metadata.uid not in [each["uid"] for each in owners]:
        owners.append(wire(owner_of(session, controller=False)))
    namespace, name = session.key
    body = {
        "metadata": {
            "uid": pod.metadata.uid,
            "labels": {SESSION_LABEL: name, "app": APP},
            "ownerReferences": owners,
        }
    }
    await client.patch(
        WholePod, pod.metadata.name, body, namespace=namespace, manager=MANAGER
    )


def _name(session: AgenticSession) -> str:
    """What the claim of a session is called: as the pod that it stands for."""
    return names.pod_name(session.metadata.name)


async def _delete(client: Client, claim: WorkerClaim) -> None:
    """Give up this very claim; it goes when its worker was released."""
    with suppress(NotFound, Conflict):
        await client.delete(
            WorkerClaim,
            claim.metadata.name,
            namespace=claim.metadata.namespace,
            uid=claim.metadata.uid,
        )


def _place(claim: WorkerClaim, *, ca: bytes | None) -> Place:
    host, _, port = claim.status.address.rpartition(":")
    return Place(
        host=host.strip("[]"), port=int(port), name=claim.status.worker, ca=ca or b""
    )


async def _token(ctx: Context, session: AgenticSession) -> str:
    """What a runner shows to the API server."""
    namespace, name = session.key
    secret = await ctx.client.get(
        Secret, names.token_secret_name(name), namespace=namespace
    )
    return secret.data.get(KUBERNETES_TOKEN, b"").decode()
