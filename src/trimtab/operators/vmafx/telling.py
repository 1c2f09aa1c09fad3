"""What ffmpeg tells about a run while it runs: sizes, lengths, counts of frames.

It has no format for machines in which it says this, so its log is read, line by line.
Nothing here keeps more than a few numbers and the last lines.
"""

from __future__ import annotations

import re
from array import array
from collections import deque

_INPUT = re.compile(r"^Input #(\d+), ")
_LENGTH = re.compile(r"^\s+Duration: (\d+):(\d\d):(\d\d(?:\.\d+)?)")
_VIDEO = re.compile(r"^\s+Stream #(\d+):\d+.*: Video: .*, (\d+)x(\d+)")
_RATE = re.compile(r", ([\d.]+) fps")
_COUNT = re.compile(
    r"Input stream #(\d+):\d+ \(video\): .*?(\d+) frames decoded; (?:(\d+) decode err)?"
)
# Which part of ffmpeg speaks: "[libvmaf @ 0x55…] ".
_SPEAKER = re.compile(r"^(\[[^\]]+ @ 0x[0-9a-f]+\] )+")
# What the readers of containers and streams say of one that was cut off.
_EARLY = ("ended prematurely", "ends prematurely", "partial file")
# What the filter says that tells each frame which it was given.
_SHOWN = re.compile(r"^\[showinfo@(\w+) @ 0x[0-9a-f]+\] (?:n: *\d+ pts: *(-?\d+))?")
_KEPT = 40


class Told:
    """The facts of one run; ``line`` is given each line of its log."""

    def __init__(self) -> None:
        self.lengths: dict[int, float] = {}
        self.rates: dict[int, float] = {}
        self.sizes: dict[int, tuple[int, int]] = {}
        # How many frames of each input were decoded, and how many could not be.
        self.decoded: dict[int, int] = {}
        self.broken: dict[int, int] = {}
        # Whether one of the inputs was cut off.
        self.early = False
        # The times of the frames that were measured, where that was asked.
        self.shown: dict[str, array[int]] = {}
        self.last: deque[str] = deque(maxlen=_KEPT)
        self._input = 0

    def line(self, text: str) -> None:
        """Take what it says."""
        if found := _SHOWN.match(text):
            if found[2]:
                self.shown.setdefault(found[1], array("q")).append(int(found[2]))
            return
        if found := _COUNT.search(text):
            self.decoded[int(found[1])] = int(found[2])
            self.broken[int(found[1])] = int(found[3] or 0)
        elif found := _INPUT.match(text):
            self._input = int(found[1])
        elif found := _LENGTH.match(text):
            hours, minutes, seconds = int(found[1]), int(found[2]), float(found[3])
            self.lengths[self._input] = hours * 3600 + minutes * 60 + seconds
        elif found := _VIDEO.match(text):
            self._stream(int(found[1]), (int(found[2]), int(found[3])), text)
        elif any(words in text for words in _EARLY):
            self.early = True
        self.last.append(_SPEAKER.sub("", text))

    def _stream(self, number: int, size: tuple[int, int], text: str) -> None:
        if number in self.sizes:
            return  # the first video of an input is the one that counts
        self.sizes[number] = size
        if rate := _RATE.search(text):
            self.rates[number] = float(rate[1])

    @property
    def expected(self) -> int | None:
        """How many frames the first input should have, if it says so."""
        if 0 not in self.lengths or 0 not in self.rates:
            return None
        return round(self.lengths[0] * self.rates[0]) or None

    def says(self, words: str) -> bool:
        """Whether one of the last lines has these words."""
        return any(words in line for line in self.last)
