"""Statuses: what a kubelet says of a pod, in the kubelet's words.

Pure functions from what runs to the ``status`` that is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from trimtab.api.kinds import Container, WholePod
from trimtab.api.times import rfc3339

Plain = dict[str, Any]

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
TERMINAL = (SUCCEEDED, FAILED)
CREATING = "ContainerCreating"
INITIALIZING = "PodInitializing"
SIGNALLED = 128
LOST = "ContainerStatusUnknown"
LOST_MESSAGE = "The container could not be located when the pod was terminated"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Why a pod ended that did not end by itself."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    firm: bool = True
    """It holds also where all containers ended well by themselves."""


def waiting(reason: str, message: str = "") -> Plain:
    return {"waiting": {"reason": reason, **({"message": message} if message else {})}}


def running(since: datetime) -> Plain:
    return {"running": {"startedAt": rfc3339(since)}}


def terminated(
    code: int,
    *,
    reason: str = "",
    message: str = "",
    since: datetime | None,
    now: datetime,
    identity: str = "",
) -> Plain:
    """How a process ended; a negative code is the signal that ended it."""
    facts: Plain = {
        "exitCode": SIGNALLED - code if code < 0 else code,
        "reason": reason or ("Completed" if code == 0 else "Error"),
        "startedAt": None if since is None else rfc3339(since),
        "finishedAt": rfc3339(now),
    }
    if message:
        facts["message"] = message
    if identity:
        facts["containerID"] = identity
    return {"terminated": facts}


def mounted(container: Container) -> Plain:
    """What of its volumes is told of a container."""
    mounts = []
    for each in container.volumeMounts:
        made: Plain = {"name": each.name, "mountPath": each.mountPath}
        if each.readOnly:
            made |= {"readOnly": True, "recursiveReadOnly": "Disabled"}
        mounts.append(made)
    return {"volumeMounts": mounts} if mounts else {}


def allotted(container: Container) -> Plain:
    """What of its resources is told of a container that was made."""
    amounts = {
        "limits": container.resources.limits,
        "requests": container.resources.requests,
    }
    told = {
        what: {name: str(amount) for name, amount in held.items()}
        for what, held in amounts.items()
        if held
    }
    made: Plain = {"resources": told}
    if "requests" in told:
        made["allocatedResources"] = told["requests"]
    return made


def is_sidecar(container: Container) -> bool:
    return container.restartPolicy == "Always"


def restarts(policy: str, code: int) -> bool:
    """Whether a container that ended is to be started again."""
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _ended(status: Plain) -> Plain | None:
    """How a container ended: now, or before what it waits for."""
    state = status["state"]
    held = state if "terminated" in state else status.get("lastState", {})
    found: Plain | None = None if "running" in state else held.get("terminated")
    return found


def phase(
    pod: WholePod, inits: Sequence[Plain], mains: Sequence[Plain], *, over: bool
) -> str:
    """The phase that follows from the containers; ``over``: none starts any more.

    A pod that is over before all began is still pending by that, and so say its
    conditions; that it failed then is for whoever knows that it is over.
    """
    policy = pod.spec.restartPolicy or "Always"
    by_name = {each["name"]: each for each in (*inits, *mains)}
    for container in pod.spec.initContainers:
        status = by_name[container.name]
        if is_sidecar(container):
            if not status["started"] and not _any_began(mains):
                return PENDING
            continue
        ended = _ended(status)
        if ended is not None and ended["exitCode"] and policy == "Never":
            return FAILED
        if "terminated" not in status["state"] or (ended and ended["exitCode"]):
            return PENDING
    ends = [_ended(status) for status in mains]
    if any("waiting" in s["state"] and _ended(s) is None for s in mains):
        return PENDING
    if over:
        done = all(end is not None and not end["exitCode"] for end in ends)
        return SUCCEEDED if done else FAILED
    codes = [end["exitCode"] for end in ends if end is not None]
    if len(codes) < len(ends) or any(restarts(policy, code) for code in codes):
        return RUNNING
    return FAILED if any(codes) else SUCCEEDED


def _any_began(mains: Iterable[Plain]) -> bool:
    return any("waiting" not in s["state"] or _ended(s) for s in mains)


def conditions(
    pod: WholePod,
    inits: Sequence[Plain],
    mains: Sequence[Plain],
    *,
    phase: str,
    sandbox: bool,
) -> list[Plain]:
    """The four conditions that are a kubelet's to state, without their times."""
    sidecars = {each.name for each in pod.spec.initContainers if is_sidecar(each)}
    counted = [*(each for each in inits if each["name"] in sidecars), *mains]
    ready = _containers_ready(counted, phase)
    return [
        {"type": "PodReadyToStartContainers", "status": _word(sandbox)},
        {"type": "Initialized", **_initialized(pod, inits, mains, phase)},
        {"type": "Ready", **_pod_ready(pod, ready)},
        {"type": "ContainersReady", **ready},
    ]


def _word(holds: bool) -> str:
    return "True" if holds else "False"


def _containers_ready(counted: Sequence[Plain], phase: str) -> Plain:
    if phase == SUCCEEDED:
        return {"status": "False", "reason": "PodCompleted"}
    if phase == FAILED:
        return {"status": "False", "reason": "PodFailed"}
    unready = [each["name"] for each in counted if not each["ready"]]
    if not unready:
        return {"status": "True"}
    return {
        "status": "False",
        "reason": "ContainersNotReady",
        "message": f"containers with unready status: [{' '.join(unready)}]",
    }


def _pod_ready(pod: WholePod, ready: Plain) -> Plain:
    if ready["status"] != "True":
        return ready
    missing = []
    for gate in pod.spec.readinessGates:
        stated = pod.status.conditions.get(gate.conditionType)
        if stated is None:
            missing.append(
                "corresponding condition of pod readiness gate "
                f'"{gate.conditionType}" does not exist.'
            )
        elif stated.status != "True":
            missing.append(
                f'the status of pod readiness gate "{gate.conditionType}" is not '
                f'"True", but {stated.status}'
            )
    if not missing:
        return ready
    return {
        "status": "False",
        "reason": "ReadinessGatesNotReady",
        "message": ", ".join(missing),
    }


def _initialized(
    pod: WholePod, inits: Sequence[Plain], mains: Sequence[Plain], phase: str
) -> Plain:
    if phase == SUCCEEDED:
        return {"status": "True", "reason": "PodCompleted"}
    if _any_began(mains):
        return {"status": "True"}
    sidecars = {each.name for each in pod.spec.initContainers if is_sidecar(each)}
    incomplete = [
        each["name"]
        for each in inits
        if not (each["started"] if each["name"] in sidecars else each["ready"])
    ]
    if not incomplete:
        return {"status": "True"}
    return {
        "status": "False",
        "reason": "ContainersNotInitialized",
        "message": f"containers with incomplete status: [{' '.join(incomplete)}]",
    }


def stamped(
    stated: Iterable[Plain], before: Iterable[Plain], *, now: datetime, generation: int
) -> list[Plain]:
    """Conditions with the time since when each holds."""
    known = {each["type"]: each for each in before}
    made = []
    for each in stated:
        old = known.get(each["type"])
        same = old is not None and old["status"] == each["status"]
        since = old["lastTransitionTime"] if old and same else rfc3339(now)
        made.append(
            {
                "reason": None,
                "message": None,
                **each,
                "lastProbeTime": None,
                "lastTransitionTime": since,
                **({"observedGeneration": generation} if generation else {}),
            }
        )
    return made


def quality(pod: WholePod) -> str:
    """The quality of service that the server computes as well."""
    return pod.status.qosClass or "BestEffort"
