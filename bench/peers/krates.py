"""Peer: ``kr8s``, its objects or (``dicts``, list only) what it calls raw ones."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import asyncio
from typing import Any

import kr8s
import kr8s.asyncio

from bench.peers.probe import Probe


async def list_objects(probe: Probe, api: Any) -> None:
    # It pages by itself, by 100, and does not let its user say otherwise.
    async for pod in api.get("pods", namespace=kr8s.ALL):
        labels = pod.labels
        probe.note(pod.namespace, pod.name, labels, pod.status.phase)


async def list_dicts(probe: Probe, api: Any) -> None:
    async for pod in api.get("pods", namespace=kr8s.ALL, raw=True):
        meta = pod["metadata"]
        labels = meta.get("labels")
        probe.note(meta["namespace"], meta["name"], labels, pod["status"]["phase"])


async def watch_objects(probe: Probe, api: Any) -> None:
    async for _, pod in api.watch("pods", namespace=kr8s.ALL):
        labels = pod.labels
        probe.note(pod.namespace, pod.name, labels, pod.status.phase)
        if probe.complete:
            return


PHASES = {
    ("list", ""): list_objects,
    ("list", "dicts"): list_dicts,
    ("watch", ""): watch_objects,
}


async def main() -> None:
    probe = Probe()
    api = await kr8s.asyncio.api()
    probe.begin()
    if probe.phase != "start":
        await PHASES[probe.phase, probe.variant](probe, api)
    probe.end()


asyncio.run(main())
