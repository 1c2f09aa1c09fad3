"""Scoring a segment: its frames, each with the value it has in a score of the whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from trimtab.operators.vmafx import scores, segments
from trimtab.operators.vmafx.commands import DISTORTED, REFERENCE
from trimtab.operators.vmafx.measuring import Measurement
from trimtab.operators.vmafx.problems import BadInput, ScoringError
from trimtab.operators.vmafx.scores import Score
from trimtab.operators.vmafx.segments import MARGIN, Index, Part, Segment
from trimtab.operators.vmafx.telling import Told

Indexes = tuple[Index, Index]


class _NotExact(Exception):
    """A run that began in the middle did not get the frames that were wanted."""


class _Watched(Told):
    """Breaks a run off whose first frames are not those that were wanted."""

    def __init__(self, wanted: dict[str, int]) -> None:
        super().__init__()
        self._wanted = wanted

    def line(self, text: str) -> None:
        super().line(text)
        for name in self._wanted.keys() & self.shown.keys():
            if self.shown[name][0] != self._wanted.pop(name):
                raise _NotExact


class _Stretch(msgspec.Struct, frozen=True):
    """The frames of a segment, and with those beside it."""

    own: range
    frames: range
    is_last: bool

    @classmethod
    def of(cls, segment: Segment, total: int) -> _Stretch:
        own = segment.frames(total)
        frames = range(max(0, own.start - MARGIN), own.stop + MARGIN)
        return cls(own, frames, segment.is_last)

    @property
    def skipped(self) -> int:
        return self.own.start - self.frames.start

    def counted(self, shown: int) -> int:
        """How many of so many frames that were measured are the segment's own."""
        most = shown - self.skipped
        return max(0, most if self.is_last else min(most, len(self.own)))


async def indexes(measured: Measurement) -> Indexes:
    """What packets there are in both clips."""
    one, other = measured.pair.clips
    return await measured.index(one), await measured.index(other)


async def part(
    measured: Measurement,
    segment: Segment,
    known: Indexes,
    progress: Callable[[int, int | None], None],
) -> Score:
    """The score of the frames of a segment.

    Guarantees: the frames are those that a run over both clips counts so. It begins at
    a key frame nearby where that is exact, which is checked by the time of each frame;
    else all are decoded, and those before are dropped. Frames that are not measured
    cost nothing of libvmaf.

    Errors: as :func:`trimtab.operators.vmafx.scoring.score`.
    """
    total = len(known[0].times)
    stretch = _Stretch.of(segment, total)
    if not stretch.own:
        empty = Part(first=stretch.own.start, count=0, total=total)
        return scores.nothing(model=measured.model, part=empty)

    def hear(number: int) -> None:
        progress(min(number, len(stretch.own)), len(stretch.own))

    try:
        return await _sought(measured, stretch, known, hear)
    except _NotExact:
        return await _dropped(measured, stretch, known, hear)


async def _sought(
    measured: Measurement,
    stretch: _Stretch,
    known: Indexes,
    hear: Callable[[int], None],
) -> Score:
    """From a key frame nearby, if that gave exactly the frames that were wanted."""
    if len(known[0].times) != len(known[1].times):
        raise _NotExact
    one, other = (index.sought(stretch.frames, stretch.is_last) for index in known)
    if one is None or other is None:
        raise _NotExact
    first = stretch.frames.start
    told = _Watched({name: index.times[first] for name, index in _named(known)})
    try:
        async with measured.ran(told, frame=hear, cuts=(one, other)) as log:
            if not _is_exact(told, stretch, known):
                raise _NotExact
            shown = len(told.shown[REFERENCE])
            return _of(measured, stretch, len(known[0].times), log=log, shown=shown)
    except ScoringError as error:
        raise _NotExact from error  # who decodes all of it says what is wrong
    except ExceptionGroup as group:
        if group.subgroup(_NotExact) is None:
            raise
        raise _NotExact from group


def _is_exact(told: Told, stretch: _Stretch, known: Indexes) -> bool:
    if told.early or any(told.broken.values()):
        return False
    wanted = slice(stretch.frames.start, stretch.frames.stop)
    return all(
        told.shown.get(name) == index.times[wanted] for name, index in _named(known)
    )


def _named(known: Indexes) -> tuple[tuple[str, Index], tuple[str, Index]]:
    return ((REFERENCE, known[0]), (DISTORTED, known[1]))


async def _dropped(
    measured: Measurement,
    stretch: _Stretch,
    known: Indexes,
    hear: Callable[[int], None],
) -> Score:
    """By decoding from the start, and dropping what comes before."""
    cut = segments.dropped(stretch.frames, stretch.is_last)
    told = Told()
    async with measured.ran(told, frame=hear, cuts=(cut, cut)) as log:
        measured.check(told)
        one, other = (len(told.shown.get(name, ())) for name in (REFERENCE, DISTORTED))
        if one != other:
            raise _unlike(measured, told, known, is_last=stretch.is_last)
        return _of(measured, stretch, len(known[0].times), log=log, shown=one)


def _unlike(
    measured: Measurement, told: Told, known: Indexes, *, is_last: bool
) -> BadInput:
    """Which of the clips is longer: of that, not all was decoded in the middle."""
    one, other = (told.decoded[number] for number in (0, 1))
    if not is_last and one < other:
        other = max(other, len(known[1].times))
    elif not is_last:
        one = max(one, len(known[0].times))
    return measured.unlike_lengths(one, other)


def _of(
    measured: Measurement, stretch: _Stretch, total: int, *, log: Path, shown: int
) -> Score:
    """The score of the own frames, of so many that were measured."""
    count = stretch.counted(shown)
    own = Part(first=stretch.own.start, count=count, total=total)
    if not count:
        return scores.nothing(model=measured.model, part=own)
    found = scores.read(
        log,
        model=measured.model,
        pair=str(measured.pair),
        own=slice(stretch.skipped, stretch.skipped + count),
    )
    measured.check_frames(len(found.frames), count)
    return msgspec.structs.replace(found, part=own)
