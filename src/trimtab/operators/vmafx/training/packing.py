"""Packing: the parts of a trainer as one snapshot, and the parts from it again."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
from numpy.typing import NDArray

from trimtab.operators.vmafx.training.holdout import HeldOut
from trimtab.operators.vmafx.training.learning import Learner, Ring, Rows
from trimtab.operators.vmafx.training.network import Array
from trimtab.operators.vmafx.training.state import Meta, Snapshot
from trimtab.operators.vmafx.training.status import Losses


def pack(
    known: Meta,
    learner: Learner,
    held: HeldOut,
    *,
    weights: Array,
    losses: Losses,
    random: Random,
) -> Snapshot:
    """Everything that there is; ``weights`` are those of the last good model."""
    arrays: dict[str, NDArray[Any]] = {
        "live": learner.live,
        "shadow": learner.shadow,
        "velocity": learner.velocity,
        "good": weights,
    }
    for name, ring in _rings(learner, held).items():
        rows = ring.all()
        arrays[f"{name}.features"] = rows.features
        arrays[f"{name}.scores"] = rows.scores
        arrays[f"{name}.numbers"] = rows.numbers
    version, state, gauss = random.getstate()
    meta = msgspec.structs.replace(
        known,
        steps=learner.steps,
        waiting=learner.waiting,
        losses=tuple(losses.points),
        held=held.taken,
        clips=held.clips,
        jobs=tuple(held.jobs.items()),
        chance=(version, state, gauss),
    )
    return Snapshot(meta, arrays)


def unpack(
    snapshot: Snapshot, learner: Learner, held: HeldOut, *, random: Random
) -> None:
    """Bring new parts to where those of a snapshot were.

    Assumptions: the network is the same. The size of the replay need not be.
    """
    meta, arrays = snapshot.meta, snapshot.arrays
    learner.live, learner.shadow = arrays["live"], arrays["shadow"]
    learner.velocity = arrays["velocity"]
    for name, ring in _rings(learner, held).items():
        parts = ("features", "scores", "numbers")
        ring.extend(Rows(*(arrays[f"{name}.{part}"] for part in parts)))
    learner.steps = meta.steps
    learner.waiting = min(meta.waiting, learner.replay.count)
    held.taken, held.clips = meta.held, meta.clips
    held.jobs.update(meta.jobs)
    if meta.chance is not None:
        random.setstate(meta.chance)


def _rings(learner: Learner, held: HeldOut) -> dict[str, Ring]:
    return {"replay": learner.replay, "settled": held.settled, "fresh": held.fresh}
