"""Backoff grows, is capped, and is shuffled within its bounds."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.runtime import Backoff, Breaker


@given(
    failures=st.integers(1, 10**6),
    first=st.floats(0.001, 10),
    factor=st.floats(1, 1e6),
    jitter=st.floats(0, 1),
    seed=st.integers(),
)
def test_a_pause_lies_between_its_jitter_and_the_cap(
    failures: int, first: float, factor: float, jitter: float, seed: int
) -> None:
    backoff = Backoff(first=first, factor=factor, cap=300.0, jitter=jitter)
    full = Backoff(first=first, factor=factor, cap=300.0, jitter=0.0)
    longest = full.pause(failures, random=Random(seed))
    pause = backoff.pause(failures, random=Random(seed))
    assert longest * (1 - jitter) <= pause <= longest <= 300.0


def test_pauses_double_up_to_the_cap() -> None:
    backoff = Backoff(first=1.0, cap=5.0, jitter=0.0)
    pauses = [backoff.pause(failures, random=Random(7)) for failures in range(1, 6)]
    assert pauses == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_keys_that_failed_together_do_not_come_back_together() -> None:
    random = Random(7)
    pauses = {Backoff().pause(3, random=random) for _ in range(100)}
    assert len(pauses) == 100


@pytest.mark.parametrize(
    "wrong",
    [{"first": 0}, {"first": 400}, {"factor": 0.5}, {"jitter": 2}, {"cap": 1e999}],
)
def test_a_backoff_that_does_not_grow_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="give"):
        Backoff(**wrong)


@pytest.mark.parametrize("wrong", [{"failures": 0}, {"cooldown": 0.0}])
def test_a_breaker_that_breaks_nothing_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="both must be positive"):
        Breaker(**wrong)
