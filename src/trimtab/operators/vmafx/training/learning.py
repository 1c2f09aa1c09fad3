"""Learning: stochastic gradient descent on samples as they come, and its average.

A sample goes into a replay ring, and waits there to be new once. When a whole batch
waits, a step is made with half a batch of those that waited longest and half a batch
drawn from the ring. What is kept as a model is the average over many steps (EMA), which
no single batch moves far.
"""

from __future__ import annotations

from random import Random

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.client.errors import ConfigError
from trimtab.operators.vmafx.training.network import Array, Network
from trimtab.operators.vmafx.training.problems import Diverged


class Hyper(msgspec.Struct, frozen=True, kw_only=True):
    """How it learns; the loss is the mean of the squared errors, in points of score."""

    # Samples that are remembered; the oldest makes room.
    replay: int = 10_000
    batch: int = 32
    # The share of a batch that is drawn from the ring.
    mix: float = 0.5
    rate: float = 1e-4
    momentum: float = 0.9
    decay: float = 1e-5
    # The longest gradient; a longer one is made as short.
    clip: float = 1.0
    # Steps until the rate is whole.
    warmup: int = 100
    ema: float = 0.999
    # Steps for each half batch of new samples, every one with another draw.
    passes: int = 1

    def __post_init__(self) -> None:
        wrong = (
            (not 1 <= self.batch <= 4096, "A batch has 1 to 4096 samples"),
            (not self.batch <= self.replay <= 1_000_000, "The replay holds a batch"),
            (not 0 <= self.mix <= 1, "The mix is a share from 0 to 1"),
            (self.new < 1, "A batch has at least one sample that is new"),
            (not 0 < self.rate <= 1, "The learning rate is above 0, and at most 1"),
            (not 0 <= self.momentum < 1, "The momentum is from 0 to below 1"),
            (not 0 <= self.decay < 1, "The weight decay is from 0 to below 1"),
            (not self.clip > 0, "A gradient is clipped to more than 0"),
            (not 0 <= self.ema < 1, "The decay of the average is from 0 to below 1"),
            (not (self.warmup >= 0 and 1 <= self.passes <= 64), "Steps are counted"),
        )
        for is_wrong, sentence in wrong:
            if is_wrong:
                raise ConfigError(f"{sentence}: change it.")

    @property
    def new(self) -> int:
        """How many samples of a batch are new."""
        return self.batch - round(self.batch * self.mix)


class Rows(msgspec.Struct, frozen=True):
    """Samples, the oldest first: their features, scores and numbers."""

    features: NDArray[np.float32]
    scores: NDArray[np.float64]
    numbers: NDArray[np.int64]

    def where(self, which: NDArray[np.bool_]) -> Rows:
        """Some of them."""
        return Rows(self.features[which], self.scores[which], self.numbers[which])

    def joined(self, other: Rows) -> Rows:
        """These, and others after them."""
        return Rows(
            np.concatenate([self.features, other.features]),
            np.concatenate([self.scores, other.scores]),
            np.concatenate([self.numbers, other.numbers]),
        )


class Ring:
    """The last ``capacity`` samples, by the order in which they came."""

    def __init__(self, capacity: int, width: int) -> None:
        self.count = 0
        self._start = 0
        self._features = np.zeros((capacity, width), dtype=np.float32)
        self._scores = np.zeros(capacity)
        self._numbers = np.zeros(capacity, dtype=np.int64)

    def push(self, features: NDArray[np.float32], score: float, number: int) -> None:
        """Add a sample; its number is higher than those before."""
        capacity = len(self._scores)
        place = (self._start + self.count) % capacity
        self._features[place] = features
        self._scores[place] = score
        self._numbers[place] = number
        if self.count < capacity:
            self.count += 1
        else:
            self._start = (self._start + 1) % capacity

    def rows(self, ages: NDArray[np.int64]) -> Rows:
        """Those at some places, where 0 is the oldest."""
        places = (self._start + ages) % len(self._scores)
        return Rows(self._features[places], self._scores[places], self._numbers[places])

    def all(self) -> Rows:
        """All of them."""
        return self.rows(np.arange(self.count))

    def extend(self, rows: Rows) -> None:
        """Add some, in their order."""
        for features, score, number in zip(
            rows.features, rows.scores, rows.numbers, strict=True
        ):
            self.push(features, float(score), int(number))

    def drop_after(self, number: int) -> int:
        """Forget those with a higher number; how many they were."""
        kept = int(np.count_nonzero(self.all().numbers <= number))
        dropped, self.count = self.count - kept, kept
        return dropped

    def clear(self) -> None:
        """Forget all of them."""
        self.count = 0


class Learner:
    """Weights that learn.

    Guarantees: a step is made as a whole or not at all, and what was fed and drawn
    decides it: the same samples and the same chance give the same weights.
    """

    def __init__(
        self, network: Network, start: Array, *, hyper: Hyper, random: Random
    ) -> None:
        self.network = network
        self.hyper = hyper
        self.live = start.copy()
        self.shadow = start.copy()
        """The average, which is what becomes a model."""
        self.velocity = np.zeros_like(start)
        self.steps = 0
        self.waiting = 0
        """How many of the ring's newest samples have not been new in a step yet."""
        self.replay = Ring(hyper.replay, network.inputs)
        self._random = random

    def feed(self, features: NDArray[np.float32], score: float, number: int) -> None:
        """Take a sample, which is learned from in a later step."""
        self.replay.push(features, score, number)
        self.waiting = min(self.waiting + 1, self.replay.count)

    def learn(self) -> list[float]:
        """Make the steps that are due; the loss of each.

        Errors: :class:`Diverged` for a step that was not made; its samples wait still.
        """
        losses = []
        while self.waiting >= self.hyper.batch:
            losses += [self._step() for _ in range(self.hyper.passes)]
            self.waiting -= self.hyper.new
        return losses

    def reset(self, vector: Array, *, number: int) -> None:
        """Go on from other weights, and forget the samples with a higher number."""
        self.live, self.shadow = vector.copy(), vector.copy()
        self.velocity = np.zeros_like(vector)
        self.waiting = max(0, self.waiting - self.replay.drop_after(number))

    def _step(self) -> float:
        rows = self._batch()
        loss, gradient = self.network.slope(
            self.live, rows.features.astype(np.float64), rows.scores
        )
        velocity = self._moved(gradient)
        rate = self.hyper.rate
        if self.steps < self.hyper.warmup:
            rate *= (self.steps + 1) / self.hyper.warmup
        live = self.live - rate * velocity
        if not (np.isfinite(loss) and np.isfinite(live).all()):
            raise Diverged("A step led to what is no number; it was not made.")
        self.live, self.velocity = live, velocity
        self.shadow = self.hyper.ema * self.shadow + (1.0 - self.hyper.ema) * live
        self.steps += 1
        return loss

    def _moved(self, gradient: Array) -> Array:
        """The velocity after a gradient, which is clipped before the weights decay."""
        length = float(np.linalg.norm(gradient))
        if length > self.hyper.clip:
            gradient = gradient * (self.hyper.clip / length)
        decayed = gradient + self.hyper.decay * self.live
        return self.hyper.momentum * self.velocity + decayed

    def _batch(self) -> Rows:
        count, new = self.replay.count, self.hyper.new
        first = count - self.waiting
        drawn = [self._random.randrange(count) for _ in range(self.hyper.batch - new)]
        return self.replay.rows(np.array([*range(first, first + new), *drawn]))
