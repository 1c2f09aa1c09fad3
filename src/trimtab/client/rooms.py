"""Rooms: memory for long answers, taken from the system and given back to it whole.

A list comes in pages of megabytes. As ordinary objects they would leave holes that the
C library keeps: once it has given such a block back, it takes the next ones from its
heap, and holds on to twice as much of that as the longest of them had.
"""

from __future__ import annotations

import mmap
import sys

SIZE = 4 << 20
"""A new room. Only what was written to is real memory."""


class Room:
    """Bytes that are appended, read as one piece, and then make place for others."""

    __slots__ = ("_length", "_memory", "_view")

    def __init__(self) -> None:
        self._memory = _memory(SIZE)
        self._length = 0
        self._view: memoryview | None = None

    def __len__(self) -> int:
        return self._length

    def clear(self) -> None:
        self._length = 0

    def add(self, data: bytes) -> None:
        end = self._length + len(data)
        if end > len(self._memory):
            larger = _memory(max(end, 2 * len(self._memory)))
            larger[: self._length] = self._memory[: self._length]
            self._memory = larger
        self._memory[self._length : end] = data
        self._length = end

    def view(self) -> memoryview:
        """All that was added; call :meth:`leave` before anything else is."""
        self._view = memoryview(self._memory)[: self._length]
        return self._view

    def leave(self) -> bool:
        """Nobody reads it any more; False if something still points into it.

        A room that is not left must not be written to: whoever points into it (a
        ``msgspec.Raw``) keeps it as it is.
        """
        try:
            if self._view is not None:
                self._view.release()
        except BufferError:
            return False
        self._view = None
        return True


def _memory(size: int) -> mmap.mmap:
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    # Else it would be memory to share with other processes.
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
