"""Alerts: the rules that Prometheus should have for scoring, made from its metrics.

Each rule names a metric by its definition, so that a rule about one that does not exist
cannot be written. What is promised to users (:class:`Objectives`) has a budget of
failures; the rules tell how fast it is being spent.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import msgspec

from trimtab.operators.vmafx.metrics import CATALOGUE, PREFIX
from trimtab.runtime import dashboards
from trimtab.runtime.catalogue import Alert, Recording, group

series, rate, quantile = CATALOGUE.series, CATALOGUE.rate, CATALOGUE.quantile

ROWS: Final = {
    "Queue": (
        "controller_jobs_pending",
        "controller_jobs_running",
        "controller_queue_oldest_job_age_seconds",
        "controller_job_queue_wait_seconds",
        "controller_jobs_submitted",
    ),
    "Jobs": (
        "controller_jobs_completed",
        "controller_jobs_failed",
        "controller_jobs_cancelled",
        "controller_job_duration_seconds",
        "controller_scores_reused",
    ),
    "Nodes": ("controller_nodes_live", "controller_jobs_requeued"),
    "Quality": ("quality_score",),
    "Scores that callers wait for": (
        "server_score_requests",
        "server_score_errors",
        "server_score_duration_seconds",
    ),
}
"""The rows of the dashboard; what is about the gateway itself comes first."""
MEDIAN: Final = "vmafx:quality_score:p50_1h"
COUNT: Final = "vmafx:quality_score:count_1h"


class Objectives(msgspec.Struct, frozen=True, kw_only=True):
    """What is promised, and from when on somebody is told.

    Numbers are texts, because in a chart each is the name of a value.
    """

    job_success: str = "0.99"
    score_success: str = "0.99"
    score_latency: str = "0.95"
    """The share of scores that callers get within ``score_latency_seconds``."""
    score_latency_seconds: str = "30.0"
    """One of the bounds of the histogram, with its decimal."""
    queue_age_seconds: str = "900"
    regression_points: str = "3"
    regression_scores: str = "20"
    per_job: str = "0"
    per_job_second: str = "0"
    """What a job costs, and a second of one, in a currency of your own."""
    jobs: str = ".*vmafx.*"
    """Which jobs of Prometheus scrape this, as a pattern."""
    runbooks: str = "docs/vmafx-scaling.md"
    """The page with a section for each alert."""


class Burn(NamedTuple):
    """How fast a budget may be spent: over two windows, times the even pace."""

    name: str
    severity: Literal["warning", "critical"]
    long: str
    short: str
    factor: float
    lasting: str


BURNS: Final = (
    Burn("Fast", "critical", "1h", "5m", 14.4, "2m"),
    Burn("Slow", "warning", "6h", "30m", 6.0, "15m"),
)
WINDOWS: Final = tuple(window for burn in BURNS for window in (burn.short, burn.long))


class Budget(NamedTuple):
    """Something promised: the series of what breaks it, and what that means."""

    name: str
    record: str
    objective: str
    summary: str
    advice: str


def budgets(wished: Objectives) -> tuple[Budget, ...]:
    """What is promised."""
    return (
        Budget(
            "VmafxJobErrorBudgetBurn",
            "vmafx:job_failures:ratio_rate",
            wished.job_success,
            "More jobs fail than were promised to.",
            "Look at the messages of jobs that failed lately: kubectl get vmjob.",
        ),
        Budget(
            "VmafxScoreErrorBudgetBurn",
            "vmafx:score_errors:ratio_rate",
            wished.score_success,
            "More scores that callers wait for fail than were promised to.",
            "Look at the logs of the gateways, and at what they may read.",
        ),
        Budget(
            "VmafxScoreLatencyBudgetBurn",
            "vmafx:score_slow:ratio_rate",
            wished.score_latency,
            "More scores that callers wait for are late than were promised to.",
            "Give the gateways more cores, or have long clips scored as jobs.",
        ),
    )


def recordings(wished: Objectives) -> tuple[Recording, ...]:
    """The series that the alerts are about, and what one looks at later."""
    made = [Recording(*each) for window in WINDOWS for each in _ratios(wished, window)]
    made += [
        Recording(f"{each.record.rpartition(':')[0]}:objective", _number(each))
        for each in budgets(wished)
    ]
    median = quantile(0.5, "quality_score", window="1h", by=("tenant", "model"))
    scores = f"increase({series('quality_score')}[1h])"
    seconds = series("controller_job_duration_seconds").replace("_count", "_sum", 1)
    cost = (
        f"{wished.per_job} * {rate('controller_job_duration_seconds', window='1h')}"
        f" * 3600 + {wished.per_job_second} * sum(rate({seconds}[1h])) * 3600"
    )
    return (
        *made,
        Recording(MEDIAN, median),
        Recording(COUNT, f"sum by (tenant, model) ({scores})"),
        Recording("vmafx:cost:per_hour", cost),
    )


def _number(each: Budget) -> str:
    return f"vector({each.objective})"


def _ratios(wished: Objectives, window: str) -> list[tuple[str, str]]:
    """What breaks each promise, as a share of what was done in a window."""
    failed = rate("controller_jobs_failed", window=window)
    done = rate("controller_jobs_completed", window=window)
    errors = rate("server_score_errors", window=window)
    asked = rate("server_score_requests", window=window)
    took = "server_score_duration_seconds"
    bound = f'{{le="{wished.score_latency_seconds}"}}'
    quick = f"sum(rate({CATALOGUE.buckets(took)}{bound}[{window}]))"
    return [
        (f"vmafx:job_failures:ratio_rate{window}", f"{failed} / ({failed} + {done})"),
        (f"vmafx:score_errors:ratio_rate{window}", f"{errors} / {asked}"),
        (
            f"vmafx:score_slow:ratio_rate{window}",
            f"1 - {quick} / {rate(took, window=window)}",
        ),
    ]


def alerts(wished: Objectives) -> tuple[Alert, ...]:
    """All of them."""
    burning = (
        _burning(each, burn, wished) for each in budgets(wished) for burn in BURNS
    )
    return (*_availability(wished), *burning, *_quality(wished))


def _burning(budget: Budget, burn: Burn, wished: Objectives) -> Alert:
    name = f"{budget.name}{burn.name}"
    allowed = f"{burn.factor:g} * (1 - {budget.objective})"
    return Alert(
        name=name,
        expression=f"{budget.record}{burn.long} > {allowed} and "
        f"{budget.record}{burn.short} > {allowed}",
        lasting=burn.lasting,
        severity=burn.severity,
        summary=budget.summary,
        advice=budget.advice,
        runbook=_runbook(name, wished),
    )


def _availability(wished: Objectives) -> tuple[Alert, ...]:
    pending, live = series("controller_jobs_pending"), series("controller_nodes_live")
    age = series("controller_queue_oldest_job_age_seconds")
    return (
        Alert(
            name="VmafxComponentDown",
            expression=f'up{{job=~"{wished.jobs}"}} == 0',
            lasting="5m",
            severity="critical",
            summary="A part of scoring cannot be scraped.",
            advice="Look whether its pod runs, and why not: kubectl describe pod.",
            runbook=_runbook("VmafxComponentDown", wished),
        ),
        Alert(
            name="VmafxNoLiveNodes",
            expression=f"sum(max by (tenant) ({pending})) > 0 and max({live}) == 0",
            lasting="10m",
            severity="critical",
            summary="Jobs wait, and no node beats.",
            advice="Scale a VmafxNodeSet, or look at why its nodes do not register.",
            runbook=_runbook("VmafxNoLiveNodes", wished),
        ),
        Alert(
            name="VmafxQueueAging",
            expression=f"max by (tenant) ({age}) > {wished.queue_age_seconds}",
            lasting="15m",
            severity="warning",
            summary="The oldest job of a tenant waits too long.",
            advice="Add nodes, or look at the tenant's maxRunning and weight.",
            runbook=_runbook("VmafxQueueAging", wished),
        ),
        Alert(
            name="VmafxMetricsReadErrors",
            expression=f"sum by (source) "
            f"(rate({series('metrics_read_errors')}[5m])) > 0",
            lasting="15m",
            severity="warning",
            summary="A gateway may not see jobs and nodes as they are.",
            advice="Look at its /readyz, and at its connection to the API server.",
            runbook=_runbook("VmafxMetricsReadErrors", wished),
        ),
    )


def _quality(wished: Objectives) -> tuple[Alert, ...]:
    before = f"avg_over_time({MEDIAN}[1d] offset 1h)"
    return (
        Alert(
            name="VmafxScoreRegression",
            expression=f"{MEDIAN} < {before} - {wished.regression_points} and "
            f"{COUNT} >= {wished.regression_scores}",
            lasting="1h",
            severity="warning",
            summary="The median score of an hour is well below that of the day before.",
            advice="Look at what was encoded lately, and with which settings.",
            runbook=_runbook("VmafxScoreRegression", wished),
        ),
    )


def _runbook(name: str, wished: Objectives) -> str:
    return f"{wished.runbooks}#{name.lower()}"


def document(wished: Objectives | None = None) -> dict[str, Any]:
    """The rules as a file that Prometheus reads."""
    wished = wished or Objectives()
    return {
        "groups": [
            group("vmafx-records", recordings(wished)),
            group("vmafx-alerts", alerts(wished)),
        ]
    }


def dashboard() -> dict[str, Any]:
    """The page, as Grafana imports it."""
    name = PREFIX.strip("_")
    return dashboards.page(CATALOGUE, title="Video scoring", uid=name, rows=ROWS)
