"""``trimtab top``: what a running operator does, again and again."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from typing import Any

from trimtab.cli import common

ABOUT = """
Show what a running operator does: who leads, what waits in the queues, how long
reconciles take, what the caches hold against their budget, what is written per second.
It asks the operator's metrics again and again until Control-C.
"""
CLEAR = "\x1b[2J\x1b[H"
LINE = re.compile(r"^trimtab_(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
MEDIAN, TAIL = 0.5, 0.99

Labels = frozenset[tuple[str, str]]


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser("top", help="watch an operator", description=ABOUT)
    made.set_defaults(run=run)
    common.add_url(made)
    made.add_argument(
        "--every",
        type=_seconds,
        default=2.0,
        metavar="SECONDS",
        help="how often (default: 2)",
    )
    made.add_argument("--once", action="store_true", help="show it once, and end")


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.1 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0.1 and 3600")
    return value


def run(options: argparse.Namespace) -> int:
    """Print it until interrupted."""
    before, then = _sampled(options.url), time.monotonic()
    while True:
        time.sleep(options.every)
        now, at = _sampled(options.url), time.monotonic()
        text = "\n".join(screen(before, now, seconds=at - then))
        print(text if options.once else CLEAR + text, flush=True)
        if options.once:
            return 0
        before, then = now, at


class Samples:
    """The samples of one scrape."""

    def __init__(self, text: str) -> None:
        self._values: dict[str, dict[Labels, float]] = {}
        for name, labels, value in LINE.findall(text):
            pairs = frozenset(LABEL.findall(labels))
            self._values.setdefault(name, {})[pairs] = float(value)

    def __bool__(self) -> bool:
        return bool(self._values)

    def has(self, name: str) -> bool:
        return name in self._values

    def total(self, name: str, **labels: str) -> float:
        """The sum of all samples with these labels."""
        wanted = set(labels.items())
        found = self._values.get(name, {})
        return sum(value for pairs, value in found.items() if wanted <= pairs)

    def labels(self, name: str, label: str) -> list[str]:
        """The values that a label has, sorted."""
        found = self._values.get(name, {})
        return sorted({dict(pairs).get(label, "") for pairs in found} - {""})


def _sampled(url: str) -> Samples:
    from trimtab.cli import asking

    body = asking.ask(url, "metrics")
    samples = Samples((body or b"").decode(errors="replace"))
    if not samples:
        raise asking.NoAnswer(f"What answers at {url} is no Trimtab operator.")
    return samples


def screen(before: Samples, now: Samples, *, seconds: float) -> Iterator[str]:
    """All lines of one look."""

    def rate(name: str, **labels: str) -> float:
        return (now.total(name, **labels) - before.total(name, **labels)) / seconds

    yield (
        f"leads {_leads(now)}   tasks {now.total('loop_tasks'):.0f}   "
        f"loop lag {now.total('loop_lag_seconds') * 1000:.1f} ms   "
        f"requests {rate('client_requests_total'):.1f}/s"
    )
    yield ""
    yield (
        f"{'CONTROLLER':<24}{'QUEUE':>7}{'OLDEST':>9}{'RECONC/S':>10}{'ERRORS/S':>10}"
        f"{'MEDIAN':>9}{'P99':>9}{'WRITES/S':>10}"
    )
    for name in now.labels("queue_depth", "controller") or now.labels(
        "writes_total", "controller"
    ):
        errors = sum(
            rate("reconciles_total", controller=name, outcome=outcome)
            for outcome in ("error", "retry", "terminal", "timeout")
        )
        yield (
            f"{name[:23]:<24}{now.total('queue_depth', controller=name):>7.0f}"
            f"{now.total('queue_oldest_seconds', controller=name):>8.1f}s"
            f"{rate('reconciles_total', controller=name):>10.1f}{errors:>10.1f}"
            f"{_quantile(now, name, MEDIAN):>9}{_quantile(now, name, TAIL):>9}"
            f"{rate('writes_total', controller=name):>10.1f}"
        )
    yield ""
    yield from _caches(now)


def _leads(now: Samples) -> str:
    if not now.has("is_leader"):
        return "without election"
    held = now.total("is_leader")
    operators = now.labels("is_leader", "operator")
    if operators:
        return f"{held:.0f} of {len(operators)}"
    return "yes" if held else "no"


def _caches(now: Samples) -> Iterator[str]:
    budget = now.total("cache_budget_bytes")
    used = now.total("cache_bytes")
    bound = f" of {_size(budget)}" if budget else ", no budget"
    yield f"caches {_size(used)}{bound}"
    kinds = now.labels("cache_bytes", "kind")
    width = max(map(len, kinds), default=0)
    for kind in kinds:
        objects = now.total("cache_objects", kind=kind)
        held = _size(now.total("cache_bytes", kind=kind))
        restarts = now.total("watch_restarts_total", kind=kind)
        yield (
            f"  {kind:<{width}}{objects:>9.0f} objects {held:>10}   "
            f"{restarts:.0f} restarts"
        )


def _quantile(now: Samples, controller: str, part: float) -> str:
    """The bound that so many of the reconciles stay below."""
    bounds = now.labels("reconcile_seconds_bucket", "le")
    counts = sorted(
        (float(le), now.total("reconcile_seconds_bucket", controller=controller, le=le))
        for le in bounds
    )
    total = counts[-1][1] if counts else 0.0
    for bound, count in counts:
        if total and count >= part * total:
            return "> 60s" if bound == float("inf") else f"<{bound * 1000:g}ms"
    return "-"


def _size(value: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
