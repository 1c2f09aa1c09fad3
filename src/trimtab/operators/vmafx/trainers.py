"""Trainers: what one says of itself, put into the status of its object."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec
from msgspec.structs import replace

from trimtab.operators.vmafx.later import VmafxModelTraining, VmafxModelTrainingStatus
from trimtab.runtime import Context, Result

RHYTHM = 60.0

Phase = Literal["Initializing", "Running", "Paused", "Failed"]
_PHASES: dict[str, Phase] = {
    "running": "Running",
    "paused": "Paused",
    "failed": "Failed",
}


class Said(msgspec.Struct):
    """The answer of a trainer."""

    phase: str = ""
    current_samples: int = 0
    last_checkpoint_time: str = ""
    model_version: str = ""


def trained(seen: VmafxModelTraining, answer: bytes | None, ctx: Context) -> Result:
    """Say what a trainer says; an answer that cannot be read changes nothing."""
    before = seen.status
    status = _learned(before, _read(answer))
    checkpoint = status.lastCheckpoint
    if checkpoint is not None and checkpoint != before.lastCheckpoint:
        ctx.event(
            "CheckpointWritten",
            f"Model checkpoint written: version={status.modelVersion} "
            f"samples={status.currentSamples}",
        )
    return ctx.done(status=status, after=RHYTHM)


def _read(answer: bytes | None) -> Said | None:
    try:
        return msgspec.json.decode(answer, type=Said) if answer else None
    except msgspec.DecodeError:
        return None


def _learned(
    status: VmafxModelTrainingStatus, said: Said | None
) -> VmafxModelTrainingStatus:
    if said is None:
        return replace(status, phase=status.phase or "Initializing")
    return replace(
        status,
        phase=_PHASES.get(said.phase, "Initializing"),
        currentSamples=said.current_samples,
        lastCheckpoint=_time(said.last_checkpoint_time) or status.lastCheckpoint,
        modelVersion=said.model_version or status.modelVersion,
    )


def _time(text: str) -> datetime | None:
    try:
        return msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        return None
