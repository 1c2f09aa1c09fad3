"""A score: what libvmaf found, pooled over the clip and for each frame."""

from __future__ import annotations

import math
import mmap
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from trimtab.operators.vmafx.problems import BadInput, ToolFailed

# Names of libvmaf that people know by shorter ones.
_SHORTER = {
    "psnr_y": "psnr",
    "adm2": "adm",
    "motion2": "motion",
}
# What a motion is before its neighbours have been looked at: nobody asks for it.
_UNUSED = frozenset({"integer_motion", "float_motion"})
# "integer_adm2_egl_1": how it is computed, what it is, with which limit of gain.
_NAME = re.compile(r"^(?:integer_|float_)?(?P<name>.+?)(?:_egl_\d+)?$")
_WRONG = re.compile(rb'"(\w+)":\s*-?(nan|inf)')


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """How alike two clips look, from 0 (not at all) to 100."""

    vmaf: float
    # The means of what it was made from, and of psnr and ssim, by their names.
    features: Mapping[str, float]
    # The score of each frame, in order.
    frames: tuple[float, ...]
    model: str


class _Metrics(msgspec.Struct, frozen=True):
    vmaf: float


class _Frame(msgspec.Struct, frozen=True):
    metrics: _Metrics


class _Pooled(msgspec.Struct, frozen=True):
    mean: float


class _Log(msgspec.Struct, frozen=True):
    frames: list[_Frame]
    pooled_metrics: dict[str, _Pooled]


def read(log: Path, *, model: str, pair: str) -> Score:
    """The score that a log of libvmaf has.

    Errors: :class:`BadInput` for a value that is no number, which names it and the
    pair of clips; :class:`ToolFailed` for a log that is missing or says no score.
    """
    try:
        found = _decoded(log, pair=pair)
        vmaf = found.pooled_metrics.pop("vmaf").mean
    except (OSError, ValueError, KeyError) as error:
        raise ToolFailed(f"ffmpeg ended well but told no score of {pair}.") from error
    features = dict(
        sorted(
            (_known(name), each.mean)
            for name, each in found.pooled_metrics.items()
            if name not in _UNUSED
        )
    )
    for name, value in (("vmaf", vmaf), *features.items()):
        if not math.isfinite(value):
            raise _not_a_number(name, pair=pair)
    frames = tuple(frame.metrics.vmaf for frame in found.frames)
    return Score(vmaf=vmaf, features=features, frames=frames, model=model)


def _decoded(log: Path, *, pair: str) -> _Log:
    # A film's log is 100 MB: it is read where it lies.
    with log.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as at:
        try:
            return msgspec.json.decode(at, type=_Log)
        except msgspec.DecodeError:
            if wrong := _WRONG.search(at):
                name = wrong[1].decode()
                raise _not_a_number(_known(name), pair=pair) from None
            raise


def _not_a_number(name: str, *, pair: str) -> BadInput:
    return BadInput(f"The {name} of {pair} is not a number: there is no score.")


def _known(name: str) -> str:
    found = _NAME.match(name)
    plain = found["name"] if found else name
    return _SHORTER.get(plain, plain)
