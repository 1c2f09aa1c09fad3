"""What can go wrong with a training, as one sentence each."""

from __future__ import annotations

from trimtab.client.errors import TrimtabError


class TrainingError(TrimtabError):
    """Something of a training failed; the sentence says what to do."""


class BadModel(TrainingError):
    """A model that cannot be trained here, or is not what it should be."""


class BadSample(TrainingError):
    """A sample that nothing can be learned from: no other attempt will help."""


class StateProblem(TrainingError):
    """What was learned before cannot be read, or belongs to something else."""


class Diverged(TrainingError):
    """A step led to what is no number, and was not made."""


class UnknownVersion(TrainingError):
    """There is no such version to go back to."""
