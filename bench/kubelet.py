"""Pods as processes: how soon they run, what they leave behind, what the node costs.

``python bench/kubelet.py`` starts an API server and a node of it, each in a process of
its own, and prints a table. ``--bars`` fails if a figure misses its bar.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.report import machine
from trimtab.client import Client, NotFound, WatchEvent, load
from trimtab.kinds import Node, Pod
from trimtab.testing import cluster
from trimtab.testing.waiting import eventually

ROOT = Path(__file__).resolve().parents[1]
NODE = "bench"
IN_A_ROW, AT_ONCE, STANDING, TIMED = 200, 50, 100, 50
QUIET_SECONDS = 10.0
TICKS = os.sysconf("SC_CLK_TCK")
MARK = b"TRIMTAB_POD_UID="
MiB = 1 << 20


class Figure(msgspec.Struct, frozen=True):
    """One result, and what it must not be above."""

    name: str
    value: float
    bar: float | None = None

    def row(self) -> str:
        bar = "" if self.bar is None else f"{self.bar:g}"
        return f"| {self.name} | {self.value:.3g} | {bar} |"

    @property
    def missed(self) -> bool:
        return self.bar is not None and self.value > self.bar


def pod(name: str, *command: str) -> dict[str, Any]:
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "x", "command": list(command)}],
    }
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


class Phases:
    """The phases of pods, and when each was first seen, by one watch."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, str], float] = {}
        self._changed = asyncio.Event()

    async def follow(self, client: Client) -> None:
        async with client.watch(Pod, namespace="default") as events:
            async for event in events:
                if isinstance(event, WatchEvent):
                    found = event.object
                    key = found.metadata.name, found.status.phase
                    self.seen.setdefault(key, time.perf_counter())
                    self._changed.set()

    async def until(self, name: str, *phases: str) -> float:
        """The moment at which a pod was in one of these phases."""
        while True:
            for phase in phases:
                if (name, phase) in self.seen:
                    return self.seen[name, phase]
            self._changed.clear()
            await self._changed.wait()


def marked() -> set[str]:
    """Processes on this machine that are of a pod."""
    found = set()
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            if MARK in Path(f"/proc/{name}/environ").read_bytes():
                found.add(name)
    return found - OTHERS


OTHERS: set[str] = set()
"""Those that were there before: another node of this machine has pods, too."""


def family(pid: int) -> list[int]:
    """The node and its warden: all that is there besides the pods."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def rss(pid: int) -> float:
    pages = [int(Path(f"/proc/{p}/statm").read_text().split()[1]) for p in family(pid)]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") / MiB


def cpu(pid: int) -> float:
    def seconds(each: int) -> float:
        facts = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        return (int(facts[11]) + int(facts[12])) / TICKS

    return sum(map(seconds, family(pid)))


@asynccontextmanager
async def node(kubeconfig: Path, folder: Path) -> AsyncIterator[int]:
    """A kubelet with all its parts, in a process of its own."""
    arguments = ("--alone", f"--name={NODE}", f"--folder={folder}")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trimtab", "kubelet", *arguments),
        stdout=asyncio.subprocess.DEVNULL,
        env={
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "PYTHONPATH": str(ROOT / "src"),
        },
    )
    try:
        yield process.pid
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def ready(client: Client) -> bool:
    try:
        found = await client.get(Node, NODE)
    except NotFound:
        return False
    return found.status.conditions.is_true("Ready")


async def empty(client: Client, folder: Path) -> bool:
    pods = [each async for each in client.list(Pod, namespace="default")]
    kept = list((folder / "pods").glob("*"))
    return not pods and not kept and not marked()


async def clear(client: Client, folder: Path) -> None:
    """Delete every pod, and see that nothing of them is left."""
    await client.delete_collection(Pod, namespace="default", grace=0)
    await eventually(lambda: empty(client, folder), within=60, describe="clean up")


async def timed(client: Client, phases: Phases) -> list[float]:
    """Milliseconds from creating to Running, one pod after another."""
    found = []
    for number in range(TIMED):
        began = time.perf_counter()
        await client.create(pod(f"timed-{number}", "sleep", "1000"))
        moment = await phases.until(f"timed-{number}", "Running")
        found.append((moment - began) * 1000)
    return found


async def short(client: Client, phases: Phases, prefix: str, number: int) -> None:
    name = f"{prefix}-{number}"
    await client.create(pod(name, "true"))
    await phases.until(name, "Succeeded")
    await client.delete(Pod, name, namespace="default")


async def standing(client: Client, phases: Phases) -> None:
    for number in range(STANDING):
        await client.create(pod(f"stands-{number}", "sleep", "1000"))
    for number in range(STANDING):
        await phases.until(f"stands-{number}", "Running")


async def measured(kubeconfig: Path, folder: Path) -> list[Figure]:
    async with (
        Client(load(kubeconfig=kubeconfig)) as client,
        node(kubeconfig, folder) as pid,
        asyncio.TaskGroup() as group,
    ):
        await eventually(lambda: ready(client), within=30)
        phases = Phases()
        watch = group.create_task(phases.follow(client))
        moments = await timed(client, phases)
        await clear(client, folder)
        began, before = time.perf_counter(), cpu(pid)
        for number in range(IN_A_ROW):
            await short(client, phases, "row", number)
        row, work = time.perf_counter() - began, cpu(pid) - before
        await clear(client, folder)
        began = time.perf_counter()
        async with asyncio.TaskGroup() as crowd:
            for number in range(AT_ONCE):
                crowd.create_task(short(client, phases, "crowd", number))
        crowded = time.perf_counter() - began
        await clear(client, folder)
        await standing(client, phases)
        memory = rss(pid)
        await asyncio.sleep(2.0)  # let events and statuses be written
        spent = cpu(pid)
        await asyncio.sleep(QUIET_SECONDS)
        idle = (cpu(pid) - spent) / QUIET_SECONDS * 100
        await clear(client, folder)
        watch.cancel()
    return [
        Figure("create to Running, p50, ms", statistics.median(moments), 60),
        Figure("create to Running, p95, ms", statistics.quantiles(moments, n=20)[-1]),
        Figure(f"{IN_A_ROW} short pods in a row, s", row),
        Figure("CPU of the node for each of them, ms", work / IN_A_ROW * 1000),
        Figure(f"{AT_ONCE} short pods at once, s", crowded),
        Figure(f"RSS of the node with {STANDING} pods, MiB", memory, 80),
        Figure(f"CPU of the node with {STANDING} idle pods, %", idle, 1),
        Figure("processes left behind", len(marked()), 0),
    ]


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bars", action="store_true", help="fail if a bar is missed")
    options = parser.parse_args()
    OTHERS.update(marked())
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as scratch:
        async with cluster("embedded") as server:
            figures = await measured(server.kubeconfig, Path(scratch) / "node")
    print(f"{machine()}\n\n| figure | value | bar |\n|---|---:|---:|")
    print("\n".join(each.row() for each in figures))
    return int(options.bars and any(each.missed for each in figures))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
