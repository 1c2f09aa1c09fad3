"""Laws of learning: the steps that were promised, on the samples that were promised."""

from __future__ import annotations

from collections import deque
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.client.errors import ConfigError
from trimtab.operators.vmafx.training.learning import Hyper, Learner, Ring
from trimtab.operators.vmafx.training.network import Array, Dense, Network
from trimtab.operators.vmafx.training.problems import Diverged

LINE = Network(1, (Dense(1, 1, 0),))


class Drawn(Random):
    """Chance that always draws the oldest."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return 0


def feed(learner: Learner, count: int, *, first: int = 1, score: float = 50.0) -> None:
    for number in range(first, first + count):
        learner.feed(np.array([number / 10], dtype=np.float32), score, number)


def test_it_learns_with_the_settings_that_were_promised() -> None:
    plain = Hyper()
    assert (plain.replay, plain.batch, plain.mix, plain.new) == (10_000, 32, 0.5, 16)
    assert (plain.rate, plain.momentum, plain.decay) == (1e-4, 0.9, 1e-5)
    assert (plain.clip, plain.warmup, plain.ema, plain.passes) == (1.0, 100, 0.999, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch": 0},
        {"replay": 8},
        {"mix": 1.0},
        {"mix": -0.1},
        {"rate": 0.0},
        {"rate": float("nan")},
        {"momentum": 1.0},
        {"decay": -1.0},
        {"clip": 0.0},
        {"ema": 1.0},
        {"passes": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        Hyper(**wrong)  # type: ignore[arg-type]


def test_steps_are_those_of_descent_with_momentum_decay_clipping_and_warm_up() -> None:
    hyper = Hyper(batch=4, replay=16, warmup=3, clip=1.0, rate=0.01, decay=0.1)
    start = np.array([0.3, -0.2])
    learner = Learner(LINE, start, hyper=hyper, random=Drawn())
    weights, velocity, average = start, np.zeros(2), start
    clipped = 0
    for step in range(6):
        feed(learner, 4 if step == 0 else 2, first=1 + (2 * step + 2 if step else 0))
        assert len(learner.learn()) == 1
        rows = np.array([2 * step + 1, 2 * step + 2, 1, 1]) / 10
        gradient = reference(weights, rows, np.full(4, 50.0))
        length = float(np.hypot(*gradient))
        clipped += length > 1
        gradient = gradient / length if length > 1 else gradient
        velocity = 0.9 * velocity + gradient + 0.1 * weights
        weights = weights - 0.01 * min(1.0, (step + 1) / 3) * velocity
        average = 0.999 * average + 0.001 * weights
        assert learner.live == pytest.approx(weights, rel=1e-5)
        assert learner.shadow == pytest.approx(average, rel=1e-6)
    assert clipped
    assert learner.steps == 6


def reference(weights: Array, x: Array, y: Array) -> Array:
    error = weights[0] * x + weights[1] - y
    return np.array([np.mean(2 * error * x), np.mean(2 * error)])


def test_each_sample_is_new_once_and_a_step_waits_for_a_whole_batch() -> None:
    hyper = Hyper(batch=8, replay=64)
    learner = Learner(LINE, np.zeros(2), hyper=hyper, random=Random(1))
    feed(learner, 7)
    assert learner.learn() == []
    feed(learner, 1, first=8)
    assert len(learner.learn()) == 1
    assert learner.waiting == 4
    feed(learner, 12, first=9)
    assert len(learner.learn()) == 3
    assert (learner.waiting, learner.replay.count, learner.steps) == (4, 20, 4)


def test_a_step_to_what_is_no_number_is_not_made() -> None:
    hyper = Hyper(batch=2, replay=4, clip=1e300, rate=1.0, momentum=0.0)
    learner = Learner(LINE, np.array([1e160, 0.0]), hyper=hyper, random=Random(1))
    before = learner.live.copy()
    feed(learner, 2)
    with np.errstate(over="ignore"), pytest.raises(Diverged):
        learner.learn()
    assert (learner.live == before).all()
    assert (learner.steps, learner.waiting) == (0, 2)


@settings(max_examples=20, deadline=None)
@given(
    capacity=st.integers(1, 6),
    steps=st.lists(st.one_of(st.just("push"), st.integers(0, 20)), max_size=30),
)
def test_a_ring_has_the_last_samples_in_their_order(
    capacity: int, steps: list[str | int]
) -> None:
    ring, model = Ring(capacity, 1), deque[int](maxlen=capacity)
    number = 0
    for step in steps:
        if step == "push":
            number += 1
            ring.push(np.array([number], dtype=np.float32), number / 2, number)
            model.append(number)
        else:
            kept = [each for each in model if each <= int(step)]
            assert ring.drop_after(int(step)) == len(model) - len(kept)
            model = deque(kept, maxlen=capacity)
        rows = ring.all()
        assert list(rows.numbers) == list(model)
        assert list(rows.scores) == [each / 2 for each in model]
        assert list(rows.features[:, 0]) == list(model)


def test_the_same_samples_and_the_same_chance_give_the_same_weights() -> None:
    made = [
        Learner(LINE, np.zeros(2), hyper=Hyper(), random=Random(seed))
        for seed in (1, 1, 2)
    ]
    for learner in made:
        feed(learner, 200)
        learner.learn()
    assert made[0].live.tobytes() == made[1].live.tobytes()
    assert made[0].live.tobytes() != made[2].live.tobytes()
