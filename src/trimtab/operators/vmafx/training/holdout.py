"""What is held out: samples that no model learns from, so that they can judge it.

Whole jobs are held out, because the frames of one clip are alike: one job of four until
there are enough, then one of ten. What was held out since the last good model was made
is *fresh*. A batch of bad samples, part of which is held out, must not judge in its own
favour: of the fresh ones only those judge whose scores the last good model finds
plausible, and only they stay once a model has passed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trimtab.operators.vmafx.training.learning import Ring, Rows
from trimtab.operators.vmafx.training.network import Array

Scorer: TypeAlias = Callable[[Array], Array]
"""How a model scores rows of features."""

CAPACITY: Final = 2_000
SAMPLES: Final = 32
JOBS: Final = 4
"""Fewer samples, or of fewer jobs, judge nobody."""
_MANY: Final = 16
_FIRST, _LATER = 0.25, 0.1
_KNOWN: Final = 4_096
_PLAUSIBLE: Final = 3.0
"""How many times the usual error is still plausible."""
_POINT: Final = 1.0
"""The smallest error that counts as usual, in points of score."""


class HeldOut:
    """Decides who is held out, and keeps them."""

    def __init__(self, width: int) -> None:
        self.settled = Ring(CAPACITY, width)
        self.fresh = Ring(CAPACITY, width)
        self.taken = 0
        self.clips = 0
        """How many jobs were ever held out."""
        self.jobs: OrderedDict[str, bool] = OrderedDict()
        """Whether each of the last jobs was held out."""

    def takes(self, job_id: str, *, seen: int) -> bool:
        """Whether a sample is held out; ``seen`` samples came before."""
        held = self.jobs.pop(job_id, None)
        if held is None:
            share = _FIRST if self.clips < _MANY else _LATER
            held = self.taken < share * seen
            self.clips += held
        self.jobs[job_id] = held
        if len(self.jobs) > _KNOWN:
            self.jobs.popitem(last=False)
        self.taken += held
        return held

    def add(self, features: NDArray[np.float32], score: float, number: int) -> None:
        """Keep a sample."""
        self.fresh.push(features, score, number)

    @property
    def enough(self) -> bool:
        """Whether there are enough to judge."""
        count = self.settled.count + self.fresh.count
        return count >= SAMPLES and self.clips >= JOBS

    def jury(self, scores: Scorer) -> Rows:
        """Those who judge; ``scores`` is how the last good model scores."""
        fresh = self.fresh.all()
        believed = fresh.where(self.plausible(fresh, scores))
        return self.settled.all().joined(believed)

    def plausible(self, rows: Rows, scores: Scorer) -> NDArray[np.bool_]:
        """Which samples have scores as they could be expected; all, at the start."""
        settled = self.settled.all()
        if self.settled.count < SAMPLES:
            return np.ones(len(rows.scores), dtype=np.bool_)
        usual = max(_POINT, float(np.sqrt(np.mean(_errors(settled, scores) ** 2))))
        found: NDArray[np.bool_] = np.abs(_errors(rows, scores)) <= _PLAUSIBLE * usual
        return found

    def doubtful(self, replay: Ring, scores: Scorer, *, since: int) -> float:
        """The share of all samples with a higher number that are not plausible."""
        rows = replay.all().joined(self.fresh.all())
        late = rows.numbers > since
        if np.count_nonzero(late) < SAMPLES:
            return 0.0
        return 1.0 - float(np.mean(self.plausible(rows, scores)[late]))

    def settle(self, jury: Rows) -> None:
        """A model has passed: who judged it judges from now on."""
        self.settled.clear()
        self.settled.extend(jury)
        self.fresh.clear()

    def drop_after(self, number: int) -> None:
        """Forget those with a higher number, and all that is fresh."""
        self.settled.drop_after(number)
        self.fresh.clear()


def _errors(rows: Rows, scores: Scorer) -> Array:
    return scores(rows.features.astype(np.float64)) - rows.scores
