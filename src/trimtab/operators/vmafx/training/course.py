"""The course of a training: its loss, gates and versions, told and drawn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from trimtab.operators.vmafx.pictures import picture, sparkline
from trimtab.operators.vmafx.training.kinds import (
    Gate,
    Outcome,
    VmafxModelTrainingStatus,
)
from trimtab.operators.vmafx.training.mirror import SaidHistory, figures, gate_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST: Final = 2000
"""Points that are kept of a loss; then every second one goes."""


_MARKS: Final[dict[Outcome, tuple[str, str]]] = {
    "passed": ("o", "kept"),
    "waiting": (".", "not yet better than the base"),
    "failed": ("x", "forgotten"),
}


class Judged(msgspec.Struct, frozen=True):
    """One gate, at which step it was, and the version that it made."""

    steps: int
    gate: Gate
    version: str
    """Empty if it made none, or nobody saw which."""


class Course:
    """What was seen of a training so far, in the order in which it was."""

    def __init__(self) -> None:
        self.losses: list[tuple[int, float]] = []
        self.judged: list[Judged] = []
        self.versions: list[str] = []
        self._phase = ""

    def add(self, status: VmafxModelTrainingStatus) -> list[str]:
        """Take how it is now; what is new in it, a line for each."""
        if status.loss is not None and self._last_step() < status.steps:
            self.losses.append((status.steps, status.loss))
            if len(self.losses) > MOST:
                del self.losses[::2]
        return [*self._phase_lines(status), *self._gate_lines(status)]

    @property
    def shown(self) -> str:
        """The loss as a line of blocks, and its last value."""
        if not self.losses:
            return "loss: none yet"
        # A block shows the smallest of its stretch: what is looked for is its fall.
        return f"loss {self.losses[-1][1]:.4g} {sparkline(self._values(), width=40)}"

    def _values(self) -> list[float]:
        return [loss for _, loss in self.losses]

    def _last_step(self) -> int:
        return self.losses[-1][0] if self.losses else 0

    def _phase_lines(self, status: VmafxModelTrainingStatus) -> Iterator[str]:
        if status.phase and status.phase != self._phase:
            self._phase = status.phase
            yield f"{status.phase} {status.message}".rstrip()

    def _gate_lines(self, status: VmafxModelTrainingStatus) -> Iterator[str]:
        gate, version = status.gate, status.modelVersion
        last = self.judged[-1] if self.judged else None
        is_new = gate is not None and (last is None or last.gate != gate)
        if gate is not None and is_new:
            kept = version if gate.passed else ""
            self.judged.append(Judged(status.steps, gate, kept))
        if version and version not in self.versions:
            self.versions.append(version)
            told = f": {figures(gate)}" if gate is not None and gate.passed else ""
            yield f"{version} after {status.currentSamples} samples{told}"
        if gate is not None and is_new and not gate.passed:
            word = "Forgotten" if gate.failed else "Not yet"
            yield f"{word}: {gate.reason} {figures(gate)}"

    def recall(self, past: SaidHistory) -> None:
        """Take what the trainer itself knows of the past in place of what was seen."""
        self.losses = [*past.losses]
        found = [(each.step, gate_of(each.gate)) for each in past.gates]
        # Each gate that was passed made a version; if all were seen, these are theirs.
        every = sum(gate.passed for _, gate in found) == len(self.versions)
        names = iter(self.versions if every else ())
        self.judged = [
            Judged(step, gate, next(names, "") if gate.passed else "")
            for step, gate in found
        ]


def plot(course: Course, to: Path, *, title: str) -> None:
    """Draw the loss above and the gates below. Errors: those of ``picture``."""
    with picture(to, size=(9, 6)) as figure:
        above, below = figure.subplots(2, 1, sharex=True)
        above.plot(*_columns(course.losses), linewidth=1.0)
        above.set(ylabel="loss", title=title)
        if course.losses and min(loss for _, loss in course.losses) > 0:
            above.set_yscale("log")
        _draw_gates(below, course.judged)


def _draw_gates(axes: Axes, judged: list[Judged]) -> None:
    """The error at each gate beside that of the base, and whether it was kept."""
    for outcome, (marker, name) in _MARKS.items():
        points = [
            (each.steps, each.gate.rmse)
            for each in judged
            if _outcome(each.gate) == outcome and each.gate.rmse is not None
        ]
        if points:
            axes.plot(*_columns(points), marker, label=name)
    for each in judged:
        if each.gate.rmse is not None:
            text = f" {each.version} PLCC {each.gate.plcc}".replace("  ", " ")
            axes.annotate(text, (each.steps, each.gate.rmse), fontsize=8)
    bases = [each.gate.base.rmse for each in judged if each.gate.base.rmse is not None]
    if bases:
        axes.axhline(bases[-1], linestyle=":", linewidth=0.8, label="the base")
    axes.set(xlabel="step", ylabel="RMSE, held out")
    if judged:
        axes.legend(loc="best", fontsize=8)


def _outcome(gate: Gate) -> Outcome:
    return "passed" if gate.passed else "failed" if gate.failed else "waiting"


def _columns(points: list[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    return [x for x, _ in points], [y for _, y in points]
