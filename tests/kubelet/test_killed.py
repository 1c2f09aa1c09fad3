"""Laws of a killed server: no process stays behind, and a restart sees what is."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.kubelet.laptop import PODS, marked, state
from tests.kubelet.machine import Machine, machine
from trimtab.client import Client
from trimtab.kubelet import limits
from trimtab.testing.waiting import eventually

SEES_WITHIN = 5.0
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "kept", "namespace": "default"},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "x",
                "command": ["sh", "-c", "setsid sleep 1000 & sleep 1000 & wait"],
                "resources": {"limits": {"cpu": "1", "memory": "256Mi"}},
            }
        ]
    },
}


async def running(client: Client, *, restarts: int) -> None:
    async def look() -> bool:
        pod = await client.get(PODS, "kept", namespace="default")
        statuses = pod["status"].get("containerStatuses") or [{"restartCount": -1}]
        right = bool(statuses[0]["restartCount"] == restarts)
        return right and "running" in state(pod)

    await eventually(look, within=SEES_WITHIN, every=0.1)


def groups(pids: list[int]) -> set[Path]:
    """The cgroups that were made for some processes, and the folders of those."""
    found: set[Path] = set()
    for pid in pids:
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            place = limits.ROOT / controllers.partition(",")[0] / path.lstrip("/")
            if place.parent.name.startswith(limits.NAME):
                found |= {place, place.parent}
    return found


async def orphan(here: Machine) -> None:
    """End the server and its warden at one moment, so that nobody ends the pods."""
    warden = here.warden()
    os.kill(warden, signal.SIGSTOP)
    await here.kill()
    os.kill(warden, signal.SIGKILL)


@pytest.mark.cluster("embedded")
async def test_a_killed_server_leaves_no_process_and_goes_on(tmp_path: Path) -> None:
    async with machine(tmp_path) as here, here.client() as client:
        uid = (await client.create(POD))["metadata"]["uid"]
        await running(client, restarts=0)
        await eventually(lambda: len(marked(uid)) > 2, every=0.1)
        first = marked(uid)
        await orphan(here)
        assert marked(uid), "the test has orphans to clean up after"
    async with machine(tmp_path) as here, here.client() as client:
        await running(client, restarts=1)
        assert not set(first) & set(marked(uid))
        held = groups(marked(uid))
        await here.kill()
        await eventually(lambda: not marked(uid), within=SEES_WITHIN, every=0.1)
        await eventually(lambda: not any(map(Path.exists, held)), within=SEES_WITHIN)
    async with machine(tmp_path) as here, here.client() as client:
        await running(client, restarts=2)
        warden = here.warden()
    assert not marked(uid), "a server that stops takes its pods along"
    assert not Path(f"/proc/{warden}").exists()
