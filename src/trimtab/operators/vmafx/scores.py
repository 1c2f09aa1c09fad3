"""A score: what libvmaf found, pooled over the clip and for each frame."""

from __future__ import annotations

import math
import mmap
import re
from array import array
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from trimtab.operators.vmafx import segments
from trimtab.operators.vmafx.pooling import mean
from trimtab.operators.vmafx.problems import BadInput, ToolFailed
from trimtab.operators.vmafx.segments import Part

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
    """How alike two clips look, from 0 (not at all) to 100.

    ``series`` has the value of every frame for each name of ``features``, in order and
    as long as ``frames``: eight bytes for each value, in an ``array``. It is empty
    where nobody measured the frames.
    """

    vmaf: float
    # The means of what it was made from, and of psnr and ssim, by their names.
    features: Mapping[str, float]
    # The score of each frame, in order.
    frames: tuple[float, ...]
    model: str
    series: Mapping[str, Sequence[float]] = {}
    # Which frames these are, if not all of a clip.
    part: Part | None = None
    # Whether it was known from before, and nothing was measured.
    reused: bool = False


class _Frame(msgspec.Struct, frozen=True):
    metrics: dict[str, float]


class _Log(msgspec.Struct, frozen=True):
    # Each frame by itself: all of a film at once would be half a gigabyte.
    frames: list[msgspec.Raw]


def read(log: Path, *, model: str, pair: str, own: slice = slice(None)) -> Score:
    """The score that a log of libvmaf has, of all its frames or some.

    Errors: :class:`BadInput` for a value that is no number, which names it and the
    pair of clips; :class:`ToolFailed` for a log that is missing or says no score.
    """
    try:
        series = _decoded(log, pair=pair, own=own)
        frames = series.pop("vmaf")
    except (OSError, ValueError, KeyError) as error:
        raise ToolFailed(f"ffmpeg ended well but told no score of {pair}.") from error
    for name, values in (("vmaf", frames), *series.items()):
        if not all(map(math.isfinite, values)):
            raise _not_a_number(name, pair=pair)
    return Score(
        vmaf=mean(frames),
        features={name: mean(values) for name, values in series.items()},
        frames=tuple(frames),
        model=model,
        series=series,
    )


def nothing(*, model: str, part: Part) -> Score:
    """The score of a segment that has no frames."""
    return Score(vmaf=0.0, features={}, frames=(), model=model, part=part)


def joined(parts: Sequence[Score], *, pair: str) -> Score:
    """The score of a whole clip, from those of its segments in order.

    Guarantees: it is the one that a run over the whole gives, to the last digit.

    Errors: :class:`ToolFailed` if they are not all of one clip.
    """
    why = segments.problem([part.part for part in parts if part.part is not None])
    if why:
        raise ToolFailed(f"{pair} has no score: {why}.")
    frames = tuple(chain.from_iterable(part.frames for part in parts))
    filled = [part for part in parts if part.frames]
    series: dict[str, Sequence[float]] = {
        name: array("d", chain.from_iterable(part.series[name] for part in filled))
        for name in filled[0].series
    }
    return Score(
        vmaf=mean(frames),
        features={name: mean(values) for name, values in series.items()},
        frames=frames,
        model=filled[0].model,
        series=series,
    )


def _decoded(log: Path, *, pair: str, own: slice) -> dict[str, array[float]]:
    # A film's log is 100 MB: it is read where it lies.
    with log.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as at:
        try:
            return _columns(msgspec.json.decode(at, type=_Log).frames[own])
        except msgspec.DecodeError:
            if wrong := _WRONG.search(at):
                name = wrong[1].decode()
                raise _not_a_number(_known(name), pair=pair) from None
            raise


def _columns(frames: Sequence[msgspec.Raw]) -> dict[str, array[float]]:
    """The values of each feature. Errors: ``ValueError`` where a frame lacks one."""
    decode = msgspec.json.Decoder(_Frame).decode
    first = decode(frames[0]).metrics if frames else {}
    names = [name for name in first if name not in _UNUSED]
    rows = (decode(frame).metrics for frame in frames)
    values = [array("d") for _ in names]
    for row in rows:
        for name, column in zip(names, values, strict=True):
            column.append(row[name])
    found = dict(zip(map(_known, names), values, strict=True))
    return dict(sorted(found.items()))


def _not_a_number(name: str, *, pair: str) -> BadInput:
    return BadInput(f"The {name} of {pair} is not a number: there is no score.")


def _known(name: str) -> str:
    found = _NAME.match(name)
    plain = found["name"] if found else name
    return _SHORTER.get(plain, plain)
