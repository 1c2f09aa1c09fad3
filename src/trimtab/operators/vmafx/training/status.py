"""What a trainer says of itself, as JSON: to the operator, and to who draws it."""

from __future__ import annotations

from itertools import pairwise
from typing import Final, Literal, TypeAlias

import msgspec

from trimtab.operators.vmafx.training.judging import Figures, Outcome, Verdict

Phase: TypeAlias = Literal["running", "paused", "failed"]
_POINTS: Final = 1_000


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """The last judgement; ``good`` is what the candidate had to stand up to."""

    passed: bool
    outcome: Outcome
    plcc: float
    srocc: float
    rmse: float
    base: Figures
    good: Figures
    reason: str
    held_out: int


class TrainerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to ``GET /status``."""

    phase: Phase
    # Samples that were ever taken.
    current_samples: int
    last_checkpoint_time: str
    model_version: str
    # Of the last step; there is none before the first.
    loss: float | None
    steps: int
    # None before the first judgement.
    gate: Gate | None
    message: str
    features: tuple[str, ...]
    rollbacks: int


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A judgement, and after how many steps it was."""

    step: int
    gate: Gate


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to ``GET /history``: pairs of step and loss, and the judgements."""

    losses: tuple[tuple[int, float], ...]
    gates: tuple[Judged, ...]


def gate_of(verdict: Verdict) -> Gate:
    """A judgement as it is said."""
    found = verdict.candidate
    return Gate(
        passed=verdict.outcome == "passed",
        outcome=verdict.outcome,
        plcc=found.plcc,
        srocc=found.srocc,
        rmse=found.rmse,
        base=verdict.base,
        good=verdict.good,
        reason=verdict.reason,
        held_out=verdict.held_out,
    )


class Losses:
    """The losses of all steps, as many as a picture can show.

    When there are too many, every second one goes; so the stretch between two is the
    same everywhere.
    """

    def __init__(self) -> None:
        self.points: list[tuple[int, float]] = []
        self._every = 1

    def add(self, step: int, loss: float) -> None:
        """Keep the loss of a step, or not."""
        if step % self._every:
            return
        self.points.append((step, loss))
        if len(self.points) > _POINTS:
            self._every *= 2
            self.points = [each for each in self.points if not each[0] % self._every]

    def restore(self, points: tuple[tuple[int, float], ...]) -> None:
        """Go on from what was kept."""
        self.points = list(points)
        self._every = min((b[0] - a[0] for a, b in pairwise(points)), default=1)
