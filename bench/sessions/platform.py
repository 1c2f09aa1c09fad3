"""The platform that is measured: its projects, sessions and Pods, made from numbers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bench.board import sessions as board
from bench.board.loading import Written
from trimtab.operators.sessions.kinds import APP, DESIRED, SESSION_LABEL
from trimtab.operators.sessions.names import pod_name
from trimtab.operators.sessions.settings import RUNNER_SECRETS

Plain = dict[str, Any]


class Scale(NamedTuple):
    """How much there is, and what may be used for it."""

    name: str
    namespaces: int
    settings: int
    sessions: int
    pods: int
    running: int
    waiting: int
    rss: float
    """MiB that the operator may have at its peak."""


AUDIT = Scale("as audited", 763, 674, 4319, 477, 80, 136, 80.0)
LARGE = Scale("large", 1000, 1000, 10_000, 477, 80, 420, 110.0)


def tenth(scale: Scale) -> Scale:
    """Less of it, to try something out; what may be used stays."""
    names = ("namespaces", "settings", "sessions", "pods", "running", "waiting")
    less = {name: getattr(scale, name) // 10 for name in names}
    return scale._replace(name=f"a tenth of {scale.name}", **less)


def phase_of(scale: Scale, number: int) -> str:
    """Runners and those that wait are spread over all sessions."""
    step = scale.sessions // (scale.running + scale.waiting)
    place, rest = divmod(number, step)
    if rest or place >= scale.running + scale.waiting:
        return board.DONE[number % 3]
    every = (scale.running + scale.waiting) // scale.running
    return (
        "Running"
        if place % every == 0 and place // every < scale.running
        else ("Pending")
    )


def session(scale: Scale, number: int) -> Written:
    made = board.session(number)
    body = made.body
    place = int(body["metadata"]["namespace"].rpartition("-")[2])
    body["metadata"]["namespace"] = board.namespace(
        (place * 7 + number) % scale.namespaces
    )
    del body["metadata"]["annotations"][DESIRED]
    del body["spec"]["interactive"], body["spec"]["project"]
    for each in body["spec"]["repos"]:
        del each["name"]
    status = dict(made.status or {}) | {"phase": phase_of(scale, number)}
    del status["podName"]
    if status["phase"] == "Running":
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        dates = dict.fromkeys(
            ("startTime", "readyAt", "firstStartedAt", "lastActivityTime"), now
        )
        # There is nobody to call: what it wishes for has been brought to it.
        body["spec"] |= {"timeout": 0, "inactivityTimeout": 86400, "repos": []}
        del body["spec"]["activeWorkflow"]
        del status["reconciledWorkflow"], status["reconciledRepos"]
        status |= {**dates, "answeredBy": "", "observedGeneration": 1}
        del status["completionTime"]
    elif status["phase"] == "Pending":
        status = {"phase": "Pending"}
    return Written(body, status)


def all_sessions(scale: Scale) -> Iterator[Written]:
    for number in range(scale.sessions):
        yield session(scale, number)


def namespaces(scale: Scale) -> Iterator[Written]:
    for number in range(scale.namespaces):
        labels = {"ambient-code.io/managed": "true"}
        metadata = {"name": board.namespace(number), "labels": labels}
        yield Written({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def settings(scale: Scale) -> Iterator[Written]:
    """ProjectSettings of most, and the secret that no session starts without."""
    for number in range(scale.namespaces):
        place = board.namespace(number)
        metadata = {"name": "projectsettings", "namespace": place}
        spec = {"groupAccess": [{"groupName": f"team-{number}", "role": "edit"}]}
        kind: Plain = {"apiVersion": board.API, "kind": "ProjectSettings"}
        if number < scale.settings:
            yield Written({**kind, "metadata": metadata, "spec": spec})
        secret = {"name": RUNNER_SECRETS, "namespace": place}
        yield Written({"apiVersion": "v1", "kind": "Secret", "metadata": secret})


def pods(scale: Scale, uids: dict[str, str]) -> Iterator[Written]:
    """Runners that are ready, and Pods that are none of the operator's business."""
    running = [
        each.body["metadata"]
        for each in all_sessions(scale)
        if each.status and each.status["phase"] == "Running"
    ]
    for metadata in running:
        owner = {
            "apiVersion": board.API,
            "kind": "AgenticSession",
            "name": metadata["name"],
            "uid": uids[metadata["name"]],
            "controller": True,
        }
        name = pod_name(metadata["name"])
        labels = {"app": APP, SESSION_LABEL: metadata["name"]}
        yield _pod(metadata["namespace"], name, labels, owners=[owner])
    for number in range(scale.pods - len(running)):
        yield _pod(
            board.namespace(number % scale.namespaces),
            f"other-{number}",
            {"app": "other"},
        )


def _pod(
    namespace: str, name: str, labels: dict[str, str], *, owners: Sequence[Plain] = ()
) -> Written:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    container = {"name": APP, "image": "none"}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "ownerReferences": [*owners]},
        "spec": {"nodeName": "somewhere", "containers": [container]},
    }
    since = {"startedAt": "2026-01-01T00:00:00Z"}
    status = {
        "phase": "Running",
        "podIP": "127.0.0.9",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {
                **container,
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "state": {"running": since},
            }
        ],
    }
    return Written(body, status)
