"""CronJobs: when Jobs are made, and of what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.embedded.builtin.validation import cron, jobs, meta, selection, texts
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]


def create(found: Found, obj: JSON) -> None:
    metadata = obj["metadata"]
    meta.created(found, metadata, namespaced=True, name=texts.subdomain)
    _cron(found, obj["spec"], None)
    name = metadata.get("name", "")
    if len(name) > 52:
        found.invalid("metadata.name", name, "must be no more than 52 characters")


def update(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    _cron(found, obj["spec"], old["spec"])


def _cron(found: Found, spec: JSON, old: JSON | None) -> None:
    _schedule(found, spec, old)
    deadline = spec.get("startingDeadlineSeconds")
    found.not_negative("spec.startingDeadlineSeconds", deadline)
    zone = spec.get("timeZone")
    known = old is not None and zone == old.get("timeZone")
    if zone is not None and not known and (problem := cron.zone_problem(zone)):
        found.invalid("spec.timeZone", zone, problem)
    policies = ("Allow", "Forbid", "Replace")
    policy = spec.get("concurrencyPolicy", "")
    found.choice("spec.concurrencyPolicy", policy, policies)
    job, path = spec["jobTemplate"]["spec"], "spec.jobTemplate.spec"
    jobs.job_spec(found, job, path)
    if "selector" in job:
        shown = selection.printed(job["selector"])
        found.invalid(f"{path}.selector", shown, "`selector` will be auto-generated")
    if job.get("manualSelector"):
        found.unsupported(f"{path}.manualSelector", True, ("nil", "false"))
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        found.not_negative(f"spec.{field}", spec.get(field))


def _schedule(found: Found, spec: JSON, old: JSON | None) -> None:
    schedule, path = spec["schedule"], "spec.schedule"
    if not schedule:
        found.required(path)
        return
    if problem := cron.problem(schedule):
        found.invalid(path, schedule, problem)
    if "TZ" not in schedule:
        return
    if old is None or "TZ" not in old["schedule"]:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        found.invalid(path, schedule, detail)
    elif "timeZone" in spec:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        found.invalid(path, schedule, detail)


def status_update(found: Found, obj: JSON, old: JSON) -> None:
    """Nothing is asked of it."""
