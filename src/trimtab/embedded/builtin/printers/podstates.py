"""Tables of pods: what state a pod is in, told in one word."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from trimtab.embedded.builtin.printers.cells import (
    NONE,
    Plain,
    Printer,
    Row,
    containers,
    created,
    labels,
    printer,
    since,
)

_NOTHING: Final[Mapping[str, Any]] = {}
_OVER: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


class _Tally:
    """What is counted over the containers of a pod."""

    __slots__ = ("last", "ready", "restarts")

    def __init__(self) -> None:
        self.restarts = 0
        self.last = ""
        self.ready = 0

    def add(self, container: Plain) -> None:
        """Count the restarts of a container, and note when the last of them was.

        Moments are compared as texts: all are in UTC and in whole seconds.
        """
        self.restarts += container.get("restartCount") or 0
        ended = (container.get("lastState") or _NOTHING).get("terminated")
        if ended and (ended.get("finishedAt") or "") > self.last:
            self.last = ended["finishedAt"]


def _pod(pod: Plain, now: datetime) -> Row:
    meta, spec = pod["metadata"], pod.get("spec") or _NOTHING
    status = pod.get("status") or _NOTHING
    sidecars, tally = _sidecars(spec), _Tally()
    reason, started = _state(spec, status, sidecars, tally)
    if meta.get("deletionTimestamp"):
        reason = _leaving(status, reason)
    restarts = str(tally.restarts)
    if tally.restarts and tally.last:
        restarts = f"{restarts} ({since(tally.last, now)} ago)"
    total = len(spec.get("containers") or ()) + len(sidecars)
    addresses = status.get("podIPs")
    return [
        meta["name"],
        f"{started + tally.ready}/{total}",
        reason,
        restarts,
        since(meta.get("creationTimestamp"), now),
        (addresses[0].get("ip") if addresses else "") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec.get("readinessGates"), status),
    ]


def conditions(pod: Plain) -> list[dict[str, str]]:
    """What a table says of a pod beside its cells: that it is over, and how."""
    phase = (pod.get("status") or _NOTHING).get("phase")
    if phase not in _OVER:
        return []
    about = {"type": "Completed", "status": "True", "reason": phase}
    return [{**about, "message": _OVER[phase]}]


def _sidecars(spec: Plain) -> set[str]:
    return {
        each["name"]
        for each in spec.get("initContainers") or ()
        if each.get("restartPolicy") == "Always"
    }


def _state(
    spec: Plain, status: Plain, sidecars: set[str], tally: _Tally
) -> tuple[str, int]:
    """The state so far, and how many of the sidecars are ready.

    While init containers run, it is theirs; else it is that of the other containers.
    """
    initial = status.get("initContainerStatuses")
    if not initial:
        return _running(status, _phase(status), tally), 0
    beside = _Tally()
    waiting = _initializing(spec, initial, sidecars, tally, beside)
    if waiting and not _holds(status, "Initialized"):
        return waiting, beside.ready
    tally.restarts, tally.last = beside.restarts, beside.last
    return _running(status, waiting or _phase(status), tally), beside.ready


def _phase(status: Plain) -> str:
    """What the status itself says."""
    for each in status.get("conditions") or ():
        if each["type"] == "PodScheduled" and each.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    reason: str = status.get("reason") or status.get("phase") or ""
    return reason


def _holds(status: Plain, condition: str) -> bool:
    for each in status.get("conditions") or ():
        if each["type"] == condition:
            return bool(each.get("status") == "True")
    return False


def _initializing(
    spec: Plain,
    statuses: list[Plain],
    sidecars: set[str],
    tally: _Tally,
    beside: _Tally,
) -> str:
    """The state of the first init container that is not done; empty if all are."""
    for index, each in enumerate(statuses):
        sidecar = each["name"] in sidecars
        tally.add(each)
        if sidecar:
            beside.add(each)
        state = each.get("state") or _NOTHING
        ended = state.get("terminated")
        if ended is not None and not ended.get("exitCode"):
            continue
        if sidecar and each.get("started"):
            beside.ready += bool(each.get("ready"))
            continue
        if ended is not None:
            return f"Init:{_end(ended)}"
        reason = (state.get("waiting") or _NOTHING).get("reason")
        if reason and reason != "PodInitializing":
            return f"Init:{reason}"
        return f"Init:{index}/{len(spec.get('initContainers') or ())}"
    return ""


def _end(terminated: Plain) -> str:
    """Why a container ended."""
    reason: str = terminated.get("reason") or ""
    if reason:
        return reason
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"


def _running(status: Plain, reason: str, tally: _Tally) -> str:
    """The state of the first container that is not just running."""
    error, running = "", False
    for each in reversed(status.get("containerStatuses") or ()):
        tally.add(each)
        state = each.get("state") or _NOTHING
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting is not None and waiting.get("reason"):
            reason = waiting["reason"]
        elif ended is not None:
            reason = _end(ended)
            error = reason if ended.get("exitCode") else error
        elif each.get("ready") and state.get("running") is not None:
            running = True
            tally.ready += 1
    if reason != "Completed":
        return reason
    # Some are done while others may still be at work.
    if running and _any_ready(status):
        return "Running"
    return error or ("NotReady" if running else reason)


def _any_ready(status: Plain) -> bool:
    return any(
        each["type"] == "Ready" and each.get("status") == "True"
        for each in status.get("conditions") or ()
    )


def _leaving(status: Plain, reason: str) -> str:
    """The state of a pod that is being deleted."""
    if status.get("reason") == "NodeLost":
        return "Unknown"
    done = status.get("phase") in ("Succeeded", "Failed")
    return reason if done else "Terminating"


def _gates(gates: list[Plain] | None, status: Plain) -> str:
    if not gates:
        return NONE
    open_ = sum(_holds(status, each["conditionType"]) for each in gates)
    return f"{open_}/{len(gates)}"


def _template(obj: Plain, now: datetime) -> Row:
    template = obj.get("template") or _NOTHING
    names, images = containers(template)
    shown = labels((template.get("metadata") or _NOTHING).get("labels"))
    return [obj["metadata"]["name"], names, images, shown]


def _budget(obj: Plain, now: datetime) -> Row:
    spec = obj.get("spec") or _NOTHING
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    return [
        obj["metadata"]["name"],
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        (obj.get("status") or _NOTHING).get("disruptionsAllowed") or 0,
        created(obj, now),
    ]


PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("", "Pod"): printer(
        "Name/name, Ready, Status, Restarts, Age, IP*, Node*, Nominated Node*, "
        "Readiness Gates*",
        _pod,
    ),
    ("", "PodTemplate"): printer(
        "Name/name, Containers, Images, Pod Labels", _template
    ),
    ("policy", "PodDisruptionBudget"): printer(
        "Name/name, Min Available, Max Unavailable, Allowed Disruptions:integer, Age",
        _budget,
    ),
}
