"""Metrics of a gateway: what was asked, given away and scored, for Prometheus.

Everything is defined in :data:`DEFINITIONS`: alert rules and the dashboard are made
from it. Every label has a closed set of values, but ``tenant``, of which there are at
most :data:`TENANTS`. What happens is counted by the replica that wrote it, so the
replicas add up; what is known anyway (the jobs that wait, the nodes) is asked for when
somebody scrapes, and is the same in each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from trimtab import __version__ as VERSION
from trimtab.operators.vmafx import claims, roles
from trimtab.operators.vmafx.desk import Desk, Step
from trimtab.operators.vmafx.kinds import Run, VmafxJob
from trimtab.operators.vmafx.node import Scorer
from trimtab.operators.vmafx.scaling.demand import Demand
from trimtab.operators.vmafx.scores import Score
from trimtab.operators.vmafx.scoring import MODEL
from trimtab.operators.vmafx.segments import Segment
from trimtab.runtime.catalogue import Catalogue, Definition
from trimtab.runtime.metrics import Metrics

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

OTHER: Final = "other"
CODES: Final = (
    *("ok", "cancelled", "unknown", "invalid_argument", "not_found", "internal"),
    *("permission_denied", "unauthenticated", "failed_precondition"),
    *("resource_exhausted", "unavailable"),
)
LABELS: Final[dict[str, tuple[str, ...]]] = {
    "method": (*roles.METHODS, OTHER),
    "code": (*CODES, OTHER),
    "reason": ("node_lost", "node_error", "released"),
    "outcome": ("completed", "failed", "cancelled"),
    "source": ("cluster",),
    "version": (VERSION,),
    "model": (MODEL, "vmaf_v0.6.1neg", "vmaf_4k_v0.6.1", "vmaf_b_v0.6.3", OTHER),
}
"""Every value that a label can have; ``tenant`` is not here, see :data:`TENANTS`."""

TENANTS: Final = 256
"""Tenants that have a label of their own; those beyond are ``other``."""

JOB_SECONDS: Final = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
CALL_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
SCORES: Final = (10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 93, 95, 97, 99, 100)

PREFIX: Final = "vmafx_"
DEFINITIONS: Final[dict[str, Definition]] = {
    "build_info": Definition("gauge", "1, of the version that runs.", ("version",)),
    "controller_requests": Definition(
        "counter", "Calls that were answered.", ("method", "code")
    ),
    "controller_jobs_submitted": Definition(
        "counter", "Jobs that callers submitted.", ("tenant",)
    ),
    "controller_jobs_completed": Definition(
        "counter", "Jobs that got a score.", ("tenant",)
    ),
    "controller_jobs_failed": Definition("counter", "Jobs that failed.", ("tenant",)),
    "controller_jobs_cancelled": Definition(
        "counter", "Jobs that nobody wanted any more.", ("tenant",)
    ),
    "controller_jobs_requeued": Definition(
        "counter", "Attempts that were lost or given back.", ("reason",)
    ),
    "controller_scores_reused": Definition(
        "counter", "Scores, of jobs or segments, that a node knew from before."
    ),
    "controller_jobs_pending": Definition("gauge", "Jobs that wait.", ("tenant",)),
    "controller_jobs_running": Definition(
        "gauge", "Jobs that a node has.", ("tenant",)
    ),
    "controller_queue_oldest_job_age_seconds": Definition(
        "gauge", "Age of the oldest job that waits.", ("tenant",)
    ),
    "controller_nodes_live": Definition("gauge", "Nodes that beat."),
    "controller_job_queue_wait_seconds": Definition(
        "histogram", "Time from a job's creation to its first attempt.", ("tenant",)
    ),
    "controller_job_duration_seconds": Definition(
        "histogram", "Time of the attempt that ended a job.", ("tenant", "outcome")
    ),
    "quality_score": Definition("histogram", "Scores of jobs.", ("tenant", "model")),
    "server_score_requests": Definition("counter", "Scores that callers waited for."),
    "server_score_errors": Definition("counter", "Those that failed."),
    "server_score_duration_seconds": Definition("histogram", "Time that they took."),
    "metrics_read_errors": Definition(
        "counter", "Scrapes that may tell of old jobs and nodes.", ("source",)
    ),
}
BUCKETS: Final[dict[str, tuple[float, ...]]] = {
    "controller_job_queue_wait_seconds": JOB_SECONDS,
    "controller_job_duration_seconds": JOB_SECONDS,
    "quality_score": SCORES,
    "server_score_duration_seconds": CALL_SECONDS,
}
CATALOGUE: Final = Catalogue(PREFIX, DEFINITIONS, LABELS)


class GatewayMetrics:
    """What one gateway counts.

    Guarantees: a label has a value of its closed set; what nobody foresaw is ``other``.
    Of tenants, of which there is no such set, the first :data:`TENANTS` have a label.

    Assumptions: called by the loop's thread only.
    """

    def __init__(
        self, *, tenant_of: Callable[[str], str] = lambda namespace: ""
    ) -> None:
        from prometheus_client import Counter, Histogram

        self.all = Metrics()
        self._tenant_of = tenant_of
        self._tenants = {"": ""}
        self._counters: dict[str, Counter] = {}
        self._times: dict[str, Histogram] = {}
        registry = self.all.registry
        for name, each in DEFINITIONS.items():
            title = f"{PREFIX}{name}"
            if each.kind == "counter":
                self._counters[name] = Counter(
                    title, each.about, each.labels, registry=registry
                )
            elif each.kind == "histogram":
                self._times[name] = Histogram(
                    title,
                    each.about,
                    each.labels,
                    buckets=BUCKETS[name],
                    registry=registry,
                )
        for reason in LABELS["reason"]:
            self._counters["controller_jobs_requeued"].labels(reason)
        for word in ("submitted", "completed", "failed", "cancelled"):
            self._counters[f"controller_jobs_{word}"].labels("")

    def render(self) -> tuple[str, bytes]:
        """The type of the content, and the content."""
        return self.all.render()

    def watch(
        self,
        desk: Desk,
        *,
        now: Callable[[], datetime],
        problem: Callable[[], str] = lambda: "",
    ) -> None:
        """Ask a desk at every scrape what waits and who lives.

        A ``problem`` is why what it knows may be old.
        """
        errors = self._counters["metrics_read_errors"].labels("cluster")

        def looked() -> None:
            if problem():
                errors.inc()

        self.all.registry.register(_Gauges(desk, now, self.tenant, looked))

    def tenant(self, name: str) -> str:
        """The label of a tenant."""
        if len(self._tenants) <= TENANTS:
            return self._tenants.setdefault(name, name)
        return self._tenants.get(name, OTHER)

    def _owner(self, job: VmafxJob) -> str:
        return self.tenant(self._tenant_of(job.metadata.namespace))

    def request(self, method: str, code: str) -> None:
        """A call was answered."""
        counter = self._counters["controller_requests"]
        counter.labels(known("method", method), known("code", code)).inc()

    def step(self, step: Step, job: VmafxJob) -> None:
        """A desk wrote the run of a job."""
        run, requeued = job.status.run, self._counters["controller_jobs_requeued"]
        if step == "submitted":
            self._counters["controller_jobs_submitted"].labels(self._owner(job)).inc()
        elif step == "claimed":
            if run.attempt == 1:
                waited = self._times["controller_job_queue_wait_seconds"]
                seconds = _seconds(job.metadata.creationTimestamp, run)
                waited.labels(self._owner(job)).observe(seconds)
        elif claims.is_over(job):
            self._ended(job)
        elif run.outcome == "released":
            requeued.labels("released").inc()
        elif run.outcome:
            requeued.labels("node_error" if step == "reported" else "node_lost").inc()

    def _ended(self, job: VmafxJob) -> None:
        run, tenant = job.status.run, self._owner(job)
        self._counters["controller_scores_reused"].inc(run.reused)
        if job.spec.segment is not None:
            return  # nobody submitted it: its job is counted
        self._counters[f"controller_jobs_{run.outcome}"].labels(tenant).inc()
        if run.since is not None and run.ended is not None:
            took = (run.ended - run.since).total_seconds()
            times = self._times["controller_job_duration_seconds"]
            times.labels(tenant, run.outcome).observe(max(0.0, took))
        if run.outcome == "completed" and run.score is not None:
            model = known("model", job.spec.model or MODEL)
            self._times["quality_score"].labels(tenant, model).observe(run.score)

    def metered(self, scorer: Scorer) -> Scorer:
        """The same scorer, counted and timed."""

        async def scored(
            reference: str,
            distorted: str,
            *,
            model: str,
            progress: Callable[[int, int | None], None],
            segment: Segment | None = None,
        ) -> Score:
            clock = asyncio.get_running_loop().time
            began = clock()
            self._counters["server_score_requests"].inc()
            try:
                return await scorer(
                    reference,
                    distorted,
                    model=model,
                    progress=progress,
                    segment=segment,
                )
            except Exception:
                self._counters["server_score_errors"].inc()
                raise
            finally:
                self._times["server_score_duration_seconds"].observe(clock() - began)

        return scored


class _Gauges:
    """What a desk knows anyway, as ``prometheus_client`` asks for it."""

    def __init__(
        self,
        desk: Desk,
        now: Callable[[], datetime],
        tenant: Callable[[str], str],
        looked: Callable[[], None],
    ) -> None:
        self._desk = desk
        self._now = now
        self._tenant = tenant
        self._looked = looked

    def describe(self) -> Iterable[Metric]:
        """Nothing: the registry asks this so as not to collect at registration."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """How many wait, run and live, and since when the oldest waits."""
        from prometheus_client.metrics_core import GaugeMetricFamily

        self._looked()
        for name, values in self._values().items():
            each = DEFINITIONS[name]
            title = f"{PREFIX}{name}"
            metric = GaugeMetricFamily(title, each.about, labels=each.labels)
            for labels, value in values.items():
                metric.add_metric(labels, value)
            yield metric

    def _values(self) -> dict[str, dict[tuple[str, ...], float]]:
        """Every gauge of the definitions, by its labels."""
        found, now = self._by_tenant(), self._now()
        nodes = self._desk.nodes.informer.store.values()
        return {
            "build_info": {(VERSION,): 1},
            "controller_nodes_live": {(): sum(n.status.healthy for n in nodes)},
            "controller_jobs_pending": {(t,): d.waiting for t, d in found.items()},
            "controller_jobs_running": {(t,): d.running for t, d in found.items()},
            "controller_queue_oldest_job_age_seconds": {
                (t,): d.age(now) for t, d in found.items()
            },
        }

    def _by_tenant(self) -> dict[str, Demand]:
        found = {"": Demand()}
        for kind, each in self._desk.demand().items():
            found.setdefault(self._tenant(kind.tenant), Demand()).add(each)
        return found


def known(label: str, value: str) -> str:
    """A value of the closed set of a label."""
    return value if value in LABELS[label] else OTHER


def _seconds(created: datetime | None, run: Run) -> float:
    if created is None or run.since is None:
        return 0.0
    return max(0.0, (run.since - created).total_seconds())
