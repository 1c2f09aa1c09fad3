"""The mirror: what a trainer says of itself, as the status of its object.

Figures are rounded here, for people and so that a change too small to matter is no
write.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Final, cast, get_args

import msgspec
from msgspec.structs import replace

from trimtab.operators.vmafx.training.kinds import (
    Figures,
    Gate,
    Outcome,
    TrainingPhase,
    VmafxModelTraining,
    VmafxModelTrainingStatus,
)
from trimtab.runtime import Context, Result

RHYTHM: Final = 60.0
"""Seconds between two questions to a trainer."""
_DIGITS: Final = 4
_LONGEST: Final = 1024
_MOST_FEATURES: Final = 256
_PHASES: Final[dict[str, TrainingPhase]] = {
    "running": "Running",
    "paused": "Paused",
    "failed": "Failed",
}


class SaidFigures(msgspec.Struct):
    """Figures as a trainer says them."""

    plcc: float | None = None
    srocc: float | None = None
    rmse: float | None = None


class SaidGate(SaidFigures):
    """The gate as a trainer says it."""

    passed: bool = False
    outcome: str = ""
    held_out: int = 0
    base: SaidFigures = msgspec.field(default_factory=SaidFigures)
    good: SaidFigures = msgspec.field(default_factory=SaidFigures)
    reason: str = ""


class Said(msgspec.Struct):
    """The answer of a trainer; what it does not say stays as it was."""

    phase: str = ""
    current_samples: int = 0
    last_checkpoint_time: str = ""
    model_version: str = ""
    loss: float | None = None
    steps: int = 0
    gate: SaidGate | None = None
    message: str = ""
    features: list[str] = []
    rollbacks: int = 0


class SaidJudged(msgspec.Struct):
    """A gate of the past."""

    step: int
    gate: SaidGate


class SaidHistory(msgspec.Struct):
    """All that a trainer knows of the past: steps with their losses, and gates."""

    losses: list[tuple[int, float]] = []
    gates: list[SaidJudged] = []


def read(answer: bytes | None) -> Said | None:
    """The answer, or None if it is none that can be read."""
    try:
        return msgspec.json.decode(answer, type=Said) if answer else None
    except msgspec.DecodeError:
        return None


def learned(
    status: VmafxModelTrainingStatus, said: Said | None
) -> VmafxModelTrainingStatus:
    """The status after an answer; without one, nothing changes."""
    if said is None:
        return replace(status, phase=status.phase or "Initializing")
    return replace(
        status,
        phase=_PHASES.get(said.phase, "Initializing"),
        currentSamples=said.current_samples,
        lastCheckpoint=_time(said.last_checkpoint_time) or status.lastCheckpoint,
        modelVersion=said.model_version or status.modelVersion,
        message=said.message[:_LONGEST],
        loss=rounded(said.loss),
        steps=said.steps,
        gate=gate_of(said.gate) if said.gate else status.gate,
        features=said.features[:_MOST_FEATURES] or status.features,
        rollbacks=said.rollbacks,
    )


def told(
    before: VmafxModelTrainingStatus, after: VmafxModelTrainingStatus, ctx: Context
) -> None:
    """Tell people of a checkpoint, and of one that the gate turned away."""
    checkpoint = after.lastCheckpoint
    if checkpoint is not None and checkpoint != before.lastCheckpoint:
        ctx.event(
            "CheckpointWritten",
            f"Model checkpoint written: version={after.modelVersion} "
            f"samples={after.currentSamples}",
        )
    gate = after.gate
    if gate is not None and gate != before.gate and gate.failed:
        sentence = "What was learned is forgotten, and the last good model is back."
        ctx.event(
            "GateRejected",
            f"{gate.reason} {sentence} {figures(gate)}".lstrip(),
            type="Warning",
        )


def trained(seen: VmafxModelTraining, answer: bytes | None, ctx: Context) -> Result:
    """Say what a trainer says; an answer that cannot be read changes nothing."""
    status = learned(seen.status, read(answer))
    told(seen.status, status, ctx)
    return ctx.done(status=status, after=RHYTHM)


def figures(gate: Gate) -> str:
    """The figures of a gate as a sentence."""
    base = _shown(gate.base)
    compared = f" (the base: {base})" if base else ""
    return f"{_shown(gate) or 'No figures'}{compared}."


def rounded(value: float | None, digits: int = _DIGITS) -> float | None:
    """A number for people; None for what is none."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}") if abs(value) < 1 else round(value, digits)


def _shown(found: Figures) -> str:
    values = (("PLCC", found.plcc), ("SROCC", found.srocc), ("RMSE", found.rmse))
    return ", ".join(f"{name} {value}" for name, value in values if value is not None)


def gate_of(said: SaidGate) -> Gate:
    """A gate as it is kept."""
    known = said.outcome in get_args(Outcome)
    return Gate(
        **_rounded(said),
        passed=said.passed,
        outcome=cast(Outcome, said.outcome) if known else "",
        heldOut=said.held_out,
        base=Figures(**_rounded(said.base)),
        good=Figures(**_rounded(said.good)),
        reason=said.reason[:_LONGEST],
    )


def _rounded(said: SaidFigures) -> dict[str, float | None]:
    names = ("plcc", "srocc", "rmse")
    return {name: rounded(getattr(said, name)) for name in names}


def _time(text: str) -> datetime | None:
    try:
        return msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        return None
