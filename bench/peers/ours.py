"""Trimtab itself: the slice that it ships, also with ``gzip``, or whole ``dicts``."""

from __future__ import annotations

import asyncio
from typing import Any

from bench.peers.probe import PAGE, Probe
from trimtab.client import Bookmark, Client, Options, load
from trimtab.kinds import Pod


async def list_typed(probe: Probe, client: Client) -> None:
    async for pod in client.list(Pod, page=PAGE):
        meta = pod.metadata
        probe.note(meta.namespace, meta.name, meta.labels, pod.status.phase)


async def list_dicts(probe: Probe, client: Client) -> None:
    async for pod in client.list(Pod.__resource__, page=PAGE):
        note_dict(probe, pod)


async def watch_typed(probe: Probe, client: Client) -> None:
    async with client.watch(Pod, initial_events=True) as events:
        async for event in events:
            if isinstance(event, Bookmark):
                return  # the objects that were there at the start are all through
            pod = event.object
            meta = pod.metadata
            probe.note(meta.namespace, meta.name, meta.labels, pod.status.phase)


async def watch_dicts(probe: Probe, client: Client) -> None:
    async with client.watch(Pod.__resource__, initial_events=True) as events:
        async for event in events:
            if isinstance(event, Bookmark):
                return
            note_dict(probe, event.object)


def note_dict(probe: Probe, pod: dict[str, Any]) -> None:
    meta = pod["metadata"]
    labels = meta.get("labels")
    probe.note(meta["namespace"], meta["name"], labels, pod["status"]["phase"])


PHASES = {
    ("list", ""): list_typed,
    ("list", "gzip"): list_typed,
    ("list", "dicts"): list_dicts,
    ("watch", ""): watch_typed,
    ("watch", "dicts"): watch_dicts,
}


async def main() -> None:
    probe = Probe()
    options = Options(compression=probe.variant == "gzip")
    async with Client(load(), options=options) as client:
        probe.begin()
        if probe.phase != "start":
            await PHASES[probe.phase, probe.variant](probe, client)
        probe.end()


asyncio.run(main())
