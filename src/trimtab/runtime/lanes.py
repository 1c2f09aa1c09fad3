"""A lane: the ready entries of one priority, in turns over their namespaces.

Each namespace with ready entries has one line, first in first out, and the lines take
turns: with *k* namespaces ready, each is served within *k* takes, however many entries
the others have.

An entry that leaves a line other than at its head (it got a better priority, or its
object is gone) stays where it is, marked ``GONE``, and is passed over later. A lane
with more of those than live entries is swept, so that its memory is bounded by what is
alive in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from enum import IntEnum

import msgspec

from trimtab.runtime.reconcile import Cause, Key

# Below this many leftovers a sweep costs more than it frees.
SWEEP = 64


class Place(IntEnum):
    """Where an entry is."""

    READY = 0  # due, in the lane of its priority
    DELAYED = 1  # not yet due, in the heap
    WORKING = 2  # handed to a worker
    AGAIN = 3  # its key is with a worker; placed when that work ends
    GONE = 4  # superseded or forgotten; a leftover to pass over


class Entry(msgspec.Struct, order=True, gc=False):
    """One key in the queue, and after ``take`` the work to do.

    The order is that of the heap, by due time; ``sequence`` is unique there, so no
    field below it is ever compared.
    """

    due: float
    sequence: int
    key: Key
    priority: int
    causes: tuple[Cause, ...]
    place: Place
    failures: int = 0
    """Failures in a row before this work."""
    waited: float = 0.0
    """Seconds between the time it was due and the time it was taken."""


READY, GONE = Place.READY, Place.GONE


class Line(msgspec.Struct, gc=False):
    """First in, first out, in two lists: a deque takes 600 bytes for two entries.

    It is not a chain of entries either: the end of a long one would be a recursion.
    """

    front: list[Entry]
    """The next last."""
    back: list[Entry]
    """What comes after those, in order."""

    def pop(self) -> Entry:
        if not self.front:
            self.back.reverse()
            self.front, self.back = self.back, self.front
        return self.front.pop()

    def __len__(self) -> int:
        return len(self.front) + len(self.back)

    def __iter__(self) -> Iterator[Entry]:
        yield from reversed(self.front)
        yield from self.back


class Lane:
    """The ready entries of one priority; ``live`` counts them."""

    __slots__ = ("_gone", "_lines", "_turns", "live")

    def __init__(self) -> None:
        self.live = 0
        self._gone = 0  # leftovers in the lines
        # By namespace: the only entry, or a line of them that is not empty.
        self._lines: dict[str, Entry | Line] = {}
        self._turns: deque[str] = deque()  # the same namespaces, the next first

    def push(self, entry: Entry) -> None:
        """Put an entry at the end of its namespace's line."""
        entry.place = READY
        self.live += 1
        namespace = entry.key[0]
        line = self._lines.get(namespace)
        if line is None:
            self._lines[namespace] = entry
            self._turns.append(namespace)
        elif type(line) is Line:
            line.back.append(entry)
        else:
            assert type(line) is Entry
            self._lines[namespace] = Line([line], [entry])

    def pop(self) -> Entry:
        """The next entry of the namespace whose turn it is; there must be a live one.

        A line that has only leftovers goes without taking a turn.
        """
        while True:
            namespace = self._turns.popleft()
            entry = self._first(namespace, self._lines[namespace])
            if entry.place is READY:
                self.live -= 1
                return entry
            self._gone -= 1

    def _first(self, namespace: str, line: Entry | Line) -> Entry:
        """The first live entry of a line, else its last one; it is taken out."""
        if type(line) is Entry:
            del self._lines[namespace]
            return line
        assert type(line) is Line
        entry = line.pop()
        while entry.place is GONE and line:
            self._gone -= 1
            entry = line.pop()
        if line:
            self._turns.append(namespace)
        else:
            del self._lines[namespace]
        return entry

    def remove(self, entry: Entry) -> None:
        """Take an entry out of the middle: it stays as a leftover for a while."""
        entry.place = GONE
        self.live -= 1
        self._gone += 1
        if self._gone > SWEEP and self._gone > self.live:
            self._sweep()

    def _sweep(self) -> None:
        lines = [self._lines[namespace] for namespace in self._turns]
        self.live = self._gone = 0
        self._lines.clear()
        self._turns.clear()
        for line in lines:
            for entry in (line,) if isinstance(line, Entry) else line:
                if entry.place is READY:
                    self.push(entry)
