"""The operator of video scoring: it says of each job and node what people look for.

What a job came to is in its run, which the gateway writes; here it becomes a phase, a
score, conditions and events. A finished job goes when its time is up, and a job that is
deleted goes when nobody works on it any more.
"""

from __future__ import annotations

from datetime import timedelta

import trimtab
from trimtab.cache import Index, Scope
from trimtab.operators.vmafx import claims
from trimtab.operators.vmafx.frames import KEY
from trimtab.operators.vmafx.kinds import (
    PerFrame,
    Phase,
    VmafxJob,
    VmafxJobStatus,
    VmafxNode,
)
from trimtab.operators.vmafx.later import VmafxModelTraining, VmafxTenant
from trimtab.operators.vmafx.leases import LEASE
from trimtab.operators.vmafx.pulse import Pulses
from trimtab.runtime import Context, Result, Retry, Watched

FINALIZER = "vmafx.dev/cancel"
# Nodes live where their gateway does, jobs where they like.
_BY_NAME = Index("name", lambda node: (node.metadata.name,))
# Progress is written in steps: a job costs ten writes for it, however long it is.
_STEP = 10
_OVER: dict[str, Phase] = {
    "completed": "Succeeded",
    "failed": "Failed",
    "cancelled": "Cancelled",
}
_REASONS: dict[str, str] = {
    "Pending": "Waiting",
    "Running": "Scoring",
    "Succeeded": "Scored",
    "Failed": "Failed",
    "Cancelled": "Cancelled",
}


def _jobs_of(node: VmafxNode) -> list[tuple[str, str]]:
    return [(doing.namespace, doing.name) for doing in node.status.jobs if doing.name]


def make(
    *, scope: Scope | None = None, pulses: Pulses | None = None
) -> trimtab.Operator:
    """The operator, over all namespaces or some."""
    where = scope or Scope(everything=True)
    heard = pulses or Pulses(LEASE)
    app = trimtab.Operator("vmafx")

    @app.reconciles(
        VmafxJob,
        scope=where,
        watches=[
            Watched(kind=VmafxNode, scope=where, to=_jobs_of, indexes=(_BY_NAME,))
        ],
    )
    async def job(seen: VmafxJob, ctx: Context) -> Result:
        return await _job(seen, ctx)

    @app.finalizes(VmafxJob, FINALIZER)
    async def cancelled(seen: VmafxJob, ctx: Context) -> None:
        if claims.is_running(seen):
            raise Retry(f"{seen} is still being worked on.", after=1.0)

    @app.reconciles(VmafxNode, scope=where)
    async def node(seen: VmafxNode, ctx: Context) -> Result:
        healthy, left = heard.look(seen)
        if healthy != seen.status.healthy:
            word = "answers again" if healthy else "fell silent"
            ctx.event("Healthy" if healthy else "Silent", f"The node {word}.")
        return ctx.done(status=VmafxNode.status_of()(healthy=healthy), after=left)

    @app.reconciles(VmafxModelTraining, scope=where)
    async def training(seen: VmafxModelTraining, ctx: Context) -> Result:
        return _to_come(ctx, "Training")

    @app.reconciles(VmafxTenant, scope=where)
    async def tenant(seen: VmafxTenant, ctx: Context) -> Result:
        return _to_come(ctx, "Tenancy")

    return app


def _to_come(ctx: Context, what: str) -> Result:
    """Say that an object was taken, and that nothing comes of it yet."""
    ctx.condition(
        "Ready",
        False,
        reason="NotImplemented",
        message=f"{what} is not served by this version: the object is kept as it is.",
    )
    return ctx.done()


async def _job(seen: VmafxJob, ctx: Context) -> Result:
    run, phase = seen.status.run, _phase(seen)
    over = phase in _OVER.values()
    if over and (left := _left(seen, ctx)) is not None and left <= 0:
        await ctx.delete(seen)
        return ctx.done()
    _conditions(seen, phase, ctx)
    if seen.status.phase not in (None, phase):
        _tell(seen, phase, ctx)
    status = VmafxJobStatus(
        phase=phase,
        score=run.score if phase == "Succeeded" else None,
        assignedNode=run.node,
        controllerJobID=seen.metadata.uid,
        startedAt=run.since,
        finishedAt=run.ended if over else None,
        message=_sentence(seen, phase) if phase in ("Failed", "Cancelled") else "",
        observedGeneration=seen.metadata.generation,
        attempts=run.attempt,
        progress=100 if phase == "Succeeded" else _progress(seen, ctx),
        features=dict(run.features),
        perFrame=PerFrame(configMap=run.frames, key=KEY) if run.frames else None,
    )
    return ctx.done(status=status, after=_left(seen, ctx) if over else None)


def _tell(job: VmafxJob, phase: Phase, ctx: Context) -> None:
    sentence = _sentence(job, phase)
    if phase == "Failed":
        ctx.event(_REASONS[phase], sentence, type="Warning")
    else:
        ctx.event(_REASONS[phase], sentence)


def _phase(job: VmafxJob) -> Phase:
    if claims.is_running(job):
        return "Running"
    return _OVER.get(job.status.run.outcome, "Pending")


def _left(job: VmafxJob, ctx: Context) -> float | None:
    """Seconds until a finished job goes, if it does."""
    ttl, ended = job.spec.ttlSecondsAfterFinished, job.status.run.ended
    if ttl is None or ended is None:
        return None
    return (ended + timedelta(seconds=ttl) - ctx.now).total_seconds()


def _progress(job: VmafxJob, ctx: Context) -> int | None:
    """Percent, as the node said at its last beat."""
    run = job.status.run
    if not claims.is_running(job):
        return None
    for node in ctx.select(VmafxNode, _BY_NAME.name, run.node):
        for doing in node.status.jobs:
            if (doing.job, doing.attempt) == (job.metadata.uid, run.attempt):
                return doing.progress // _STEP * _STEP
    return 0


def _conditions(job: VmafxJob, phase: Phase, ctx: Context) -> None:
    ctx.condition("Submitted", True, reason="Accepted")
    ctx.condition("Scheduled", job.status.run.attempt > 0, reason=_REASONS[phase])
    ended = {"Succeeded": True, "Failed": False, "Cancelled": False}.get(phase)
    ctx.condition(
        "Succeeded", ended, reason=_REASONS[phase], message=_sentence(job, phase)
    )


def _sentence(job: VmafxJob, phase: Phase) -> str:
    run = job.status.run
    if phase == "Succeeded":
        return f"The score is {run.score:.4f}." if run.score is not None else ""
    if phase == "Failed":
        return run.error or "It failed, and its node did not say why."
    if phase == "Cancelled":
        return run.error or "It was cancelled."
    if phase == "Running":
        return f"Node {run.node} is scoring it, in attempt {run.attempt}."
    return run.error or "It waits for a node."
