"""Laws of the metrics, and of the rules and the page that are made from them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from trimtab.pool import alerts, dashboard
from trimtab.pool import metrics as metrics_module
from trimtab.pool.metrics import (
    DEFINITIONS,
    LABELS,
    POOLS,
    PREFIX,
    SECONDS,
    PoolMetrics,
)
from trimtab.pool.states import Operation, Origin, Outcome

NAME = re.compile(rf"{PREFIX}(\w+)")


def made() -> PoolMetrics:
    return PoolMetrics(now=lambda: datetime.now(UTC))


def scraped(metrics: PoolMetrics) -> dict[str, dict[frozenset[str], float]]:
    """Every sample by name and labels, as Prometheus reads it."""
    registry = CollectorRegistry()
    registry.register(metrics)
    text = generate_latest(registry).decode()
    found: dict[str, dict[frozenset[str], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            values = frozenset(sample.labels.values())
            found.setdefault(sample.name, {})[values] = sample.value
    return found


def names_of(expression: str) -> set[str]:
    """The definitions that an expression names."""
    suffix = re.compile(r"_(total|count|bucket)$")
    return {suffix.sub("", name) for name in NAME.findall(expression)}


def test_every_rule_and_panel_names_metrics_that_exist() -> None:
    rules = [rule.expression for rule in alerts.rules()]
    panels = [
        target["expr"]
        for panel in dashboard.document()["panels"]
        for target in panel["targets"]
    ]
    for expression in (*rules, *panels):
        found = names_of(expression)
        assert found, expression
        assert found <= DEFINITIONS.keys(), expression
    on_the_page = set().union(*map(names_of, panels))
    assert on_the_page == DEFINITIONS.keys()


def test_a_rule_about_what_does_not_exist_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="no metric"):
        alerts.series("nothing")
    with pytest.raises(ValueError, match="no label"):
        alerts.series("workers", verb="acquire")
    with pytest.raises(ValueError, match="no state=asleep"):
        alerts.series("workers", state="asleep")


def test_rules_have_names_of_their_own_and_say_what_to_do() -> None:
    rules = alerts.rules()
    assert len({rule.name for rule in rules}) == len(rules)
    for rule in alerts.document()["groups"][0]["rules"]:
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["annotations"]["description"].endswith(".")


def test_a_value_that_nobody_foresaw_shows_as_unknown_and_stops_nothing() -> None:
    metrics = made()
    metrics.request("steal", "ok")
    metrics.request("sell", "ok")
    metrics.passed("nothing")
    metrics.observe("acquire_seconds", ("idle", "maybe"), 1.0)
    metrics.observe("acquire_seconds", ("idle", "perhaps"), 1.0)
    found = scraped(metrics)
    assert found[f"{PREFIX}requests_total"] == {frozenset({"unknown", "ok"}): 2}
    counts = found[f"{PREFIX}acquire_seconds_count"]
    assert counts == {frozenset({"idle", "unknown"}): 2}
    assert set(found[f"{PREFIX}pass_timestamp_seconds"]) == {frozenset({"unknown"})}


def test_every_pass_of_the_reaper_has_its_label() -> None:
    folder = Path(metrics_module.__file__).parent
    passes = {
        name
        for path in folder.glob("*.py")
        for name in re.findall(r'repeat\(\s*"(\w+)"', path.read_text())
    }
    assert passes
    assert passes == set(LABELS["pass"])


def test_what_is_counted_is_what_a_scrape_shows() -> None:
    metrics = made()
    for _ in range(3):
        metrics.transition(Operation.CLAIM, Outcome.WRITTEN, Origin.ACQUIRE)
    metrics.observe("acquire_seconds", ("idle", "ok"), 0.0005)
    metrics.observe("acquire_seconds", ("idle", "ok"), 3.0)
    metrics.passed("rows")
    metrics.add(lambda: [("workers", ("a/b", "idle"), 2.0), ("is_leader", (), 1.0)])
    found = scraped(metrics)

    def value(name: str, *labels: str) -> float:
        return found[f"{PREFIX}{name}"][frozenset(labels)]

    assert value("transitions_total", "claim", "written", "acquire") == 3
    assert value("acquire_seconds_bucket", "idle", "ok", "0.001") == 1
    assert value("acquire_seconds_count", "idle", "ok") == 2
    assert value("workers", "a/b", "idle") == 2
    assert value("is_leader") == 1
    assert SECONDS[0] == 0.001


def test_pools_without_end_make_a_bounded_scrape() -> None:
    metrics = made()
    metrics.add(
        lambda: [("waiting", (f"a/{number}",), 1.0) for number in range(POOLS * 2)]
    )
    waiting = scraped(metrics)[f"{PREFIX}waiting"]
    assert len(waiting) == POOLS + 1
    assert waiting[frozenset({"other"})] == POOLS


def test_every_label_but_the_pool_has_a_closed_set() -> None:
    used = {label for each in DEFINITIONS.values() for label in each.labels}
    assert used - {"pool"} == LABELS.keys()
