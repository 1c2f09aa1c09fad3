"""The contest: one server, the same Pods, and each peer in turn, in fresh processes."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import environments, pods, report
from bench.measure import (
    ROOT,
    Figures,
    Host,
    Measurement,
    environment,
    run,
    wait_for_quiet,
)
from trimtab.client import Client, load
from trimtab.testing import Cluster, cluster

PHASES = ("list", "watch")
WITHIN = 900.0
"""Seconds for one program; whoever takes longer ends the run."""


class Peer(NamedTuple):
    """A way of reading Pods: a package, the program that uses it, and how."""

    name: str
    program: str
    package: str | None = None
    """What is installed for it; None is this tree."""
    variant: str = ""
    phases: Sequence[str] = PHASES
    decodes: bool = True

    @property
    def python(self) -> Path:
        if self.package is None:
            return Path(sys.executable)
        return environments.python_of(self.package)


PEERS = (
    Peer("trimtab", "ours"),
    Peer("trimtab, plain dicts", "ours", variant="dicts"),
    # As lightkube, kr8s and the asynchronous clients ask for by themselves.
    Peer("trimtab, gzip", "ours", variant="gzip", phases=("list",)),
    Peer("lightkube", "light", "lightkube"),
    Peer("lightkube, AsyncClient", "light", "lightkube", "async"),
    Peer("kubernetes", "official", "kubernetes"),
    Peer("kubernetes, plain dicts", "official", "kubernetes", "dicts"),
    Peer("kubernetes.aio", "asynchronous", "kubernetes", "aio"),
    Peer("kubernetes_asyncio", "asynchronous", "kubernetes_asyncio"),
    Peer("kr8s", "krates", "kr8s"),
    # Only its list has a way to leave objects as they came.
    Peer("kr8s, raw dicts", "krates", "kr8s", "dicts", phases=("list",)),
    Peer("floor: bytes dropped", "floor", decodes=False),
)


class Contest:
    """Runs programs on one server and keeps what they measured."""

    def __init__(self, on: Cluster, *, count: int, patience: float) -> None:
        self._server = tuple(on.pids.values())
        self._expected = (count, pods.expected_checksum(count))
        """How many objects each program must find, and their checksum."""
        self._environ = environment(on.kubeconfig, count=count)
        self._patience = patience

    def figures(self, peer: Peer, phase: str) -> Figures:
        """One run, not kept."""
        environ = self._environ
        if peer.package is None:
            environ = environ | {"PYTHONPATH": str(ROOT / "src")}
        arguments = [phase, peer.variant] if peer.variant else [phase]
        return run(peer.python, peer.program, arguments, environ=environ, within=WITHIN)

    def measure(self, peer: Peer, phase: str, *, number: int) -> Measurement:
        """One run: the checksum must be the one of what was created."""
        wait_for_quiet(patience=self._patience)
        host = Host(self._server)
        figures = self.figures(peer, phase)
        server_cpu, others = host.end()
        count, checksum = self._expected
        right = figures.checksum == checksum or not peer.decodes
        if figures.count != count or not right:
            raise SystemExit(
                f"{peer.name} ({phase}) read {figures.count} Pods with checksum "
                f"{figures.checksum}, not {self._expected}: its figures mean nothing."
            )
        return Measurement(
            peer=peer.name,
            phase=phase,
            round=number,
            figures=figures,
            server_cpu=server_cpu,
            others=others,
        )

    def rounds(self, peers: Sequence[Peer], count: int) -> Iterator[Measurement]:
        """Every peer and phase once a round, in the other direction every other."""
        for peer in peers:
            self.figures(peer, "start")  # writes byte code, fills the page cache
        for phase in PHASES:
            self.figures(PEERS[0], phase)  # the server's first time is not measured
        for number in range(count):
            for peer in peers if number % 2 == 0 else reversed(peers):
                for phase in peer.phases:
                    yield self.measure(peer, phase, number=number)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000, help="default 10,000")
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    parser.add_argument(
        "--only", metavar="WORD", help="only peers whose name has this word, and ours"
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=20.0,
        help="seconds to wait before each run for others to be quiet (default 20)",
    )
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="write the results as a page, too"
    )
    return parser.parse_args()


async def fill(on: Cluster, count: int) -> None:
    began = time.monotonic()
    async with Client(load(kubeconfig=on.kubeconfig)) as client:
        await pods.load(client, count)
    print(f"{count} Pods were created in {time.monotonic() - began:.0f} s.", flush=True)


async def compete(asked: argparse.Namespace) -> list[Measurement]:
    word = asked.only
    peers = [
        peer for peer in PEERS if not word or peer.package is None or word in peer.name
    ]
    pythons = {peer.python for peer in peers}
    print(f"{len(peers)} ways to read, {len(pythons)} environments.", flush=True)
    async with cluster("real") as server:
        await fill(server, asked.pods)
        contest = Contest(server, count=asked.pods, patience=asked.patience)
        return await asyncio.to_thread(_collect, contest, peers, asked.rounds)


def _collect(contest: Contest, peers: list[Peer], rounds: int) -> list[Measurement]:
    found = []
    for each in contest.rounds(peers, rounds):
        print(report.line(each), flush=True)
        found.append(each)
    return found


def main() -> int:
    asked = arguments()
    found = asyncio.run(compete(asked))
    packages = sorted({peer.package for peer in PEERS if peer.package})
    versions = {name: environments.version_of(name) for name in packages}
    tables = report.tables(found)
    behind = report.behind(found)
    print(tables)
    print("\n".join(behind) or "Trimtab is ahead of every peer on every figure.")
    if asked.page:
        asked.page.write_text(report.page(found, tables=tables, versions=versions))
    return 1 if behind else 0
