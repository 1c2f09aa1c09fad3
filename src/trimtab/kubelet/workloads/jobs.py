"""Jobs: pods until enough of them have succeeded, or it is time to give up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from random import Random
from typing import Any, NamedTuple

import msgspec

from trimtab.api.times import parse_rfc3339, rfc3339
from trimtab.kubelet.workloads import statuses
from trimtab.kubelet.workloads.counting import (
    INDEX,
    Sums,
    failed_before,
    failure,
    finished,
    is_indexed,
    last_failure,
    missing,
    pending_indexes,
    settled,
    summed,
    tries,
)
from trimtab.kubelet.workloads.kinds import Job, Plain, TemplatePod
from trimtab.kubelet.workloads.pods import (
    LONGEST,
    cleaned,
    is_ready,
    made_from,
    suffix,
)
from trimtab.kubelet.workloads.policies import enough, spans
from trimtab.runtime.backoff import Backoff
from trimtab.runtime.context import Context
from trimtab.runtime.reconcile import Result

OURS = (None, "kubernetes.io/job-controller")
"""Who reconciles a Job, if it is for us to do."""
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
LONGEST_HOST = 63
PAUSES = Backoff(first=10.0, factor=2.0, cap=600.0, jitter=0.0)


class Ending(NamedTuple):
    """That a Job is to end, and why: first said so, and again when no pod is left."""

    well: bool
    reason: str
    message: str

    @property
    def first(self) -> str:
        return "SuccessCriteriaMet" if self.well else "FailureTarget"

    @property
    def last(self) -> str:
        return "Complete" if self.well else "Failed"


ENOUGH = Ending(True, "CompletionsReached", "Reached expected number of succeeded pods")


class Jobs:
    """The handler; ``pauses`` are those after pods that failed."""

    def __init__(self, random: Random, *, pauses: Backoff = PAUSES) -> None:
        self._random = random
        self._pauses = pauses

    async def __call__(self, job: Job, ctx: Context) -> Result:
        if over_since(job):
            return await self._clean(job, ctx)
        if job.metadata.deletionTimestamp or job.spec.managedBy not in OURS:
            return Result()
        sums = summed(job, ctx.children(TemplatePod))
        left = _left(job, ctx.now)
        ending = _ending(job, sums, late=left is not None and left <= 0)
        if ending is not None:
            sums = settled(job, sums, well=ending.well, known=_is_ending(job))
            # First: pods that go because of it would count as failures of their own.
            await self._tell(job, ctx, _without(sums, sums.active), ending)
            await self._end(ctx, sums, sums.active)
            return Result()
        wait: float | None = None
        if job.spec.suspend:
            sums = await self._end(ctx, sums, sums.active)
        else:
            wait, sums = await self._work(job, ctx, sums)
        await self._tell(job, ctx, sums)
        waits = [each for each in (wait, left) if each is not None]
        return Result(after=min(waits)) if waits else Result()

    async def _work(
        self, job: Job, ctx: Context, sums: Sums
    ) -> tuple[float | None, Sums]:
        """Have as many pods at work as there should be, after a pause if one failed."""
        count = missing(job, sums)
        if count < 0:
            return None, await self._end(ctx, sums, sums.active[count:])
        if not count:
            return None, sums
        chosen: Sequence[int | None] = [None] * count
        waits = [self._pause(sums, ctx.now)]
        if is_indexed(job):
            chosen = pending_indexes(job, sums)[:count]
            if job.spec.backoffLimitPerIndex is not None:
                pauses = {each: self._pause_of(each, sums, ctx.now) for each in chosen}
                chosen = [each for each in chosen if pauses[each] <= 0]
                waits = [each for each in pauses.values() if each > 0 and not chosen]
        wait = min(waits, default=0.0)
        if wait > 0:
            return wait, sums
        made = [await self._create(job, ctx, each, sums) for each in chosen]
        return None, msgspec.structs.replace(sums, active=[*sums.active, *made])

    async def _create(
        self, job: Job, ctx: Context, index: int | None, sums: Sums
    ) -> TemplatePod:
        meta, template = job.metadata, job.spec.template
        middle = "" if index is None else f"-{index}"
        name = f"{meta.name[: LONGEST - len(middle)]}{middle}-{suffix(self._random)}"
        spec, extra, told = template.get("spec") or {}, {}, {}
        if index is not None:
            extra = {INDEX: str(index)}
            told = failed_before(job, index, sums)
            spec = _indexed(spec, index, f"{meta.name}-{index}")
        pod = made_from(
            template,
            name=name,
            namespace=meta.namespace,
            labels=extra,
            annotations={**extra, **told},
            spec=spec,
        )
        made = await ctx.apply(pod)
        ctx.event("SuccessfulCreate", f"Created pod: {name}")
        return made

    def _pause(self, sums: Sums, now: datetime) -> float:
        """Seconds until a pod may follow those that failed since one succeeded."""
        times = map(finished, sums.failures)
        ends = [each for each in times if each > sums.succeeded_at]
        if not ends:
            return 0.0
        pause = self._pauses.pause(len(ends), random=self._random)
        return pause - (now - ends[-1]).total_seconds()

    def _pause_of(self, index: int | None, sums: Sums, now: datetime) -> float:
        last = None if index is None else last_failure(index, sums)
        if last is None:
            return 0.0
        pause = self._pauses.pause(tries(last), random=self._random)
        return pause - (now - finished(last)).total_seconds()

    async def _end(self, ctx: Context, sums: Sums, pods: Iterable[TemplatePod]) -> Sums:
        """Delete pods that were at work; they are going from then on."""
        gone = list(pods)
        for each in gone:
            await ctx.delete(each)
            ctx.event("SuccessfulDelete", f"Deleted pod: {each.metadata.name}")
        return _without(sums, gone)

    async def _clean(self, job: Job, ctx: Context) -> Result:
        """A Job that is over goes when it was kept for long enough."""
        seconds, since = job.spec.ttlSecondsAfterFinished, over_since(job)
        if seconds is None or since is None:
            return Result()
        left = seconds - (ctx.now - since).total_seconds()
        if left > 0:
            return Result(after=left)
        await ctx.delete(job)
        return Result()

    async def _tell(
        self, job: Job, ctx: Context, sums: Sums, ending: Ending | None = None
    ) -> None:
        over = ending is not None and not sums.going
        status = _status(job, sums, ctx.now, ending=ending, over=over)
        # What was counted from an older state of the Job must not be written.
        await statuses.say(ctx, job, status, exact=True)
        if ending is None:
            _tell_suspension(job, ctx)
        elif over and ending.well:
            ctx.event("Completed", "Job completed")
        elif over:
            ctx.event(ending.reason, ending.message, type="Warning")


def _without(sums: Sums, gone: Sequence[TemplatePod]) -> Sums:
    left = [each for each in sums.active if each not in gone]
    return msgspec.structs.replace(sums, active=left, going=[*sums.going, *gone])


def _status(
    job: Job, sums: Sums, now: datetime, *, ending: Ending | None, over: bool
) -> Plain:
    stamp = rfc3339(now)
    status: Plain = {
        "active": len(sums.active),
        "ready": sum(map(is_ready, sums.active)),
        "terminating": len(sums.going),
        "succeeded": sums.succeeded,
        "failed": sums.failed,
        "conditions": _conditions(job, stamp, ending=ending, over=over),
    }
    began = job.status.startTime
    if job.spec.suspend and began is not None and ending is None:
        status["startTime"] = None
    elif not job.spec.suspend and (began is None or _is_suspended(job)):
        status["startTime"] = stamp
    if is_indexed(job):
        status["completedIndexes"] = spans(sorted(sums.completed))
        if job.spec.backoffLimitPerIndex is not None:
            status["failedIndexes"] = spans(sorted(sums.broken))
    if over and ending is not None and ending.well:
        status["completionTime"] = stamp
    return status


def over_since(job: Job) -> datetime | None:
    """When a Job was over, whichever way; None if it is not."""
    for each in job.status.conditions:
        if each["type"] in ("Complete", "Failed") and each["status"] == "True":
            return parse_rfc3339(each["lastTransitionTime"])
    return None


def succeeded(job: Job) -> bool:
    return any(
        each["type"] == "Complete" and each["status"] == "True"
        for each in job.status.conditions
    )


def _stated(job: Job, type: str) -> Plain | None:
    """A condition that a Job has, if it is true."""
    for each in job.status.conditions:
        if each["type"] == type and each["status"] == "True":
            return each
    return None


def _is_ending(job: Job) -> bool:
    """Whether it was said before that a Job is to end."""
    return any(_stated(job, Ending(well, "", "").first) for well in (True, False))


def _ending(job: Job, sums: Sums, *, late: bool) -> Ending | None:
    """Whether a Job is to end; what was said once is not taken back."""
    for well in (True, False):
        known = _stated(job, Ending(well, "", "").first)
        if known is not None:
            return Ending(well, known.get("reason", ""), known.get("message", ""))
    failed = failure(job, sums, late=late)
    if failed is not None:
        return Ending(False, *failed)
    completions = job.spec.completions
    if is_indexed(job):
        rule = enough(job.spec.successPolicy, sums.completed, completions or 0)
        if rule:
            return Ending(True, "SuccessPolicy", rule)
    if completions is None:
        return ENOUGH if sums.succeeded and not sums.active else None
    return ENOUGH if sums.succeeded >= completions else None


def _left(job: Job, now: datetime) -> float | None:
    """Seconds until a Job was active for too long."""
    deadline, since = job.spec.activeDeadlineSeconds, job.status.startTime
    if deadline is None or since is None or job.spec.suspend:
        return None
    return deadline - (now - since).total_seconds()


def _indexed(spec: Plain, index: int, host: str) -> Plain:
    """The pod's spec with its index among the variables of every container."""
    made: Plain = cleaned(spec)
    variable = {"name": INDEX_VARIABLE, "value": str(index)}
    for key in ("initContainers", "containers"):
        for each in made.get(key) or ():
            each["env"] = [*(each.get("env") or ()), variable]
    if len(host) <= LONGEST_HOST and "." not in host:
        made["hostname"] = host
    return made


def _is_suspended(job: Job) -> bool:
    """Whether a Job is told to be suspended."""
    return _stated(job, "Suspended") is not None


def _tell_suspension(job: Job, ctx: Context) -> None:
    if bool(job.spec.suspend) is not _is_suspended(job):
        word = "Suspended" if job.spec.suspend else "Resumed"
        ctx.event(word, f"Job {word.lower()}")


def _conditions(
    job: Job, now: str, *, ending: Ending | None, over: bool
) -> list[Plain]:
    known = {each["type"]: each for each in job.status.conditions}

    def state(kind: str, status: str, reason: str, message: str) -> None:
        old: dict[str, Any] = known.get(kind) or {}
        if (old.get("status"), old.get("reason")) == (status, reason):
            return
        known[kind] = {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastProbeTime": now,
            "lastTransitionTime": now,
        }

    if ending is not None:
        state(ending.first, "True", ending.reason, ending.message)
        if over:
            state(ending.last, "True", ending.reason, ending.message)
    elif job.spec.suspend:
        state("Suspended", "True", "JobSuspended", "Job suspended")
    elif "Suspended" in known:
        state("Suspended", "False", "JobResumed", "Job resumed")
    return list(known.values())
