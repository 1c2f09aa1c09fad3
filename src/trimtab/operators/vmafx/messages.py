"""Between objects and the wire: a job as the gRPC services say it."""

from __future__ import annotations

from collections.abc import Mapping

from trimtab.operators.vmafx import claims
from trimtab.operators.vmafx.kinds import Scored, VmafxJob
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
    part = job.spec.segment
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
        segment=wire.Segment(index=part.index, of=part.of) if part else None,
    )


def scored(sent: wire.ReportResultRequest) -> Scored | None:
    """Which frames a node says that a segment has."""
    if not sent.HasField("part"):
        return None
    part = sent.part
    return Scored(
        first=max(0, part.first), count=max(0, part.count), total=max(0, part.total)
    )


def capability(
    sent: wire.NodeCapability, labels: Mapping[str, str] | None = None
) -> Capability:
    """What a node can do."""
    return Capability(
        vendor=sent.gpu_vendor,
        backends=tuple(sent.backends),
        concurrency=sent.concurrency or 1,
        device=sent.device,
        labels=dict(labels or {}),
    )
