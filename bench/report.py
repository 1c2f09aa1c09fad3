"""What the measurements say: a line for each, two tables, and a page for the docs."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median

from bench.measure import Measurement
from trimtab.testing.assets import ETCD_VERSION, KUBERNETES_VERSION

MiB = 1 << 20
OURS = "trimtab"
NOT_PEERS = (OURS, "floor")
HEAD = (
    "| {phase} | objects/s | of the best peer | CPU s | peak MiB | of the best peer "
    "| before MiB | start s |\n|---|---|---|---|---|---|---|---|"
)
TITLES = {"list": "list, pages of 500", "watch": "watch, initial events"}

Figure = Callable[[Measurement], float]


def rate(each: Measurement) -> float:
    return each.figures.rate


def peak(each: Measurement) -> float:
    return each.figures.peak / MiB


def line(each: Measurement) -> str:
    """One measurement as it comes."""
    figures = each.figures
    return (
        f"round {each.round}  {each.phase:<6}{each.peer:<25}"
        f"{rate(each):8,.0f} objects/s  CPU {figures.cpu:6.2f} s  "
        f"peak {peak(each):6.1f} MiB  server CPU {each.server_cpu:5.1f} s  "
        f"others {each.others:.0%}"
    )


def middle(runs: Iterable[Measurement], figure: Figure) -> float:
    return median(figure(each) for each in runs)


def names(found: Sequence[Measurement], phase: str) -> list[str]:
    """Who took part in a phase, in the order of first sight."""
    return list(dict.fromkeys(each.peer for each in found if each.phase == phase))


def runs_of(found: Sequence[Measurement], phase: str, peer: str) -> list[Measurement]:
    return [each for each in found if (each.phase, each.peer) == (phase, peer)]


def best(found: Sequence[Measurement], phase: str) -> tuple[float, float]:
    """The highest rate and the lowest peak among the peers, by their medians."""
    others = [n for n in names(found, phase) if not n.startswith(NOT_PEERS)]
    runs = [runs_of(found, phase, name) for name in others]
    return (
        max(middle(each, rate) for each in runs),
        min(middle(each, peak) for each in runs),
    )


def behind(found: Sequence[Measurement]) -> list[str]:
    """A sentence for each figure in which a peer is ahead of us."""
    said = []
    for phase in TITLES:
        ours = runs_of(found, phase, OURS)
        fastest, smallest = best(found, phase)
        if middle(ours, rate) <= fastest:
            said.append(f"A peer is faster: {phase}, {fastest:,.0f} objects/s.")
        if middle(ours, peak) >= smallest:
            said.append(f"A peer is smaller: {phase}, {smallest:.1f} MiB.")
    return said


def spread(runs: Sequence[Measurement], figure: Figure, form: str) -> str:
    """The median, and between which values the runs lie."""
    values = sorted(map(figure, runs))
    low, high = format(values[0], form), format(values[-1], form)
    return f"{format(median(values), form)} [{low}–{high}]"


def row(runs: Sequence[Measurement], fastest: float, smallest: float) -> str:
    cells = (
        runs[0].peer,
        spread(runs, rate, ",.0f"),
        f"{middle(runs, rate) / fastest:.2f} ×",
        f"{middle(runs, lambda each: each.figures.cpu):.2f}",
        spread(runs, peak, ".1f"),
        f"{middle(runs, peak) / smallest:.2f} ×",
        f"{middle(runs, lambda each: each.figures.start_rss / MiB):.1f}",
        f"{middle(runs, lambda each: each.figures.start_seconds):.2f}",
    )
    return f"| {' | '.join(cells)} |"


def tables(found: Sequence[Measurement]) -> str:
    """A table for each phase, the fastest first."""
    parts = []
    for phase, title in TITLES.items():
        fastest, smallest = best(found, phase)
        runs = [runs_of(found, phase, name) for name in names(found, phase)]
        runs.sort(key=lambda each: -middle(each, rate))
        rows = [row(each, fastest, smallest) for each in runs]
        parts.append("\n".join([HEAD.format(phase=title), *rows]))
    return "\n\n".join(parts) + "\n"


def machine() -> str:
    """The facts of the host that the figures depend on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    models = [
        text.partition(":")[2].strip()
        for text in Path("/proc/cpuinfo").read_text().splitlines()
        if text.startswith("model name")
    ]
    model = f" ({models[0]})" if models else ""
    return (
        f"{os.cpu_count()} cores{model}, {memory:.0f} GiB, {platform.system()} "
        f"{platform.release()}, {platform.python_implementation()} "
        f"{platform.python_version()}"
    )


def page(
    found: Sequence[Measurement], *, tables: str, versions: Mapping[str, str]
) -> str:
    """What is committed: the tables and the circumstances."""
    rounds = 1 + max(each.round for each in found)
    libraries = ", ".join(f"{name} {version(name)}" for name in ("msgspec",))
    peers = ", ".join(f"{name} {number}" for name, number in versions.items())
    others = spread(found, lambda each: each.others, ".0%")
    server = middle(runs_of(found, "list", OURS), lambda each: each.server_cpu)
    return f"""# The client against its peers

{datetime.now(UTC):%Y-%m-%d}. {found[0].figures.count:,} Pods of 6 to 7 KB on one
kube-apiserver {KUBERNETES_VERSION} with etcd {ETCD_VERSION}, over TLS on loopback,
{rounds} rounds, each run in a fresh process. Median [lowest–highest].

{tables}
*Objects/s* is wall time from the first request to the last object. *Before* is the
resident memory when the first request is sent, *peak* the highest of the whole process.
*Start* is the time from exec until then, which is not part of the rate.
*Of the best peer* compares with the best that is not Trimtab, each figure by itself.

- Machine: {machine()}.
- Trimtab: this tree with {libraries}. Peers: {peers}.
- The share of the CPU that belonged to nobody in the contest: {others} of the runs.
- The server is on the same cores: for one list by Trimtab it works {server:.1f} s.

To run it again: `.venv/bin/python bench/client.py --page docs/client-benchmark.md`.
What is measured and what is not: [bench/README.md](../bench/README.md).
"""
