"""A peer that runs: its lines, its CPU time and its memory, read from outside."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from bench.measure import ROOT, cpu

MiB = 1 << 20
PEAK = "5"
"""What ``/proc/PID/clear_refs`` takes to forget the highest resident set."""


class Failed(Exception):
    """A program did not do what it is here for; its run has no figures."""


class Synced(NamedTuple):
    """All objects went through a handler: when (ns), and what was read of them."""

    at: int
    checksum: int


class Handled(NamedTuple):
    """One stamped event in a handler."""

    name: str
    at: int


class Running:
    """One program from its start to its end, which the block's end is."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environ: Mapping[str, str],
        folder: Path,
        cwd: Path = ROOT,
    ) -> None:
        self._out, self._err = folder / "stdout", folder / "stderr"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.began = time.time_ns()
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def synced(self, *, within: float) -> Synced:
        """Wait until every object has been handled once."""
        found: list[Synced] = []

        def look() -> bool:
            for line in self._lines(b"SYNCED "):
                found.append(Synced(int(line[1]), int(line[2])))
            return bool(found)

        if not self.until(look, within=within, every=0.02):
            raise Failed(
                f"It did not see all objects within {within:g} s; the end of "
                f"what it said:\n{self.said()}"
            )
        return found[0]

    def handled(self, since: int) -> list[Handled]:
        """The stamped events that were handled after a moment."""
        return [
            Handled(line[1].rpartition(b"/")[2].decode(), int(line[3]))
            for line in self._lines(b"H ")
            if int(line[2]) >= since
        ]

    def _lines(self, prefix: bytes) -> list[list[bytes]]:
        lines = self._out.read_bytes().split(b"\n")[:-1]
        return [line.split() for line in lines if line.startswith(prefix)]

    def until(
        self, holds: Callable[[], bool], *, within: float, every: float = 0.1
    ) -> bool:
        """Wait until something holds; False if it did not come to it."""
        deadline = time.monotonic() + within
        while not holds():
            if self._process.poll() is not None:
                raise Failed(
                    f"It ended by itself; the end of what it said:\n{self.said()}"
                )
            if time.monotonic() > deadline:
                return False
            time.sleep(every)
        return True

    def said(self) -> str:
        return self._err.read_text(errors="replace")[-2000:]

    @property
    def cpu(self) -> float:
        """Seconds of CPU time, to a hundredth."""
        return cpu(self.pid)

    @property
    def exact_cpu(self) -> float:
        """The same to the nanosecond, without threads that have ended."""
        total = 0
        for task in os.scandir(f"/proc/{self.pid}/task"):
            try:
                total += int(Path(task.path, "schedstat").read_text().split()[0])
            except FileNotFoundError:
                continue  # a thread that ended just now
        return total / 1e9

    @property
    def rss(self) -> float:
        return self._memory("VmRSS")

    @property
    def peak(self) -> float:
        return self._memory("VmHWM")

    def forget_peak(self) -> None:
        """From now on ``peak`` is the highest since now."""
        Path(f"/proc/{self.pid}/clear_refs").write_text(PEAK)

    def _memory(self, key: str) -> float:
        """MiB."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{key}:"):
                return int(line.split()[1]) * 1024 / MiB
        raise RuntimeError(f"/proc/{self.pid}/status has no {key}")
