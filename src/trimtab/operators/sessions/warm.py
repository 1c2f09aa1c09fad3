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
from typing import Final

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
from trimtab.kinds import Pod, Secret, WholePod
from trimtab.operators.sessions import names
from trimtab.operators.sessions.calling import Runner, Runners
from trimtab.operators.sessions.environment import KUBERNETES_TOKEN
from trimtab.operators.sessions.kinds import (
    APP,
    SESSION_LABEL,
    AgenticSession,
    WarmPool,
)
from trimtab.operators.sessions.together import both
from trimtab.pool.kinds import WorkerClaim, WorkerClaimSpec
from trimtab.runtime import Context

MANAGER: Final = "sessions.warm"
START: Final = "ambient-code.io/start"
"""On a claim: the start of the session that it was made for."""
WAIT: Final = 2.0
"""Seconds that a session waits for a warm worker before it starts cold."""
BIND: Final = 2.0
HEALTH: Final = 0.5
"""Seconds for a runner that has just taken a session to answer at ``/health``."""
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
    running: Pod | None = None
    """That worker's pod, if its runner has answered already."""


class Waiting(msgspec.Struct, frozen=True):
    """Not yet: it is looked at again then, or when the claim changes."""

    seconds: float


class Cold(TrimtabError):
    """There is no warm worker for this start; the message says why."""


def start_of(session: AgenticSession) -> str:
    """Which start of a session this is: another word for each."""
    since = session.status.startTime
    return f"{rfc3339(since) if since else 'first'}.{session.status.restarts}"


class Warm:
    """Takes workers for sessions, and gives them up.

    Flow: ``claim`` until there is one that is bound, then ``bind`` and ``adopt``;
    ``renew`` now and then; ``release`` when the session is over.

    Guarantees: at most one claim for a session, and at most one worker. A claim of an
    earlier start is given up before one for this start is made. No token is in a log,
    an error or an event.

    Assumptions: what is remembered is only since when a session waits; another process
    that goes on with it waits a full period.
    """

    def __init__(self, caller: Caller, runners: Runners, *, wait: float = WAIT) -> None:
        self._caller = caller
        self._runners = runners
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
        environment: Mapping[str, str],
        *,
        token: str,
    ) -> Pod | None:
        """Tell a worker its session; its pod, which is nobody's yet.

        None means to start cold: the worker does not take the session.
        """
        try:
            return await self._bound(ctx, session, claim, environment, token)
        except Cold as error:
            await self._cold(ctx, session, str(error))
        return None

    async def adopt(
        self, ctx: Context, session: AgenticSession, pod: Pod, *, port: int
    ) -> Taken:
        """Make the pod of a worker that took the session the session's own.

        Meanwhile its runner is asked whether it answers. One that does not at once is
        asked later, as any other is.
        """
        adopted, answers = await both(
            _adopt(ctx.client, session, pod), self._answers(session, pod, port)
        )
        ctx.condition(CONDITION, True, reason="Warm", message="")
        return Taken(
            worker=pod.metadata.name,
            pod_uid=pod.metadata.uid,
            running=adopted if answers else None,
        )

    async def _answers(self, session: AgenticSession, pod: Pod, port: int) -> bool:
        runner = Runner(key=session.key, host=pod.status.podIP, port=port)
        try:
            async with asyncio.timeout(HEALTH):
                await self._runners.health(runner)
        except (TrimtabError, TimeoutError):
            return False
        return True

    async def _cold(self, ctx: Context, session: AgenticSession, why: str) -> None:
        await self.release(ctx, session)
        ctx.condition(CONDITION, False, reason="Cold", message=why)

    async def _claimed(
        self, ctx: Context, session: AgenticSession, pool: WarmPool
    ) -> WorkerClaim | Waiting:
        claim = ctx.get(WorkerClaim, _name(session))
        if claim is None:
            if await self._create(ctx.client, session, pool):
                return self._waiting(session)
            claim = await self._claim(ctx, session)
            if claim is None:
                return self._waiting(session)
        _check(session, claim)
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
        environment: Mapping[str, str],
        token: str,
    ) -> Pod:
        client, namespace = ctx.client, session.metadata.namespace
        pod, shown = await both(
            client.get(WholePod, claim.status.worker, namespace=namespace),
            client.get(Secret, claim.status.tokenSecret, namespace=namespace),
        )
        if APP not in [each.name for each in pod.spec.containers]:
            raise Cold(f"The pool's template has no container {APP}.")
        await self._tell(session, claim, environment, token, shown)
        return pod

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
                shown = await ctx.client.get(
                    Secret, claim.status.tokenSecret, namespace=namespace
                )
                await self._tell(session, claim, environment, token, shown)
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

    async def forgo(self, ctx: Context, session: AgenticSession) -> None:
        """A session starts cold: give up the claim of an earlier look, if any."""
        if ctx.get(WorkerClaim, _name(session)) is not None:
            await self.release(ctx, session)

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
        _check(session, found)
        return found

    async def _create(
        self, client: Client, session: AgenticSession, pool: WarmPool
    ) -> bool:
        """Make a claim; False if there is one."""
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
            return False
        except NotFound as error:
            raise Cold("The API server knows no WorkerClaim.") from error
        return True

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
        session: AgenticSession,
        claim: WorkerClaim,
        environment: Mapping[str, str],
        token: str,
        shown: Secret,
    ) -> None:
        """Tell the worker its session; one that knows it takes what is new."""
        name = session.metadata.name
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


def _check(session: AgenticSession, claim: WorkerClaim) -> None:
    owners = {each.uid for each in claim.metadata.ownerReferences}
    if session.metadata.uid not in owners:
        raise Cold(f"The WorkerClaim {claim.metadata.name} is somebody else's.")


async def _adopt(client: Client, session: AgenticSession, pod: Pod) -> Pod:
    """Mark a worker's pod as the session's own; the pod as it is then."""
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
    return await client.patch(
        Pod, pod.metadata.name, body, namespace=namespace, manager=MANAGER
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
