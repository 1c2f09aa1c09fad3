"""Tables of what makes pods: how many they want and have."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from trimtab.embedded.builtin.printers.cells import (
    NONE,
    UNSET,
    Plain,
    Printer,
    Row,
    between,
    condition,
    containers,
    count,
    created,
    labels,
    part,
    printer,
    selector,
    since,
)

# The first that holds is the state of a job; the empty one stands for deletion.
_JOB_STATES: Final = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _deployment(obj: Plain, now: datetime) -> Row:
    spec, status = part(obj, "spec"), part(obj, "status")
    return [
        obj["metadata"]["name"],
        f"{count(status.get('readyReplicas'))}/{count(spec.get('replicas'))}",
        count(status.get("updatedReplicas")),
        count(status.get("availableReplicas")),
        created(obj, now),
        *containers(spec.get("template")),
        selector(spec.get("selector")),
    ]


def _replica_set(obj: Plain, now: datetime) -> Row:
    shown = selector(part(obj, "spec").get("selector")) or NONE
    return [*_replicas(obj, now), shown]


def _replication_controller(obj: Plain, now: datetime) -> Row:
    return [*_replicas(obj, now), labels(part(obj, "spec").get("selector"))]


def _replicas(obj: Plain, now: datetime) -> Row:
    spec, status = part(obj, "spec"), part(obj, "status")
    return [
        obj["metadata"]["name"],
        count(spec.get("replicas")),
        count(status.get("replicas")),
        count(status.get("readyReplicas")),
        created(obj, now),
        *containers(spec.get("template")),
    ]


def _stateful_set(obj: Plain, now: datetime) -> Row:
    spec, status = part(obj, "spec"), part(obj, "status")
    return [
        obj["metadata"]["name"],
        f"{count(status.get('readyReplicas'))}/{count(spec.get('replicas'))}",
        created(obj, now),
        *containers(spec.get("template")),
    ]


def _daemon_set(obj: Plain, now: datetime) -> Row:
    spec, status = part(obj, "spec"), part(obj, "status")
    return [
        obj["metadata"]["name"],
        count(status.get("desiredNumberScheduled")),
        count(status.get("currentNumberScheduled")),
        count(status.get("numberReady")),
        count(status.get("updatedNumberScheduled")),
        count(status.get("numberAvailable")),
        labels(part(spec, "template", "spec").get("nodeSelector")),
        created(obj, now),
        *containers(spec.get("template")),
        selector(spec.get("selector")) or NONE,
    ]


def _job(obj: Plain, now: datetime) -> Row:
    spec = part(obj, "spec")
    return [
        obj["metadata"]["name"],
        _job_state(obj),
        _completions(spec, part(obj, "status")),
        _duration(part(obj, "status"), now),
        created(obj, now),
        *containers(spec.get("template")),
        selector(spec.get("selector")) or NONE,
    ]


def _job_state(obj: Plain) -> str:
    for kind, state in _JOB_STATES:
        if not kind:
            if obj["metadata"].get("deletionTimestamp"):
                return state
            continue
        found = condition(obj, kind)
        if found is not None and found.get("status") == "True":
            return state
    return "Running"


def _completions(spec: Plain, status: Plain) -> str:
    done, wanted = count(status.get("succeeded")), spec.get("completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    side_by_side = count(spec.get("parallelism"))
    return f"{done}/1 of {side_by_side}" if side_by_side > 1 else f"{done}/1"


def _duration(status: Plain, now: datetime) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    return between(start, end) if end else since(start, now)


def _cron_job(obj: Plain, now: datetime) -> Row:
    spec, status = part(obj, "spec"), part(obj, "status")
    job = part(spec, "jobTemplate", "spec")
    zone, suspend = spec.get("timeZone"), spec.get("suspend")
    last = status.get("lastScheduleTime")
    return [
        obj["metadata"]["name"],
        spec.get("schedule") or "",
        NONE if zone is None else zone,
        UNSET if suspend is None else str(suspend),
        len(status.get("active") or ()),
        since(last, now) if last else NONE,
        created(obj, now),
        *containers(job.get("template")),
        selector(job.get("selector")) or NONE,
    ]


def _controller_revision(obj: Plain, now: datetime) -> Row:
    return [
        obj["metadata"]["name"],
        _controller(obj),
        count(obj.get("revision")),
        created(obj, now),
    ]


def _controller(obj: Plain) -> str:
    for each in obj["metadata"].get("ownerReferences") or ():
        if each.get("controller"):
            group, slash, _ = each["apiVersion"].rpartition("/")
            kind = f"{each['kind']}.{group}" if slash else each["kind"]
            return f"{kind.lower()}/{each['name']}"
    return NONE


def _scale(obj: Plain, now: datetime) -> Row:
    return [
        obj["metadata"]["name"],
        count(part(obj, "spec").get("replicas")),
        count(part(obj, "status").get("replicas")),
        created(obj, now),
    ]


_OF_REPLICAS: Final = (
    "Name/name, Desired:integer, Current:integer, Ready:integer, Age, Containers*, "
    "Images*, Selector*"
)

PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("apps", "Deployment"): printer(
        "Name/name, Ready, Up-to-date, Available, Age, Containers*, Images*, Selector*",
        _deployment,
    ),
    ("apps", "ReplicaSet"): printer(_OF_REPLICAS, _replica_set),
    ("", "ReplicationController"): printer(_OF_REPLICAS, _replication_controller),
    ("apps", "StatefulSet"): printer(
        "Name/name, Ready, Age, Containers*, Images*", _stateful_set
    ),
    ("apps", "DaemonSet"): printer(
        "Name/name, Desired:integer, Current:integer, Ready:integer, "
        "Up-to-date:integer, Available:integer, Node Selector, Age, Containers*, "
        "Images*, Selector*",
        _daemon_set,
    ),
    ("batch", "Job"): printer(
        "Name/name, Status, Completions, Duration, Age, Containers*, Images*, "
        "Selector*",
        _job,
    ),
    ("batch", "CronJob"): printer(
        "Name/name, Schedule, Timezone, Suspend:boolean, Active:integer, "
        "Last Schedule, Age, Containers*, Images*, Selector*",
        _cron_job,
    ),
    ("apps", "ControllerRevision"): printer(
        "Name/name, Controller, Revision, Age", _controller_revision
    ),
    ("autoscaling", "Scale"): printer(
        "Name, Desired:integer, Available:integer, Age", _scale
    ),
}
