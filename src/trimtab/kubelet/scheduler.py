"""The scheduler: gives each pod that waits a node, the most important first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

from trimtab.api.kinds import Node, Pod, WholePod
from trimtab.api.times import rfc3339
from trimtab.cache import Change, Informer, Key
from trimtab.client import ApiError, Client, TransportError
from trimtab.kubelet.fitting import Demand, Verdict, choose, demand
from trimtab.kubelet.pods import is_terminal
from trimtab.runtime.events import Recorder

logger = logging.getLogger("trimtab.kubelet")

NAME = "default-scheduler"
RETRY = 1.0


class Scheduler:
    """Binds pods to nodes, and says why it cannot.

    Flow: ``run`` in a task, with informers of all pods and all nodes that run beside.

    Guarantees: a pod is bound at most once; what it takes counts from that moment.
    """

    def __init__(
        self,
        client: Client,
        *,
        pods: Informer[WholePod],
        nodes: Informer[Node],
        recorder: Recorder,
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._pods = pods
        self._nodes = nodes
        self._recorder = recorder
        self._now = now
        self._waiting: dict[Key, WholePod] = {}
        self._held: dict[str, dict[Key, Demand]] = {}
        """What is on each node, also what was bound a moment ago."""
        self._told: dict[Key, str] = {}
        """What was last said of each pod that waits."""
        self._awake = asyncio.Event()

    async def run(self) -> None:
        """Schedule until cancelled."""
        await self._nodes.wait_synced()
        await self._pods.wait_synced()
        unsubscribe = self._pods.subscribe(self._pod_changed)
        forget = self._nodes.subscribe(lambda _: self._awake.set())
        try:
            while True:
                await self._awake.wait()
                self._awake.clear()
                await self._pass()
        finally:
            unsubscribe()
            forget()

    def _pod_changed(self, change: Change[WholePod]) -> None:
        if change.old is not None and change.old.spec.nodeName:
            self._held.get(change.old.spec.nodeName, {}).pop(change.key, None)
        pod = change.new
        if pod is None or is_terminal(pod):
            self._waiting.pop(change.key, None)
            self._told.pop(change.key, None)
        elif pod.spec.nodeName:
            self._waiting.pop(change.key, None)
            self._hold(pod.spec.nodeName, change.key, pod)
        elif _is_ours(pod):
            self._waiting[change.key] = pod
        self._awake.set()

    def _hold(self, node: str, key: Key, pod: WholePod) -> None:
        self._held.setdefault(node, {})[key] = demand(pod)

    async def _pass(self) -> None:
        """Try every pod that waits, once."""
        order = sorted(self._waiting.items(), key=lambda item: _order(item[1]))
        for key, pod in order:
            held = {node: each.values() for node, each in self._held.items()}
            verdict = choose(pod, self._nodes.store.values(), held)
            try:
                if verdict.node:
                    await self._bind(key, pod, verdict.node)
                else:
                    await self._tell(key, pod, verdict)
            except ApiError as error:  # it went, or somebody else was quicker
                logger.debug("%s", f"{pod} was not scheduled: {error}")
            except TransportError as error:
                logger.warning("%s", f"{pod} was not scheduled: {error}")
                loop = asyncio.get_running_loop()
                loop.call_later(RETRY, self._awake.set)

    async def _bind(self, key: Key, pod: WholePod, node: str) -> None:
        self._waiting.pop(key, None)
        self._hold(node, key, pod)
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key[1], "uid": pod.metadata.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            await self._client.subresource(
                Pod,
                key[1],
                "binding",
                into=bytes,
                method="POST",
                body=body,
                namespace=key[0],
            )
        except (ApiError, TransportError) as error:
            self._held[node].pop(key, None)
            if isinstance(error, TransportError) and self._pods.store.get(key):
                self._waiting[key] = pod
            raise
        self._told.pop(key, None)
        text = f"Successfully assigned {key[0]}/{key[1]} to {node}"
        self._recorder.event(pod, "Normal", "Scheduled", text)

    async def _tell(self, key: Key, pod: WholePod, verdict: Verdict) -> None:
        """Say why it waits, once for each reason; make room if it may."""
        if self._told.get(key) != verdict.message:
            self._told[key] = verdict.message
            self._recorder.event(pod, "Warning", "FailedScheduling", verdict.message)
            condition = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": verdict.message,
                "lastProbeTime": None,
                "lastTransitionTime": rfc3339(self._now()),
            }
            status: dict[str, Any] = {"conditions": [condition]}
            if verdict.nominated:
                status["nominatedNodeName"] = verdict.nominated
            await self._patch(pod, status)
        for victim in verdict.victims:
            await self._preempt(pod, victim, verdict.nominated)

    async def _preempt(self, pod: WholePod, victim: Demand, node: str) -> None:
        found = next(
            (k for k, held in self._held[node].items() if held.uid == victim.uid), None
        )
        loser = self._pods.store.get(found) if found else None
        if loser is None or loser.metadata.deletionTimestamp is not None:
            return
        text = f"Preempted by pod {pod.metadata.uid} on node {node}"
        self._recorder.event(loser, "Normal", "Preempted", text)
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{NAME}: preempting to accommodate a higher priority pod",
            "lastProbeTime": None,
            "lastTransitionTime": rfc3339(self._now()),
        }
        await self._patch(loser, {"conditions": [condition]})
        meta = loser.metadata
        await self._client.delete(
            Pod, meta.name, namespace=meta.namespace, uid=meta.uid
        )

    async def _patch(self, pod: WholePod, status: dict[str, Any]) -> None:
        meta = pod.metadata
        await self._client.patch(
            Pod,
            meta.name,
            {"metadata": {"uid": meta.uid}, "status": status},
            how="strategic",
            namespace=meta.namespace,
            subresource="status",
            manager="kube-scheduler",
        )


def _is_ours(pod: WholePod) -> bool:
    mine = (pod.spec.schedulerName or NAME) == NAME
    going = pod.metadata.deletionTimestamp is not None
    return mine and not going and not pod.spec.schedulingGates


def _order(pod: WholePod) -> tuple[int, str]:
    created = pod.metadata.creationTimestamp
    return -(pod.spec.priority or 0), rfc3339(created) if created else ""
