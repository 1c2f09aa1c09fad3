"""The operator of video scoring: it says of each job and node what people look for.

What a job came to is in its run, which the gateway writes; here it becomes a phase, a
score, conditions and events. A finished job goes when its time is up, and a job that is
deleted goes when nobody works on it any more.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from random import Random

import trimtab
from trimtab.cache import Index, Scope
from trimtab.operators.vmafx import admission, claims, splitting
from trimtab.operators.vmafx.kinds import (
    FRAMES_KEY,
    PerFrame,
    Phase,
    VmafxJob,
    VmafxJobStatus,
    VmafxNode,
)
from trimtab.operators.vmafx.leases import LEASE
from trimtab.operators.vmafx.pulse import Pulses
from trimtab.operators.vmafx.scaling import reconciling as nodesets
from trimtab.operators.vmafx.tenancy import reconciling as tenants
from trimtab.operators.vmafx.training import reconciling
from trimtab.operators.vmafx.training.podspec import settings_of
from trimtab.runtime import Context, Result, Retry, Watched

FINALIZER = "vmafx.dev/cancel"
CONTROLLER = "VMAFX_CONTROLLER_GRPC_ADDR"
# For programs that know no such phase: a cancelled job is shown as vmafx shows it.
CANCELLED_AS_FAILED = "VMAFX_CANCELLED_AS_FAILED"
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
    *,
    scope: Scope | None = None,
    random: Random,
    pulses: Pulses | None = None,
    environment: Mapping[str, str] = os.environ,
) -> trimtab.Operator:
    """The operator, over all namespaces or some; ``random`` makes keys.

    An environment that names a controller (``VMAFX_CONTROLLER_GRPC_ADDR``) makes one
    that has its jobs done there.

    Errors: :class:`ConfigError` for settings of it that make no sense together.
    """
    where = scope or Scope(everything=True)
    app = trimtab.Operator("vmafx", optional_webhooks=True)
    admission.declare(app)
    if environment.get(CONTROLLER):
        # Here, because gRPC costs memory that an operator without it does not need.
        from trimtab.operators.vmafx import remote

        remote.declare(app, remote.links_of(environment), scope=where)
        return app
    heard = pulses or Pulses(LEASE)
    theirs = environment.get(CANCELLED_AS_FAILED, "").lower() in ("1", "t", "true")

    @app.reconciles(
        VmafxJob,
        scope=where,
        watches=[
            Watched(kind=VmafxNode, scope=where, to=_jobs_of, indexes=(_BY_NAME,))
        ],
    )
    async def job(seen: VmafxJob, ctx: Context) -> Result:
        return await _job(seen, ctx, theirs=theirs)

    # Its segments, which are owned by the job.
    app.needs(VmafxJob, "create", "patch", "delete")
    app.needs(VmafxJob, "update", subresource="finalizers")

    @app.finalizes(VmafxJob, FINALIZER)
    async def cancelled(seen: VmafxJob, ctx: Context) -> None:
        if claims.is_running(seen):
            raise Retry(f"{seen} is still being worked on.", after=1.0)

    @app.reconciles(VmafxNode, scope=where)
    async def node(seen: VmafxNode, ctx: Context) -> Result:
        return await _node(seen, ctx, heard=heard)

    trained = settings_of(environment)
    reconciling.declare(app, scope=where, settings=trained, random=random)
    tenants.declare(app, scope=where)
    nodesets.declare(app, scope=where)

    return app


async def _node(seen: VmafxNode, ctx: Context, *, heard: Pulses) -> Result:
    healthy, left = heard.look(seen)
    if left is not None and left <= 0:
        await ctx.delete(seen)
        return ctx.done()
    if healthy != seen.status.healthy:
        word = "answers again" if healthy else "fell silent"
        ctx.event("Healthy" if healthy else "Silent", f"The node {word}.")
    return ctx.done(status=VmafxNode.status_of()(healthy=healthy), after=left)


async def _job(seen: VmafxJob, ctx: Context, *, theirs: bool) -> Result:
    run, phase = seen.status.run, _phase(seen)
    over = phase in _OVER.values()
    if over and (left := _left(seen, ctx)) is not None and left <= 0:
        await ctx.delete(seen)
        return ctx.done()
    if claims.is_split(seen):
        await splitting.split(seen, ctx)
    _conditions(seen, phase, ctx)
    as_failed = theirs and phase == "Cancelled"
    shown: Phase = "Failed" if as_failed else phase
    if seen.status.phase not in (None, shown):
        _tell(seen, phase, ctx)
    status = VmafxJobStatus(
        phase=shown,
        score=run.score if phase == "Succeeded" else None,
        assignedNode=run.node,
        controllerJobID=seen.metadata.uid,
        startedAt=run.since,
        finishedAt=run.ended if over else None,
        message="cancelled by controller" if as_failed else _message(seen, phase),
        observedGeneration=seen.metadata.generation,
        attempts=run.attempt,
        progress=100 if phase == "Succeeded" else _progress(seen, ctx),
        features=dict(run.features),
        perFrame=PerFrame(configMap=run.frames, key=FRAMES_KEY) if run.frames else None,
    )
    if over:
        return ctx.done(status=status, after=_left(seen, ctx))
    # Its segments are jobs as well, and do not wake it.
    split = claims.is_split(seen)
    return ctx.done(status=status, after=splitting.RHYTHM if split else None)


def _message(job: VmafxJob, phase: Phase) -> str:
    return _sentence(job, phase) if phase in ("Failed", "Cancelled") else ""


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
    if claims.is_split(job):
        return splitting.progress(job, ctx) // _STEP * _STEP
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
    if phase == "Running" and claims.is_split(job):
        return "Its segments are being scored."
    if phase == "Running":
        return f"Node {run.node} is scoring it, in attempt {run.attempt}."
    return run.error or "It waits for a node."
