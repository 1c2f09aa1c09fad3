"""Measuring: one run of ffmpeg over a pair of clips, and what is wrong if it fails."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from trimtab.operators.vmafx import commands, segments
from trimtab.operators.vmafx.problems import BadInput, ScoringError, ToolFailed
from trimtab.operators.vmafx.running import run
from trimtab.operators.vmafx.segments import Cut, Index
from trimtab.operators.vmafx.sources import Source
from trimtab.operators.vmafx.telling import Told
from trimtab.operators.vmafx.tools import Ffmpeg

if TYPE_CHECKING:
    from trimtab.operators.vmafx.relay import Relay

MODEL = "vmaf_v0.6.1"


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


class Measurement:
    """Runs over one pair, and what is made of how each ended."""

    def __init__(
        self,
        pair: Pair,
        *,
        ffmpeg: Ffmpeg,
        model: str,
        threads: int,
        relay: Relay | None,
    ) -> None:
        self.pair = pair
        self.model = model
        self._ffmpeg = ffmpeg
        self._threads = threads
        self._relay = relay

    @contextlib.asynccontextmanager
    async def ran(
        self,
        told: Told,
        *,
        frame: Callable[[int], None],
        cuts: tuple[Cut, Cut] | None = None,
    ) -> AsyncIterator[Path]:
        """One run, of all frames or some; where libvmaf's log is, if it measured any.

        Errors: :class:`ScoringError` says of the input that is wrong what it is.
        """
        command = commands.measure(
            *map(self._where, self.pair.clips),
            ffmpeg=self._ffmpeg,
            model=self.model,
            threads=self._threads,
            cuts=cuts,
        )
        with tempfile.TemporaryDirectory(prefix="trimtab-vmafx-") as name:
            folder = Path(name)
            code = await run(command, folder=folder, told=told, frame=frame)
            self._check_ways()
            if code != 0:
                raise await self._reason(code, told)
            yield folder / commands.LOG

    async def index(self, clip: Source) -> Index:
        """The packets of one clip, none of which is decoded."""
        told = Told()
        command = commands.listing(self._where(clip), ffmpeg=self._ffmpeg)
        with tempfile.TemporaryDirectory(prefix="trimtab-vmafx-") as name:
            code = await run(command, folder=Path(name), told=told)
            self._check_ways()
            if code != 0:
                raise await self._reason(code, told)
            with (Path(name) / commands.INDEX).open() as lines:
                found = segments.index(lines)
        if not found.times:
            raise self._unread(clip) or BadInput(f"{clip.name} has no frames in it.")
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
        for clip in self.pair.clips:
            if problem := self._relay.problem(clip):
                raise problem

    def check(self, told: Told) -> None:
        """That all was decoded: ffmpeg itself ends well without."""
        if not {0, 1} <= told.decoded.keys():
            raise ToolFailed(
                "This ffmpeg does not say how many frames it decoded, so its scores "
                "cannot be trusted: use 6.0 or newer."
            )
        counts = (told.decoded[0], told.decoded[1])
        if told.early:
            shorter = self.pair.clips[counts.index(min(counts))]
            raise BadInput(
                f"{shorter.name} was cut off: it ends early, after {min(counts)} "
                "frames."
            )
        for number, clip in enumerate(self.pair.clips):
            if told.broken[number]:
                raise BadInput(
                    f"{clip.name} is broken: {told.broken[number]} of its frames could "
                    "not be decoded."
                )

    def check_frames(self, scored: int, expected: int) -> None:
        """That libvmaf looked at every one."""
        if scored != expected:
            raise ToolFailed(
                f"libvmaf scored {scored} of {expected} frames of {self.pair}."
            )

    def unlike_lengths(self, one: int, other: int) -> BadInput:
        """What is told of clips that have not as many frames."""
        return self._unlike("has", f"{one} frames", f"{other} frames")

    async def _reason(self, code: int, told: Told) -> ScoringError:
        """Why the run failed, said of the input that is wrong."""
        pair = self.pair
        if code < 0:
            return ToolFailed(
                f"ffmpeg was killed by signal {-code} while scoring {pair}."
            )
        if told.says("could not load libvmaf model"):
            return BadInput(
                f"There is no model {self.model} in this ffmpeg: {MODEL} is one that "
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
            f"{self.pair.reference.name} {verb} {one} and {self.pair.distorted.name} "
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
        if problem := self._unread(clip):
            return problem
        why = next((line for line in reversed(told.last) if "Error open" in line), "")
        detail = why.rpartition(": ")[2] or next(reversed(told.last), "no reason given")
        return BadInput(
            f"{clip.name} is not a video that can be read: {detail.rstrip('.!')}."
        )

    def _unread(self, clip: Source) -> BadInput | None:
        """What is wrong if its server sends it only from its beginning to its end."""
        if self._relay is None or not self._relay.is_whole_only(clip):
            return None
        return BadInput(
            f"{clip.name} cannot be read: its server sends no parts of it, and its "
            "index is at its end; serve it with ranges, or write it with ffmpeg "
            "-movflags +faststart."
        )
