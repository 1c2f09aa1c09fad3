"""CronJobs: a Job whenever the schedule says so, and not too many of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import msgspec

from trimtab.api.resource import Metadata
from trimtab.api.times import rfc3339
from trimtab.client import ApiError
from trimtab.kubelet.workloads import statuses
from trimtab.kubelet.workloads.cron import Schedule
from trimtab.kubelet.workloads.jobs import over_since, succeeded
from trimtab.kubelet.workloads.kinds import CronJob, Job, JobSpec, Plain
from trimtab.kubelet.workloads.pods import cleaned
from trimtab.runtime.context import Context
from trimtab.runtime.reconcile import Result, Terminal

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
LONGEST = 52
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def cronjobs(owner: CronJob, ctx: Context) -> Result:
    """One look at a CronJob."""
    jobs = ctx.children(Job)
    active = [each for each in jobs if over_since(each) is None]
    for each in jobs:
        _tell_of_end(owner, ctx, each)
    await _forget(owner, ctx, jobs)
    try:
        schedule, zone = Schedule.of(owner.spec.schedule), _zone(owner)
    except (ValueError, KeyError) as error:
        text = f"invalid schedule: {owner.spec.schedule} : {error}"
        ctx.event("UnparseableSchedule", text, type="Warning")
        raise Terminal(text) from error
    last = owner.status.lastScheduleTime
    if not owner.spec.suspend:
        due = _due(owner, schedule, zone, ctx.now)
        if due is not None and (made := await _make(owner, ctx, due, active)):
            active = made
            last = due
    await _tell(owner, ctx, jobs, active, last)
    upcoming = schedule.next(ctx.now, zone)
    if upcoming is None or owner.spec.suspend:
        return Result()
    return Result(after=max(0.0, (upcoming - ctx.now).total_seconds()) + 0.05)


def _zone(owner: CronJob) -> tzinfo:
    return ZoneInfo(owner.spec.timeZone) if owner.spec.timeZone else UTC


def _due(
    owner: CronJob, schedule: Schedule, zone: tzinfo, now: datetime
) -> datetime | None:
    """The last time that was missed and may still be made up for."""
    since = owner.status.lastScheduleTime or owner.metadata.creationTimestamp or now
    due = schedule.last(since, now, zone)
    limit = owner.spec.startingDeadlineSeconds
    if due is None or (limit is not None and now - due > timedelta(seconds=limit)):
        return None
    return due.astimezone(UTC)


async def _make(
    owner: CronJob, ctx: Context, due: datetime, active: Sequence[Job]
) -> list[Job] | None:
    """The Job of one time, and those that are active then; None if it may not be."""
    policy = owner.spec.concurrencyPolicy or "Allow"
    if policy == "Forbid" and active:
        text = "Not starting job because prior execution is running and concurrency "
        ctx.event("JobAlreadyActive", f"{text}policy is Forbid")
        return None
    if policy == "Replace":
        for each in active:
            await ctx.delete(each)
            ctx.event("SuccessfulDelete", f"Deleted job {each.metadata.name}")
        active = []
    template = owner.spec.jobTemplate
    meta = template.get("metadata") or {}
    name = f"{owner.metadata.name[:LONGEST]}-{int(due.timestamp()) // 60}"
    if any(each.metadata.name == name for each in ctx.children(Job)):
        return list(active)
    metadata = Metadata(
        name=name,
        labels=meta.get("labels") or {},
        annotations={**(meta.get("annotations") or {}), SCHEDULED: rfc3339(due)},
    )
    job = Job(metadata=metadata)
    try:
        made = await ctx.apply(_with_spec(job, cleaned(template.get("spec") or {})))
    except ApiError as error:
        ctx.event("FailedCreate", f"Error creating job: {error}", type="Warning")
        raise
    ctx.event("SuccessfulCreate", f"Created job {name}")
    return [*active, made]


def _with_spec(job: Job, spec: Plain) -> Job:
    """The Job with the fields of a plain spec that this class names."""
    return msgspec.structs.replace(job, spec=msgspec.convert(spec, JobSpec))


def _tell_of_end(owner: CronJob, ctx: Context, job: Job) -> None:
    listed = any(each.get("uid") == job.metadata.uid for each in owner.status.active)
    if listed and over_since(job) is not None:
        word = "Complete" if succeeded(job) else "Failed"
        name = job.metadata.name
        ctx.event("SawCompletedJob", f"Saw completed job: {name}, condition: {word}")


async def _forget(owner: CronJob, ctx: Context, jobs: Sequence[Job]) -> None:
    """Jobs that are over are kept, but only so many of them."""
    limits = (
        (True, owner.spec.successfulJobsHistoryLimit, 3),
        (False, owner.spec.failedJobsHistoryLimit, 1),
    )
    for good, limit, usual in limits:
        done = [e for e in jobs if over_since(e) is not None and succeeded(e) is good]
        done.sort(key=lambda each: each.status.startTime or EPOCH)
        keep = usual if limit is None else limit
        for each in done[: max(0, len(done) - keep)]:
            await ctx.delete(each)
            ctx.event("SuccessfulDelete", f"Deleted job {each.metadata.name}")


async def _tell(
    owner: CronJob,
    ctx: Context,
    jobs: Sequence[Job],
    active: Sequence[Job],
    last: datetime | None,
) -> None:
    ends = [over_since(each) for each in jobs if succeeded(each)]
    known = [each for each in (*ends, owner.status.lastSuccessfulTime) if each]
    status: Plain = {
        "active": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": each.metadata.name,
                "namespace": each.metadata.namespace,
                "uid": each.metadata.uid,
                "resourceVersion": each.metadata.resourceVersion,
            }
            for each in active
        ]
    }
    if last is not None:
        status["lastScheduleTime"] = rfc3339(last)
    if known:
        status["lastSuccessfulTime"] = rfc3339(max(known))
    if _says_new(owner, status):
        await statuses.write(ctx, owner, status)


def _says_new(owner: CronJob, status: Plain) -> bool:
    held = owner.status
    same = {each.get("uid") for each in held.active} == {
        each["uid"] for each in status["active"]
    }
    for name in ("lastScheduleTime", "lastSuccessfulTime"):
        moment = getattr(held, name)
        same = same and status.get(name) == (rfc3339(moment) if moment else None)
    return not same
