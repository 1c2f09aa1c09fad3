"""Kubelets: what becomes of Deployments, Jobs and Pods in a world without nodes.

A model, not a kubelet: pods start after a while, become ready, and end. While the plan
says so they have bad luck: an image that does not come, a crash, too little memory, an
eviction, a node that is lost. A Deployment keeps its number of pods of the present
template; a Job ends with its pods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final
from zlib import crc32

import msgspec

from trimtab.sim.pods import ModelPods
from trimtab.sim.programs import Main
from trimtab.sim.replica import Surroundings
from trimtab.sim.server import MERGE, ObjectChange, Plain

PODS: Final = "core/pods"
DEPLOYMENTS: Final = "apps/deployments"
JOBS: Final = "batch/jobs"
TEMPLATE: Final = "sim.trimtab.dev/template"
LUCK: Final = ("none", "none", "image", "crash", "memory", "evicted", "node")
SYNC: Final = 0.1
"""Seconds within which a change is looked at."""


class Kubelets:
    """Follows the server and moves what nobody else moves."""

    def __init__(
        self, around: Surroundings, *, images: Mapping[str, Main], unlucky: bool
    ) -> None:
        self.unlucky = unlucky
        self.pods = ModelPods(images, around, ended=self._program_ended)
        self._server = around.server
        self._trace = around.trace
        self._random = Random(f"kubelets {around.seed}")
        self._due: set[str] = set()
        self._lucks: dict[str, str] = {}
        self._server.follow(self._changed)

    def _changed(self, change: ObjectChange) -> None:
        resource = change.resource
        if resource in (PODS, DEPLOYMENTS, JOBS):
            self._look(change.key)
        if resource == PODS:
            pod = change.after or change.before or {}
            for each in pod["metadata"].get("ownerReferences", ()):
                plural = {"Deployment": DEPLOYMENTS, "Job": JOBS}.get(each["kind"])
                if plural:
                    namespace = pod["metadata"]["namespace"]
                    self._look(f"{plural}/{namespace}/{each['name']}")
            if change.after is None:
                self._lucks.pop(pod["metadata"]["uid"], None)
                self.pods.forget(pod)

    def _program_ended(self, pod: Plain) -> None:
        metadata = pod["metadata"]
        self._look(f"{PODS}/{metadata['namespace']}/{metadata['name']}")

    def _look(self, key: str, *, after: float = SYNC) -> None:
        if key not in self._due:
            self._due.add(key)
            self._server.later(self._random.uniform(0, after), self._sync, key)

    def _sync(self, key: str) -> None:
        self._due.discard(key)
        obj = self._server.objects.get(key)
        if obj is not None:
            steps: dict[str, Callable[[str, Plain], None]] = {
                PODS: self._pod,
                DEPLOYMENTS: self._deployment,
                JOBS: self._job,
            }
            steps["/".join(key.split("/")[:2])](key, obj)

    # Workloads

    def _deployment(self, key: str, obj: Plain) -> None:
        if "deletionTimestamp" in obj["metadata"]:
            return
        spec = obj["spec"]
        template = f"{crc32(msgspec.json.encode(spec['template'], order='sorted')):x}"
        pods = self._pods_of(obj)
        fresh = [each for each in pods if _template(each) == template]
        for pod in pods:
            if pod not in fresh[: spec.get("replicas", 1)] or _phase(pod) == "Failed":
                self._delete(pod)
        for _ in range(spec.get("replicas", 1) - len(fresh)):
            self._make_pod(obj, "Deployment", "apps/v1", template)
        ready = sum(map(_is_ready, fresh))
        status = {
            "observedGeneration": obj["metadata"].get("generation", 1),
            "replicas": len(pods),
            "updatedReplicas": len(fresh),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": len(pods) - ready,
        }
        self._status("/apis/apps/v1", "deployments", obj, status)

    def _job(self, key: str, obj: Plain) -> None:
        if "deletionTimestamp" in obj["metadata"] or obj["spec"].get("suspend"):
            return
        pods = self._pods_of(obj)
        done = [each for each in pods if _phase(each) == "Succeeded"]
        wanted = obj["spec"].get("completions", 1)
        active = [each for each in pods if _phase(each) in ("Pending", "Running")]
        if len(done) + len(active) < wanted:
            self._make_pod(obj, "Job", "batch/v1", "job")
        status: Plain = {"succeeded": len(done), "active": len(active)}
        if len(done) >= wanted:
            condition = {"type": "Complete", "status": "True"}
            status["conditions"] = [condition]
        self._status("/apis/batch/v1", "jobs", obj, status)

    def _pods_of(self, owner: Plain) -> list[Plain]:
        uid = owner["metadata"]["uid"]
        return [
            pod
            for pod in self._server.of(PODS)
            if any(
                each["uid"] == uid
                for each in pod["metadata"].get("ownerReferences", ())
            )
            and "deletionTimestamp" not in pod["metadata"]
        ]

    def _make_pod(self, owner: Plain, kind: str, version: str, template: str) -> None:
        made = owner["spec"]["template"]
        metadata = owner["metadata"]
        reference = {
            "apiVersion": version,
            "kind": kind,
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }
        body = {
            "metadata": {
                "generateName": f"{metadata['name']}-",
                "labels": {**(made.get("metadata") or {}).get("labels", {})},
                "annotations": {TEMPLATE: template},
                "ownerReferences": [reference],
            },
            "spec": made["spec"],
        }
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods"
        self._server.ask("POST", path, body, who="kubelet")

    # Pods

    def _pod(self, key: str, pod: Plain) -> None:
        if "deletionTimestamp" in pod["metadata"]:
            if self.pods.is_gone(pod):
                self._delete(pod, now=True)
            else:
                self._look(key, after=1.0)
            return
        phase, luck = _phase(pod), self._luck(pod)
        if phase in ("Succeeded", "Failed"):
            return
        if phase == "Pending" and not pod.get("status", {}).get("startTime"):
            if luck == "image":
                self._unlucky(pod, "the image does not come")
                self._write(pod, "Pending", waiting="ImagePullBackOff")
                self._lucks[pod["metadata"]["uid"]] = "none"
                self._look(key, after=20.0)
            else:
                self._write(pod, "Running", ready=self.pods.serves(pod))
        elif self.pods.finished(pod):
            self._finished(pod)
        elif not _is_ready(pod):
            if self.pods.serves(pod):
                self._write(pod, "Running", ready=True)
            else:
                self._look(key, after=1.0)
        elif not self.pods.has(pod) and pod["spec"].get("restartPolicy") in (
            "Never",
            "OnFailure",
        ):
            self._server.later(self._random.uniform(1, 8), self._succeed, key)
        elif luck != "none":
            self._server.later(self._random.uniform(1, 20), self._misfortune, key)

    def _finished(self, pod: Plain) -> None:
        """Its program has ended by itself, and well."""
        self.pods.kill(pod)
        if pod["spec"].get("restartPolicy", "Always") == "Always":
            self._write(pod, "Running", ended="Completed")
        else:
            self._write(pod, "Succeeded")

    def _succeed(self, key: str) -> None:
        pod = self._server.objects.get(key)
        if pod is not None and _phase(pod) == "Running":
            self._write(pod, "Succeeded")

    def _misfortune(self, key: str) -> None:
        pod = self._server.objects.get(key)
        if pod is None or not self.unlucky:
            return
        luck = self._lucks.get(pod["metadata"]["uid"], "none")
        self._lucks[pod["metadata"]["uid"]] = "none"
        match luck:
            case "crash":
                self._unlucky(pod, "it crashes")
                self._crash(pod, "Error")
            case "memory":
                self._unlucky(pod, "it is out of memory")
                self._crash(pod, "OOMKilled")
            case "evicted":
                self._unlucky(pod, "it is evicted")
                self.pods.kill(pod)
                self._write(pod, "Failed", reason="Evicted")
            case "node":
                self._unlucky(pod, "its node is lost")
                self._delete(pod, now=True)

    def _crash(self, pod: Plain, why: str) -> None:
        self.pods.kill(pod)
        again = pod["spec"].get("restartPolicy", "Always") != "Never"
        self._write(pod, "Running" if again else "Failed", ended=why)

    def _luck(self, pod: Plain) -> str:
        if not self.unlucky:
            return "none"
        uid = pod["metadata"]["uid"]
        if uid not in self._lucks:
            self._lucks[uid] = self._random.choice(LUCK)
        return self._lucks[uid]

    def _unlucky(self, pod: Plain, what: str) -> None:
        self._trace.fault("kubelet", "pod", f"Pod {pod['metadata']['name']}: {what}")

    def _write(
        self,
        pod: Plain,
        phase: str,
        *,
        ready: bool = False,
        waiting: str = "",
        ended: str = "",
        reason: str = "",
    ) -> None:
        state: Plain = {"running": {}}
        if waiting:
            state = {"waiting": {"reason": waiting}}
        elif ended:
            state = {"terminated": {"reason": ended, "exitCode": 137}}
        elif phase in ("Succeeded", "Failed"):
            state = {"terminated": {"exitCode": int(phase == "Failed")}}
        before = pod.get("status", {}).get("containerStatuses") or [{}]
        count = before[0].get("restartCount", 0) + bool(ended)
        containers = [
            {
                "name": each["name"],
                "image": each["image"],
                "imageID": each["image"],
                "ready": ready,
                "restartCount": count,
                "state": state,
            }
            for each in pod["spec"]["containers"]
        ]
        status = {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": containers,
        }
        if phase == "Running":
            status["startTime"] = "2026-01-01T00:00:00Z"
            status["podIP"] = self.pods.address(pod)
        if reason:
            status["reason"] = reason
        self._status("/api/v1", "pods", pod, status)

    def _delete(self, pod: Plain, *, now: bool = False) -> None:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        query = {"gracePeriodSeconds": "0"} if now else {}
        self._server.ask("DELETE", path, who="kubelet", query=query)

    def _status(self, root: str, plural: str, obj: Plain, status: Any) -> None:
        before = obj.get("status", {})
        if all(before.get(name) == value for name, value in status.items()):
            return
        metadata = obj["metadata"]
        place = f"{root}/namespaces/{metadata['namespace']}/{plural}"
        path = f"{place}/{metadata['name']}/status"
        self._server.ask("PATCH", path, {"status": status}, who="kubelet", media=MERGE)


def _phase(pod: Plain) -> str:
    return str(pod.get("status", {}).get("phase", "Pending"))


def _template(pod: Plain) -> str:
    return str(pod["metadata"].get("annotations", {}).get(TEMPLATE, ""))


def _is_ready(pod: Plain) -> bool:
    return any(
        each["type"] == "Ready" and each["status"] == "True"
        for each in pod.get("status", {}).get("conditions", ())
    )
