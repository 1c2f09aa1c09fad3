"""Limits: memory and CPU of containers, by cgroups where this process may make them.

Both versions of cgroups are known. Where neither can be written, memory is watched
from outside (:class:`Meter`), and CPU is not limited.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec

ROOT = Path("/sys/fs/cgroup")
NAME = "trimtab"
PERIOD = 100_000
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
LEAST_MEMORY = 1 << 20


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The cgroups of one start of a container; empty if there can be none."""

    memory: Path | None = None
    cpu: Path | None = None
    unified: bool = False

    @property
    def members(self) -> Sequence[str]:
        """The files that a process writes itself into."""
        found = dict.fromkeys(each for each in (self.memory, self.cpu) if each)
        return [str(each / "cgroup.procs") for each in found]

    def ran_out(self) -> bool:
        """Whether the kernel killed for lack of memory."""
        if self.memory is None:
            return False
        name = "memory.events" if self.unified else "memory.oom_control"
        with suppress(OSError, ValueError):
            for line in (self.memory / name).read_text().splitlines():
                word, _, count = line.partition(" ")
                if word == "oom_kill":
                    return int(count) > 0
        return False

    def remove(self) -> None:
        for each in {self.memory, self.cpu} - {None}:
            assert each is not None
            with suppress(OSError):
                each.rmdir()


class Cgroups:
    """Where this process may make cgroups, if anywhere."""

    def __init__(self, name: str) -> None:
        self._name = f"{NAME}-{name}"
        self.unified = (ROOT / "cgroup.controllers").exists()
        self._memory = self._writable("" if self.unified else "memory")
        self._cpu = self._writable("" if self.unified else "cpu")

    @property
    def bases(self) -> set[Path]:
        """The folders in which all groups are; none where there can be no groups."""
        return {each for each in (self._memory, self._cpu) if each is not None}

    def make(self, name: str, *, memory: int | None, milli: int | None) -> Group:
        """A group with these limits; parts that are not limited are left out."""
        memory_at = self._part(self._memory, name) if memory else None
        cpu_at = self._part(self._cpu, name) if milli else None
        try:
            if memory_at is not None:
                self._limit_memory(memory_at, max(memory or 0, LEAST_MEMORY))
            if cpu_at is not None:
                self._limit_cpu(cpu_at, milli or 0)
        except OSError:
            Group(memory=memory_at, cpu=cpu_at).remove()
            return Group()
        return Group(memory=memory_at, cpu=cpu_at, unified=self.unified)

    def clear(self) -> None:
        """Remove the groups of containers that are gone."""
        for base in self.bases:
            for each in base.glob("*/"):
                with suppress(OSError):
                    each.rmdir()

    def _part(self, base: Path | None, name: str) -> Path | None:
        if base is None:
            return None
        made = base / name
        try:
            made.mkdir(parents=True, exist_ok=True)
        except OSError:
            return None
        return made

    def _limit_memory(self, group: Path, size: int) -> None:
        name = "memory.max" if self.unified else "memory.limit_in_bytes"
        (group / name).write_text(str(size))
        with suppress(OSError):  # no swap: a limit that swaps is none
            swap = "memory.swap.max" if self.unified else "memory.memsw.limit_in_bytes"
            (group / swap).write_text("0" if self.unified else str(size))

    def _limit_cpu(self, group: Path, milli: int) -> None:
        quota = max(1000, PERIOD * milli // 1000)
        if self.unified:
            (group / "cpu.max").write_text(f"{quota} {PERIOD}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(quota))

    def _writable(self, controller: str) -> Path | None:
        """A folder of ours below the group that this process is in, or the root."""
        for base in (
            ROOT / controller / _own(controller).lstrip("/"),
            ROOT / controller,
        ):
            made = base / self._name
            with suppress(OSError):
                made.mkdir(exist_ok=True)
                if self.unified:
                    (base / "cgroup.subtree_control").write_text("+memory +cpu")
                    (made / "cgroup.subtree_control").write_text("+memory +cpu")
                return made
        return None


def _own(controller: str) -> str:
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                return path
    return ""


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """What a group of processes uses now, and has used."""

    memory: int = 0
    seconds: float = 0.0


def usage(groups: set[int]) -> dict[int, Used]:
    """What the processes of each session use, by its leader; one look at /proc."""
    found: dict[int, list[float]] = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as stat:
                facts = stat.read().rpartition(b")")[2].split()
        except OSError:
            continue
        session = int(facts[3])
        if session in groups:
            total = found.setdefault(session, [0.0, 0.0])
            total[0] += int(facts[21]) * PAGE
            total[1] += (int(facts[11]) + int(facts[12])) / TICKS
    return {
        leader: Used(memory=int(memory), seconds=seconds)
        for leader, (memory, seconds) in found.items()
    }


class Meter:
    """What processes use, for many who ask one by one.

    Guarantees: one look at /proc for all that are metered, at most once in ``lasts``
    seconds, however many ask; what is told is at most that old.
    """

    def __init__(self, lasts: float) -> None:
        self._lasts = lasts
        self._metered: set[int] = set()
        self._used: dict[int, Used] = {}
        self._looked = float("-inf")

    @contextmanager
    def metering(self, leader: int) -> Iterator[Callable[[float], Used]]:
        """Ask, with the time that it is, what the session of ``leader`` uses."""
        self._metered.add(leader)
        try:
            yield partial(self._of, leader)
        finally:
            self._metered.discard(leader)

    def _of(self, leader: int, now: float) -> Used:
        if now - self._looked >= self._lasts:
            self._looked = now
            self._used = usage(self._metered)
        return self._used.get(leader, Used())
