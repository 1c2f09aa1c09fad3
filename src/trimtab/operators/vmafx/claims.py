"""The rules of a job's run: who may claim it, report it, give it back or end it.

Pure: each rule looks at a job as it was read and says what its run becomes, or why not.
Whoever applies it swaps the run for the revision that was read, so of two who try, one
wins. Nothing here looks at a clock: silence and backoff are measured by who asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import structs
from msgspec.structs import replace

from trimtab.client.errors import TrimtabError
from trimtab.operators.vmafx.kinds import Outcome, Run, Scored, VmafxJob
from trimtab.operators.vmafx.pooling import joined
from trimtab.operators.vmafx.segments import Part, problem

BACKOFF_FIRST = 5.0
BACKOFF_LONGEST = 300.0
_LONGEST_ERROR = 1024

# After these a job never runs again.
FINAL: frozenset[Outcome] = frozenset({"completed", "failed", "cancelled"})


class NotYours(TrimtabError):
    """Somebody else has the job, or nobody: what was reported is not written."""


class NotFree(TrimtabError):
    """The job cannot be claimed now."""


def is_over(job: VmafxJob) -> bool:
    """Whether its outcome is final."""
    return job.status.run.outcome in FINAL


def is_running(job: VmafxJob) -> bool:
    """Whether somebody has it."""
    run = job.status.run
    return run.attempt > 0 and run.outcome == ""


def is_held(job: VmafxJob) -> bool:
    """Whether a node has it: a job that is split is never one node's."""
    return is_running(job) and not is_split(job)


def is_split(job: VmafxJob) -> bool:
    """Whether its segments are scored in its place."""
    return (job.spec.segments or 1) > 1


def backoff(job: VmafxJob) -> float:
    """Seconds that a job waits after its last attempt was lost."""
    run = job.status.run
    if run.outcome != "expired" or run.lost == 0:
        return 0.0
    return min(BACKOFF_LONGEST, BACKOFF_FIRST * 2.0 ** (run.lost - 1))


def claim(job: VmafxJob, *, node: str, session: str, now: datetime) -> Run:
    """The run with a new attempt, held by a node.

    Errors: :class:`NotFree` when it is over, running, split or to be cancelled.
    """
    if is_over(job) or is_running(job) or is_split(job) or job.spec.cancel:
        raise NotFree(f"Job {job.metadata.name} is not waiting for a node.")
    run = job.status.run
    return Run(
        attempt=run.attempt + 1,
        lost=run.lost,
        fence=run.fence,
        node=node,
        session=session,
        since=now,
    )


def report(
    job: VmafxJob,
    *,
    session: str,
    attempt: int,
    now: datetime,
    score: float | None = None,
    features: Mapping[str, float] | None = None,
    frames: str = "",
    scored: Scored | None = None,
    reused: bool = False,
    error: str = "",
    retryable: bool = False,
) -> Run | None:
    """The run with its result, or None when the same result is there already.

    An error that may pass counts as a lost attempt; any other is final. That of a job
    which nobody wants any more is its cancellation.

    Errors: :class:`NotYours` for an attempt that another has, or that was given back
    or lost.
    """
    run = job.status.run
    if (run.session, run.attempt) != (session, attempt):
        raise _not_yours(job)
    if run.outcome in FINAL:
        return None  # it was said before, or the job was cancelled meanwhile
    if run.outcome:
        raise _not_yours(job)
    if not error and job.spec.segment is not None and scored is None:
        error = f"Node {run.node} scores no segments: update it."
        retryable = True
    if not error:
        found = dict(features or {})
        return replace(
            run,
            outcome="completed",
            ended=now,
            score=score,
            features=found,
            frames=frames,
            scored=scored,
            reused=reused,
        )
    if job.spec.cancel:
        return cancel(job, now=now)  # that is why: some nodes report it as an error
    if retryable:
        return _lost(job, now=now, error=error)
    return replace(run, outcome="failed", ended=now, error=_short(error))


def release(job: VmafxJob, *, session: str, attempt: int, now: datetime) -> Run | None:
    """The run given back by a node that stops; it is not counted as lost."""
    run = job.status.run
    if (run.session, run.attempt) != (session, attempt):
        raise _not_yours(job)
    if run.outcome:
        return None
    return replace(run, outcome="released", ended=now, node="", session="")


def expire(job: VmafxJob, *, attempt: int, now: datetime) -> Run:
    """The run of a node that fell silent: to be tried again, or given up.

    Errors: :class:`NotFree` when nobody has it, or this is not the attempt that was
    silent.
    """
    if not is_running(job) or job.status.run.attempt != attempt:
        raise NotFree(f"Nobody works on attempt {attempt} of {job.metadata.name}.")
    node = job.status.run.node
    return _lost(job, now=now, error=f"Node {node} fell silent while it had the job.")


def cancel(job: VmafxJob, *, now: datetime, why: str = "") -> Run | None:
    """The run of a job that somebody does not want any more; None when it is over."""
    if is_over(job):
        return None
    return replace(job.status.run, outcome="cancelled", ended=now, error=why)


def fail(job: VmafxJob, *, now: datetime, why: str) -> Run | None:
    """The run of a job that cannot succeed; None when it is over already."""
    if is_over(job):
        return None
    return replace(job.status.run, outcome="failed", ended=now, error=why)


def begin(job: VmafxJob, *, now: datetime) -> Run | None:
    """The run of a split job whose first segment is being scored."""
    if is_over(job) or is_running(job) or not is_split(job):
        return None
    return replace(job.status.run, attempt=1, since=now)


def join(
    job: VmafxJob, segments: Sequence[VmafxJob], *, frames: str, now: datetime
) -> Run | None:
    """The run of a split job whose segments are all scored; None when it is over.

    Guarantees: its values are the means over all frames of all segments.
    """
    if is_over(job):
        return None
    runs = [segment.status.run for segment in segments]
    parts = [run.scored or Scored(first=0, count=0, total=0) for run in runs]
    if why := problem([Part(**structs.asdict(part)) for part in parts]):
        error = f"The segments of {job.metadata.name} do not fit together: {why}."
        return fail(job, now=now, why=error)
    filled = [
        (run, part.count) for run, part in zip(runs, parts, strict=True) if part.count
    ]
    # Nodes of different versions may know different features.
    known = set.intersection(*({*run.features} for run, _ in filled))
    return replace(
        job.status.run,
        attempt=1,
        since=job.status.run.since or now,
        ended=now,
        outcome="completed",
        score=joined((run.score or 0.0, count) for run, count in filled),
        features={
            name: joined((run.features[name], count) for run, count in filled)
            for name in sorted(known)
        },
        frames=frames,
    )


def end_with(job: VmafxJob, segment: VmafxJob, *, now: datetime) -> Run | None:
    """The run of a split job that cannot succeed, because this segment did not."""
    run, part = segment.status.run, segment.spec.segment
    assert part is not None
    which = f"segment {part.index + 1} of {part.of}"
    if run.outcome == "cancelled":
        return cancel(job, now=now, why=f"Its {which} was cancelled.")
    said = run.error.removesuffix(".") or "It failed"
    return fail(job, now=now, why=_short(f"{said} ({which})."))


def _lost(job: VmafxJob, *, now: datetime, error: str) -> Run:
    run = job.status.run
    lost = run.lost + 1
    gone = replace(run, lost=lost, ended=now, session="", error=_short(error))
    if lost < job.spec.maxAttempts:
        return replace(gone, outcome="expired", node="")
    last = f"It is given up after attempt {lost}: {error}"
    return replace(gone, outcome="failed", error=_short(last))


def _short(error: str) -> str:
    return error if len(error) <= _LONGEST_ERROR else error[: _LONGEST_ERROR - 1] + "…"


def _not_yours(job: VmafxJob) -> NotYours:
    return NotYours(
        f"Job {job.metadata.name} is not assigned to this node: its report is refused."
    )
