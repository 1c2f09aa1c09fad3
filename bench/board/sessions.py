"""Workload S: the projects, sessions and Pods of one platform, as its operator sees it.

763 namespaces with 674 ProjectSettings, 4,319 AgenticSessions of about 6 KB, of which
95 in a hundred are over, and 477 Pods, of which 80 belong to sessions that run. Nothing
is random but by a fixed seed, so the checksum is known before any program has run.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from bench import pods
from bench.board.loading import Written
from bench.peers.scoreboard_probe import GROUP, RUNNERS, VERSION

NAMESPACES, SETTINGS, SESSIONS, PODS, RUNNING = 763, 674, 4319, 477, 80
KINDS = {"AgenticSession": "agenticsessions", "ProjectSettings": "projectsettings"}
API = f"{GROUP}/{VERSION}"
DONE, LIVE = ("Completed", "Failed", "Stopped"), ("Pending", "Creating", "Running")
CONDITIONS = (
    "Ready PVCReady SecretsReady PodScheduled RunnerStarted ReposReconciled "
    "WorkflowReconciled Reconciled TempContentPodReady Completed"
).split()
WORDS = (
    "analyze the repository and propose a refactoring plan for module with tests "
    "coverage failing pipeline deploy operator session runner token budget prompt "
    "review security audit fix flaky integration latency memory cache schema migration "
    "rollback dashboard metrics tenant project workspace branch commit merge conflict "
    "docs example agent tool call retry timeout"
).split()


def definitions() -> Iterator[Written]:
    """The two kinds, with schemas that keep whatever is in a spec or a status."""
    for kind, plural in KINDS.items():
        yield Written(_definition(kind, plural))


def _definition(kind: str, plural: str) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    fields = {"spec": anything, "status": anything}
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}},
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": names | {"singular": kind.lower()},
            "versions": [version],
        },
    }


def namespace(number: int) -> str:
    return f"project-{number:03}"


def namespaces() -> Iterator[Written]:
    for number in range(NAMESPACES):
        labels = {"ambient-code.io/managed": "true"}
        metadata = {"name": namespace(number), "labels": labels}
        yield Written({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def settings() -> Iterator[Written]:
    """One ProjectSettings in each of the first namespaces."""
    for number in range(SETTINGS):
        random = Random(f"settings {number}")
        spec = {
            "groupAccess": [{"groupName": _text(random, 1), "role": "edit"}],
            "runnerSecretsName": f"runner-{_hex(random, 6)}",
            "note": _text(random, 20),
        }
        status = {"groupBindingsCreated": number % 5, "observedGeneration": 1}
        metadata = {"name": "projectsettings", "namespace": namespace(number)}
        yield Written(_object("ProjectSettings", metadata, spec), status)


def sessions() -> Iterator[Written]:
    for number in range(SESSIONS):
        yield session(number)


def session(number: int) -> Written:
    """One session: who asked for what, and how it went."""
    random = Random(f"session {number}")
    place = namespace(random.randrange(NAMESPACES))
    phase = random.choice(LIVE if number % 20 == 0 else DONE)
    repositories = [_repository(random) for _ in range(2)]
    labels = {
        "ambient-code.io/managed": "true",
        "app": "agentic-session",
        "user": f"u{_hex(random, 6)}",
    }
    annotations = {
        "ambient-code.io/desired-phase": phase,
        "ambient-code.io/created-by": f"{pods.uid(number)}@example.com",
        "ambient-code.io/note": _text(random, 10),
    }
    metadata = {
        "name": f"session-{1790000000 + number}-{_hex(random, 6)}",
        "namespace": place,
        "labels": labels,
        "annotations": annotations,
    }
    spec = _spec(random, place, repositories)
    status = _status(random, phase, repositories)
    return Written(_object("AgenticSession", metadata, spec), status)


def _spec(random: Random, place: str, repositories: list[Any]) -> dict[str, Any]:
    return {
        "initialPrompt": _text(random, 150),
        "displayName": _text(random, 5),
        "project": place,
        "interactive": random.random() < 0.5,
        "timeout": 300 + random.randrange(7200),
        "inactivityTimeout": 3600,
        "llmSettings": {
            "model": f"model-{_hex(random, 4)}",
            "temperature": 0.7,
            "maxTokens": 4000,
        },
        "repos": repositories,
        "environmentVariables": {
            f"{_text(random, 1).upper()}_{_hex(random, 4)}": _hex(random, 32)
            for _ in range(8)
        },
        "userContext": {
            "userId": _hex(random, 32),
            "displayName": _text(random, 2),
            "groups": [_text(random, 1), _text(random, 1)],
        },
        "activeWorkflow": _workflow() | {"path": f"workflows/{_text(random, 1)}"},
    }


def _status(random: Random, phase: str, repositories: list[Any]) -> dict[str, Any]:
    conditions = [
        {
            "type": kind,
            "status": random.choice(("True", "False")),
            "reason": _text(random, 2).title().replace(" ", ""),
            "message": _text(random, 6),
            "lastTransitionTime": _time(random),
            "observedGeneration": 1,
        }
        for kind in CONDITIONS
    ]
    return {
        "phase": phase,
        "observedGeneration": 1,
        "startTime": _time(random),
        "completionTime": _time(random),
        "lastActivityTime": _time(random),
        "podName": f"pod-{_hex(random, 8)}",
        "sdkSessionId": _hex(random, 32),
        "sdkRestartCount": random.randrange(4),
        "reconciledRepos": [
            {**each, "status": "Ready", "clonedAt": _time(random)}
            for each in repositories
        ],
        "reconciledWorkflow": _workflow()
        | {"status": "Active", "appliedAt": _time(random)},
        "conditions": conditions,
    }


def _workflow() -> dict[str, Any]:
    return {"gitUrl": "https://git.example.com/workflow.git", "branch": "main"}


def _repository(random: Random) -> dict[str, Any]:
    name = _text(random, 1)
    return {
        "url": f"https://git.example.com/{name}/{_hex(random, 8)}.git",
        "branch": f"feature/{_hex(random, 8)}",
        "name": name,
    }


def some_pods(owners: dict[str, str]) -> Iterator[Written]:
    """477 Pods; the first 80 run sessions, whose uids are given by their names."""
    chosen = [session(number * 50).body["metadata"] for number in range(RUNNING)]
    for number in range(PODS):
        body = pods.pod(number)
        metadata = body["metadata"]
        metadata["namespace"] = namespace(number)
        if number < RUNNING:
            name = chosen[number]["name"]
            metadata["namespace"] = chosen[number]["namespace"]
            key, _, value = RUNNERS.partition("=")
            metadata["labels"] = {**metadata["labels"], key: value}
            metadata["ownerReferences"] = [_owner(name, owners[name])]
        yield Written(body, pods.status(number))


def _owner(name: str, uid: str) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "AgenticSession",
        "name": name,
        "uid": uid,
        "controller": True,
    }


def _object(
    kind: str, metadata: dict[str, Any], spec: dict[str, Any]
) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}


def _text(random: Random, count: int) -> str:
    return " ".join(random.choices(WORDS, k=count))


def _hex(random: Random, digits: int) -> str:
    return f"{random.getrandbits(4 * digits):0{digits}x}"


def _time(random: Random) -> str:
    day, second = 1 + random.randrange(28), random.randrange(86400)
    hour, minute = second // 3600, second // 60 % 60
    return f"2026-09-{day:02}T{hour:02}:{minute:02}:{second % 60:02}Z"
