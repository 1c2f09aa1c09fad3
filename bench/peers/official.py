"""Peer: the official ``kubernetes`` client, typed or as ``dicts``."""

# It lives in an environment of its own, where mypy does not look.
# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-call"

from __future__ import annotations

import json
from typing import Any

from kubernetes import client, config, watch

from bench.peers.probe import PAGE, Probe


def list_typed(probe: Probe, core: Any) -> None:
    after = None
    while True:
        page = core.list_pod_for_all_namespaces(limit=PAGE, _continue=after)
        for pod in page.items:
            meta = pod.metadata
            probe.note(meta.namespace, meta.name, meta.labels, pod.status.phase)
        after = page.metadata._continue
        if not after:
            return


def list_dicts(probe: Probe, core: Any) -> None:
    after = None
    while True:
        answer = core.list_pod_for_all_namespaces(
            limit=PAGE, _continue=after, _preload_content=False
        )
        page = json.loads(answer.data)
        for pod in page["items"]:
            note_dict(probe, pod)
        after = page["metadata"].get("continue")
        if not after:
            return


def watch_typed(probe: Probe, core: Any) -> None:
    watching = watch.Watch()
    for event in watching.stream(core.list_pod_for_all_namespaces):
        pod = event["object"]
        meta = pod.metadata
        probe.note(meta.namespace, meta.name, meta.labels, pod.status.phase)
        if probe.complete:
            watching.stop()


def watch_dicts(probe: Probe, core: Any) -> None:
    watching = watch.Watch()
    for event in watching.stream(core.list_pod_for_all_namespaces, deserialize=False):
        note_dict(probe, event["object"])
        if probe.complete:
            watching.stop()


def note_dict(probe: Probe, pod: dict[str, Any]) -> None:
    meta = pod["metadata"]
    labels = meta.get("labels")
    probe.note(meta["namespace"], meta["name"], labels, pod["status"]["phase"])


PHASES = {
    ("list", ""): list_typed,
    ("list", "dicts"): list_dicts,
    ("watch", ""): watch_typed,
    ("watch", "dicts"): watch_dicts,
}


def main() -> None:
    probe = Probe()
    config.load_kube_config()
    core = client.CoreV1Api()
    probe.begin()
    if probe.phase != "start":
        PHASES[probe.phase, probe.variant](probe, core)
    probe.end()


main()
