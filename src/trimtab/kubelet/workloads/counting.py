"""Counting: what the pods of a Job come to, and what is left to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from trimtab.kubelet.workloads.kinds import Job, Plain, TemplatePod
from trimtab.kubelet.workloads.pods import OVER, is_active, restarts
from trimtab.kubelet.workloads.policies import FAIL_INDEX, FAIL_JOB, judged, parsed

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"
BACKOFF_LIMIT = 6
BEFORE = datetime.min.replace(tzinfo=UTC)


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """What a Job's pods come to."""

    active: Sequence[TemplatePod]
    going: Sequence[TemplatePod]
    """Those that are being deleted, and have not ended yet."""
    failures: Sequence[TemplatePod]
    """All that failed and are still here, the last one last."""
    succeeded_at: datetime
    """When the last one that succeeded did."""
    succeeded: int
    failed: int
    completed: Collection[int] = ()
    """The indexes that are done."""
    broken: Collection[int] = ()
    """The indexes that failed too often, where each has its own limit."""


def summed(job: Job, pods: Sequence[TemplatePod]) -> Sums:
    """Count; what was counted once stays counted."""
    held, policy = job.status, job.spec.podFailurePolicy
    failures = sorted((each for each in pods if has_failed(job, each)), key=finished)
    done = [each for each in pods if each.status.phase == "Succeeded"]
    completed = parsed(held.completedIndexes) | {index_of(each) for each in done}
    good = len(done)
    if is_indexed(job):
        completed &= set(range(job.spec.completions or 0))
        good = len(completed)
    bad = sum(judged(policy, each).counts for each in failures)
    return Sums(
        active=[each for each in pods if is_active(each)],
        going=[each for each in pods if is_going(each)],
        failures=failures,
        succeeded_at=max(map(finished, done), default=BEFORE),
        succeeded=good if is_indexed(job) else max(held.succeeded, good),
        failed=max(held.failed, bad),
        completed=completed if is_indexed(job) else (),
        broken=_broken(job, failures),
    )


def settled(job: Job, sums: Sums, *, well: bool, known: bool) -> Sums:
    """The sums of a Job that ends: what ends with it has failed, unless all is well.

    They are made once; how its last pods end does not change them (``known``).
    """
    if not known:
        failed = sums.failed + (0 if well else len(sums.active))
        return msgspec.structs.replace(sums, failed=failed)
    held = job.status
    return msgspec.structs.replace(
        sums,
        succeeded=held.succeeded,
        failed=held.failed,
        completed=parsed(held.completedIndexes),
        broken=parsed(held.failedIndexes or ""),
    )


def is_indexed(job: Job) -> bool:
    return job.spec.completionMode == "Indexed"


def index_of(pod: TemplatePod) -> int:
    return _number(pod, INDEX, otherwise=-1)


def _number(pod: TemplatePod, name: str, *, otherwise: int = 0) -> int:
    text = pod.metadata.annotations.get(name, "")
    return int(text) if text.isdecimal() else otherwise


def is_going(pod: TemplatePod) -> bool:
    return pod.metadata.deletionTimestamp is not None and pod.status.phase not in OVER


def replaces_only_failed(job: Job) -> bool:
    """Whether a pod that is being deleted keeps its place until it has ended."""
    return job.spec.podReplacementPolicy == "Failed" or bool(job.spec.podFailurePolicy)


def has_failed(job: Job, pod: TemplatePod) -> bool:
    """A pod that is deleted before its end has failed, too."""
    if pod.status.phase == "Failed":
        return True
    return is_going(pod) and not replaces_only_failed(job)


def finished(pod: TemplatePod) -> datetime:
    """When a pod ended, as well as that can be told."""
    ends = [each.state.terminated for each in pod.status.containerStatuses]
    times = [end.finishedAt for end in ends if end is not None and end.finishedAt]
    if times and len(times) == len(ends):
        return max(times)
    ready = pod.status.conditions.get("Ready")
    if ready is not None and ready.status == "False" and ready.lastTransitionTime:
        return ready.lastTransitionTime
    return pod.metadata.creationTimestamp or BEFORE


def _broken(job: Job, failures: Iterable[TemplatePod]) -> set[int]:
    limit = job.spec.backoffLimitPerIndex
    if limit is None:
        return set()
    found = parsed(job.status.failedIndexes or "")
    for each in failures:
        verdict = judged(job.spec.podFailurePolicy, each)
        worn = verdict.counts and _number(each, FAILURES) >= limit
        if index_of(each) >= 0 and (verdict.action == FAIL_INDEX or worn):
            found.add(index_of(each))
    return found & set(range(job.spec.completions or 0))


def failed_before(job: Job, index: int, sums: Sums) -> dict[str, str]:
    """What a new pod of an index is told of those before it."""
    if job.spec.backoffLimitPerIndex is None:
        return {}
    last = last_failure(index, sums)
    if last is None:
        return {FAILURES: "0"}
    counts = judged(job.spec.podFailurePolicy, last).counts
    ignored = _number(last, IGNORED) + (not counts)
    made = {FAILURES: str(_number(last, FAILURES) + counts)}
    return {**made, IGNORED: str(ignored)} if ignored else made


def last_failure(index: int, sums: Sums) -> TemplatePod | None:
    """The pod of an index that failed last."""
    for each in reversed(sums.failures):
        if index_of(each) == index:
            return each
    return None


def tries(pod: TemplatePod) -> int:
    """How many pods of an index have failed by now, with this one."""
    return _number(pod, FAILURES) + _number(pod, IGNORED) + 1


def missing(job: Job, sums: Sums) -> int:
    """How many more pods should be at work; below zero, how many fewer."""
    parallel = 1 if job.spec.parallelism is None else job.spec.parallelism
    begun = len(sums.active)
    if job.spec.completions is None:
        # A queue of work: once one pod succeeded, no new one is begun.
        wanted = begun if sums.succeeded else parallel
    else:
        wanted = max(0, min(parallel, job.spec.completions - sums.succeeded))
    if begun >= wanted:
        return wanted - begun
    held = len(sums.going) if replaces_only_failed(job) else 0
    return max(0, wanted - begun - held)


def pending_indexes(job: Job, sums: Sums) -> list[int]:
    """The indexes for which no pod is at work, nor ever need be again."""
    busy = [*sums.active, *(sums.going if replaces_only_failed(job) else ())]
    taken = {*map(index_of, busy), *sums.completed, *sums.broken}
    return [each for each in range(job.spec.completions or 0) if each not in taken]


def failure(job: Job, sums: Sums, *, late: bool) -> tuple[str, str] | None:
    """Why a Job has failed, if it has."""
    policy = job.spec.podFailurePolicy
    for each in sums.failures:
        verdict = judged(policy, each)
        if verdict.action == FAIL_JOB:
            return "PodFailurePolicy", verdict.message
    limit = BACKOFF_LIMIT if job.spec.backoffLimit is None else job.spec.backoffLimit
    if sums.failed > limit or _restarted_too_often(job, sums, limit):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    if late:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    if not sums.broken:
        return None
    most = job.spec.maxFailedIndexes
    if most is not None and len(sums.broken) > most:
        text = "Job has exceeded the specified maximal number of failed indexes"
        return "MaxFailedIndexesExceeded", text
    if len(sums.broken) + len(sums.completed) >= (job.spec.completions or 0):
        return "FailedIndexes", "Job has failed indexes"
    return None


def _restarted_too_often(job: Job, sums: Sums, limit: int) -> bool:
    spec: Plain = job.spec.template.get("spec") or {}
    if spec.get("restartPolicy") != "OnFailure" or not sums.active:
        return False
    return restarts(sums.active) >= max(1, limit)
