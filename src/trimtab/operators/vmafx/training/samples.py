"""Samples: the features of a frame and its score, one JSON object a line.

``{"job_id": …, "features": […], "true_score": …}`` comes in; each line is answered by
one line, in order: ``{"ok": true, "job_id": …, "step": …, "trained": …}``, with
``loss`` if steps were made and ``checkpoint`` if a model was kept, or ``{"ok": false,
"error": …}``. ``"retryable": true`` says that the sample was good and was not kept:
send it again. One that was acknowledged is never lost.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from trimtab.operators.vmafx.training.problems import BadSample

LONGEST_LINE: Final = 64 * 1024
MOST_LINES: Final = 1024
"""Of one request: more have to come in several."""
_LONGEST_NAME: Final = 253
_LARGEST_VALUE: Final = 1e6
_HIGHEST: Final = 100.0


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """What libvmaf found of one frame."""

    job_id: str
    features: tuple[float, ...]
    true_score: float


class Ack(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a sample."""

    ok: bool
    job_id: str = ""
    step: int | None = None
    trained: bool | None = None
    loss: float | None = None
    checkpoint: str = ""
    error: str = ""
    retryable: bool = False
    # The sample is kept, but a step failed: the model went back to the last good one.
    training_error: str = ""


def read(line: bytes, *, width: int) -> Sample:
    """The sample of a line.

    Errors: :class:`BadSample` for what nothing can be learned from: not JSON, another
    number of features, values that are no numbers or absurd, a score outside 0 to 100.
    """
    try:
        found = msgspec.json.decode(line, type=Sample)
    except msgspec.DecodeError as error:
        raise BadSample(f"The line is no sample: {error}.") from None
    except RecursionError:
        raise BadSample("The line is no sample: it is nested too deeply.") from None
    if not 1 <= len(found.job_id) <= _LONGEST_NAME:
        raise BadSample(f"A job_id has 1 to {_LONGEST_NAME} characters.")
    if len(found.features) != width:
        raise BadSample(
            f"A sample has {width} features here, and not {len(found.features)}."
        )
    for place, value in enumerate(found.features):
        if not abs(value) <= _LARGEST_VALUE:  # also what is no number
            raise BadSample(f"Feature {place} is {value:g}: at most 1e6 either way.")
    if not 0.0 <= found.true_score <= _HIGHEST or math.isnan(found.true_score):
        raise BadSample(f"A score is from 0 to 100, and not {found.true_score:g}.")
    return found


def refused(error: str, *, job_id: str = "", retryable: bool = False) -> Ack:
    """The answer to what was not kept."""
    return Ack(ok=False, job_id=job_id, error=error, retryable=retryable)


def lines(acks: list[Ack]) -> bytes:
    """The answers as they are sent."""
    return b"".join(msgspec.json.encode(each) + b"\n" for each in acks)
