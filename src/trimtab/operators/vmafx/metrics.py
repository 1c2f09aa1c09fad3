"""Metrics of a gateway: what was asked, given away and scored, for Prometheus.

Every label has a closed set of values. What happens is counted by the replica that
wrote it, so the replicas add up; what is known anyway (the jobs that wait, the nodes)
is asked for when somebody scrapes, and is the same in each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from trimtab.operators.vmafx import claims, roles
from trimtab.operators.vmafx.desk import Desk, Step
from trimtab.operators.vmafx.kinds import Run, VmafxJob
from trimtab.operators.vmafx.node import Scorer
from trimtab.operators.vmafx.scores import Score
from trimtab.operators.vmafx.scoring import MODEL
from trimtab.runtime.metrics import Metrics

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

OTHER: Final = "other"
CODES: Final = (
    *("ok", "cancelled", "unknown", "invalid_argument", "not_found", "internal"),
    *("permission_denied", "unauthenticated", "failed_precondition"),
)
LABELS: Final[dict[str, tuple[str, ...]]] = {
    "method": (*roles.METHODS, OTHER),
    "code": (*CODES, OTHER),
    "reason": ("node_lost", "node_error", "released"),
    "outcome": ("completed", "failed", "cancelled"),
    "model": (MODEL, "vmaf_v0.6.1neg", "vmaf_4k_v0.6.1", "vmaf_b_v0.6.3", OTHER),
}
"""Every value that a label can have."""

JOB_SECONDS: Final = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
CALL_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
SCORES: Final = (10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 93, 95, 97, 99, 100)


class GatewayMetrics:
    """What one gateway counts.

    Guarantees: a label has a value of its closed set; what nobody foresaw is ``other``.

    Assumptions: called by the loop's thread only.
    """

    def __init__(self) -> None:
        from prometheus_client import Counter, Histogram

        self.all = Metrics()
        registry = self.all.registry
        prefix = "vmafx_controller_"
        self._requests = Counter(
            f"{prefix}requests",
            "Calls that were answered.",
            ("method", "code"),
            registry=registry,
        )
        self._jobs = {
            word: Counter(f"{prefix}jobs_{word}", f"Jobs {word}.", registry=registry)
            for word in ("submitted", "completed", "failed", "cancelled")
        }
        self._requeued = Counter(
            f"{prefix}jobs_requeued",
            "Attempts that were lost or given back.",
            ("reason",),
            registry=registry,
        )
        self._waited = Histogram(
            f"{prefix}job_queue_wait_seconds",
            "Time from a job's creation to its first attempt.",
            buckets=JOB_SECONDS,
            registry=registry,
        )
        self._took = Histogram(
            f"{prefix}job_duration_seconds",
            "Time of the attempt that ended a job.",
            ("outcome",),
            buckets=JOB_SECONDS,
            registry=registry,
        )
        self._quality = Histogram(
            "vmafx_quality_score",
            "Scores of jobs.",
            ("model",),
            buckets=SCORES,
            registry=registry,
        )
        self._scores = Counter(
            "vmafx_server_score_requests",
            "Scores that callers waited for.",
            registry=registry,
        )
        self._errors = Counter(
            "vmafx_server_score_errors", "Those that failed.", registry=registry
        )
        self._scored = Histogram(
            "vmafx_server_score_duration_seconds",
            "Time that they took.",
            buckets=CALL_SECONDS,
            registry=registry,
        )
        for reason in LABELS["reason"]:
            self._requeued.labels(reason)

    def render(self) -> tuple[str, bytes]:
        """The type of the content, and the content."""
        return self.all.render()

    def watch(self, desk: Desk, *, now: Callable[[], datetime]) -> None:
        """Ask a desk at every scrape what waits and who lives."""
        self.all.registry.register(_Gauges(desk, now))

    def request(self, method: str, code: str) -> None:
        """A call was answered."""
        self._requests.labels(known("method", method), known("code", code)).inc()
        if method.endswith("/SubmitJob") and code == "ok":
            self._jobs["submitted"].inc()

    def step(self, step: Step, job: VmafxJob) -> None:
        """A desk wrote the run of a job."""
        run = job.status.run
        if step == "claimed":
            if run.attempt == 1:
                self._waited.observe(_seconds(job.metadata.creationTimestamp, run))
        elif claims.is_over(job):
            self._ended(job)
        elif run.outcome == "released":
            self._requeued.labels("released").inc()
        else:
            reason = "node_error" if step == "reported" else "node_lost"
            self._requeued.labels(reason).inc()

    def _ended(self, job: VmafxJob) -> None:
        run = job.status.run
        self._jobs[run.outcome].inc()
        if run.since is not None and run.ended is not None:
            took = (run.ended - run.since).total_seconds()
            self._took.labels(run.outcome).observe(max(0.0, took))
        if run.outcome == "completed" and run.score is not None:
            model = known("model", job.spec.model or MODEL)
            self._quality.labels(model).observe(run.score)

    def metered(self, scorer: Scorer) -> Scorer:
        """The same scorer, counted and timed."""

        async def scored(
            reference: str,
            distorted: str,
            *,
            model: str,
            progress: Callable[[int, int | None], None],
        ) -> Score:
            clock = asyncio.get_running_loop().time
            began = clock()
            self._scores.inc()
            try:
                return await scorer(
                    reference, distorted, model=model, progress=progress
                )
            except Exception:
                self._errors.inc()
                raise
            finally:
                self._scored.observe(clock() - began)

        return scored


class _Gauges:
    """What a desk knows anyway, as ``prometheus_client`` asks for it."""

    def __init__(self, desk: Desk, now: Callable[[], datetime]) -> None:
        self._desk = desk
        self._now = now

    def describe(self) -> Iterable[Metric]:
        """Nothing: the registry asks this so as not to collect at registration."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """How many wait, run and live, and since when the oldest waits."""
        from prometheus_client.metrics_core import GaugeMetricFamily

        jobs = list(self._desk.jobs())
        running = sum(map(claims.is_running, jobs))
        waiting = [
            job.metadata.creationTimestamp
            for job in jobs
            if not (claims.is_over(job) or claims.is_running(job))
        ]
        since = min((each for each in waiting if each), default=None)
        age = (self._now() - since).total_seconds() if since else 0.0
        nodes = self._desk.nodes.informer.store.values()
        prefix = "vmafx_controller_"
        for name, about, value in (
            ("jobs_pending", "Jobs that wait.", len(waiting)),
            ("jobs_running", "Jobs that a node has.", running),
            ("queue_oldest_job_age_seconds", "Age of the oldest that waits.", age),
            ("nodes_live", "Nodes that beat.", sum(n.status.healthy for n in nodes)),
        ):
            yield GaugeMetricFamily(f"{prefix}{name}", about, value=max(0.0, value))


def known(label: str, value: str) -> str:
    """A value of the closed set of a label."""
    return value if value in LABELS[label] else OTHER


def _seconds(created: datetime | None, run: Run) -> float:
    if created is None or run.since is None:
        return 0.0
    return max(0.0, (run.since - created).total_seconds())
