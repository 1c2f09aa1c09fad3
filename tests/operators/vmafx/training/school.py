"""A small world to learn from: six features, a score that follows from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import msgspec
import numpy as np

from trimtab.operators.vmafx.training import models
from trimtab.operators.vmafx.training.base import fitted
from trimtab.operators.vmafx.training.checkpoints import Shelf
from trimtab.operators.vmafx.training.learning import Hyper
from trimtab.operators.vmafx.training.models import Model
from trimtab.operators.vmafx.training.network import Array
from trimtab.operators.vmafx.training.outputs import output_of
from trimtab.operators.vmafx.training.samples import Sample
from trimtab.operators.vmafx.training.state import Store
from trimtab.operators.vmafx.training.trainer import Trainer, TrainerOptions

NAMES = ("adm2", "motion2", "vif_scale0", "vif_scale1", "vif_scale2", "vif_scale3")
SCALES = (1.0, 20.0, 1.0, 1.0, 1.0, 1.0)
NOON = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)
# Learns in seconds what the plain settings learn in hours.
QUICK = Hyper(rate=3e-3, ema=0.9, warmup=10)


def samples(count: int, *, seed: int, name: str = "job") -> list[Sample]:
    """Scores that follow from their features, one job each."""
    random = Random(seed)
    return [_sample(f"{name}-{seed}-{place}", random) for place in range(count)]


def _sample(job_id: str, random: Random) -> Sample:
    parts = [random.random() for _ in NAMES]
    score = 100 * parts[0] ** 2 * (0.4 + 0.6 * parts[5]) + 8 * parts[1]
    features = tuple(part * scale for part, scale in zip(parts, SCALES, strict=True))
    return Sample(job_id=job_id, features=features, true_score=min(score, 100.0))


def poisoned(count: int, *, seed: int) -> list[Sample]:
    """Good features, and scores that are upside down."""
    return [
        msgspec.structs.replace(each, true_score=100.0 - each.true_score)
        for each in samples(count, seed=seed, name="poison")
    ]


def base() -> Model:
    """A model that was fitted to too few samples, as it is read from its file."""
    model, _ = fitted(samples(24, seed=1), NAMES, random=Random(1), hidden=12)
    return models.parse(models.write(model), name="base")


def rows(found: list[Sample]) -> tuple[Array, Array]:
    """Samples as a model is given them, and what it should say."""
    return (
        np.array([each.features for each in found]),
        np.array([each.true_score for each in found]),
    )


@contextmanager
def trainer(
    folder: Path,
    *,
    hyper: Hyper = QUICK,
    interval: float = 0.0,
    minimum: int = 200,
    output: str = "",
    model: Model | None = None,
    at: float = 0.0,
) -> Iterator[Trainer]:
    """A trainer of a folder, which has begun; leaving the block is a kill."""
    with Store(folder / "state") as store:
        made = Trainer(
            model or base(),
            store=store,
            shelf=Shelf(folder / "state", output_of(output or str(folder))),
            options=TrainerOptions(interval=interval, samples=minimum, hyper=hyper),
            random=Random(7),
            now=lambda: NOON,
        )
        made.begin(at=at)
        yield made
