"""Scoring: libvmaf looks at every pair of frames of two clips, and says a score."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import TYPE_CHECKING

from trimtab.operators.vmafx import cutting, scores
from trimtab.operators.vmafx.measuring import MODEL as MODEL
from trimtab.operators.vmafx.measuring import Measurement, Pair
from trimtab.operators.vmafx.problems import BadInput, ScoringError, ToolFailed
from trimtab.operators.vmafx.scores import Score
from trimtab.operators.vmafx.segments import Segment
from trimtab.operators.vmafx.sources import source
from trimtab.operators.vmafx.telling import Told
from trimtab.operators.vmafx.tools import Ffmpeg

if TYPE_CHECKING:
    from trimtab.operators.vmafx.relay import Relay, Way

_MODEL_NAME = re.compile(r"^[A-Za-z0-9_.-]+$")

Progress = Callable[[int, int | None], None]


async def score(
    reference: str,
    distorted: str,
    *,
    ffmpeg: Ffmpeg,
    model: str = MODEL,
    threads: int = 0,
    way: Way | None = None,
    segment: Segment | None = None,
    progress: Progress = lambda done, expected: None,
) -> Score:
    """Score one clip against another, or one segment of both.

    Flow: ``progress`` hears the number of frames done, and how many there should be
    when the reference says so. ``threads`` of 0 means one for each core that may be
    used. A clip on the network is read by ``way``.

    Guarantees: every frame of both clips was decoded and compared; the same clips give
    the same score. Those of a segment are, value for value, as in a score of the whole.
    Cancelled, the process is gone before this returns.

    Errors: :class:`BadInput` names the input that cannot be scored: missing, empty, no
    video, of another size or length, broken, or a model nobody has.
    :class:`ToolFailed` is for everything that another attempt may cure.
    """
    async with _measurement(
        reference, distorted, ffmpeg=ffmpeg, model=model, threads=threads, way=way
    ) as measured:
        if segment is not None:
            known = await cutting.indexes(measured)
            return await cutting.part(measured, segment, known, progress)
        return await _whole(measured, progress)


async def _whole(measured: Measurement, progress: Progress) -> Score:
    told = Told()

    def hear(number: int) -> None:
        progress(number, told.expected)

    async with measured.ran(told, frame=hear) as log:
        pair = str(measured.pair)
        found = scores.read(log, model=measured.model, pair=pair)
    measured.check(told)
    if told.decoded[0] != told.decoded[1]:
        raise measured.unlike_lengths(told.decoded[0], told.decoded[1])
    measured.check_frames(len(found.frames), told.decoded[0])
    return found


async def score_split(
    reference: str,
    distorted: str,
    *,
    parts: int,
    ffmpeg: Ffmpeg,
    slots: int = 0,
    model: str = MODEL,
    way: Way | None = None,
    progress: Progress = lambda done, expected: None,
) -> Score:
    """Score one clip against another in parts, ``slots`` at once, each by one thread.

    Guarantees: the score is that of :func:`score`, to the last digit.
    """
    free = asyncio.Semaphore(slots or _cores())
    found: dict[int, Score] = {}
    done: dict[int, int] = {}
    async with _measurement(
        reference, distorted, ffmpeg=ffmpeg, model=model, threads=1, way=way
    ) as measured:
        known = await cutting.indexes(measured)
        total = len(known[0].times)
        count = max(1, min(parts, total))

        async def scored(segment: Segment) -> None:
            def hear(number: int, expected: int | None) -> None:
                done[segment.index] = number
                progress(min(total, sum(done.values())), total)

            async with free:
                found[segment.index] = await cutting.part(
                    measured, segment, known, hear
                )

        await _all(scored(Segment(index, count)) for index in range(count))
    return scores.joined(
        [found[index] for index in range(count)], pair=str(measured.pair)
    )


async def _all(works: Iterable[Coroutine[None, None, None]]) -> None:
    """Do them all at once; what first fails ends the others, and is told alone."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except ExceptionGroup as failed:
        for error in failed.exceptions:
            if isinstance(error, ScoringError):
                raise error from None
        raise


@contextlib.asynccontextmanager
async def _measurement(
    reference: str,
    distorted: str,
    *,
    ffmpeg: Ffmpeg,
    model: str,
    threads: int,
    way: Way | None,
) -> AsyncIterator[Measurement]:
    if not _MODEL_NAME.match(model):
        raise BadInput(f"{model!r} is not the name of a model: {MODEL} is one.")
    pair = Pair(source(reference), source(distorted))
    async with _reachable(pair, way) as relay:
        yield Measurement(
            pair, ffmpeg=ffmpeg, model=model, threads=threads or _cores(), relay=relay
        )


@contextlib.asynccontextmanager
async def _reachable(pair: Pair, way: Way | None) -> AsyncIterator[Relay | None]:
    remote = [clip for clip in pair.clips if clip.path is None]
    if not remote:
        yield None
        return
    if way is None:
        raise ToolFailed(
            f"{remote[0].name} cannot be read: there is no way to it here."
        )
    for clip in remote:
        way.address(clip)  # who cannot sign says so before anything runs
    from trimtab.operators.vmafx.relay import Relay

    async with Relay(remote, way=way) as relay:
        yield relay


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
