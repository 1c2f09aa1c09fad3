"""What one event costs us, and where it goes.

Our program of the scoreboard runs beside a server and is sent 50 stamped changes a
second. ``--against TREE`` runs that of another working copy in turn with it, so that a
change can be judged within one run. ``--profile`` ends with the functions that an event
goes through.
"""

from __future__ import annotations

import argparse
import asyncio
import pstats
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench.board import sessions
from bench.board.contest import serves
from bench.board.loading import create
from bench.board.phases import quantile
from bench.board.running import Running
from bench.measure import ROOT, environment
from bench.peers.scoreboard_probe import STAMP
from trimtab.client import Client, load
from trimtab.testing import Cluster, eventually
from trimtab.testing.cluster import cluster

PER_SECOND = 50
OBJECTS = 500
PROGRAM = "bench/peers/scoreboard_ours.py"
RUN = ("-m", "trimtab", "run", PROGRAM, "--port=0", "--no-leader")
SHOWN = 45


class Cost(NamedTuple):
    """What the events of one run cost, in milliseconds."""

    cpu: float
    p50: float
    p99: float


class Events:
    """Runs our program of one tree or another, and sends it changes."""

    def __init__(self, on: Cluster, client: Client) -> None:
        self._on = on
        self._client = client

    async def load(self) -> None:
        client = self._client
        await create(client, sessions.definitions())
        for kind in sessions.KINDS:
            await eventually(partial(serves, client, kind), within=30.0)
        await create(client, sessions.namespaces())
        await create(client, islice(sessions.sessions(), OBJECTS))
        self._info = await client.discover(sessions.API, "AgenticSession")

    async def cost(
        self, tree: Path, *, count: int, profile: Path | None = None
    ) -> Cost:
        with tempfile.TemporaryDirectory() as folder:
            environ = environment(self._on.kubeconfig, count=OBJECTS) | {
                "BENCH_WANT": str(OBJECTS),
                "BENCH_WORKLOAD": "S",
                "PYTHONPATH": f"{tree}:{tree / 'src'}",
            }
            traced = ("-m", "cProfile", "-o", str(profile)) if profile else ()
            command = (sys.executable, *traced, *RUN)
            with Running(
                command, environ=environ, folder=Path(folder), cwd=tree
            ) as running:
                await asyncio.to_thread(running.synced, within=60.0)
                await asyncio.sleep(1.0)
                return await self._send(running, count)

    async def _send(self, running: Running, count: int) -> Cost:
        loop = asyncio.get_running_loop()
        before, began = running.exact_cpu, time.time_ns()
        answered: dict[str, int] = {}
        due = loop.time()
        for each in islice(sessions.sessions(), count):
            metadata = each.body["metadata"]
            stamp = {"metadata": {"annotations": {STAMP: str(time.time_ns())}}}
            await self._client.patch(
                self._info, metadata["name"], stamp, namespace=metadata["namespace"]
            )
            answered[metadata["name"]] = time.time_ns()
            due += 1 / PER_SECOND
            await asyncio.sleep(max(0.0, due - loop.time()))
        await eventually(lambda: len(running.handled(began)) >= count)
        spent = running.exact_cpu - before
        if not count:
            return Cost(0.0, 0.0, 0.0)
        after = sorted(
            (each.at - answered[each.name]) / 1e6 for each in running.handled(began)
        )
        cpu = spent / count * 1e3
        return Cost(cpu, quantile(after, 0.5), quantile(after, 0.99))


def functions(start: Path, whole: Path, count: int) -> Iterator[str]:
    """The functions that each event went through, the dearest first."""
    before, after = _profiled(start), _profiled(whole)
    rows = []
    for name, (calls, own) in after.items():
        earlier = before.get(name, (0, 0.0))
        each = (calls - earlier[0]) / count
        if each >= 0.9 and "poll" not in name:
            rows.append(((own - earlier[1]) / count * 1e6, each, name))
    yield f"{'µs':>6} {'calls':>6}  function (of an event; slower for being profiled)"
    for own, each, name in sorted(rows, reverse=True)[:SHOWN]:
        yield f"{own:6.1f} {each:6.2f}  {name}"


def _profiled(file: Path) -> dict[str, tuple[int, float]]:
    """Calls and own seconds by function."""
    stats: Any = pstats.Stats(str(file))
    return {
        f"{'/'.join(Path(path).parts[-2:])}:{line} {name}" if line else name: (
            calls,
            own,
        )
        for (path, line, name), (_, calls, own, _, _) in stats.stats.items()
    }


async def measure(asked: argparse.Namespace) -> None:
    trees: Sequence[Path] = [ROOT, *([asked.against] if asked.against else [])]
    async with (
        cluster(asked.cluster) as on,
        Client(load(kubeconfig=on.kubeconfig)) as client,
    ):
        events, count = Events(on, client), min(asked.events, OBJECTS)
        await events.load()
        found: dict[Path, list[Cost]] = {tree: [] for tree in trees}
        for _ in range(asked.rounds):
            for tree in trees:
                cost = await events.cost(tree, count=count)
                found[tree].append(cost)
                print(f"{tree}: {_line(cost)}", flush=True)
        for tree, costs in found.items():
            middle = Cost(*map(median, zip(*costs, strict=True)))
            print(f"{tree}, median: {_line(middle)}")
        if asked.profile:
            with tempfile.TemporaryDirectory() as folder:
                start, whole = Path(folder, "start"), Path(folder, "whole")
                await events.cost(ROOT, count=0, profile=start)
                await events.cost(ROOT, count=count, profile=whole)
                print("\n".join(functions(start, whole, count)))


def _line(cost: Cost) -> str:
    return f"{cost.cpu:.3f} ms CPU an event; p50 {cost.p50:.2f}, p99 {cost.p99:.2f} ms"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cluster", choices=("embedded", "real"), default="real")
    parser.add_argument("--events", type=int, default=400, help="at most 500")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", type=Path, metavar="TREE")
    parser.add_argument("--profile", action="store_true")
    return parser.parse_args()


def main() -> int:
    asyncio.run(measure(arguments()))
    return 0
