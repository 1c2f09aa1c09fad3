"""Jobs: pods until enough of them have succeeded, or it is time to give up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from random import Random
from typing import Any

from trimtab.api.times import parse_rfc3339, rfc3339
from trimtab.kubelet.workloads.kinds import Job, Plain, TemplatePod
from trimtab.kubelet.workloads.pods import (
    LONGEST,
    cleaned,
    is_active,
    is_ready,
    made_from,
    restarts,
    suffix,
)
from trimtab.runtime.backoff import Backoff
from trimtab.runtime.context import Context
from trimtab.runtime.reconcile import Result

INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
BACKOFF_LIMIT = 6
PAUSES = Backoff(first=10.0, factor=2.0, cap=600.0, jitter=0.0)

LIMIT = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
LATE = ("DeadlineExceeded", "Job was active longer than specified deadline")
ENOUGH = ("CompletionsReached", "Reached expected number of succeeded pods")


class Jobs:
    """The handler; ``pauses`` are those after pods that failed."""

    def __init__(self, random: Random, *, pauses: Backoff = PAUSES) -> None:
        self._random = random
        self._pauses = pauses

    async def __call__(self, job: Job, ctx: Context) -> Result:
        if over_since(job):
            return await self._clean(job, ctx)
        pods = ctx.children(TemplatePod)
        active = [each for each in pods if is_active(each)]
        counts = _counted(job, pods)
        failure = _failure(job, pods, ctx.now)
        if failure is not None:
            await self._end(ctx, active)
            return await self._tell(job, ctx, pods, [], failed=failure)
        if _is_complete(job, counts, active):
            await self._end(ctx, active)
            return await self._tell(job, ctx, pods, [], done=True)
        wait: float | None = None
        if job.spec.suspend:
            await self._end(ctx, active)
            active = []
        else:
            wait, active = await self._work(job, ctx, pods, active)
        result = await self._tell(job, ctx, pods, active)
        waits = [each for each in (wait, _left(job, ctx.now)) if each is not None]
        return Result(after=min(waits)) if waits else result

    async def _work(
        self,
        job: Job,
        ctx: Context,
        pods: Sequence[TemplatePod],
        active: list[TemplatePod],
    ) -> tuple[float | None, list[TemplatePod]]:
        """Have as many pods at work as there should be, after a pause if one failed."""
        wanted = _wanted(job, pods)
        if len(active) > wanted:
            await self._end(ctx, active[wanted:])
            return None, active[:wanted]
        missing = wanted - len(active)
        if not missing:
            return None, active
        wait = self._pause(pods, ctx.now)
        if wait > 0:
            return wait, active
        indexes = _free_indexes(job, pods)
        for position in range(missing):
            index = indexes[position] if indexes else None
            active.append(await self._create(job, ctx, index))
        return None, active

    async def _create(self, job: Job, ctx: Context, index: int | None) -> TemplatePod:
        meta, template = job.metadata, job.spec.template
        middle = "" if index is None else f"-{index}"
        name = f"{meta.name[: LONGEST - len(middle)]}{middle}-{suffix(self._random)}"
        spec, extra = template.get("spec") or {}, {}
        if index is not None:
            extra = {INDEX: str(index)}
            spec = _indexed(spec, index)
        pod = made_from(
            template,
            name=name,
            namespace=meta.namespace,
            labels=extra,
            annotations=extra,
            spec=spec,
        )
        made = await ctx.apply(pod)
        ctx.event("SuccessfulCreate", f"Created pod: {name}")
        return made

    def _pause(self, pods: Iterable[TemplatePod], now: datetime) -> float:
        ends = sorted(
            end for each in pods if each.status.phase == "Failed" for end in _ends(each)
        )
        if not ends:
            return 0.0
        pause = self._pauses.pause(len(ends), random=self._random)
        return pause - (now - ends[-1]).total_seconds()

    async def _end(self, ctx: Context, pods: Iterable[TemplatePod]) -> None:
        for each in pods:
            await ctx.delete(each)
            ctx.event("SuccessfulDelete", f"Deleted pod: {each.metadata.name}")

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
        self,
        job: Job,
        ctx: Context,
        pods: Sequence[TemplatePod],
        active: Sequence[TemplatePod],
        *,
        failed: tuple[str, str] | None = None,
        done: bool = False,
    ) -> Result:
        counts = _counted(job, pods)
        now = rfc3339(ctx.now)
        status: Plain = {
            "active": len(active),
            "ready": sum(map(is_ready, active)),
            "succeeded": counts["succeeded"],
            "failed": counts["failed"],
            "conditions": _conditions(job, now, failed=failed, done=done),
        }
        if job.status.startTime is None and not job.spec.suspend:
            status["startTime"] = now
        if _is_indexed(job):
            status["completedIndexes"] = spans(_completed(pods))
        if done:
            status["completionTime"] = now
            ctx.event("Completed", "Job completed")
        if failed:
            ctx.event(*failed, type="Warning")
        held = job.status
        changed = {k: v for k, v in status.items() if getattr(held, k) != v}
        if changed:
            await ctx.client.patch(
                Job,
                job.metadata.name,
                {"status": status},
                namespace=job.metadata.namespace,
                subresource="status",
            )
        return Result()


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


def _is_indexed(job: Job) -> bool:
    return job.spec.completionMode == "Indexed"


def _index(pod: TemplatePod) -> int:
    return int(pod.metadata.annotations.get(INDEX, "-1"))


def _completed(pods: Iterable[TemplatePod]) -> list[int]:
    return sorted({_index(e) for e in pods if e.status.phase == "Succeeded"})


def _free_indexes(job: Job, pods: Sequence[TemplatePod]) -> list[int]:
    if not _is_indexed(job):
        return []
    taken = {_index(each) for each in pods if is_active(each)} | set(_completed(pods))
    return [each for each in range(job.spec.completions or 0) if each not in taken]


def _counted(job: Job, pods: Sequence[TemplatePod]) -> dict[str, int]:
    """What succeeded and failed; what was counted once stays counted."""
    held = job.status
    good = sum(each.status.phase == "Succeeded" for each in pods)
    if _is_indexed(job):
        good = len(_completed(pods))
    bad = sum(each.status.phase == "Failed" for each in pods)
    return {"succeeded": max(held.succeeded, good), "failed": max(held.failed, bad)}


def _wanted(job: Job, pods: Sequence[TemplatePod]) -> int:
    parallel = 1 if job.spec.parallelism is None else job.spec.parallelism
    if job.spec.completions is None:
        # A queue of work: once one pod succeeded, no new one is begun.
        begun = sum(map(is_active, pods))
        return begun if _counted(job, pods)["succeeded"] else parallel
    return min(parallel, job.spec.completions - _counted(job, pods)["succeeded"])


def _is_complete(
    job: Job, counts: dict[str, int], active: Sequence[TemplatePod]
) -> bool:
    if job.spec.completions is None:
        return counts["succeeded"] > 0 and not active
    return counts["succeeded"] >= job.spec.completions


def _failure(
    job: Job, pods: Sequence[TemplatePod], now: datetime
) -> tuple[str, str] | None:
    limit = BACKOFF_LIMIT if job.spec.backoffLimit is None else job.spec.backoffLimit
    if _counted(job, pods)["failed"] > limit:
        return LIMIT
    running = [each for each in pods if is_active(each)]
    policy = (job.spec.template.get("spec") or {}).get("restartPolicy")
    if policy == "OnFailure" and running and restarts(running) > limit:
        return LIMIT
    left = _left(job, now)
    return LATE if left is not None and left <= 0 else None


def _left(job: Job, now: datetime) -> float | None:
    """Seconds until a Job was active for too long."""
    deadline, since = job.spec.activeDeadlineSeconds, job.status.startTime
    if deadline is None or since is None or job.spec.suspend:
        return None
    return deadline - (now - since).total_seconds()


def _ends(pod: TemplatePod) -> Iterable[datetime]:
    for each in pod.status.containerStatuses:
        ended = each.state.terminated
        if ended is not None and ended.finishedAt is not None:
            yield ended.finishedAt


def _indexed(spec: Plain, index: int) -> Plain:
    """The pod's spec with its index among the variables of every container."""
    made = cleaned(spec)
    variable = {"name": INDEX_VARIABLE, "value": str(index)}
    for key in ("initContainers", "containers"):
        for each in made.get(key) or ():
            each["env"] = [*(each.get("env") or ()), variable]
    made.setdefault("hostname", None)
    return {key: value for key, value in made.items() if value is not None}


def _conditions(
    job: Job, now: str, *, failed: tuple[str, str] | None, done: bool
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

    if done:
        state("SuccessCriteriaMet", "True", *ENOUGH)
        state("Complete", "True", *ENOUGH)
    if failed:
        state("FailureTarget", "True", *failed)
        state("Failed", "True", *failed)
    if job.spec.suspend and not done and not failed:
        state("Suspended", "True", "JobSuspended", "Job suspended")
    elif "Suspended" in known:
        state("Suspended", "False", "JobResumed", "Job resumed")
    return list(known.values())


def spans(numbers: Sequence[int]) -> str:
    """Numbers as a Job's status has them: 1,3-5,7."""
    made: list[str] = []
    start = 0
    while start < len(numbers):
        end = start
        while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
            end += 1
        first, last = numbers[start], numbers[end]
        joint = "-" if end - start > 1 else ","
        made.append(str(first) if first == last else f"{first}{joint}{last}")
        start = end + 1
    return ",".join(made)
