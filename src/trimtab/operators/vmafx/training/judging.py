"""Judging: whether a model may be kept, by how well it tells scores it never saw.

A candidate is compared with the last good model and with the base, on samples
that none of them learned from:

=========  ====================================================================
failed     it is much worse than the last good model (10 % in RMSE, or 0.02 in
           PLCC or SROCC), or what is learned right now is far worse (50 %, 0.1),
           or a third of the samples since then have implausible scores
waiting    it is a little worse than the last good model (2 %, 0.005), or no
           better than the base: it has to learn more
passed     neither: it is kept
=========  ====================================================================
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.operators.vmafx.training.network import Array

Outcome: TypeAlias = Literal["passed", "waiting", "failed"]


class Slack(NamedTuple):
    """What may be chance: how many times the RMSE, how much less correlation."""

    error: float
    correlation: float


LITTLE: Final = Slack(1.02, 0.005)
MUCH: Final = Slack(1.1, 0.02)
FAR: Final = Slack(1.5, 0.1)
DOUBTFUL: Final = 1 / 3


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """How well scores were told; a correlation that there is none of is zero."""

    plcc: float
    srocc: float
    rmse: float

    def __str__(self) -> str:
        return f"PLCC {self.plcc:.4f}, SROCC {self.srocc:.4f}, RMSE {self.rmse:.4f}"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a candidate was found to be, and against what."""

    outcome: Outcome
    candidate: Figures
    good: Figures
    base: Figures
    reason: str = ""
    # On how many samples.
    held_out: int = 0


def figures(told: Array, truth: Array) -> Figures:
    """How well some scores were told."""
    error = told - truth
    return Figures(
        plcc=_correlation(told, truth),
        srocc=_correlation(_ranks(told), _ranks(truth)),
        rmse=float(np.sqrt(np.mean(error * error))),
    )


def judge(
    *,
    candidate: Figures,
    live: Figures,
    good: Figures,
    base: Figures,
    held_out: int,
    doubtful: float = 0.0,
) -> Verdict:
    """Whether a candidate may be kept.

    ``live`` is what is learned right now, and ``doubtful`` the share of the samples
    since the last good model that it finds implausible.
    """
    outcome: Outcome = "passed"
    reason = ""
    if why := _worse(candidate, good, MUCH):
        outcome, reason = "failed", f"It is worse than the last good model: {why}."
    elif why := _worse(live, good, FAR):
        outcome, reason = "failed", f"What is learned now spoils the model: {why}."
    elif doubtful > DOUBTFUL:
        why = f"{doubtful:.0%} of their scores are implausible"
        outcome, reason = "failed", f"The samples since then do not fit: {why}."
    elif why := _worse(candidate, good, LITTLE):
        outcome, reason = "waiting", f"It is no match for the last good model: {why}."
    elif not candidate.rmse < base.rmse or (why := _worse(candidate, base, LITTLE)):
        why = why or f"RMSE {candidate.rmse:.4f} where the base has {base.rmse:.4f}"
        outcome, reason = "waiting", f"It is no better than the base yet: {why}."
    return Verdict(
        outcome=outcome,
        candidate=candidate,
        good=good,
        base=base,
        reason=reason,
        held_out=held_out,
    )


def _worse(found: Figures, than: Figures, slack: Slack) -> str:
    """What is worse, beyond what may be chance; empty if nothing is."""
    # Asked so that what is no number counts as worse.
    if not found.rmse <= than.rmse * slack.error:
        return f"RMSE {found.rmse:.4f} after {than.rmse:.4f}"
    if not found.plcc >= than.plcc - slack.correlation:
        return f"PLCC {found.plcc:.4f} after {than.plcc:.4f}"
    if not found.srocc >= than.srocc - slack.correlation:
        return f"SROCC {found.srocc:.4f} after {than.srocc:.4f}"
    return ""


def _correlation(one: Array, other: Array) -> float:
    first, second = one - one.mean(), other - other.mean()
    size = float(np.sqrt((first @ first) * (second @ second)))
    # Below this, what varies is the rounding and not the value.
    if not size > 1e-9 * len(one):
        return 0.0
    return float(np.clip((first @ second) / size, -1.0, 1.0))


def _ranks(values: Array) -> Array:
    """The place of each value in their order; equal ones share the mean of theirs."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    places: NDArray[np.float64] = last - (counts - 1) / 2.0
    shared: NDArray[np.float64] = places[which]
    return shared
