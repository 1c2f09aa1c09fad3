"""One measurement: a peer's program in a fresh process, and what else the host did."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[1]
TICK = os.sysconf("SC_CLK_TCK")
QUIET = 0.15
"""A share of the host's CPU time below which nobody else is at work."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What a program says of its own phase; see ``bench.peers.probe``."""

    count: int
    checksum: int
    seconds: float
    cpu: float
    peak: int
    start_seconds: float
    start_cpu: float
    start_rss: int

    @property
    def rate(self) -> float:
        """Objects per second."""
        return self.count / self.seconds


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one run and the circumstances that they were taken in."""

    peer: str
    phase: str
    round: int
    figures: Figures
    server_cpu: float
    """Seconds that etcd and kube-apiserver worked meanwhile."""
    others: float
    """The share of the host's CPU time that belonged to neither them nor the peer."""


class Host:
    """How the host's CPU time is divided between us, the server, and others."""

    def __init__(self, server: Sequence[int]) -> None:
        self._server = tuple(server)
        self._before = self._snapshot()

    def _snapshot(self) -> tuple[float, float, float, float]:
        busy, total = _host()
        times = os.times()
        ours = times.user + times.system + times.children_user + times.children_system
        return busy, total, sum(map(cpu, self._server)), ours

    def end(self) -> tuple[float, float]:
        """Seconds of the server's, and the share of others, since the beginning."""
        after = self._snapshot()
        busy, total, server, ours = (
            new - old for new, old in zip(after, self._before, strict=True)
        )
        return server, max(0.0, busy - server - ours) / max(total, 1 / TICK)


def _host() -> tuple[float, float]:
    """Seconds that all cores were busy (steal included), and seconds in all."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    idle, waiting = ticks[3:5]
    return (sum(ticks) - idle - waiting) / TICK, sum(ticks) / TICK


def cpu(pid: int) -> float:
    """Seconds that a process has worked."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def wait_for_quiet(*, patience: float) -> float:
    """Wait until the host is idle, but not for ever; the share that is still busy."""
    deadline = time.monotonic() + patience
    while True:
        before = _host()
        time.sleep(0.5)
        busy, total = (new - old for new, old in zip(_host(), before, strict=True))
        share = busy / max(total, 1 / TICK)
        if share < QUIET or time.monotonic() > deadline:
            return share


def environment(kubeconfig: Path, *, count: int) -> dict[str, str]:
    """What a program is given: nobody's Python settings, and where the server is."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "MALLOC_", "KUBE"))
    }
    return kept | {"KUBECONFIG": str(kubeconfig), "BENCH_PODS": str(count)}


def run(
    python: Path,
    program: str,
    arguments: Sequence[str],
    *,
    environ: Mapping[str, str],
    within: float,
) -> Figures:
    """Run one program to its end and read what it printed."""
    command = [str(python), "-m", f"bench.peers.{program}", *arguments]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=within,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr.decode()}")
    return msgspec.json.decode(done.stdout, type=Figures)
