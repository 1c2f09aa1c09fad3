"""Following a job at a controller elsewhere: submitted once, asked for, cancelled.

Every step is one call with a budget. What goes wrong is a condition of the job, and
the next step comes after ten seconds, or after a minute where only a person can mend.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeVar

import grpc
import msgspec
from msgspec.structs import replace

from trimtab.client import ConfigError
from trimtab.operators.vmafx import answers
from trimtab.operators.vmafx.answers import Missing, Trouble
from trimtab.operators.vmafx.calling import Caller
from trimtab.operators.vmafx.kinds import SUBMITTED_AS, VmafxJob, VmafxJobStatus
from trimtab.operators.vmafx.links import Links
from trimtab.operators.vmafx.wire import controller_pb2 as wire
from trimtab.runtime import Context, Result, Retry

T = TypeVar("T")


class Rhythm(msgspec.Struct, frozen=True, kw_only=True):
    """How often the controller is asked, and how long it is waited for; in seconds."""

    poll: float = 10.0
    # After what only a person can mend.
    mended: float = 60.0
    # For so long a controller may not know a job before the job has failed.
    missing: float = 30.0
    # After so long a deleted job goes, whether or not it could be cancelled.
    given_up: float = 300.0


class Following:
    """The jobs of this cluster at the controller.

    Guarantees: before a job is first submitted its status says that it may be; it is
    submitted again only while no id of it is known, and always with the same key, its
    uid. What is over is never asked for again.
    """

    def __init__(self, links: Links, *, rhythm: Rhythm) -> None:
        self._links = links
        self._rhythm = rhythm

    async def follow(self, seen: VmafxJob, ctx: Context) -> Result:
        """Bring a job one step on."""
        if SUBMITTED_AS in seen.metadata.annotations:
            return self._left_alone(ctx)
        status = replace(
            seen.status,
            observedGeneration=seen.metadata.generation,
            phase=seen.status.phase or "Pending",
        )
        if answers.is_over(status):
            return await self._over(seen, ctx)
        if (left := _left(seen, ctx)) is not None and left <= 0:
            return await self._late(seen, status, ctx)
        if seen.spec.cancel and not _was_submitted(seen):
            return self._end(seen, _cancelled(status, ctx.now), ctx)
        try:
            status = await self._step(seen, status, ctx)
        except Trouble as problem:
            return self._told(seen, status, problem, ctx)
        ctx.condition("Submitted", True, reason="Accepted")
        ctx.condition("Reachable", True, reason="Answered")
        if answers.is_over(status):
            return self._end(seen, status, ctx)
        _conditions(status, ctx)
        return ctx.done(status=status, after=_next(self._rhythm.poll, left))

    def _left_alone(self, ctx: Context) -> Result:
        """A job that a gateway made: it would be submitted there again and again."""
        sentence = "A gateway made this job and has it done: it is not submitted."
        ctx.condition("Submitted", False, reason="MadeByGateway", message=sentence)
        return ctx.done()

    async def _step(
        self, seen: VmafxJob, status: VmafxJobStatus, ctx: Context
    ) -> VmafxJobStatus:
        """One call, or two where the job is to be cancelled."""
        if not (job := _id(seen)):
            if not _was_submitted(seen):
                # An answer may get lost: from here on the controller may have it.
                ctx.condition("Submitted", None, reason="Submitting")
                ctx.status(status)
                await ctx.flush()
            job = await self._submit(seen, ctx)
            ctx.event("Submitted", f"The controller has it as {job}.")
            return replace(status, controllerJobID=job)
        if seen.spec.cancel:
            await self._stop(job, ctx)
        request = wire.GetJobRequest(job_id=job)
        found = await self._call(ctx, lambda caller: caller.get(request))
        return answers.followed(status, found, now=ctx.now)

    async def _submit(self, seen: VmafxJob, ctx: Context) -> str:
        spec = seen.spec
        request = wire.SubmitJobRequest(
            scoring=wire.ScoringParams(
                reference=spec.reference,
                distorted=spec.distorted,
                model=spec.model or "",
                backend=spec.backend or "",
            ),
            idempotency_key=seen.metadata.uid,
            priority=spec.priority,
            segments=spec.segments or 0,
        )
        answer = await self._call(ctx, lambda caller: caller.submit(request))
        if not answer.job_id:
            raise Trouble("The controller gave the job no id.", reason="OtherVersion")
        return answer.job_id

    async def _stop(self, job: str, ctx: Context) -> None:
        request = wire.CancelJobRequest(job_id=job)
        answer = await self._call(ctx, lambda caller: caller.cancel(request))
        if not answer.ok:
            sentence = f"The controller does not cancel the job: {answer.message}"
            raise Trouble(sentence, reason="NotCancelled", passing=True)

    async def _call(self, ctx: Context, call: Callable[[Caller], Awaitable[T]]) -> T:
        try:
            return await call(self._links.caller(ctx.now))
        except (grpc.aio.AioRpcError, ConfigError) as error:
            address = self._links.settings.address
            raise answers.trouble(error, address=address) from error

    def _told(
        self, seen: VmafxJob, status: VmafxJobStatus, problem: Trouble, ctx: Context
    ) -> Result:
        """Say what is wrong, and end the job where nothing can come of it any more."""
        missing = isinstance(problem, Missing)
        about = "Submitted" if missing or problem.final else "Reachable"
        known = seen.status.conditions.get(about)
        if known is None or known.reason != problem.reason:
            ctx.event(problem.reason, str(problem), type="Warning")
        ctx.condition(about, False, reason=problem.reason, message=str(problem))
        rhythm = self._rhythm
        if problem.final or (missing and _missed(seen, ctx) >= rhythm.missing):
            return self._end(seen, answers.ended(status, str(problem), ctx.now), ctx)
        _conditions(status, ctx)
        pause = rhythm.poll if problem.passing else rhythm.mended
        return ctx.done(status=status, after=_next(pause, _left(seen, ctx)))

    async def _late(
        self, seen: VmafxJob, status: VmafxJobStatus, ctx: Context
    ) -> Result:
        with suppress(Trouble):  # it fails here, whatever the controller says
            if job := _id(seen):
                await self._stop(job, ctx)
        why = f"It was not done within its deadline of {seen.spec.deadlineSeconds} s."
        return self._end(seen, answers.ended(status, why, ctx.now), ctx)

    def _end(self, seen: VmafxJob, status: VmafxJobStatus, ctx: Context) -> Result:
        if status.phase == "Cancelled" and self._links.settings.cancelled_as_failed:
            status = replace(status, phase="Failed", message="cancelled by controller")
        _conditions(status, ctx)
        said = status.message or f"The score is {status.score}."
        if status.phase == "Failed":
            ctx.event("Failed", said, type="Warning")
        else:
            ctx.event(str(status.phase), said)
        ttl = seen.spec.ttlSecondsAfterFinished
        return ctx.done(status=status, after=None if ttl is None else float(ttl))

    async def _over(self, seen: VmafxJob, ctx: Context) -> Result:
        ttl, ended = seen.spec.ttlSecondsAfterFinished, seen.status.finishedAt
        if ttl is None or ended is None:
            return ctx.done()
        left = (ended + timedelta(seconds=ttl) - ctx.now).total_seconds()
        if left > 0:
            return ctx.done(after=left)
        await ctx.delete(seen)
        return ctx.done()

    async def cancel(self, seen: VmafxJob, ctx: Context) -> None:
        """Cancel a job that is being deleted, before it goes.

        A controller that is away does not keep it for ever: after five minutes it goes.
        """
        if answers.is_over(seen.status) or not _was_submitted(seen):
            return
        if SUBMITTED_AS in seen.metadata.annotations:
            return
        try:
            await self._stop(_id(seen) or await self._submit(seen, ctx), ctx)
        except Missing:
            return
        except Trouble as problem:
            given_up = self._rhythm.given_up
            asked = seen.metadata.deletionTimestamp or ctx.now
            if problem.final or (ctx.now - asked).total_seconds() > given_up:
                ctx.event("NotCancelled", str(problem), type="Warning")
                return
            raise Retry(str(problem), after=self._rhythm.poll) from problem


def _id(job: VmafxJob) -> str:
    """Its id at the controller; its own uid stands there where there is none."""
    known = job.status.controllerJobID
    return "" if known == job.metadata.uid else known


def _was_submitted(job: VmafxJob) -> bool:
    return bool(_id(job)) or "Submitted" in job.status.conditions


def _missed(job: VmafxJob, ctx: Context) -> float:
    """Seconds for which the controller has not known it."""
    known = job.status.conditions.get("Submitted")
    since = known.lastTransitionTime if known and known.reason == "NotFound" else None
    return 0.0 if since is None else (ctx.now - since).total_seconds()


def _left(job: VmafxJob, ctx: Context) -> float | None:
    """Seconds until its deadline, if it has one."""
    limit, created = job.spec.deadlineSeconds, job.metadata.creationTimestamp
    if limit is None or created is None:
        return None
    return (created + timedelta(seconds=limit) - ctx.now).total_seconds()


def _next(seconds: float, left: float | None) -> float:
    return seconds if left is None else max(0.0, min(seconds, left))


def _cancelled(status: VmafxJobStatus, now: datetime) -> VmafxJobStatus:
    why = "It was cancelled before it was submitted."
    return replace(answers.ended(status, why, now), phase="Cancelled")


def _conditions(status: VmafxJobStatus, ctx: Context) -> None:
    phase = str(status.phase)
    ctx.condition("Scheduled", status.startedAt is not None, reason=phase)
    over = {"Succeeded": True, "Failed": False, "Cancelled": False}.get(phase)
    ctx.condition("Succeeded", over, reason=phase, message=status.message)
