"""The official client's SharedInformer on the scoreboard.

*Tuned*: Pods by label on the server; it has no way to keep less of an object.
"""

# It lives in an environment of its own, where mypy does not look.
# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-call"

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kubernetes import client, config
from kubernetes.informer import SharedInformer

from bench.peers.scoreboard_probe import (
    GROUP,
    RUNNERS,
    STAMP,
    TUNED,
    VERSION,
    WORKLOAD,
    Probe,
    size,
)

probe = Probe()
config.load_kube_config()
core, custom = client.CoreV1Api(), client.CustomObjectsApi()


def lister(plural: str) -> Callable[..., Any]:
    """Lists custom objects in the form that the informer reads: with attributes."""

    def listed(**options: Any) -> Any:
        """:return: object"""
        # The line above is what a watch reads to know what the objects are.
        answer = custom.list_cluster_custom_object(GROUP, VERSION, plural, **options)
        if not isinstance(answer, dict):
            return answer
        revision = answer["metadata"]["resourceVersion"]
        metadata = SimpleNamespace(resource_version=revision)
        return SimpleNamespace(items=answer["items"], metadata=metadata)

    return listed


def on_pod(pod: Any) -> None:
    metadata, status = pod.metadata, pod.status
    annotations = metadata.annotations or {}
    words = [metadata.namespace, metadata.name, status.phase or ""]
    words += [each.name for each in metadata.owner_references or ()]
    for condition in status.conditions or ():
        words += (condition.type, condition.status)
    probe.note(
        "Pod",
        metadata.namespace,
        metadata.name,
        size=size(words, labels=metadata.labels or {}, annotations=annotations),
        stamp=annotations.get(STAMP),
    )


def start(
    listed: Callable[..., Any],
    handler: Callable[[Any], None] | None,
    *,
    labels: str | None = None,
) -> None:
    informer = SharedInformer(listed, label_selector=labels)
    for event in ("ADDED", "MODIFIED") if handler else ():
        informer.add_event_handler(event, handler)
    informer.start()


if WORKLOAD == "S":
    start(lister("agenticsessions"), lambda obj: probe.note_body("AgenticSession", obj))
    start(
        lister("projectsettings"), lambda obj: probe.note_body("ProjectSettings", obj)
    )
    runners = RUNNERS if TUNED else None
    start(core.list_pod_for_all_namespaces, None, labels=runners)
else:
    start(core.list_pod_for_all_namespaces, on_pod)
threading.Event().wait()
