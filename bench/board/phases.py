"""The phases of one run: start, steady, idle, events, burst, and a relist.

Each phase reads the peer from outside, in the same order for all of them.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.board.peers import Peer, go_program
from bench.board.running import Failed, Running
from bench.measure import ROOT, Host, environment, wait_for_quiet
from trimtab.client import Client, load
from trimtab.testing import Cluster

SYNC_WITHIN = 600.0
STEADY, IDLE = 10.0, 30.0
"""Seconds after the first sync until memory is read, and of the idle phase."""
EVENTS, PER_SECOND = 500, 50
BURST, PARALLEL = 2000, 64
RELIST_WITHIN = 180.0
OWN_LISTS = 1
"""A kube-apiserver that starts lists the Pods once for itself."""
CALM = 2.0
"""A relist is over when so many seconds brought next to no work."""


class Figures(msgspec.Struct, kw_only=True):
    """What one run of one peer measured. Seconds, MiB, milliseconds, percent."""

    peer: str
    workload: str
    round: int
    checksum: int = 0
    valid: bool = True
    """Whether the checksum was the one of what was created."""
    sync: float | None = None
    sync_cpu: float | None = None
    rss: float | None = None
    peak: float | None = None
    idle: float | None = None
    after_p50: float | None = None
    after_p99: float | None = None
    events_cpu: float | None = None
    burst: float | None = None
    burst_cpu: float | None = None
    relist: float | None = None
    """MiB by which a relist raised the resident set above what it was."""
    relist_cpu: float | None = None
    lists: int | None = None
    """Lists of the kind that the server answered: 0 means that nobody relisted."""
    others: float = 0.0
    """The largest share of CPU time that others had in a phase that is timed."""


class Workload(NamedTuple):
    """What is on the server, and what every program must find."""

    name: str
    """S or P, and how many: ``P 10,000``."""
    objects: int
    checksum: int
    sessions: Sequence[tuple[str, str]] = ()
    """Namespace and name of what the writer stamps."""

    @property
    def letter(self) -> str:
        return self.name[0]


class Bench:
    """Runs peers on one server."""

    def __init__(
        self, on: Cluster, workload: Workload, *, token: str, patience: float
    ) -> None:
        self._on = on
        self._workload = workload
        self._patience = patience
        entry = json.loads(on.kubeconfig.read_text())["clusters"][0]["cluster"]
        authority = msgspec.convert(entry["certificate-authority-data"], bytes)
        self._writer = {
            "BENCH_SERVER": on.server,
            "BENCH_TOKEN": token,
            "BENCH_CA": authority.decode(),
        }

    def run(self, peer: Peer, *, number: int) -> Figures:
        """One run of one peer: every phase that its workload has."""
        made = Figures(peer=peer.name, workload=self._workload.name, round=number)
        command, environ = peer.command(), self._environ(peer)
        wait_for_quiet(patience=self._patience)
        with tempfile.TemporaryDirectory() as folder:
            with Running(command, environ=environ, folder=Path(folder)) as running:
                self._start(running, made)
                if self._workload.letter == "S":
                    self._idle(running, made)
                    self._events(running, made)
                    self._burst(running, made)
                else:
                    self._relist(running, made)
        return made

    def _environ(self, peer: Peer) -> Mapping[str, str]:
        path = [ROOT, ROOT / "src"] if peer.ours else [ROOT]
        return environment(self._on.kubeconfig, count=self._workload.objects) | {
            "BENCH_WANT": str(self._workload.objects),
            "BENCH_WORKLOAD": self._workload.letter,
            "BENCH_VARIANT": peer.variant,
            "PYTHONPATH": ":".join(map(str, path)),
        }

    @contextmanager
    def _timed(self, running: Running, made: Figures) -> Iterator[None]:
        """Note how much of the machine others had meanwhile."""
        host = Host((*self._on.pids.values(), running.pid))
        yield
        made.others = max(made.others, host.end()[1])

    def _start(self, running: Running, made: Figures) -> None:
        with self._timed(running, made):
            synced = running.synced(within=SYNC_WITHIN)
            made.sync_cpu = running.cpu
        made.sync = (synced.at - running.began) / 1e9
        made.checksum = synced.checksum
        made.valid = synced.checksum == self._workload.checksum
        time.sleep(STEADY)
        made.rss, made.peak = running.rss, running.peak

    def _idle(self, running: Running, made: Figures) -> None:
        before = running.exact_cpu
        time.sleep(IDLE)
        made.idle = max(0.0, running.exact_cpu - before) / IDLE * 100

    def _events(self, running: Running, made: Figures) -> None:
        wait_for_quiet(patience=self._patience)
        with self._timed(running, made):
            before = running.cpu
            wrote = self._write(running, "rate", EVENTS, PER_SECOND)
            made.events_cpu = running.cpu - before
        acks = wrote["acks"]
        after = sorted(
            (each.at - acks[each.name]) / 1e6
            for each in running.handled(wrote["began"])
        )
        made.after_p50, made.after_p99 = quantile(after, 0.5), quantile(after, 0.99)

    def _burst(self, running: Running, made: Figures) -> None:
        wait_for_quiet(patience=self._patience)
        with self._timed(running, made):
            before = running.cpu
            wrote = self._write(running, "burst", BURST, PARALLEL)
            made.burst_cpu = running.cpu - before
        last = max(each.at for each in running.handled(wrote["began"]))
        made.burst = (last - wrote["began"]) / 1e9

    def _write(self, running: Running, mode: str, count: int, number: int) -> Any:
        """Have the writer stamp sessions; back when the peer has handled them all."""
        chosen = random.sample(self._workload.sessions, count)
        done = subprocess.run(
            [str(go_program("writer")), mode, str(count), str(number)],
            input="".join(f"{place} {name}\n" for place, name in chosen).encode(),
            env=self._writer,
            capture_output=True,
        )
        if done.returncode:
            raise SystemExit(f"The writer failed: {done.stderr.decode()}")
        wrote = json.loads(done.stdout)
        names = {name for _, name in chosen}

        def seen() -> bool:
            return names <= {each.name for each in running.handled(wrote["began"])}

        if not running.until(seen, within=60.0):
            raise Failed("It did not handle all of what was written.")
        return wrote

    def _relist(self, running: Running, made: Figures) -> None:
        """Let the server forget what the peer's watch has seen.

        A server that comes back has no history. What others wrote just before makes
        the peer's last revision older than the oldest one that it can watch from.
        """
        assert self._on.plane is not None
        wait_for_quiet(patience=self._patience)
        rss, before = running.rss, running.cpu
        running.forget_peak()
        asyncio.run(_write_something(self._on.kubeconfig))
        self._on.plane.restart_apiserver()
        running.until(lambda: self._lists() > 0, within=RELIST_WITHIN, every=1.0)
        running.until(lambda: self._calm(running), within=RELIST_WITHIN)
        made.lists = self._lists()
        made.relist = running.peak - rss
        made.relist_cpu = running.cpu - before

    @staticmethod
    def _calm(running: Running) -> bool:
        before = running.cpu
        time.sleep(CALM)
        return running.cpu - before < 0.02 * CALM

    def _lists(self) -> int:
        """How often others had a list of all Pods from this server, streamed or not."""
        text = asyncio.run(self._on.kubectl("get", "--raw", "/metrics"))
        counted = sum(
            int(float(line.rpartition(" ")[2]))
            for line in text.splitlines()
            if 'resource="pods"' in line and _counts_lists(line)
        )
        return counted - OWN_LISTS


def _counts_lists(line: str) -> bool:
    if line.startswith("apiserver_watch_list_duration_seconds_count"):
        return True
    return (
        line.startswith("apiserver_request_total")
        and 'verb="LIST"' in line
        and 'code="200"' in line
    )


async def _write_something(kubeconfig: Path) -> None:
    async with Client(load(kubeconfig=kubeconfig)) as client:
        for _ in range(20):
            metadata = {"generateName": "noise-", "namespace": "default"}
            await client.create(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            )


def quantile(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))]
