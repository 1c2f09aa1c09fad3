"""Splitting: the segments of a job, which are jobs of their own.

The operator makes them, owned by the job, while it is not over, and deletes them when
it is. What they are called follows from the job, so that whoever has the job finds
them, and nobody else's job is taken for one.
"""

from __future__ import annotations

from collections.abc import Callable

from trimtab.api import Metadata, fit, owner_of
from trimtab.operators.vmafx import claims
from trimtab.operators.vmafx.kinds import SEGMENT_OF, PartOf, VmafxJob, VmafxJobSpec
from trimtab.runtime import Context

Key = tuple[str, str]
RHYTHM = 3.0
"""Seconds after which the operator looks again how the segments of a job are."""


def keys(job: VmafxJob) -> list[Key]:
    """Where the segments of a split job are, in order."""
    stem = f"{job.metadata.name}-{job.metadata.uid[:8]}"
    return [
        (job.metadata.namespace, fit(f"{stem}-{index}"))
        for index in range(job.spec.segments or 0)
    ]


def segments(
    job: VmafxJob, find: Callable[[Key], VmafxJob | None]
) -> list[VmafxJob | None]:
    """The segments of a split job, in order; None stands for one that is not there."""
    return [
        each if each is not None and _is_of(each, job) else None
        for each in map(find, keys(job))
    ]


def _is_of(segment: VmafxJob, job: VmafxJob) -> bool:
    owners = {owner.uid for owner in segment.metadata.ownerReferences}
    return segment.spec.segment is not None and job.metadata.uid in owners


def whole(segment: VmafxJob) -> Key | None:
    """The job that a segment is of."""
    if segment.spec.segment is None:
        return None
    for owner in segment.metadata.ownerReferences:
        if owner.kind == VmafxJob.kind:
            return (segment.metadata.namespace, owner.name)
    return None


async def split(job: VmafxJob, ctx: Context) -> None:
    """Have the segments of a split job while it is not over, and then no more.

    One that somebody deleted is made, and scored, again.
    """
    found = segments(job, _finder(ctx))
    if claims.is_over(job):
        for each in found:
            if each is not None and each.metadata.deletionTimestamp is None:
                await ctx.delete(each)
        return
    for index, each in enumerate(found):
        if each is None and not job.spec.cancel:
            await ctx.apply(segment(job, index))


def progress(job: VmafxJob, ctx: Context) -> int:
    """Percent, of all its segments together."""
    found = [each for each in segments(job, _finder(ctx)) if each is not None]
    done = sum(each.status.progress or 0 for each in found)
    return done // (job.spec.segments or 1)


def _finder(ctx: Context) -> Callable[[Key], VmafxJob | None]:
    return lambda key: ctx.get(VmafxJob, key[1], namespace=key[0])


def segment(job: VmafxJob, index: int) -> VmafxJob:
    """One segment of a job: as the job, but for which frames it has."""
    spec = job.spec
    assert spec.segments is not None
    namespace, name = keys(job)[index]
    return VmafxJob(
        metadata=Metadata(
            name=name,
            namespace=namespace,
            labels={SEGMENT_OF: fit(job.metadata.name)},
            ownerReferences=[owner_of(job)],
        ),
        spec=VmafxJobSpec(
            reference=spec.reference,
            distorted=spec.distorted,
            model=spec.model,
            backend=spec.backend,
            priority=spec.priority,
            deadlineSeconds=spec.deadlineSeconds,
            maxAttempts=spec.maxAttempts,
            segment=PartOf(index=index, of=spec.segments),
        ),
    )
