"""Suspended Jobs: the one thing that clients wait for a Job controller to say.

A Job that is suspended starts nothing, so there is nothing to run: its controller only
says so in a condition, and takes it back when the Job is resumed. That is done here, in
the words and as the writer that people know, soon after the write it follows from.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from trimtab.api.times import rfc3339
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.kinds import Plain
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.registry import Registry
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Change, Store
from trimtab.embedded.writes import Write

JOBS = "batch/jobs/"
MANAGER = "kube-controller-manager"
CONTROLLER = "kubernetes.io/job-controller"
SUSPENDED = "Suspended"
FINISHED = frozenset({"Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"})
# What all Jobs concerned have in their JSON; most others are not even decoded.
MARKS = (b'"suspend":true', b'"type":"Suspended"')


class SuspendedJobs:
    """Which Jobs have to be looked at; they can all be found again in the store."""

    def __init__(
        self,
        store: Store,
        *,
        catalog: Catalog,
        registry: Registry,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._registry = registry
        self._now = now
        self._due: dict[str, None] = {}

    def start(self) -> None:
        """Find the Jobs of the store, then follow its changes."""
        for row in self._store.range(JOBS):
            self._look(row.key, row.value)
        self._store.subscribe(self._seen)

    def step(self, limit: int = 20) -> bool:
        """Write down what is due; True if there is more."""
        for key in list(self._due)[:limit]:
            del self._due[key]
            try:
                self._follow(key)
            except ApiProblem:
                continue  # gone or changed in the meantime: its change is seen too
        return bool(self._due)

    def _seen(self, change: Change) -> None:
        if change.value is not None and change.key.startswith(JOBS):
            self._look(change.key, change.value)

    def _look(self, key: str, value: bytes) -> None:
        if any(mark in value for mark in MARKS):
            self._due[key] = None

    def _follow(self, key: str) -> None:
        kind = self._catalog.by_prefix(key)
        row = self._store.get(key)
        if kind is None or row is None:
            return
        job = kind.decode(row.value)
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
