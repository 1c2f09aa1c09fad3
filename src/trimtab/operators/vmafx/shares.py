"""Fair turns: who is served next, so that in the long run each has its share.

A clock counts what has been given, not seconds. Each unit has the time of its next
turn, which moves on by the inverse of its weight whenever it is served, and the lowest
is next. One that comes new, or comes back, stands behind one turn of its own: it cannot
gain by coming often, and has lost nothing by having been away.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

import msgspec

Unit = tuple[str, str]
"""Who shares: a tenant (``("acme", "")``), or a namespace without one."""

# A line with more dead entries than living ones, and than this, is made anew.
_DEAD = 64


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What a unit is due: its weight among those that wait, and how many at once."""

    weight: int = 1
    running: int | None = None
    """How many of its jobs may run at once; None is any number."""


class _Turn(msgspec.Struct, gc=False):
    """When a unit is next, and where it stands in line."""

    stamp: float
    # By line, the number of its entry there; an entry with another number is dead.
    lines: dict[str, int]
    # Turns that were paid for and came to nothing.
    credit: int = 0


class Turns:
    """Lines of units, of which the one that had least for its weight is first.

    Guarantees: of two units that could be served all the time, the numbers of turns,
    divided by their weights, differ by at most one turn of each. A unit that stands in
    a line which is asked for is served, however many others come. A step costs the
    logarithm of the number of units.
    """

    def __init__(self, weight_of: Callable[[Unit], float]) -> None:
        self._weight_of = weight_of
        self._clock = 0.0
        self._turns: dict[Unit, _Turn] = {}
        self._lines: dict[str, list[tuple[float, int, Unit]]] = {}
        self._entries = 0

    def __len__(self) -> int:
        return len(self._turns)

    def want(self, unit: Unit, line: str) -> None:
        """Stand in a line; nothing happens if the unit stands there already."""
        turn = self._turns.get(unit)
        if turn is None:
            turn = _Turn(self._clock + self._step(unit), {})
            self._turns[unit] = turn
        if line in turn.lines:
            return
        heap = self._lines.setdefault(line, [])
        heapq.heappush(heap, self._entry(unit, turn, line))
        if len(heap) > 2 * len(self._turns) + _DEAD:
            heap[:] = [each for each in heap if self._lives(each, line)]
            heapq.heapify(heap)

    def next(
        self, lines: Iterable[str], can: Callable[[Unit, str], bool]
    ) -> Unit | None:
        """Who is next in any of these lines; one that cannot be served leaves its."""
        fronts = [front for line in lines if (front := self._front(line, can))]
        return min(fronts)[2] if fronts else None

    def serve(self, unit: Unit, *, here: bool = True) -> None:
        """A unit was served, by us or elsewhere: its next turn moves on."""
        turn = self._turns.get(unit)
        if turn is None:
            return
        if turn.credit:
            turn.credit -= 1
            return
        # What could not be served for long comes up, but does not catch up.
        began = max(turn.stamp, self._clock)
        if here:
            self._clock = began
        turn.stamp = began + self._step(unit)

    def refund(self, unit: Unit) -> None:
        """A turn came to nothing: another is free."""
        if turn := self._turns.get(unit):
            turn.credit += 1

    def forget(self, unit: Unit) -> None:
        """A unit has nothing any more."""
        self._turns.pop(unit, None)

    def clear(self) -> None:
        """Forget all units; the clock goes on."""
        self._turns.clear()
        self._lines.clear()

    def _step(self, unit: Unit) -> float:
        return 1.0 / self._weight_of(unit)

    def _entry(self, unit: Unit, turn: _Turn, line: str) -> tuple[float, int, Unit]:
        self._entries += 1
        turn.lines[line] = self._entries
        return turn.stamp, self._entries, unit

    def _lives(self, entry: tuple[float, int, Unit], line: str) -> bool:
        turn = self._turns.get(entry[2])
        return turn is not None and turn.lines.get(line) == entry[1]

    def _front(
        self, line: str, can: Callable[[Unit, str], bool]
    ) -> tuple[float, int, Unit] | None:
        heap = self._lines.get(line, [])
        while heap:
            stamp, _, unit = heap[0]
            if not self._lives(heap[0], line):
                heapq.heappop(heap)
            elif not can(unit, line):
                heapq.heappop(heap)
                del self._turns[unit].lines[line]
            elif stamp != self._turns[unit].stamp:  # it was served from another line
                heapq.heapreplace(heap, self._entry(unit, self._turns[unit], line))
            else:
                return heap[0]
        return None
