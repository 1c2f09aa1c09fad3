"""Metrics of a pool: what was asked, written, called and reaped, for Prometheus.

Everything is defined in :data:`DEFINITIONS`: alert rules and the dashboard are made
from it. Each label has a closed set of values, but ``pool``, of which there are at most
:data:`POOLS`. What happens often costs one addition; what is known anyway (the rows,
the lines) is asked for when somebody scrapes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeAlias

from trimtab.pool.gateway.wire import Code
from trimtab.pool.states import Operation, Origin, Outcome, Reason, Source, State
from trimtab.runtime.catalogue import Definition
from trimtab.runtime.metrics import Histogram

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

PREFIX: Final = "trimtab_pool_"
POOLS: Final = 200
"""Pools that have a label of their own; those beyond are ``other``."""
OTHER: Final = "other"
UNKNOWN: Final = "unknown"
SECONDS: Final = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0),
)


def _values(*kinds: Iterable[object]) -> tuple[str, ...]:
    return tuple(getattr(each, "value", str(each)) for kind in kinds for each in kind)


PASSES: Final = (
    "rows",
    "pods",
    "ledgers",
    "caps",
    "updates",
    "pruning",
    "statuses",
    "headroom",
    "certificates",
)
CODES: Final = ("ok", *_values(Code))
LABELS: Final[dict[str, tuple[str, ...]]] = {
    "operation": _values(Operation),
    "outcome": _values(Outcome),
    "origin": _values(Origin),
    "state": _values(State),
    "reason": _values(Reason),
    "source": (*_values(Source), "none"),
    "code": (*CODES, "cancelled"),
    "verb": ("acquire", "release", "renew", "drain", "list", "unknown"),
    "review": ("token", "access"),
    "verdict": ("allowed", "denied", "failed", "kept"),
    "call": ("begin", "clean", "healthy", "activate"),
    "result": ("ok", "failed", "cancelled"),
    "pass": PASSES,
}
"""Every value that a label can have; ``pool`` is not here, see :data:`POOLS`."""

DEFINITIONS: Final[dict[str, Definition]] = {
    "acquire_seconds": Definition(
        "histogram",
        "Time from a request for a worker to its answer.",
        ("source", "code"),
    ),
    "release_seconds": Definition(
        "histogram", "Time from a release to its answer.", ("code",)
    ),
    "call_seconds": Definition(
        "histogram", "Time of a call to a worker.", ("call", "result")
    ),
    "requests": Definition(
        "counter", "Requests that the gateway answered.", ("verb", "code")
    ),
    "reviews": Definition(
        "counter",
        "Questions who a caller is and what it may have; kept ones cost nothing.",
        ("review", "verdict"),
    ),
    "transitions": Definition(
        "counter",
        "Attempts to write a worker's row.",
        ("operation", "outcome", "origin"),
    ),
    "workers": Definition("gauge", "Rows of workers.", ("pool", "state")),
    "ended": Definition(
        "gauge", "Rows of ended workers that are still kept, by why.", ("reason",)
    ),
    "waiting": Definition("gauge", "Requests that stand in line here.", ("pool",)),
    "connections": Definition("gauge", "Open connections to the gateway."),
    "is_leader": Definition("gauge", "1 while this replica leads."),
    "may_act": Definition(
        "gauge", "1 while this replica has renewed its lease and hands out workers."
    ),
    "pass_timestamp_seconds": Definition(
        "gauge", "When a pass of the reaper last went well.", ("pass",)
    ),
}

Labels: TypeAlias = tuple[str, ...]
Gauges: TypeAlias = Callable[[], Iterable[tuple[str, Labels, float]]]


class PoolMetrics:
    """What one replica counts. Its methods cost about a microsecond.

    Guarantees: a label has a value of its closed set, or ``unknown``. What tells when
    something last went well is set by success only.

    Assumptions: called by the loop's thread only. ``now`` is the wall clock, which is
    what Prometheus compares timestamps with.
    """

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._counters: Counter[tuple[str, Labels]] = Counter()
        self._histograms: dict[tuple[str, Labels], Histogram] = {}
        self._stamps: dict[str, float] = {}
        self._gauges: list[Gauges] = []

    def transition(
        self, operation: Operation, outcome: Outcome, origin: Origin
    ) -> None:
        """A write to a row was attempted."""
        labels = (operation.value, outcome.value, origin.value)
        self._counters["transitions", labels] += 1

    def review(self, review: str, verdict: str) -> None:
        """The API server was asked about a caller, or did not have to be."""
        self._add("reviews", (review, verdict))

    def request(self, verb: str, code: str) -> None:
        """The gateway has answered."""
        self._add("requests", (verb, code))

    def passed(self, name: str) -> None:
        """A pass of the reaper went well."""
        (known,) = _closed("pass_timestamp_seconds", (name,))
        self._stamps[known] = self._now().timestamp()

    def observe(self, name: str, labels: Labels, seconds: float) -> None:
        """Something took so long."""
        histogram = self._histograms.get((name, labels))
        if histogram is None:
            known = name, _closed(name, labels)
            histogram = self._histograms.setdefault(known, Histogram(SECONDS))
        histogram.observe(seconds)

    @contextmanager
    def timed_call(self, call: str) -> Iterator[None]:
        """Time a call to a worker, however it ends."""
        loop = asyncio.get_running_loop()
        began, result = loop.time(), "ok"
        try:
            yield
        except asyncio.CancelledError:
            result = "cancelled"
            raise
        except Exception:
            result = "failed"
            raise
        finally:
            self.observe("call_seconds", (call, result), loop.time() - began)

    def add(self, gauges: Gauges) -> None:
        """Ask for these at every scrape."""
        self._gauges.append(gauges)

    def value(self, name: str, *labels: str) -> float:
        """What a counter stands at, or how often a histogram observed."""
        if DEFINITIONS[name].kind == "histogram":
            found = self._histograms.get((name, labels))
            return sum(found.counts) if found else 0
        return self._counters[name, labels]

    def _add(self, name: str, labels: Labels) -> None:
        self._counters[name, _closed(name, labels)] += 1

    # What prometheus_client asks

    def describe(self) -> Iterable[Metric]:
        """Nothing: the registry asks this so as not to collect at registration."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Everything, as ``prometheus_client`` wants it."""
        from prometheus_client.metrics_core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        values = self._values()
        for name, each in DEFINITIONS.items():
            title = f"{PREFIX}{name}"
            if each.kind == "histogram":
                timed = HistogramMetricFamily(title, each.about, labels=each.labels)
                for (owner, labels), histogram in self._histograms.items():
                    if owner == name:
                        buckets, total = histogram.buckets(), histogram.total
                        timed.add_metric(labels, buckets, total)
                yield timed
                continue
            make = CounterMetricFamily if each.kind == "counter" else GaugeMetricFamily
            metric = make(title, each.about, labels=each.labels)
            for labels, value in values[name].items():
                metric.add_metric(labels, value)
            yield metric

    def _values(self) -> dict[str, Counter[Labels]]:
        values: dict[str, Counter[Labels]] = {name: Counter() for name in DEFINITIONS}
        for (name, labels), count in self._counters.items():
            values[name][labels] += count
        for name, moment in self._stamps.items():
            values["pass_timestamp_seconds"][(name,)] = moment  # type: ignore[assignment]
        pools: dict[str, None] = {}
        for gauges in self._gauges:
            for name, labels, value in gauges():
                if DEFINITIONS[name].labels[:1] == ("pool",):
                    labels = (_bounded(labels[0], pools), *labels[1:])
                values[name][labels] += value  # type: ignore[assignment]
        return values


def _bounded(pool: str, known: dict[str, None]) -> str:
    if pool in known or len(known) < POOLS:
        known[pool] = None
        return pool
    return OTHER


def _closed(name: str, labels: Labels) -> Labels:
    """The same labels, with what is in no closed set as ``unknown``.

    A value that nobody foresaw must show, and must not end a gateway.
    """
    names = DEFINITIONS[name].labels
    return tuple(
        value if label == "pool" or value in LABELS[label] else UNKNOWN
        for label, value in zip(names, labels, strict=True)
    )
