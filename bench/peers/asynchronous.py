"""Peer: ``kubernetes_asyncio``, or its heir within the official client (``aio``)."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from bench.peers.probe import PAGE, Probe


async def list_pods(probe: Probe, core: Any) -> None:
    after = None
    while True:
        page = await core.list_pod_for_all_namespaces(limit=PAGE, _continue=after)
        for pod in page.items:
            meta = pod.metadata
            probe.note(meta.namespace, meta.name, meta.labels, pod.status.phase)
        after = page.metadata._continue
        if not after:
            return


async def watch_pods(probe: Probe, core: Any) -> None:
    async with package.watch.Watch().stream(core.list_pod_for_all_namespaces) as events:
        async for event in events:
            pod = event["object"]
            meta = pod.metadata
            probe.note(meta.namespace, meta.name, meta.labels, pod.status.phase)
            if probe.complete:
                return


PACKAGES = {"": "kubernetes_asyncio", "aio": "kubernetes.aio"}
PHASES = {"list": list_pods, "watch": watch_pods}


async def main() -> None:
    await package.config.load_kube_config()
    async with package.client.ApiClient() as session:
        core = package.client.CoreV1Api(session)
        probe.begin()
        if probe.phase != "start":
            await PHASES[probe.phase](probe, core)
        probe.end()


probe = Probe()
package = import_module(PACKAGES[probe.variant])
asyncio.run(main())
