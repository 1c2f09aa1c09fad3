"""A rate limit lets through so many in any stretch of time, and nobody starves."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.client import RateLimit

rates = st.floats(0.01, 1000.0)
bursts = st.integers(1, 50)
gaps = st.lists(st.floats(0, 5.0), min_size=1, max_size=60)
TINY = 1e-6


def taken(limit: RateLimit, arrivals: list[float]) -> list[float]:
    """When each of the callers that arrive then may go."""
    places = []
    for now in arrivals:
        delay = limit.reserve(now)
        assert delay is not None
        places.append(now + delay)
    return places


def times(between: list[float]) -> list[float]:
    found, now = [], 0.0
    for gap in between:
        now += gap
        found.append(now)
    return found


@given(rates, bursts, gaps)
def test_no_stretch_of_time_holds_more_than_its_share_and_a_burst(
    per_second: float, burst: int, between: list[float]
) -> None:
    limit = RateLimit(per_second=per_second, burst=burst)
    places = taken(limit, times(between))
    for first in range(len(places)):
        for last in range(first, len(places)):
            length = places[last] - places[first]
            assert last - first + 1 <= burst + length * per_second + TINY * 1000


@given(rates, bursts, gaps)
def test_nobody_goes_before_those_who_came_first(
    per_second: float, burst: int, between: list[float]
) -> None:
    places = taken(RateLimit(per_second=per_second, burst=burst), times(between))
    assert places == sorted(places)


@given(rates, bursts, gaps)
def test_nobody_waits_longer_than_those_before_need(
    per_second: float, burst: int, between: list[float]
) -> None:
    arrivals = times(between)
    places = taken(RateLimit(per_second=per_second, burst=burst), arrivals)
    for number, (arrival, place) in enumerate(zip(arrivals, places, strict=True)):
        ahead = max(0, number + 1 - burst)
        assert place - arrival <= ahead / per_second + TINY


@given(rates, bursts)
def test_a_burst_goes_at_once_and_the_next_one_waits(
    per_second: float, burst: int
) -> None:
    limit = RateLimit(per_second=per_second, burst=burst)
    assert taken(limit, [100.0] * burst) == pytest.approx([100.0] * burst)
    delay = limit.reserve(100.0)
    assert delay == pytest.approx(1 / per_second)


@given(rates, bursts, st.floats(0, 100), st.integers(1, 500))
def test_a_place_that_comes_too_late_is_not_taken(
    per_second: float, burst: int, patience: float, callers: int
) -> None:
    limit = RateLimit(per_second=per_second, burst=burst)
    for _ in range(callers):
        delay = limit.reserve(0.0, ends=patience)
        assert delay is None or delay < patience
    # However many gave up, who comes when they are gone finds the line as short as
    # those left it who stayed.
    later = limit.reserve(patience)
    assert later is not None
    assert later <= 1 / per_second + TINY


@pytest.mark.parametrize("per_second", [0, -1, -math.inf])
def test_a_limit_that_lets_nothing_through_is_refused(per_second: float) -> None:
    with pytest.raises(ValueError, match="lets nothing through"):
        RateLimit(per_second=per_second, burst=1)
    with pytest.raises(ValueError, match="lets nothing through"):
        RateLimit(per_second=1, burst=0)
