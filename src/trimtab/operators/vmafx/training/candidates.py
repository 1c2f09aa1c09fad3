"""Candidates: what was learned, as a model that may become a version.

Whether it does is judged by what it says of samples that it did not learn from, beside
what the last good model and the base say of them.
"""

from __future__ import annotations

import msgspec
import numpy as np

from trimtab.operators.vmafx.training import models
from trimtab.operators.vmafx.training.judging import Figures, Verdict, figures, judge
from trimtab.operators.vmafx.training.learning import Learner, Rows
from trimtab.operators.vmafx.training.models import Model
from trimtab.operators.vmafx.training.network import Array, rounded
from trimtab.operators.vmafx.training.outputs import version_name


def candidate(base: Model, learner: Learner, *, version: int, samples: int) -> Model:
    """What was learned from so many samples, as the model of a version."""
    properties = {
        **base.properties,
        "vmafx.origin": "trained",
        "vmafx.version": version_name(version),
        "vmafx.base": base.sha256,
        "vmafx.samples": str(samples),
        "vmafx.steps": str(learner.steps),
    }
    return msgspec.structs.replace(base, vector=learner.shadow, properties=properties)


def written(model: Model, rows: Rows) -> bytes:
    """A model as a file, which says of some samples what the model says.

    Errors: :class:`BadModel` if it does not.
    """
    content = models.write(model)
    models.verify(content, model, rows.features.astype(np.float64))
    return content


def compared(
    base: Model, learner: Learner, rows: Rows, *, good: Array, doubtful: float
) -> Verdict:
    """Whether what was learned may be kept; ``good`` are the last good weights."""

    def told(vector: Array) -> Figures:
        features = rows.features.astype(np.float64)
        return figures(base.network.scores(vector, features), rows.scores)

    return judge(
        candidate=told(rounded(learner.shadow)),
        live=told(learner.live),
        good=told(good),
        base=told(rounded(base.vector)),
        held_out=len(rows.scores),
        doubtful=doubtful,
    )
