"""Laws of what is held out: whole jobs, enough of them, and none that lies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.operators.vmafx.training.holdout import CAPACITY, HeldOut
from trimtab.operators.vmafx.training.learning import Ring
from trimtab.operators.vmafx.training.network import Array


def first_feature(features: Array) -> Array:
    """A model whose score is the first feature."""
    return features[:, 0]


def add(held: HeldOut, count: int, *, first: int, error: float = 0.0) -> None:
    for number in range(first, first + count):
        value = float(number % 50)
        held.add(np.array([value], dtype=np.float32), value + error, number)


@settings(max_examples=10, deadline=None)
@given(frames=st.lists(st.integers(1, 64), min_size=1, max_size=60))
def test_a_job_is_held_out_as_a_whole_or_not_at_all(frames: list[int]) -> None:
    held, seen = HeldOut(1), 0
    for job, count in enumerate(frames):
        told = set()
        for _ in range(count):
            told.add(held.takes(str(job), seen=seen))
            seen += 1
        assert len(told) == 1
    assert held.taken <= 0.25 * seen + 64
    assert (held.taken > 0) == (len(frames) > 1)


def test_a_quarter_of_the_first_and_a_tenth_of_the_later_jobs_are_held_out() -> None:
    held = HeldOut(1)
    told = [held.takes(str(job), seen=job) for job in range(2000)]
    assert sum(told[:64]) == pytest.approx(16, abs=1)
    assert sum(told) == pytest.approx(200, abs=2)
    assert len(held.jobs) <= 4096


def test_too_few_samples_or_jobs_judge_nobody() -> None:
    held = HeldOut(1)
    add(held, 40, first=1)
    held.clips = 3
    assert not held.enough
    held.clips = 4
    assert held.enough


def test_at_the_start_everybody_judges_and_later_whom_the_good_model_believes() -> None:
    held = HeldOut(1)
    add(held, 40, first=1, error=2.0)
    jury = held.jury(first_feature)
    assert len(jury.scores) == 40
    held.settle(jury)
    assert (held.settled.count, held.fresh.count) == (40, 0)
    add(held, 5, first=100, error=5.0)
    add(held, 7, first=200, error=-60.0)
    jury = held.jury(first_feature)
    assert list(jury.numbers[40:]) == [100, 101, 102, 103, 104]
    held.settle(jury)
    assert held.settled.count == 45


def test_the_share_of_doubtful_samples_counts_those_that_are_learned_from_too() -> None:
    held, replay = HeldOut(1), Ring(1000, 1)
    add(held, 40, first=1, error=2.0)
    held.settle(held.jury(first_feature))
    for number in range(41, 101):
        replay.push(np.array([50.0], dtype=np.float32), 90.0, number)
    add(held, 20, first=101)
    assert held.doubtful(replay, first_feature, since=40) == pytest.approx(60 / 80)
    assert held.doubtful(replay, first_feature, since=100) == 0.0
    held.drop_after(20)
    assert (held.settled.count, held.fresh.count) == (20, 0)


def test_a_flood_of_fresh_samples_does_not_displace_those_who_judge() -> None:
    held = HeldOut(1)
    add(held, 40, first=1)
    held.settle(held.jury(first_feature))
    add(held, CAPACITY + 500, first=100)
    assert held.settled.count == 40
    assert held.fresh.count == CAPACITY
