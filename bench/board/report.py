"""What the runs say: a line for each, tables with ratios, the bars, and a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import NamedTuple

from bench.board.bars import best_peer, is_ours, medians, verdicts
from bench.board.peers import versions
from bench.board.phases import Figures
from bench.report import machine
from trimtab.testing.assets import ETCD_VERSION, KUBERNETES_VERSION


class Column(NamedTuple):
    figure: str
    title: str
    form: str
    ratio: bool = False


COLUMNS = (
    Column("sync", "sync s", ".2f", ratio=True),
    Column("sync_cpu", "sync CPU s", ".2f", ratio=True),
    Column("rss", "RSS MiB", ".1f", ratio=True),
    Column("peak", "peak MiB", ".1f"),
    Column("after_p50", "after ack p50 ms", ".2f"),
    Column("after_p99", "p99 ms", ".2f"),
    Column("events_cpu", "CPU s per 500 events", ".2f"),
    Column("burst", "burst s", ".2f"),
    Column("burst_cpu", "burst CPU s", ".2f"),
    Column("idle", "idle CPU %", ".3f"),
    Column("relist", "relist adds MiB", ".1f"),
    Column("relist_cpu", "relist CPU s", ".2f"),
)
TITLES = {
    "S": "Workload S: 4,993 sessions and settings in 763 namespaces, and their Pods",
    "P 10,000": "Workload P: 10,000 Pods",
    "P 50,000": "Workload P: 50,000 Pods",
}


def line(each: Figures) -> str:
    """One run as it ends."""
    cells = [
        f"{column.title} {format(value, column.form)}"
        for column in COLUMNS
        if (value := getattr(each, column.figure)) is not None
    ]
    wrong = "" if each.valid else f"  INVALID: checksum {each.checksum}"
    head = f"round {each.round}  {each.workload}  {each.peer}"
    return f"{head}: {', '.join(cells)}, others {each.others:.0%}{wrong}"


def cell(found: Sequence[Figures], column: Column) -> str:
    """The median of the runs, and between which values they lie."""
    values = [v for each in found if (v := getattr(each, column.figure)) is not None]
    if not values:
        return "–"
    text = format(median(values), column.form)
    if len(values) == 1:
        return text
    low, high = min(values), max(values)
    return f"{text} [{format(low, column.form)}–{format(high, column.form)}]"


def table(found: Sequence[Figures], workload: str) -> str:
    """All peers on one workload, with ratios to the best of the peers."""
    runs = [each for each in found if each.workload == workload]
    columns = [
        column
        for column in COLUMNS
        if any(getattr(r, column.figure) is not None for r in runs)
    ]
    heads = ["peer"]
    for column in columns:
        heads += [column.title] + ["of best"] * column.ratio
    rows = [heads, ["---"] * len(heads)]
    for peer in sorted({r.peer for r in runs}, key=lambda p: (not is_ours(p), p)):
        rows.append(list(_row(found, workload, peer, columns)))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(
    found: Sequence[Figures], workload: str, peer: str, columns: Sequence[Column]
) -> Iterator[str]:
    yield f"**{peer}**" if is_ours(peer) else peer
    runs = [each for each in found if (each.workload, each.peer) == (workload, peer)]
    for column in columns:
        yield cell(runs, column)
        if column.ratio:
            values = medians(found, workload, column.figure)
            best = best_peer(values)
            known = best is not None and peer in values
            yield f"{values[peer] / best[1]:.2f} ×" if known and best else "–"


def bars(found: Sequence[Figures]) -> str:
    rows = ["| workload | bar | ours | best peer | |", "|---|---|---|---|---|"]
    for verdict in verdicts(found):
        best = f"{verdict.best[1]:.2f} ({verdict.best[0]})" if verdict.best else "–"
        met = "met" if verdict.met else "**missed**"
        bar = verdict.bar
        rows.append(
            f"| {bar.workload} | {bar.words} | {verdict.ours:.2f} | {best} | {met} |"
        )
    return "\n".join(rows)


def invalid(found: Sequence[Figures]) -> list[str]:
    """A sentence for each run whose figures mean nothing, or not what they should."""
    said = [
        f"INVALID: {each.peer} on {each.workload} (round {each.round}) did not read "
        f"what the others read: its checksum is {each.checksum}."
        for each in found
        if not each.valid
    ]
    said += [
        f"{each.peer} on {each.workload} (round {each.round}) did not list again, so "
        "its relist cost nothing."
        for each in found
        if each.lists is not None and each.lists <= 0
    ]
    return said


def all_met(found: Sequence[Figures]) -> bool:
    return all(each.valid for each in found) and all(v.met for v in verdicts(found))


def page(found: Sequence[Figures], *, failed: Sequence[str]) -> str:
    """What is committed: tables, bars and circumstances."""
    present = dict.fromkeys(each.workload for each in found)
    tables = "\n\n".join(
        f"## {TITLES[name]}\n\n{table(found, name)}" for name in present
    )
    rounds = 1 + max((each.round for each in found), default=0)
    shares = sorted(each.others for each in found)
    share = f"{median(shares):.0%} [{shares[0]:.0%}–{shares[-1]:.0%}]"
    peers = ", ".join(f"{name} {number}" for name, number in versions().items())
    missing = [f"{each} failed and has no figures." for each in failed]
    wrong = "".join(f"\n**{said}**\n" for said in (*invalid(found), *missing))
    return f"""# The scoreboard: operators against their peers

{datetime.now(UTC):%Y-%m-%d}. One kube-apiserver {KUBERNETES_VERSION} with etcd
{ETCD_VERSION} for each workload, over TLS on loopback; {rounds} rounds, each run in a
fresh process, in an order that changes. Median [lowest–highest].
{wrong}
{tables}

## Bars

Our defaults against the best of all peers, tuned or not.

{bars(found)}

## How to read it

*Sync*: from the start of the process until every object has been through the handler
once, which reads the same of it in every program (the checksums agree). *RSS* 10 s
later; *peak* is the highest until then. *After ack*: when the handler ran, minus when
the writer of the change had its answer; 500 changes, 50 a second. *Burst*: 2,000
changes, 64 at a time; the server sets the pace. *Idle*: 30 s without a change.
*Relist*: the server comes back without history; by how much the peak exceeds the RSS
before, and the CPU time until all is calm. *Of best*: divided by the best peer's.

- Machine: {machine()}.
- Peers: {peers}.
- The share of the CPU that belonged to nobody in the contest: {share} of the runs.

To run it again: `.venv/bin/python bench/scoreboard.py`. What each peer does, and what
this does not say: [bench/README.md](../bench/README.md).
"""
