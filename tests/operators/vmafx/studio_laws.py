"""The laws of jobs: who has one, how often it is tried, and how it ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

from trimtab.operators.vmafx.claims import FINAL
from trimtab.sim import Here
from trimtab.sim.server import ObjectChange, Plain, Server

JOBS, NODES = "vmafx.dev/vmafxjobs", "vmafx.dev/vmafxnodes"
DEFAULT_ATTEMPTS: Final = 3
LENGTH: Final = 10
"""Frames of every clip."""


def score_of(name: str) -> float:
    """What a clip is worth, by its name."""
    return float(sum(name.encode()) % 100)


def part_of(name: str, index: int | None) -> str:
    """What is worked on: a clip, or one segment of it."""
    return name if index is None else f"{name}#{index}"


def _clip(job: Plain) -> str:
    spec = job["spec"]
    segment = spec.get("segment")
    name = str(spec["distorted"].rpartition("/")[2])
    return part_of(name, segment.get("index", 0) if segment else None)


def _run(job: Plain) -> Plain:
    return cast(Plain, (job.get("status") or {}).get("run") or {})


def _is_running(run: Plain) -> bool:
    return run.get("attempt", 0) > 0 and not run.get("outcome")


def _both(change: ObjectChange) -> tuple[Plain, Plain] | None:
    if change.resource != JOBS or not change.before or not change.after:
        return None
    return _run(change.before), _run(change.after)


def a_job_has_one_holder(server: Server, change: ObjectChange) -> Iterator[str]:
    """A lease ends before another begins, and each has a higher attempt."""
    both = _both(change)
    if both is None:
        return
    old, new = both
    began = new.get("attempt", 0) - old.get("attempt", 0)
    if began not in (0, 1):
        yield f"{change.key} went from attempt {old} to {new}."
    if began and _is_running(old):
        yield f"{change.key} was given away while {old.get('node')} had it."
    held = _is_running(old) and _is_running(new)
    if held and old.get("session") != new.get("session"):
        yield f"{change.key} went from one session to another."


def what_is_over_stays_so(server: Server, change: ObjectChange) -> Iterator[str]:
    """Of a run that ended for good nothing changes, not even a word."""
    both = _both(change)
    if both and both[0].get("outcome") in FINAL:
        old, new = ({**run, "fence": 0} for run in both)
        if old != new:
            yield f"{change.key} was {old.get('outcome')} and has changed: {new}."


def attempts_are_bounded(server: Server, change: ObjectChange) -> Iterator[str]:
    """No more are lost than the job allows, and then it is given up."""
    both = _both(change)
    if both is None:
        return
    old, new = both
    spec = (change.after or {})["spec"]
    most = spec.get("maxAttempts", DEFAULT_ATTEMPTS)
    if new.get("lost", 0) > most:
        yield f"{change.key} lost {new['lost']} attempts."
    if new.get("lost", 0) == most and new.get("outcome") not in FINAL:
        yield f"{change.key} goes on after {most} lost attempts."
    if _is_running(new) and not _is_running(old) and spec.get("cancel"):
        yield f"{change.key} was given away although nobody wants it."


def results_are_right(server: Server, change: ObjectChange) -> Iterator[str]:
    """A score is that of its clip; bad clips fail at their first report."""
    both = _both(change)
    if both is None or both[0].get("outcome") == both[1].get("outcome"):
        return
    run = both[1]
    name = (change.after or {})["spec"]["distorted"].rpartition("/")[2]
    if run.get("outcome") == "completed" and run.get("score") != score_of(name):
        yield f"{change.key} is {name} and was given {run.get('score')}."
    if run.get("outcome") == "completed" and name.startswith("bad"):
        yield f"{change.key} has a score, and its clip is bad."


class BeatingNodesKeepTheirJobs:
    """Nobody is given up for dead whose beats named the job within the last lease."""

    def __init__(self) -> None:
        from tests.operators.vmafx.studio import LEASE

        self._lease = LEASE
        self._signs: dict[tuple[str, int], float] = {}

    def __call__(self, server: Server, change: ObjectChange) -> Iterator[str]:
        now = server.time()
        if change.resource == NODES and change.after:
            status = change.after.get("status") or {}
            # A beat that was held up on its way, and is older than the last, is none.
            if status.get("beat", 0) > _beat(change.before):
                for doing in status.get("jobs") or ():
                    self._signs[doing["job"], doing.get("attempt", 0)] = now
        both = _both(change)
        if both is None:
            return
        old, new = both
        uid = (change.after or {})["metadata"]["uid"]
        attempt = (uid, new.get("attempt", 0))
        if new.get("attempt") != old.get("attempt"):
            self._signs[attempt] = now
        silent = "fell silent" in new.get("error", "") and _is_running(old)
        same_life = _session(server, old.get("node", "")) == old.get("session")
        heard = now - self._signs.get(attempt, 0.0)
        if silent and same_life and heard < self._lease:
            yield f"{change.key} was taken from its node {heard:.3f} s after a sign."


def _beat(node: Plain | None) -> int:
    return int(((node or {}).get("status") or {}).get("beat", 0))


def _session(server: Server, node: str) -> str:
    found = server.objects.get(f"{NODES}/default/{node}") or {}
    return str((found.get("status") or {}).get("session", ""))


class ResultsAreTheHolders:
    """A score is of the node that has the job, and not of one that had it before."""

    def __init__(self) -> None:
        SCORED.clear()

    def __call__(self, server: Server, change: ObjectChange) -> Iterator[str]:
        both = _both(change)
        if both is None or both[0].get("outcome") == both[1].get("outcome"):
            return
        old, run = both
        if run.get("outcome") != "completed":
            return
        job = change.after or {}
        if job["spec"].get("segments", 1) > 1:
            yield from _unlike_its_segments(server, job)
            return
        clip = _clip(job)
        if not _is_running(old):
            yield f"{change.key} has a score, and nobody had it: {old}."
        elif (run.get("node"), clip) not in SCORED:
            yield f"{change.key} has a score, and {run.get('node')} has none for it."


def _unlike_its_segments(server: Server, job: Plain) -> Iterator[str]:
    """A split job ends with all its segments: each is scored, and they are all."""
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    owned = [
        each
        for each in server.of(JOBS)
        for owner in each["metadata"].get("ownerReferences", ())
        if owner["uid"] == uid
    ]
    outcomes = [_run(each).get("outcome", "") for each in owned]
    if outcomes != ["completed"] * job["spec"]["segments"]:
        yield f"{name} has a score, and its segments are {outcomes}."
    counts = [_run(each).get("scored", {}).get("count", 0) for each in owned]
    if sum(counts) != LENGTH:
        yield f"{name} has a score of {counts} frames."
    SPLIT.append(name)


SPLIT: list[str] = []
"""The split jobs that were completed."""
SCORED: set[tuple[str, str]] = set()
"""Which node has come to the end of which clip."""

ALWAYS: Final[tuple[Any, ...]] = (
    a_job_has_one_holder,
    what_is_over_stays_so,
    attempts_are_bounded,
    results_are_right,
    BeatingNodesKeepTheirJobs,
    ResultsAreTheHolders,
)


def every_job_is_over(server: Server, *, jobs: int) -> Iterable[str]:
    """At rest each job that was submitted is there once, and has ended."""
    found = server.of(JOBS)
    clips = Counter(each["spec"]["distorted"] for each in found)
    if len(found) != jobs or any(count > 1 for count in clips.values()):
        yield f"{jobs} jobs were submitted, and there are {dict(clips)}."
    for each in found:
        run = _run(each)
        if run.get("outcome") not in FINAL:
            yield f"{each['metadata']['name']} has not ended: {run}."


WORKED_ON: Counter[str] = Counter()
"""Which clips somebody works on at this moment, in all of the studio."""
STOPS_WITHIN: Final = 2.0


class CancelledJobsStop:
    """Two seconds after a job was cancelled nobody works on it, if all is well."""

    def __init__(self) -> None:
        WORKED_ON.clear()
        self._cancelled: dict[str, float] = {}

    def __call__(self, server: Server, change: ObjectChange) -> Iterator[str]:
        now, both = server.time(), _both(change)
        if both and both[1].get("outcome") == "cancelled":
            clip = (change.after or {})["spec"]["distorted"].rpartition("/")[2]
            self._cancelled.setdefault(clip, now)
        for clip, when in self._cancelled.items():
            if WORKED_ON[clip] and now - when > STOPS_WITHIN:
                yield f"{clip} is worked on {now - when:.1f} s after it was cancelled."


class Work:
    """What one node works on: it says so itself if that is one job twice."""

    def __init__(self, here: Here) -> None:
        self._here = here
        self._busy: Counter[str] = Counter()

    @contextmanager
    def on(self, name: str) -> Iterator[None]:
        self._busy[name] += 1
        if self._busy[name] > 1:
            self._here.broken("a node works on a job once", f"{name}, twice at once.")
        WORKED_ON[name] += 1
        try:
            yield
            SCORED.add((self._here.name, name))
        finally:
            self._busy[name] -= 1
            WORKED_ON[name] -= 1
