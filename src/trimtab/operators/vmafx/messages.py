"""Between objects and the wire: a job as the gRPC services say it."""

from __future__ import annotations

from trimtab.operators.vmafx import claims
from trimtab.operators.vmafx.kinds import VmafxJob
from trimtab.operators.vmafx.nodes import Capability
from trimtab.operators.vmafx.wire import controller_pb2 as wire

_STATUS = {
    "completed": wire.COMPLETED,
    "failed": wire.FAILED,
    "cancelled": wire.CANCELLED,
}


def status(job: VmafxJob) -> wire.JobStatus:
    """Where a job is, in the words of the wire."""
    if claims.is_running(job):
        return wire.RUNNING
    return _STATUS.get(job.status.run.outcome, wire.PENDING)


def message(job: VmafxJob, *, roots: tuple[str, ...] = ()) -> wire.Job:
    """A job as it is sent."""
    run, metadata = job.status.run, job.metadata
    created = metadata.creationTimestamp
    updated = run.ended or run.since or created
    return wire.Job(
        id=metadata.uid,
        status=status(job),
        scoring=wire.ScoringParams(
            reference=job.spec.reference,
            distorted=job.spec.distorted,
            model=job.spec.model or "",
            backend=job.spec.backend or "",
        ),
        assigned_node=run.node,
        error=run.error if claims.is_over(job) else "",
        created_at=int(created.timestamp()) if created else 0,
        updated_at=int(updated.timestamp()) if updated else 0,
        final_score=run.score or 0.0,
        scoring_roots=roots,
        attempt=run.attempt,
        namespace=metadata.namespace,
        name=metadata.name,
        priority=job.spec.priority,
        features=dict(run.features),
    )


def capability(sent: wire.NodeCapability) -> Capability:
    """What a node can do."""
    return Capability(
        vendor=sent.gpu_vendor,
        backends=tuple(sent.backends),
        concurrency=sent.concurrency or 1,
        device=sent.device,
    )
