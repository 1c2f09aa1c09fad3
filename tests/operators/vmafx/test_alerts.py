"""Laws of the alerts: each fires for what it is about, and for nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.operators.vmafx.promql import Expression, Store, fired, seconds
from trimtab.operators.vmafx.metrics import (
    CATALOGUE,
    DEFINITIONS,
    PREFIX,
    SCORES,
    TENANTS,
    GatewayMetrics,
)
from trimtab.operators.vmafx.scaling import alerts
from trimtab.operators.vmafx.scaling.alerts import Objectives

Samples = Iterator[tuple[str, dict[str, str], float]]
NAME = re.compile(rf"\b{PREFIX}(\w+)")
PAGE = Path(__file__).parents[3] / "docs" / "vmafx-scaling.md"
DOCUMENT = alerts.document()


def names_of(expression: str) -> set[str]:
    suffix = re.compile(r"_(total|count|bucket|sum)$")
    return {suffix.sub("", name) for name in NAME.findall(expression)}


def test_every_rule_and_panel_names_metrics_that_exist() -> None:
    rules = [rule["expr"] for group in DOCUMENT["groups"] for rule in group["rules"]]
    panels = [
        target["expr"]
        for panel in alerts.dashboard()["panels"]
        for target in panel.get("targets", ())
    ]
    for expression in (*rules, *panels):
        assert names_of(expression) <= DEFINITIONS.keys(), expression
    assert set().union(*map(names_of, panels)) == DEFINITIONS.keys()
    recorded = {rule["record"] for rule in DOCUMENT["groups"][0]["rules"]}
    used = {name for rule in rules for name in re.findall(r"vmafx:[\w:]+", rule)}
    assert used <= recorded


def test_rules_have_names_of_their_own_and_a_section_that_says_what_to_do() -> None:
    rules = DOCUMENT["groups"][1]["rules"]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    page = PAGE.read_text()
    sections = {each.lower() for each in re.findall(r"^#+ (\w+)$", page, re.MULTILINE)}
    for rule in rules:
        told = rule["annotations"]
        assert told["summary"].endswith(".")
        assert told["description"].endswith(".")
        assert told["runbook_url"].partition("#")[2] in sections


def test_panels_of_the_page_lie_beside_each_other() -> None:
    panels = alerts.dashboard()["panels"]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (place["x"] + x, place["y"] + y)
            for x in range(place["w"])
            for y in range(place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken
        taken |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)
    shown = [name for names in alerts.ROWS.values() for name in names]
    assert len(set(shown)) == len(shown)


def test_every_definition_is_what_a_scrape_shows() -> None:
    shown = {
        family.name.removeprefix(PREFIX)
        for family in text_string_to_metric_families(
            GatewayMetrics().render()[1].decode()
        )
        if family.name.startswith(PREFIX) and not family.name.endswith("_created")
    }
    counted = {name for name, each in DEFINITIONS.items() if each.kind != "gauge"}
    assert shown == counted


def test_tenants_without_end_make_a_bounded_scrape() -> None:
    metrics = GatewayMetrics()
    labels = {metrics.tenant(f"t{number}") for number in range(10 * TENANTS)}
    assert len(labels) == TENANTS + 1
    assert metrics.tenant("t0") == "t0"
    assert metrics.tenant("t9999") == "other"


def test_the_latency_that_is_promised_is_a_bound_of_the_histogram() -> None:
    from trimtab.operators.vmafx.metrics import CALL_SECONDS

    assert float(Objectives().score_latency_seconds) in CALL_SECONDS


def well(now: float) -> Samples:
    """A quiet day: everything works, all the time."""
    yield "up", {"job": "x-vmafx-gateway"}, 1.0
    yield "vmafx_controller_nodes_live", {}, 2.0
    yield "vmafx_controller_jobs_pending", {"tenant": "a"}, 1.0
    yield "vmafx_controller_queue_oldest_job_age_seconds", {"tenant": "a"}, 60.0
    yield "vmafx_controller_jobs_completed_total", {"tenant": "a"}, now
    yield "vmafx_controller_jobs_failed_total", {"tenant": "a"}, now / 1000
    yield "vmafx_server_score_requests_total", {}, now
    yield "vmafx_server_score_errors_total", {}, now / 1000
    yield "vmafx_server_score_duration_seconds_bucket", {"le": "30.0"}, now * 0.99
    yield "vmafx_server_score_duration_seconds_count", {}, now
    yield "vmafx_metrics_read_errors_total", {"source": "cluster"}, 0.0
    yield from scored(now, 90)


def scored(now: float, middle: float, since: float = 0.0) -> Samples:
    """A score about every minute, around a value."""
    labels = {"tenant": "a", "model": "vmaf_v0.6.1"}
    for bound in (*SCORES, float("inf")):
        before = min(now, since) / 60 * (bound >= 90)
        count = before + max(0.0, now - since) / 60 * (bound >= middle)
        le = {**labels, "le": str(float(bound)).replace("inf", "+Inf")}
        yield "vmafx_quality_score_bucket", le, count
    yield "vmafx_quality_score_count", labels, now / 60


def but(**changes: Callable[[float], float]) -> Callable[[float], Samples]:
    """A quiet day, of which some series are otherwise."""

    def samples(now: float) -> Samples:
        for name, labels, value in well(now):
            change = changes.get(name.removeprefix(PREFIX))
            yield name, labels, change(now) if change else value

    return samples


def worse(now: float) -> Samples:
    """From the thirtieth hour on, scores are ten points lower."""
    for name, labels, value in well(now):
        if "quality_score_bucket" not in name:
            yield name, labels, value
    yield from scored(now, 80, since=30 * 3600.0)


CASES: dict[str, tuple[Callable[[float], Samples], float, set[str]]] = {
    "all is well": (well, 2, set()),
    "a part is down": (but(up=lambda now: 0.0), 1, {"VmafxComponentDown"}),
    "no node beats": (
        but(controller_nodes_live=lambda now: 0.0),
        1,
        {"VmafxNoLiveNodes"},
    ),
    "a tenant waits": (
        but(controller_queue_oldest_job_age_seconds=lambda now: 901.0),
        1,
        {"VmafxQueueAging"},
    ),
    "the watch is down": (
        but(metrics_read_errors_total=lambda now: now / 30),
        1,
        {"VmafxMetricsReadErrors"},
    ),
    "one job in five fails": (
        but(controller_jobs_failed_total=lambda now: now / 4),
        2,
        {"VmafxJobErrorBudgetBurnFast", "VmafxJobErrorBudgetBurnSlow"},
    ),
    "one job in twelve fails": (
        but(controller_jobs_failed_total=lambda now: now / 11),
        2,
        {"VmafxJobErrorBudgetBurnSlow"},
    ),
    "one score in five fails": (
        but(server_score_errors_total=lambda now: now / 5),
        2,
        {"VmafxScoreErrorBudgetBurnFast", "VmafxScoreErrorBudgetBurnSlow"},
    ),
    "four scores in ten are late": (
        but(server_score_duration_seconds_bucket=lambda now: now * 0.6),
        2,
        {"VmafxScoreLatencyBudgetBurnSlow"},
    ),
    "scores get worse": (worse, 36, {"VmafxScoreRegression"}),
}


@pytest.mark.parametrize("case", CASES)
def test_an_alert_fires_for_what_it_is_about_and_for_nothing_else(case: str) -> None:
    samples, hours, expected = CASES[case]
    # Two samples in each window that matters.
    step = {1.0: 60.0, 2.0: 150.0}.get(hours, 600.0)
    found = fired(DOCUMENT, samples, hours=hours, step=step)
    assert set(found) == expected


@pytest.mark.parametrize("case", [name for name, each in CASES.items() if each[1] == 1])
def test_what_passes_in_time_wakes_nobody(case: str) -> None:
    samples, _, (name, *_) = CASES[case]
    (rule,) = (r for r in DOCUMENT["groups"][1]["rules"] if r["alert"] == name)
    patience = seconds(rule["for"])

    def passing(now: float) -> Samples:
        return samples(now) if 600 <= now < 600 + patience - 60 else well(now)

    if case == "the watch is down":
        patience -= 300  # a rate remembers for as long
    assert fired(DOCUMENT, passing, hours=1) == {}


def test_expressions_are_those_of_the_language() -> None:
    """A few whose values are known, so that the judge is judged as well."""
    store = Store()
    for number in range(11):
        for tenant, pace in (("a", 1.0), ("b", 3.0)):
            labels = frozenset({("tenant", tenant)})
            store.add("n_total", labels, number * 60.0, pace * number * 60.0)
            store.add("g", labels, number * 60.0, pace)

    def value(text: str) -> Any:
        return Expression(text, store, 600.0).value()

    def of(**labels: str) -> frozenset[tuple[str, str]]:
        return frozenset(labels.items())

    assert value("sum(rate(n_total[5m]))") == {of(): 4.0}
    assert value('max by (tenant) (g{tenant=~"a|c"})') == {of(tenant="a"): 1.0}
    assert value("g > 2") == {of(tenant="b"): 3.0}
    assert value("g * 2 - 1 and g < 2") == {of(tenant="a"): 1.0}
    assert value("sum(g) > 0 and max(g) == 0") == {}
    assert value("g offset 5m + vector(1)") == {}
    assert value("avg_over_time(g[5m] offset 1m)") == value("g")
    assert CATALOGUE.rate("metrics_read_errors", window="1h").endswith("[1h]))")
