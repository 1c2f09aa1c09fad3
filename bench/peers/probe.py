"""What every peer's program shares: the phases, the checksum and the figures.

Standard library only, so that it adds the same little to each of them. A program is
started as ``python -m bench.peers.NAME PHASE [VARIANT]`` and prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
import zlib
from collections.abc import Iterable, Mapping

PAGE = 500
"""Objects in a page, where a peer lets its user say so."""

MODULUS = 1 << 64


def checksum(
    namespace: str, name: str, labels: Mapping[str, str] | None, phase: str
) -> int:
    """One number for what is read of one Pod."""
    words: Iterable[str] = (
        f"{key}={(labels or {})[key]}" for key in sorted(labels or {})
    )
    return zlib.crc32(f"{namespace}/{name} {phase} {' '.join(words)}".encode())


class Probe:
    """Counts the objects of one phase and measures what they cost this process."""

    def __init__(self) -> None:
        self.phase = sys.argv[1]
        self.variant = sys.argv[2] if len(sys.argv) > 2 else ""
        self.expected = int(os.environ["BENCH_PODS"])
        self.count = 0
        self.sum = 0

    def begin(self) -> None:
        """Imports and configuration are done; the first request has not been sent."""
        self.start_seconds = _age()
        self.start_cpu = time.process_time()
        self.start_rss = _memory("VmRSS")
        self.began = time.perf_counter()

    def note(
        self, namespace: str, name: str, labels: Mapping[str, str] | None, phase: str
    ) -> None:
        """Read one Pod: each peer hands over the same four things."""
        self.count += 1
        # A sum, because a watch may send objects in any order.
        self.sum += checksum(namespace, name, labels, phase)

    @property
    def complete(self) -> bool:
        return self.count >= self.expected

    def end(self) -> None:
        """The phase is over: print its figures."""
        seconds = time.perf_counter() - self.began
        figures = {
            "count": self.count,
            "checksum": self.sum % MODULUS,
            "seconds": seconds,
            "cpu": time.process_time() - self.start_cpu,
            "peak": _memory("VmHWM"),
            "start_seconds": self.start_seconds,
            "start_cpu": self.start_cpu,
            "start_rss": self.start_rss,
        }
        print(json.dumps(figures), flush=True)


def _age() -> float:
    """Seconds since this process was started, to a hundredth."""
    with open("/proc/self/stat") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    born = ticks / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - born


def _memory(key: str) -> int:
    """A figure of ``/proc/self/status`` in bytes.

    Not ``ru_maxrss``: that one survives exec and begins with the parent's.
    """
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {key}")
