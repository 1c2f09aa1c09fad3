"""Tables of built-in kinds are what a real server shows."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.embedded.builtin.tables import JSON, recorded, title
from trimtab.embedded.builtin.printers import columns, row, row_conditions

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FACTS = recorded()
OTHER_METRICS = "autoscaling.alpha.kubernetes.io/metrics"


def pod(fact: JSON, name: str) -> JSON:
    found: JSON = next(
        each["object"]
        for each in fact["rows"]
        if each["object"]["metadata"]["name"] == name
    )
    return copy.deepcopy(found)


@pytest.mark.parametrize("fact", FACTS, ids=title)
def test_columns_are_those_of_the_real_server(fact: JSON) -> None:
    shown = columns(fact["group"], fact["kind"])
    found = [[each.name, each.type, each.format, each.priority] for each in shown]
    assert found == fact["columns"]


@pytest.mark.parametrize("fact", FACTS, ids=title)
def test_cells_are_those_of_the_real_server(fact: JSON) -> None:
    now = datetime.fromisoformat(fact["now"])
    for each in fact["rows"]:
        if OTHER_METRICS in each["object"]["metadata"].get("annotations", {}):
            # The first version of autoscalers cannot hold the order of its metrics,
            # which the real server takes from what it stored in the second.
            assert title(fact) == "autoscaling/v1/HorizontalPodAutoscaler"
            continue
        cells = row(fact["group"], fact["kind"], each["object"], now=now)
        assert cells == each["cells"]
        # Equal is not enough: a number that is true would be equal to one.
        assert [type(cell) for cell in cells] == [type(cell) for cell in each["cells"]]


@pytest.mark.parametrize("fact", FACTS, ids=title)
def test_conditions_are_those_of_the_real_server(fact: JSON) -> None:
    for each in fact["rows"]:
        found = row_conditions(fact["group"], fact["kind"], each["object"])
        assert found == each["conditions"]


def test_every_kind_that_can_be_listed_was_recorded_with_rows() -> None:
    empty = {title(fact) for fact in FACTS if not fact["rows"]}
    assert empty == set()
    assert len(FACTS) > 50


def test_a_row_leaves_its_object_as_it_was() -> None:
    for fact in FACTS:
        for each in fact["rows"]:
            before = copy.deepcopy(each["object"])
            row(fact["group"], fact["kind"], each["object"], now=NOW)
            assert each["object"] == before


@pytest.mark.parametrize(
    ("passed", "shown"),
    [
        (timedelta(seconds=-5), "<invalid>"),
        (timedelta(seconds=-1.5), "0s"),
        (timedelta(0), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(seconds=120), "2m"),
        (timedelta(minutes=9, seconds=59), "9m59s"),
        (timedelta(minutes=10, seconds=1), "10m"),
        (timedelta(minutes=179), "179m"),
        (timedelta(hours=3), "3h"),
        (timedelta(hours=7, minutes=59), "7h59m"),
        (timedelta(hours=47), "47h"),
        (timedelta(hours=48), "2d"),
        (timedelta(days=7, hours=23), "7d23h"),
        (timedelta(days=8), "8d"),
        (timedelta(days=729), "729d"),
        (timedelta(days=730), "2y"),
        (timedelta(days=800), "2y70d"),
        (timedelta(days=365 * 8), "8y"),
    ],
)
def test_an_age_has_fewer_units_the_longer_it_is(passed: timedelta, shown: str) -> None:
    born = NOW.isoformat().replace("+00:00", "Z")
    obj = {"metadata": {"name": "a", "creationTimestamp": born}}
    assert row("", "ServiceAccount", obj, now=NOW + passed) == ["a", shown]


def test_an_object_without_a_time_has_no_known_age() -> None:
    obj: JSON = {"metadata": {"name": "a", "creationTimestamp": None}}
    assert row("", "ServiceAccount", obj, now=NOW) == ["a", "<unknown>"]
    assert row("", "LimitRange", obj, now=NOW) == ["a", "0001-01-01T00:00:00Z"]


_SPARSE: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"metadata": st.just({"name": "a"})},
    optional={name: st.none() | st.just({}) for name in ("spec", "status")},
)


@given(_SPARSE)
def test_an_object_with_next_to_nothing_in_it_still_has_a_whole_row(obj: JSON) -> None:
    for fact in FACTS:
        shown = row(fact["group"], fact["kind"], obj, now=NOW)
        # The real server's rows of IP addresses have a cell more than the header.
        extra = fact["kind"] == "IPAddress"
        assert len(shown) == len(columns(fact["group"], fact["kind"])) + extra


def test_a_pod_is_terminating_as_soon_as_it_is_deleted() -> None:
    fact = next(each for each in FACTS if title(each) == "v1/Pod")
    obj = pod(fact, "crash")
    assert row("", "Pod", obj, now=NOW)[2] == "CrashLoopBackOff"
    obj["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    assert row("", "Pod", obj, now=NOW)[2] == "Terminating"
