"""Metrics: what an operator has done and holds, in the text that Prometheus reads.

What happens often is counted in plain integers of one :class:`ControllerMetrics` for
each controller. What is known elsewhere anyway (queues, caches, the client, the lease)
is asked of *sources* when somebody scrapes, so no event costs anything for it. Every
label has a bounded set of values: names of controllers and kinds, verbs, outcomes and
causes, never a name of an object.

``prometheus_client`` is imported when somebody scrapes or registers metrics of their
own, not before: an operator that nobody measures does not pay 3.5 MiB for it.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

from trimtab.client.calls import Statistics
from trimtab.runtime.reconcile import Why

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

Outcome = Literal["ok", "requeue", "retry", "terminal", "error", "timeout"]
Write = Literal["apply", "status", "delete", "event"]

SECONDS: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
PREFIX: Final = "trimtab_"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
WRITES: Final = (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0)

logger = logging.getLogger("trimtab.runtime.metrics")


class Sample(NamedTuple):
    """One value of one family. Samples of the same labels are added up."""

    family: str
    """A key of :data:`FAMILIES`."""
    labels: tuple[str, ...]
    value: float


Source: TypeAlias = Callable[[], Iterable[Sample]]


class Family(NamedTuple):
    """What a metric is called, means and is labelled with."""

    type: Literal["gauge", "counter"]
    about: str
    labels: tuple[str, ...] = ()


FAMILIES: Final[dict[str, Family]] = {
    "queue_depth": Family("gauge", "Keys that wait for a reconcile.", ("controller",)),
    "queue_oldest_seconds": Family(
        "gauge", "How long the key that is due the longest waits.", ("controller",)
    ),
    "reconciles": Family(
        "counter", "Reconciles that ended.", ("controller", "outcome", "cause")
    ),
    "writes": Family("counter", "Writes that were sent.", ("controller", "what")),
    "writes_skipped": Family(
        "counter", "Writes that would change nothing.", ("controller", "what")
    ),
    "webhook_reviews": Family(
        "counter", "Reviews that webhooks answered.", ("webhook", "outcome")
    ),
    "webhook_trouble": Family(
        "gauge", "1 while webhooks cannot be declared, or certificates not renewed."
    ),
    "cache_objects": Family("gauge", "Objects in the caches.", ("kind", "form")),
    "cache_indexed": Family(
        "gauge",
        "Objects in the caches by what an index finds them by, where it counts them.",
        ("kind", "index", "value"),
    ),
    "cache_bytes": Family("gauge", "Bytes accounted to them.", ("kind",)),
    "cache_budget_bytes": Family(
        "gauge", "Bytes that all caches may take together; 0 is without a bound."
    ),
    "cache_demotions": Family(
        "counter", "Objects that the budget of the caches made smaller.", ("to",)
    ),
    "relists": Family("counter", "Lists after the first.", ("kind",)),
    "watch_restarts": Family("counter", "Watches begun after the first.", ("kind",)),
    "client_requests": Family(
        "counter", "Requests to the API server.", ("verb", "outcome")
    ),
    "client_retries": Family("counter", "Requests that were sent again."),
    "is_leader": Family("gauge", "1 while this process leads."),
    "leader_transitions": Family("counter", "Times that it began or ceased to lead."),
    "events_dropped": Family("counter", "Events over the limit of their rate."),
    "loop_lag_seconds": Family("gauge", "How late the loop came to its last tick."),
    "loop_blocked_seconds": Family("counter", "Time in which the loop was blocked."),
    "loop_tasks": Family("gauge", "Tasks of the event loop that have not ended."),
    "scrape_errors": Family("counter", "Sources that failed while being asked."),
}


class Histogram:
    """Counts by upper bound; the last count is of what exceeds them all."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """Bounds and cumulative counts, as Prometheus has them."""
        names = [*map(str, self.bounds), "+Inf"]
        return list(zip(names, accumulate(self.counts), strict=True))


class ControllerMetrics:
    """What one controller counts. Its methods cost less than a microsecond.

    Assumptions: they are called by the loop's thread only.
    """

    __slots__ = ("_outcomes", "_seconds", "_skipped", "_writes", "_wrote", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._seconds = {why: Histogram(SECONDS) for why in get_args(Why)}
        self._outcomes = {
            why: dict.fromkeys(get_args(Outcome), 0) for why in get_args(Why)
        }
        self._writes = Histogram(WRITES)
        self._wrote = dict.fromkeys(get_args(Write), 0)
        self._skipped = dict.fromkeys(get_args(Write), 0)

    def reconciled(
        self, seconds: float, outcome: Outcome, cause: Why, writes: int = 0
    ) -> None:
        """One reconcile has ended, after so many writes."""
        histogram = self._seconds[cause]
        histogram.counts[bisect_left(SECONDS, seconds)] += 1
        histogram.total += seconds
        self._outcomes[cause][outcome] += 1
        self._writes.observe(writes)

    def wrote(self, what: Write, skipped: bool = False) -> None:
        """One write was sent, or was found to change nothing."""
        (self._skipped if skipped else self._wrote)[what] += 1

    def samples(self) -> Iterator[Sample]:
        for why, outcomes in self._outcomes.items():
            for outcome, count in outcomes.items():
                if count:
                    yield Sample("reconciles", (self.name, outcome, why), count)
        for what, count in self._wrote.items():
            yield Sample("writes", (self.name, what), count)
        for what, count in self._skipped.items():
            yield Sample("writes_skipped", (self.name, what), count)

    def durations(self) -> Iterator[tuple[tuple[str, ...], Histogram]]:
        """Of each cause that ever was; the others would only be noise."""
        for why, histogram in self._seconds.items():
            if any(histogram.counts):
                yield (self.name, why), histogram

    def writes(self) -> Iterator[tuple[tuple[str, ...], Histogram]]:
        yield (self.name,), self._writes


def of_queue(controller: str, *, depth: int, oldest: float) -> Iterator[Sample]:
    """What a queue says of itself."""
    yield Sample("queue_depth", (controller,), depth)
    yield Sample("queue_oldest_seconds", (controller,), oldest)


def of_client(statistics: Statistics) -> Iterator[Sample]:
    """What a client says of itself."""
    for labels, count in statistics.requests.items():
        yield Sample("client_requests", labels, count)
    yield Sample("client_retries", (), statistics.retries)


class Metrics:
    """The metrics of one operator, in a registry of their own."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._registry = registry
        self._registered = False
        self._controllers: dict[str, ControllerMetrics] = {}
        self._sources: list[Source] = []
        self._errors = 0

    @property
    def registry(self) -> CollectorRegistry:
        """Where an operator registers metrics of its own; made when it is asked for."""
        if self._registry is None:
            from prometheus_client import CollectorRegistry, ProcessCollector

            self._registry = CollectorRegistry()
            ProcessCollector(registry=self._registry)
        if not self._registered:
            self._registered = True
            # All that it needs is collect().
            self._registry.register(self)
        return self._registry

    def controller(self, name: str) -> ControllerMetrics:
        """The counters of one controller; the same for the same name."""
        if name not in self._controllers:
            self._controllers[name] = ControllerMetrics(name)
        return self._controllers[name]

    def add(self, source: Source) -> Callable[[], None]:
        """Ask ``source`` at every scrape; the answer is what removes it again.

        Errors: none ever reach the scrape. What a source raises is logged and counted,
        and its samples are left out.
        """
        self._sources.append(source)
        return lambda: self._sources.remove(source)

    def render(self) -> tuple[str, bytes]:
        """The type of the content, and the content."""
        from prometheus_client.exposition import generate_latest

        return CONTENT_TYPE, generate_latest(self.registry)

    def describe(self) -> Iterable[Metric]:
        """Nothing: the registry asks this so as not to collect at registration."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Everything, as ``prometheus_client`` wants it."""
        from prometheus_client.metrics_core import (
            CounterMetricFamily,
            GaugeMetricFamily,
        )

        values = self._values()
        makers = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily}
        for name, family in FAMILIES.items():
            make = makers[family.type]
            metric = make(f"{PREFIX}{name}", family.about, labels=family.labels)
            for labels, value in values[name].items():
                metric.add_metric(labels, value)
            yield metric
        counted = list(self._controllers.values())
        yield _histogram(
            "reconcile_seconds",
            "Time that a reconcile took.",
            ("controller", "cause"),
            (pair for controller in counted for pair in controller.durations()),
        )
        yield _histogram(
            "reconcile_writes",
            "Writes that one reconcile sent.",
            ("controller",),
            (pair for controller in counted for pair in controller.writes()),
        )

    def _values(self) -> dict[str, dict[tuple[str, ...], float]]:
        values: dict[str, dict[tuple[str, ...], float]] = {n: {} for n in FAMILIES}
        counted = (controller.samples for controller in self._controllers.values())
        for source in (*counted, *self._sources):
            try:
                samples = [_checked(sample) for sample in source()]
            except Exception:
                self._errors += 1
                logger.exception("A source of metrics failed and was left out.")
                continue
            for family, labels, value in samples:
                found = values[family]
                # Two caches of one kind are one line: a scrape with the same labels
                # twice is refused as a whole.
                found[labels] = found.get(labels, 0.0) + value
        values["scrape_errors"][()] = self._errors
        return values


def _checked(sample: Sample) -> Sample:
    expected = FAMILIES[sample.family].labels
    if len(sample.labels) != len(expected):
        raise ValueError(
            f"{sample.family} is labelled with {expected}, not {sample.labels}"
        )
    return sample


def _histogram(
    name: str,
    about: str,
    labels: tuple[str, ...],
    observed: Iterable[tuple[tuple[str, ...], Histogram]],
) -> Metric:
    from prometheus_client.metrics_core import HistogramMetricFamily

    metric = HistogramMetricFamily(f"{PREFIX}{name}", about, labels=labels)
    for values, histogram in observed:
        metric.add_metric(values, histogram.buckets(), histogram.total)
    return metric
