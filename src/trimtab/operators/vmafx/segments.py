"""Segments: which frames of a clip one run scores, and how ffmpeg gets to them.

A frame is known by its number, from 0. The index of a clip says how many there should
be and, where every packet has a time of its own, which time each frame has: then a run
may begin at a key frame nearby. Whether it then got the right frames is seen by their
times; without that, all frames are decoded and those before the segment are dropped.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise

import msgspec

MARGIN = 2
"""Frames beside a segment that are measured too, and not counted.

The motion of a frame is that since the frame before, or until the frame after, if that
is less: one on each side decides. The second is for versions that look further.
"""
MOST = 64
# The decoders of which it was measured that, one key frame after where they begin, all
# frames are those of a run from the start: open groups and gradual refreshes too.
_MEASURED = frozenset(
    {
        *("h264", "hevc", "vp9", "av1", "mpeg2video", "mpeg4"),
        *("ffv1", "rawvideo", "mjpeg", "prores"),
    }
)
_NONE = -(2**63)
_KEY, _CORRUPT, _DISCARD = 0x1, 0x2, 0x4


class Segment(msgspec.Struct, frozen=True):
    """One of several parts of a clip, of about one length."""

    index: int
    of: int

    def frames(self, total: int) -> range:
        """Its frames, of so many."""
        first, end = (total * each // self.of for each in (self.index, self.index + 1))
        return range(first, end)

    @property
    def is_last(self) -> bool:
        """Whether it goes on to wherever the clip ends."""
        return self.index == self.of - 1


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What a segment turned out to be."""

    first: int
    count: int
    # How many frames there should be in all, by the index of the reference.
    total: int


def problem(parts: Sequence[Part]) -> str:
    """Why parts, in order, are not all of one clip; empty if they are.

    A clip may have fewer frames than its index says: then the last parts are empty.
    """
    if len({part.total for part in parts}) > 1:
        return "its segments are of clips of different lengths"
    filled = [part for part in parts if part.count]
    if not filled or filled[0].first != 0:
        return "its first frames are in no segment"
    for one, next_one in pairwise(filled):
        if one.first + one.count != next_one.first:
            return f"frame {one.first + one.count} is not where its segments meet"
    return ""


class Cut(msgspec.Struct, frozen=True):
    """How ffmpeg gets from a clip to the frames of a segment."""

    filter: str
    # Where it begins to read, in microseconds; None is at the start.
    seek: int | None = None


class Index(msgspec.Struct, frozen=True):
    """The packets of a clip's video, as they are in its file."""

    codec: str
    base: Fraction
    # Of every frame, in the order in which they are shown.
    times: Sequence[int]
    # Of those at which a decoder can begin.
    keys: Sequence[int]
    # Whether every frame has a time that no other has, and all are shown.
    exact: bool

    def sought(self, frames: range, is_last: bool) -> Cut | None:
        """Begun at a key frame nearby; None where that is not exact, or no gain."""
        if not self.exact or self.codec not in _MEASURED:
            return None
        begin = bisect_right(self.keys, self.times[frames.start]) - 2
        if begin <= 0:
            return None
        last = self.times[min(frames.stop, len(self.times)) - 1]
        end = "" if is_last else f":end_pts={last + 1}"
        chosen = f"trim=start_pts={self.times[frames.start]}{end}"
        seek = math.ceil(self.keys[begin] * self.base * 1_000_000)
        return Cut(f"settb={self.base},{chosen}", seek)


def dropped(frames: range, is_last: bool) -> Cut:
    """All frames decoded from the start, and those before the segment thrown away."""
    end = "" if is_last else f":end_frame={frames.stop}"
    return Cut(f"trim=start_frame={frames.start}{end}")


def index(lines: Iterable[str]) -> Index:
    """What ffmpeg's ``framecrc`` says of the packets of one video.

    Errors: ``ValueError`` for lines that are none of it.
    """
    codec, base = "", Fraction(1)
    times, keys = array("q"), array("q")
    exact = True
    for line in lines:
        if line.startswith("#tb 0: "):
            base = Fraction(line[7:].strip())
        elif line.startswith("#codec_id 0: "):
            codec = line[13:].strip()
        elif not line.startswith("#"):
            time, flags = _packet(line)
            times.append(time)
            exact = exact and time != _NONE and not flags & (_CORRUPT | _DISCARD)
            if flags & _KEY:
                keys.append(time)
    ordered = array("q", sorted(times))
    unique = all(one < other for one, other in pairwise(ordered))
    return Index(codec, base, ordered, array("q", sorted(keys)), exact and unique)


def _packet(line: str) -> tuple[int, int]:
    """The time at which it is shown, and its flags: a key frame's are left out."""
    parts = line.split(",")
    flags = _KEY
    for part in parts[6:]:
        name, _, value = part.strip().partition("=")
        if name == "F":
            flags = int(value, 16)
    return int(parts[2]), flags
