"""Pooling: what the values of all frames come to, as libvmaf pools them.

libvmaf writes every value with six decimals, pooled ones too. Here they are pooled
again from the values of the frames, so that a clip has the same score to the last digit
whether it was scored as a whole or in segments.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec


class Pooled(msgspec.Struct, frozen=True, kw_only=True):
    """One feature over a clip."""

    min: float
    max: float
    mean: float
    harmonic_mean: float


def pooled(values: Sequence[float]) -> Pooled:
    """All that libvmaf says of the values of a clip, of which there is one at least."""
    return Pooled(
        min=min(values),
        max=max(values),
        mean=mean(values),
        harmonic_mean=harmonic_mean(values),
    )


def mean(values: Sequence[float]) -> float:
    """The sum, rounded once, through the number of them."""
    return math.fsum(values) / len(values)


def harmonic_mean(values: Sequence[float]) -> float:
    """The harmonic mean as libvmaf has it: of one more than each, so that 0 is fine."""
    return len(values) / math.fsum(1.0 / (value + 1.0) for value in values) - 1.0


def joined(means: Iterable[tuple[float, int]]) -> float:
    """The mean over all, from the mean of each part and how many it has."""
    parts = list(means)
    return math.fsum(mean * count for mean, count in parts) / sum(
        count for _, count in parts
    )
