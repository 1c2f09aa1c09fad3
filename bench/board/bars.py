"""The bars: what Trimtab's defaults have to reach, against the best peer of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from bench.board.phases import Figures

OURS, ELECTED = "trimtab", "trimtab, leader elected"
Values = dict[str, float]


class Bar(NamedTuple):
    """One sentence that holds or does not."""

    workload: str
    figure: str
    words: str
    holds: Callable[[float, float | None], bool]
    """Given ours and the best peer's, if there is one."""
    who: str = OURS


def at_most(limit: float) -> Callable[[float, float | None], bool]:
    return lambda ours, best: ours <= limit


def below(limit: float) -> Callable[[float, float | None], bool]:
    return lambda ours, best: ours < limit


def no_worse(ours: float, best: float | None) -> bool:
    return best is None or ours <= best


def smaller(ours: float, best: float | None) -> bool:
    return best is None or ours < best


BARS = (
    Bar("S", "rss", "RSS at most 57 MiB", at_most(57)),
    Bar("S", "rss", "RSS below every peer", smaller),
    Bar("P 10,000", "rss", "RSS at most 75 MiB", at_most(75)),
    Bar("P 50,000", "rss", "RSS at most 200 MiB", at_most(200)),
    Bar("S", "sync", "sync no slower than the fastest peer", no_worse),
    Bar("P 10,000", "sync", "sync no slower than the fastest peer", no_worse),
    Bar("P 50,000", "sync", "sync no slower than the fastest peer", no_worse),
    Bar("S", "sync_cpu", "sync CPU at most 0.9 s", at_most(0.9)),
    Bar("P 10,000", "sync_cpu", "sync CPU at most 1.3 s", at_most(1.3)),
    Bar("S", "after_p50", "after ack p50 under 0.7 ms", below(0.7)),
    Bar("S", "after_p99", "after ack p99 no worse than the best peer", no_worse),
    Bar("S", "events_cpu", "CPU per 500 events under 0.4 s", below(0.4)),
    Bar("S", "idle", "idle CPU under 0.1 %", below(0.1)),
    Bar("S", "idle", "idle CPU under 0.3 % with leadership", below(0.3), who=ELECTED),
    Bar("P 10,000", "relist", "a relist adds less than 5 MiB", below(5)),
    Bar("P 50,000", "relist", "a relist adds less than 5 MiB", below(5)),
)


class Verdict(NamedTuple):
    bar: Bar
    ours: float
    best: tuple[str, float] | None
    met: bool


def medians(found: Sequence[Figures], workload: str, figure: str) -> Values:
    """The median of each peer that has the figure."""
    values: dict[str, list[float]] = {}
    for each in found:
        value = getattr(each, figure)
        if each.workload == workload and value is not None:
            values.setdefault(each.peer, []).append(value)
    return {peer: median(all_of_them) for peer, all_of_them in values.items()}


def best_peer(values: Values) -> tuple[str, float] | None:
    """Who is best, ours aside: all figures are better when they are smaller."""
    others = [(value, peer) for peer, value in values.items() if not is_ours(peer)]
    if not others:
        return None
    value, peer = min(others)
    return peer, value


def is_ours(peer: str) -> bool:
    return peer.startswith(OURS)


def verdicts(found: Sequence[Figures]) -> Iterator[Verdict]:
    """Every bar that was measured."""
    for bar in BARS:
        values = medians(found, bar.workload, bar.figure)
        if bar.who not in values:
            continue
        best = best_peer(values)
        ours = values[bar.who]
        yield Verdict(bar, ours, best, bar.holds(ours, best[1] if best else None))
