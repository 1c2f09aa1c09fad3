"""Usage: what pods take now, in the form that ``kubectl top pod`` reads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec

from trimtab.api.times import rfc3339
from trimtab.kubelet import limits
from trimtab.kubelet.containers import ContainerRun
from trimtab.kubelet.kubelet import Kubelet
from trimtab.kubelet.pods import PodRun

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
ROOT = f"/apis/{GROUP}/{VERSION}"
LEAST = 0.1
"""Seconds between two looks for a rate to mean anything."""

Plain = dict[str, Any]

RESOURCE: Plain = {
    "name": "pods",
    "singularName": "",
    "namespaced": True,
    "kind": "PodMetrics",
    "verbs": ["get", "list"],
}
RESOURCES: Plain = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/{VERSION}",
    "resources": [RESOURCE],
}
LEGACY: Plain = {
    "name": GROUP,
    "versions": [{"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION}],
    "preferredVersion": {"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION},
}
AGGREGATED: Plain = {
    "metadata": {"name": GROUP, "creationTimestamp": None},
    "versions": [
        {
            "version": VERSION,
            "freshness": "Current",
            "resources": [
                {
                    "resource": "pods",
                    "responseKind": {
                        "group": GROUP,
                        "version": VERSION,
                        "kind": "PodMetrics",
                    },
                    "scope": "Namespaced",
                    "singularResource": "pod",
                    "verbs": ["get", "list"],
                }
            ],
        }
    ],
}


def announced(body: bytes) -> bytes:
    """A server's list of groups, with this one in it."""
    found = msgspec.json.decode(body)
    if found.get("kind") == "APIGroupList":
        found["groups"].append(LEGACY)
    elif found.get("kind") == "APIGroupDiscoveryList":
        found["items"].append(AGGREGATED)
    return msgspec.json.encode(found)


class Usage:
    """Looks at the processes of a kubelet's pods when somebody asks."""

    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet = kubelet
        self._before: dict[int, tuple[float, float]] = {}
        """When each process was last looked at, and the CPU time that it had used."""

    def answer(self, path: str) -> Plain | None:
        """The document at a path below the group's; None if there is none."""
        if path == ROOT:
            return RESOURCES
        words = path.removeprefix(ROOT).strip("/").split("/")
        match words:
            case ["pods"]:
                return self._list("")
            case ["namespaces", namespace, "pods"]:
                return self._list(namespace)
            case ["namespaces", namespace, "pods", name]:
                found = self._list(namespace)["items"]
                return next((e for e in found if e["metadata"]["name"] == name), None)
        return None

    def _list(self, namespace: str) -> Plain:
        runs = [
            run
            for run in self._kubelet.runs.values()
            if not run.over and namespace in ("", run.pod.metadata.namespace)
        ]
        used = self._used({pid for run in runs for _, pid in _processes(run)})
        return {
            "kind": "PodMetricsList",
            "apiVersion": f"{GROUP}/{VERSION}",
            "metadata": {},
            "items": [self._item(run, used) for run in runs if any(_processes(run))],
        }

    def _used(self, pids: set[int]) -> dict[int, tuple[float, int]]:
        """Cores and bytes of each process and its children."""
        now = asyncio.get_running_loop().time()
        seen = limits.usage(pids)
        before, self._before = self._before, {}
        made = {}
        for pid, each in seen.items():
            since, seconds = before.get(pid, (now - 60.0, 0.0))
            if now - since < LEAST:
                since, seconds = now - 60.0, 0.0
            rate = max(0.0, each.seconds - seconds) / (now - since)
            made[pid] = rate, each.memory
            self._before[pid] = now, each.seconds
        return made

    def _item(self, run: PodRun, used: dict[int, tuple[float, int]]) -> Plain:
        meta = run.pod.metadata
        stamp = rfc3339(run.site.now())
        containers = []
        for container, pid in _processes(run):
            cores, memory = used.get(pid, (0.0, 0))
            usage = {"cpu": f"{round(cores * 1e9)}n", "memory": f"{memory >> 10}Ki"}
            containers.append({"name": container.spec.name, "usage": usage})
        return {
            "kind": "PodMetrics",
            "apiVersion": f"{GROUP}/{VERSION}",
            "metadata": {
                "name": meta.name,
                "namespace": meta.namespace,
                "labels": meta.labels,
                "creationTimestamp": stamp,
            },
            "timestamp": stamp,
            "window": "60s",
            "containers": containers,
        }


def _processes(run: PodRun) -> Iterator[tuple[ContainerRun, int]]:
    for each in (*run.mains, *run.inits):
        if each.process is not None:
            yield each, each.process.pid
