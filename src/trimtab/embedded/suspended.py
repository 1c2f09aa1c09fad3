"""Suspended Jobs: the condition that says so, as a Job controller would write it.

A Job that is suspended starts nothing, so there is nothing to run: its controller only
says so in a condition, and takes it back when the Job is resumed. That is done here, in
the words and as the writer that people know, soon after the write it follows from.
"""

from __future__ import annotations

from trimtab.api.times import rfc3339
from trimtab.embedded.following import ObjectFollower
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.writes import Write

JOBS = "batch/jobs/"
MANAGER = "kube-controller-manager"
CONTROLLER = "kubernetes.io/job-controller"
SUSPENDED = "Suspended"
FINISHED = frozenset({"Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"})
# What all Jobs concerned have in their JSON; most others are not even decoded.
MARKS = (b'"suspend":true', b'"type":"Suspended"')


class SuspendedJobs(ObjectFollower):
    """Which Jobs have to be looked at."""

    prefix = JOBS

    def _look(self, key: str, value: bytes) -> None:
        if any(mark in value for mark in MARKS):
            self._due[key] = None

    def _judge(self, kind: Kind, job: Plain) -> None:
        state = followed(job, now=rfc3339(self._now()))
        if state is None:
            return
        meta = metadata_of(job)
        write = Write(
            kind=kind,
            namespace=meta["namespace"],
            name=meta["name"],
            subresource="status",
            manager=MANAGER,
        )
        self._registry.update(write, {**job, "status": state})


def followed(job: Plain, *, now: str) -> Plain | None:
    """The status that a Job gets as it is suspended or resumed; None if it has it."""
    spec, state = job.get("spec") or {}, job.get("status") or {}
    conditions = state.get("conditions") or []
    true = {each["type"] for each in conditions if each["status"] == "True"}
    theirs = spec.get("managedBy", CONTROLLER) != CONTROLLER
    if theirs or metadata_of(job).get("deletionTimestamp") or true & FINISHED:
        return None
    suspend = bool(spec.get("suspend"))
    if suspend == (SUSPENDED in true):
        return None
    said = {
        "type": SUSPENDED,
        "status": "True" if suspend else "False",
        "lastProbeTime": now,
        "lastTransitionTime": now,
        "reason": "JobSuspended" if suspend else "JobResumed",
        "message": "Job suspended" if suspend else "Job resumed",
    }
    kept = [each for each in conditions if each["type"] != SUSPENDED]
    rest = {key: value for key, value in state.items() if key != "startTime"}
    start = {} if suspend else {"startTime": now}
    zero = {"terminating": 0, "uncountedTerminatedPods": {}, "ready": 0}
    return {**zero, **rest, **start, "conditions": [*kept, said]}
