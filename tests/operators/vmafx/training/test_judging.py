"""Laws of judging: figures that are right, and a gate that lets nothing worse pass."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.operators.vmafx.training.judging import Figures, figures, judge

VALUES = st.lists(st.integers(0, 30), min_size=3, max_size=20)


def test_figures_of_a_known_example() -> None:
    truth = np.array([10.0, 20.0, 30.0, 40.0, 50.0])
    told = np.array([12.0, 18.0, 33.0, 50.0, 45.0])
    found = figures(told, truth)
    assert found.plcc == pytest.approx(np.corrcoef(told, truth)[0, 1])
    assert found.srocc == pytest.approx(0.9)
    assert found.rmse == pytest.approx(np.sqrt((4 + 4 + 9 + 100 + 25) / 5))


@settings(max_examples=15, deadline=None)
@given(values=VALUES, scale=st.floats(0.1, 10), shift=st.floats(-50, 50))
def test_what_follows_the_truth_in_a_line_is_perfectly_correlated(
    values: list[int], scale: float, shift: float
) -> None:
    truth = np.array(values, dtype=float)
    found = figures(scale * truth + shift, truth)
    flat = len(set(values)) == 1
    assert found.plcc == pytest.approx(0.0 if flat else 1.0)
    assert found.srocc == pytest.approx(0.0 if flat else 1.0)


@settings(max_examples=15, deadline=None)
@given(values=VALUES, others=VALUES)
def test_ranks_do_not_change_with_what_keeps_the_order(
    values: list[int], others: list[int]
) -> None:
    count = min(len(values), len(others))
    one = np.array(values[:count], dtype=float)
    other = np.array(others[:count], dtype=float)
    bent = figures(np.exp(one / 10), other).srocc
    assert bent == pytest.approx(figures(one, other).srocc)


def test_ties_share_their_rank() -> None:
    found = figures(np.array([1.0, 2.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0, 4.0]))
    assert found.srocc == pytest.approx(0.9487, abs=1e-4)


GOOD = Figures(plcc=0.9, srocc=0.9, rmse=5.0)
BASE = Figures(plcc=0.8, srocc=0.8, rmse=8.0)


@pytest.mark.parametrize(
    ("candidate", "live", "outcome", "why"),
    [
        (Figures(plcc=0.95, srocc=0.95, rmse=4.0), GOOD, "passed", ""),
        (Figures(plcc=0.896, srocc=0.896, rmse=5.05), GOOD, "passed", ""),
        (Figures(plcc=0.9, srocc=0.9, rmse=5.2), GOOD, "waiting", "RMSE 5.2"),
        (Figures(plcc=0.89, srocc=0.9, rmse=5.0), GOOD, "waiting", "PLCC 0.89"),
        (Figures(plcc=0.9, srocc=0.89, rmse=5.0), GOOD, "waiting", "SROCC 0.89"),
        (Figures(plcc=0.9, srocc=0.9, rmse=5.6), GOOD, "failed", "RMSE 5.6"),
        (Figures(plcc=0.87, srocc=0.9, rmse=5.0), GOOD, "failed", "PLCC 0.87"),
        (Figures(plcc=0.9, srocc=0.87, rmse=5.0), GOOD, "failed", "SROCC 0.87"),
        (Figures(plcc=0.9, srocc=0.9, rmse=float("nan")), GOOD, "failed", "RMSE nan"),
        (GOOD, Figures(plcc=0.9, srocc=0.9, rmse=7.4), "passed", ""),
        (GOOD, Figures(plcc=0.9, srocc=0.9, rmse=7.6), "failed", "spoils the model"),
        (GOOD, Figures(plcc=0.7, srocc=0.9, rmse=5.0), "failed", "spoils the model"),
    ],
)
def test_only_what_is_not_worse_than_the_last_good_model_passes(
    candidate: Figures, live: Figures, outcome: str, why: str
) -> None:
    found = judge(candidate=candidate, live=live, good=GOOD, base=BASE, held_out=50)
    assert found.outcome == outcome
    assert why in found.reason
    assert found.candidate == candidate


@pytest.mark.parametrize(("share", "outcome"), [(0.3, "passed"), (0.4, "failed")])
def test_samples_that_fit_nothing_known_are_not_learned_from(
    share: float, outcome: str
) -> None:
    figures_of = {"candidate": GOOD, "live": GOOD, "good": GOOD, "base": BASE}
    found = judge(**figures_of, held_out=50, doubtful=share)
    assert found.outcome == outcome
    assert found.outcome == "passed" or "40% of their scores" in found.reason


def test_what_is_no_better_than_the_base_waits() -> None:
    found = judge(candidate=BASE, live=BASE, good=BASE, base=BASE, held_out=50)
    assert found.outcome == "waiting"
    assert "no better than the base" in found.reason
    # Better by mistake: the last good one was worse than the base after all.
    low = Figures(plcc=0.79, srocc=0.8, rmse=7.9)
    found = judge(candidate=low, live=low, good=low, base=BASE, held_out=50)
    assert found.outcome == "waiting"
