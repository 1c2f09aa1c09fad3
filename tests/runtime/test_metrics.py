"""Laws of the metrics, read with the parser that Prometheus' own client has."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as some
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.parser import text_string_to_metric_families

from trimtab.client.calls import Statistics
from trimtab.client.transport import TransportStatistics
from trimtab.runtime.metrics import (
    FAMILIES,
    SECONDS,
    Histogram,
    Metrics,
    Sample,
    of_client,
    of_queue,
)

Labels = frozenset[tuple[str, str]]


def scraped(metrics: Metrics) -> dict[tuple[str, Labels], float]:
    """Every sample by name and labels; the same one twice is an error."""
    _, body = metrics.render()
    found: dict[tuple[str, Labels], float] = {}
    for family in text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found, key
            found[key] = sample.value
    return found


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return scraped(metrics)[name, frozenset(labels.items())]


def test_a_reconcile_is_counted_by_controller_outcome_and_cause() -> None:
    metrics = Metrics()
    website = metrics.controller("website")
    website.reconciled(0.02, "ok", "change", writes=2)
    website.reconciled(3.0, "retry", "timer")
    name = "trimtab_reconciles_total"
    about = {"controller": "website", "outcome": "ok", "cause": "change"}
    assert value(metrics, name, **about) == 1
    name = "trimtab_reconcile_seconds_bucket"
    about = {"controller": "website", "cause": "timer"}
    assert value(metrics, name, **about, le="2.5") == 0
    assert value(metrics, name, **about, le="5.0") == 1
    assert value(metrics, "trimtab_reconcile_seconds_sum", **about) == 3.0
    name = "trimtab_reconcile_writes_sum"
    assert value(metrics, name, controller="website") == 2
    name = "trimtab_reconcile_writes_count"
    assert value(metrics, name, controller="website") == 2


def test_writes_and_skipped_writes_are_told_apart() -> None:
    metrics = Metrics()
    website = metrics.controller("website")
    website.wrote("apply")
    website.wrote("apply", skipped=True)
    website.wrote("apply", skipped=True)
    about = {"controller": "website", "what": "apply"}
    assert value(metrics, "trimtab_writes_total", **about) == 1
    assert value(metrics, "trimtab_writes_skipped_total", **about) == 2


def test_one_name_has_one_set_of_counters() -> None:
    metrics = Metrics()
    assert metrics.controller("a") is metrics.controller("a")
    assert metrics.controller("a") is not metrics.controller("b")


def test_a_cause_or_an_outcome_that_does_not_exist_is_never_a_label() -> None:
    website = Metrics().controller("website")
    with pytest.raises(KeyError):
        website.reconciled(0.1, "ok", "shop")  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        website.wrote("default/shop")  # type: ignore[arg-type]


def test_sources_are_asked_at_the_scrape_and_only_then() -> None:
    asked = 0

    def source() -> Iterator[Sample]:
        nonlocal asked
        asked += 1
        return of_queue("website", depth=asked, oldest=0.5)

    metrics = Metrics()
    remove = metrics.add(source)
    assert asked == 0
    assert value(metrics, "trimtab_queue_depth", controller="website") == 1
    assert value(metrics, "trimtab_queue_depth", controller="website") == 2
    name = "trimtab_queue_oldest_seconds"
    assert value(metrics, name, controller="website") == 0.5
    remove()
    assert not any(key[0] == name for key in scraped(metrics))
    assert asked == 3


def test_samples_of_the_same_labels_add_up() -> None:
    metrics = Metrics()
    for objects in (3, 4):
        sample = Sample("cache_objects", ("Pod", "slice"), objects)
        metrics.add(lambda sample=sample: [sample])  # type: ignore[misc]
    assert value(metrics, "trimtab_cache_objects", kind="Pod", form="slice") == 7


@pytest.mark.parametrize(
    "sample",
    [Sample("nonsense", (), 1.0), Sample("is_leader", ("default/shop",), 1.0)],
    ids=["unknown family", "unknown label"],
)
def test_a_source_that_fails_costs_its_own_samples_only(
    sample: Sample, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics()
    metrics.add(lambda: [Sample("is_leader", (), 1.0), sample])
    metrics.add(lambda: [Sample("events_dropped", (), 5.0)])
    found = scraped(metrics)
    assert found["trimtab_events_dropped_total", frozenset()] == 5
    assert found["trimtab_scrape_errors_total", frozenset()] == 1
    assert ("trimtab_is_leader", frozenset()) not in found
    assert "left out" in caplog.text


def test_the_client_tells_its_requests_and_retries() -> None:
    metrics = Metrics()
    transport = TransportStatistics(
        **dict.fromkeys(TransportStatistics.__struct_fields__, 0)
    )
    statistics = Statistics(
        requests={("get", "200"): 4, ("patch", "Conflict"): 1},
        retries=2,
        streams_open=0,
        transport=transport,
    )
    metrics.add(lambda: of_client(statistics))
    name = "trimtab_client_requests_total"
    assert value(metrics, name, verb="patch", outcome="Conflict") == 1
    assert value(metrics, "trimtab_client_retries_total") == 2


def test_every_family_is_in_every_scrape() -> None:
    _, body = Metrics().render()
    for name, family in FAMILIES.items():
        suffix = "_total" if family.type == "counter" else ""
        assert f"# TYPE trimtab_{name}{suffix} {family.type}\n" in body.decode()


def test_the_processs_own_figures_are_there() -> None:
    assert value(Metrics(), "process_resident_memory_bytes") > 0


def test_an_operators_own_metrics_are_in_the_same_scrape() -> None:
    metrics = Metrics()
    Counter("orders", "Orders.", registry=metrics.registry).inc(3)
    assert value(metrics, "orders_total") == 3


def test_a_registry_can_be_handed_in() -> None:
    registry = CollectorRegistry()
    Counter("orders", "Orders.", registry=registry)
    metrics = Metrics(registry)
    assert metrics.registry is registry
    assert value(metrics, "trimtab_scrape_errors_total") == 0


@given(some.lists(some.floats(min_value=0, max_value=100)))
def test_a_histogram_counts_everything_once_and_below_its_bound(
    values: list[float],
) -> None:
    histogram = Histogram(SECONDS)
    for one in values:
        histogram.observe(one)
    for name, count in histogram.buckets():
        assert count == sum(one <= float(name) for one in values)
    assert histogram.total == pytest.approx(sum(values))


def test_importing_it_does_not_import_prometheus() -> None:
    code = "import sys, trimtab.runtime.metrics as m; assert m.Metrics; print(%s)"
    asked = "[n for n in ('prometheus_client', 'opentelemetry') if n in sys.modules]"
    done = subprocess.run(
        [sys.executable, "-c", code % asked], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
