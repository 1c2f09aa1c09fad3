"""Judging: what a pod says about the runner in it. Pure.

What was done to a runner (it was killed, evicted, its node is gone) may go better in
another pod. What it did itself, by ending with a code of its own, would happen again.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec

from trimtab.api.kinds import ContainerStateTerminated, ContainerStatus, Pod
from trimtab.operators.sessions.kinds import APP

State = Literal["absent", "starting", "started", "ready", "completed", "failed", "lost"]

IMAGE: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ImageInspectError",
        "RegistryUnavailable",
        "CreateContainerConfigError",
        "CreateContainerError",
    }
)
"""Why a container waits that may yet come right: it gets a grace."""
HOPELESS: Final = frozenset({"InvalidImageName", "ErrImageNeverPull"})
SIDECAR: Final = "SidecarFailed"
PREREQUISITE: Final = 2
"""The exit code of a runner that lacks what it cannot work without."""
# From here on, an exit code is 128 and the signal that ended the process.
_SIGNALLED: Final = 128
_DISRUPTIONS: Final = {
    "PreemptionByScheduler": "Preempted",
    "DeletionByTaintManager": "NodeLost",
    "DeletionByPodGC": "NodeLost",
    "EvictionByEvictionAPI": "Evicted",
    "TerminationByKubelet": "Evicted",
}


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod comes to, and why."""

    state: State
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    retry: bool = False
    """Another pod may do better."""
    look_again: float | None = None
    """Seconds after which time alone makes it something else."""

    @property
    def over(self) -> bool:
        """Whether this pod will never run the session again."""
        return self.state in ("absent", "completed", "failed", "lost")


def judge(
    pod: Pod | None,
    *,
    now: datetime,
    troubled_since: datetime | None = None,
    grace: float = 60.0,
) -> Verdict:
    """What a pod comes to.

    ``troubled_since`` is when a container of it was first seen to wait for something
    that it cannot get; None if this is the first time. After ``grace`` seconds of that
    the pod has failed.
    """
    if pod is None:
        return Verdict(
            state="absent", reason="PodMissing", message="It has no pod.", retry=True
        )
    runner = _status(pod, APP)
    ended = runner.state.terminated if runner else None
    taken = _lost(pod)
    # A runner that is told to end, ends well; only if it had ended before is that its
    # own doing.
    if ended is not None and (taken is None or _ended_before(ended, pod)):
        return _of_exit(ended)
    if taken is not None:
        return taken
    if pod.status.phase == "Succeeded":
        return Verdict(state="completed", reason="Completed")
    if pod.status.phase == "Failed":
        return _of_failed(pod)
    return _of_living(pod, runner, now=now, since=troubled_since, grace=grace)


def _of_exit(ended: ContainerStateTerminated) -> Verdict:
    """What the runner's own end means."""
    code = ended.exitCode
    if code == 0:
        return Verdict(state="completed", reason="Completed", exit_code=0)
    killed = code >= _SIGNALLED or ended.reason == "OOMKilled"
    if ended.reason == "OOMKilled":
        reason, said = "OOMKilled", "The runner needed more memory than it may have."
    elif killed:
        signal = ended.signal or code - _SIGNALLED
        reason, said = "RunnerKilled", f"The runner was ended by signal {signal}."
    elif code == PREREQUISITE:
        reason, said = "PrerequisiteFailed", "The runner lacks what it needs."
    else:
        reason, said = "RunnerExit", f"The runner ended with exit code {code}."
    return Verdict(
        state="failed",
        reason=reason,
        message=_sentence(said, ended.message),
        exit_code=code,
        retry=killed,
    )


def _ended_before(ended: ContainerStateTerminated, pod: Pod) -> bool:
    """Whether the runner had ended before its pod was taken away."""
    told = pod.status.conditions.get("DisruptionTarget")
    taken = told.lastTransitionTime if told is not None else None
    if taken is None and (goes := pod.metadata.deletionTimestamp) is not None:
        grace = pod.metadata.deletionGracePeriodSeconds or 0
        taken = goes - timedelta(seconds=grace)
    return (
        taken is not None
        and ended.finishedAt is not None
        and (ended.finishedAt < taken)
    )


def _lost(pod: Pod) -> Verdict | None:
    """A pod that was taken away, or whose node is; None if it was not."""
    status = pod.status
    told = status.conditions.get("DisruptionTarget")
    if told is not None and told.status == "True":
        return _taken(_DISRUPTIONS.get(told.reason, "Disrupted"), told.message)
    if status.reason == "Evicted":
        return _taken("Evicted", status.message)
    if status.reason in ("Preempting", "Preempted"):
        return _taken("Preempted", status.message)
    if status.reason in ("NodeLost", "NodeShutdown", "Terminated"):
        return _taken("NodeLost", status.message)
    if status.phase == "Unknown":
        return _taken("NodeLost", status.message or "Its node does not answer.")
    if pod.metadata.deletionTimestamp is not None:
        return _taken("PodDeleted", "Somebody deleted its pod.")
    return None


def _taken(reason: str, message: str) -> Verdict:
    return Verdict(
        state="lost",
        reason=reason,
        message=message or "Its pod was taken away.",
        retry=True,
    )


def _of_failed(pod: Pod) -> Verdict:
    """A failed pod whose runner did not say why: some other container, or the node."""
    status = pod.status
    for each, ended in _ended_badly(pod):
        return _of_other(each, ended, is_first=each in status.initContainerStatuses)
    return Verdict(
        state="failed",
        reason=status.reason if status.reason == "DeadlineExceeded" else "PodFailed",
        message=status.message
        or status.reason
        or "The pod failed and did not say why.",
        # A node that refuses a pod (OutOfcpu, NodeAffinity…) is not the only one.
        retry=bool(status.reason) and status.reason != "DeadlineExceeded",
    )


def _of_other(
    each: ContainerStatus, ended: ContainerStateTerminated, *, is_first: bool
) -> Verdict:
    """What the end of a container beside the runner, or before it, means."""
    what = "The init container" if is_first else "The sidecar"
    code, killed = ended.exitCode, ended.exitCode >= _SIGNALLED
    if ended.reason == "OOMKilled":
        said = f"{what} {each.name} needed more memory than it may have."
    else:
        said = f"{what} {each.name} ended with exit code {code}."
    return Verdict(
        state="failed",
        reason="InitFailed" if is_first else SIDECAR,
        message=_sentence(said, ended.message),
        exit_code=code,
        retry=killed or not is_first,
    )


def _of_living(
    pod: Pod,
    runner: ContainerStatus | None,
    *,
    now: datetime,
    since: datetime | None,
    grace: float,
) -> Verdict:
    for first in pod.status.initContainerStatuses:
        ended = first.state.terminated
        if ended is not None and ended.exitCode != 0:
            return _of_other(first, ended, is_first=True)
    if (waits := _waits(pod, now=now, since=since, grace=grace)) is not None:
        return waits
    if runner is None or runner.state.running is None:
        return _of_start(pod)
    for each, ended in _ended_badly(pod):
        # The runner works on: whoever asks decides what that is worth.
        found = _of_other(each, ended, is_first=False)
        return msgspec.structs.replace(found, state="started")
    if pod.status.conditions.is_true("Ready"):
        return Verdict(state="ready", reason="Ready")
    return Verdict(
        state="started",
        reason="NotReady",
        message="The runner runs and does not say yet that it is ready.",
    )


def _of_start(pod: Pod) -> Verdict:
    placed = pod.status.conditions.get("PodScheduled")
    if not pod.spec.nodeName and placed is not None and placed.status == "False":
        return Verdict(
            state="starting",
            reason=placed.reason or "Unschedulable",
            message=placed.message or "No node has room for it.",
        )
    if not pod.spec.nodeName:
        return Verdict(
            state="starting", reason="Scheduling", message="It waits for a node."
        )
    return Verdict(
        state="starting",
        reason="ContainerCreating",
        message=f"Its containers are being made on {pod.spec.nodeName}.",
    )


def _waits(
    pod: Pod, *, now: datetime, since: datetime | None, grace: float
) -> Verdict | None:
    """A container that cannot begin; None if there is none."""
    for each in _statuses(pod):
        waiting = each.state.waiting
        reason = waiting.reason if waiting else ""
        if reason in HOPELESS or reason == "CrashLoopBackOff":
            return _cannot(each, reason, retry=reason not in HOPELESS)
        if reason in IMAGE:
            left = grace - (now - (since or now)).total_seconds()
            if left <= 0:
                return _cannot(each, reason, retry=False)
            found = _cannot(each, reason, retry=False)
            return msgspec.structs.replace(found, state="starting", look_again=left)
    return None


def _cannot(each: ContainerStatus, reason: str, *, retry: bool) -> Verdict:
    waiting = each.state.waiting
    said = f"The container {each.name} cannot begin ({reason})."
    return Verdict(
        state="failed",
        reason=reason,
        message=_sentence(said, waiting.message if waiting else ""),
        retry=retry,
    )


def _ended_badly(
    pod: Pod,
) -> Iterator[tuple[ContainerStatus, ContainerStateTerminated]]:
    for each in _statuses(pod):
        ended = each.state.terminated
        if ended is not None and ended.exitCode != 0 and each.name != APP:
            yield each, ended


def _statuses(pod: Pod) -> Iterator[ContainerStatus]:
    yield from pod.status.initContainerStatuses
    yield from pod.status.containerStatuses


def _status(pod: Pod, name: str) -> ContainerStatus | None:
    return next(
        (each for each in pod.status.containerStatuses if each.name == name), None
    )


def _sentence(said: str, more: str) -> str:
    return f"{said} {more.strip()}".strip()
