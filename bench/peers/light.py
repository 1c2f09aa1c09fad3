"""Peer: ``lightkube``, its blocking client or (``async``) its asynchronous one."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import asyncio
from typing import Any

from lightkube import AsyncClient, Client
from lightkube.resources.core_v1 import Pod

from bench.peers.probe import PAGE, Probe

EVERYWHERE = "*"


def note(probe: Probe, pod: Any) -> None:
    meta = pod.metadata
    probe.note(meta.namespace, meta.name, meta.labels, pod.status.phase)


def blocking(probe: Probe) -> None:
    with Client() as client:
        probe.begin()
        if probe.phase == "list":
            for pod in client.list(Pod, namespace=EVERYWHERE, chunk_size=PAGE):
                note(probe, pod)
        if probe.phase == "watch":
            for _, pod in client.watch(Pod, namespace=EVERYWHERE):
                note(probe, pod)
                if probe.complete:
                    break
        probe.end()


async def asynchronous(probe: Probe) -> None:
    client = AsyncClient()
    probe.begin()
    if probe.phase == "list":
        async for pod in client.list(Pod, namespace=EVERYWHERE, chunk_size=PAGE):
            note(probe, pod)
    if probe.phase == "watch":
        async for _, pod in client.watch(Pod, namespace=EVERYWHERE):
            note(probe, pod)
            if probe.complete:
                break
    probe.end()
    await client.close()


def main() -> None:
    probe = Probe()
    if probe.variant == "async":
        asyncio.run(asynchronous(probe))
    else:
        blocking(probe)


main()
