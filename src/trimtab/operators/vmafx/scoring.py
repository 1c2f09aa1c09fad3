"""Scoring: libvmaf looks at every pair of frames of two clips, and says a score."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from trimtab.operators.vmafx import commands, scores
from trimtab.operators.vmafx.problems import BadInput, ScoringError, ToolFailed
from trimtab.operators.vmafx.running import run
from trimtab.operators.vmafx.scores import Score
from trimtab.operators.vmafx.sources import Source, source
from trimtab.operators.vmafx.telling import Told
from trimtab.operators.vmafx.tools import Ffmpeg

if TYPE_CHECKING:
    from trimtab.operators.vmafx.relay import Relay, Way

MODEL = "vmaf_v0.6.1"

_MODEL_NAME = re.compile(r"^[A-Za-z0-9_.-]+$")

Progress = Callable[[int, int | None], None]


class Pair(msgspec.Struct, frozen=True):
    """What is compared with what."""

    reference: Source
    distorted: Source

    @property
    def clips(self) -> tuple[Source, Source]:
        """Both, in the order in which ffmpeg is given them."""
        return (self.reference, self.distorted)

    def __str__(self) -> str:
        return f"{self.distorted.name} against {self.reference.name}"


async def score(
    reference: str,
    distorted: str,
    *,
    ffmpeg: Ffmpeg,
    model: str = MODEL,
    threads: int = 0,
    way: Way | None = None,
    progress: Progress = lambda done, expected: None,
) -> Score:
    """Score one clip against another.

    Flow: ``progress`` hears the number of frames done, and how many there should be
    when the reference says so. ``threads`` of 0 means one for each core that may be
    used. A clip on the network is read by ``way``.

    Guarantees: every frame of both clips was decoded and compared; the same clips give
    the same score. Cancelled, the process is gone before this returns.

    Errors: :class:`BadInput` names the input that cannot be scored: missing, empty, no
    video, of another size or length, broken, or a model nobody has.
    :class:`ToolFailed` is for everything that another attempt may cure.
    """
    if not _MODEL_NAME.match(model):
        raise BadInput(f"{model!r} is not the name of a model: {MODEL} is one.")
    pair = Pair(source(reference), source(distorted))
    async with _reachable(pair, way) as relay:
        measured = _Measurement(pair, ffmpeg=ffmpeg, model=model, relay=relay)
        return await measured.result(threads=threads or _cores(), progress=progress)


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


class _Measurement:
    """One run over one pair, and what is made of how it ended."""

    def __init__(
        self, pair: Pair, *, ffmpeg: Ffmpeg, model: str, relay: Relay | None
    ) -> None:
        self._pair = pair
        self._ffmpeg = ffmpeg
        self._model = model
        self._relay = relay
        self._told = Told()

    async def result(self, *, threads: int, progress: Progress) -> Score:
        """Run it; the score, or why there is none."""
        told, pair = self._told, self._pair
        command = commands.measure(
            *map(self._where, pair.clips),
            ffmpeg=self._ffmpeg,
            model=self._model,
            threads=threads,
        )
        with tempfile.TemporaryDirectory(prefix="trimtab-vmafx-") as name:
            folder = Path(name)
            code = await run(
                command,
                folder=folder,
                told=told,
                frame=lambda number: progress(number, told.expected),
            )
            self._check_ways()
            if code != 0:
                raise await self._reason(code)
            log = folder / commands.LOG
            found = scores.read(log, model=self._model, pair=str(pair))
        self._check(found)
        return found

    def _where(self, clip: Source) -> str:
        if clip.path is not None:
            return clip.opened
        assert self._relay is not None
        return self._relay.address(clip)

    def _check_ways(self) -> None:
        """That nothing went wrong on the way here: ffmpeg says that unclearly."""
        if self._relay is None:
            return
        for clip in self._pair.clips:
            if problem := self._relay.problem(clip):
                raise problem

    def _check(self, found: Score) -> None:
        """That the score is of all frames: ffmpeg itself ends well without them."""
        told = self._told
        if not {0, 1} <= told.decoded.keys():
            raise ToolFailed(
                "This ffmpeg does not say how many frames it decoded, so its scores "
                "cannot be trusted: use 6.0 or newer."
            )
        counts = (told.decoded[0], told.decoded[1])
        if told.early:
            shorter = self._pair.clips[counts.index(min(counts))]
            raise BadInput(
                f"{shorter.name} was cut off: it ends early, after {min(counts)} "
                "frames."
            )
        for number, clip in enumerate(self._pair.clips):
            if told.broken[number]:
                raise BadInput(
                    f"{clip.name} is broken: {told.broken[number]} of its frames could "
                    "not be decoded."
                )
        if counts[0] != counts[1]:
            raise self._unlike("has", *(f"{count} frames" for count in counts))
        if len(found.frames) != counts[0]:
            raise ToolFailed(
                f"libvmaf scored {len(found.frames)} of {counts[0]} frames of "
                f"{self._pair}."
            )

    async def _reason(self, code: int) -> ScoringError:
        """Why the run failed, said of the input that is wrong."""
        told, pair = self._told, self._pair
        if code < 0:
            return ToolFailed(
                f"ffmpeg was killed by signal {-code} while scoring {pair}."
            )
        if told.says("could not load libvmaf model"):
            return BadInput(
                f"There is no model {self._model} in this ffmpeg: {MODEL} is one that "
                "there is."
            )
        for clip in pair.clips:
            if problem := await self._problem(clip):
                return problem
        sizes = [f"{width}x{height}" for width, height in told.sizes.values()]
        if len(sizes) == 2 and sizes[0] != sizes[1]:
            return self._unlike("is", *sizes)
        last = next(reversed(told.last), "it said nothing")
        return ToolFailed(f"ffmpeg failed with code {code} scoring {pair}: {last}.")

    def _unlike(self, verb: str, one: str, other: str) -> BadInput:
        what = "length" if verb == "has" else "size"
        return BadInput(
            f"{self._pair.reference.name} {verb} {one} and {self._pair.distorted.name} "
            f"{verb} {other}: only clips of one {what} can be compared."
        )

    async def _problem(self, clip: Source) -> ScoringError | None:
        """What is wrong with one clip, seen by decoding its first frame alone."""
        told = Told()
        with tempfile.TemporaryDirectory(prefix="trimtab-vmafx-") as name:
            command = commands.look(self._where(clip), ffmpeg=self._ffmpeg)
            code = await run(command, folder=Path(name), told=told)
        if code == 0:
            return None
        if not told.sizes and told.says("matches no streams"):
            return BadInput(f"{clip.name} has no video in it.")
        if self._relay is not None and self._relay.is_whole_only(clip):
            return BadInput(
                f"{clip.name} cannot be read: its server sends no parts of it, and its "
                "index is at its end; serve it with ranges, or write it with ffmpeg "
                "-movflags +faststart."
            )
        why = next((line for line in reversed(told.last) if "Error open" in line), "")
        detail = why.rpartition(": ")[2] or next(reversed(told.last), "no reason given")
        return BadInput(
            f"{clip.name} is not a video that can be read: {detail.rstrip('.!')}."
        )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
