"""Expectations: creates and deletes that were sent and that the cache has yet to show.

A controller that counts its children in the cache right after it created one counts too
few, and creates another. With expectations it waits: it says what it is about to do,
watch events tick that off, and it acts again when nothing is open.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.runtime.reconcile import Key

if TYPE_CHECKING:
    from trimtab.cache.changes import Change


class Open(msgspec.Struct):
    """What is in flight for one key. Not finished until both are empty."""

    creates: int
    """How many new children have yet to be seen: their names may be the server's."""
    deletes: set[str]
    """The uids of children that have yet to be seen going."""
    deadline: float


class Expectations:
    """What is in flight, by the key of the parent that the children belong to.

    Flow: ``expect`` before the writes are sent, since an event may come before the
    answer does; ``failed`` for a write that did nothing; ``observed`` for each change
    of a child; ``satisfied`` before the children are counted.

    Guarantees: an expectation ends after ``lifetime`` seconds, whatever got lost, so a
    key is never held for ever, and memory is bounded by what was expected in that time.

    Assumptions: children that others create under the same parent also tick off; that
    can let a key go too early, never hold it.
    """

    def __init__(self, *, lifetime: float = 300.0) -> None:
        self._lifetime = lifetime
        # In the order of their deadlines, the next to end first.
        self._open: dict[Key, Open] = {}

    def expect(
        self,
        key: Key,
        *,
        now: float,
        creates: int = 0,
        deletes: Collection[str] = (),
    ) -> None:
        """Say what is about to be written; ``deletes`` are the uids of children."""
        self._expire(now)
        if not creates and not deletes:
            return
        known = self._open.pop(key, None) or Open(0, set(), now)
        known.creates += creates
        known.deletes.update(deletes)
        known.deadline = now + self._lifetime
        self._open[key] = known

    def observed(self, key: Key, change: Change[Any]) -> None:
        """A child of ``key`` changed: tick off what this shows."""
        known = self._open.get(key)
        if known is None:
            return
        child = change.old if change.new is None else change.new
        gone = change.replaced.old if change.replaced is not None else None
        if gone is not None:
            known.deletes.discard(gone.metadata.uid)
        if change.type == "ADDED" and not change.initial:
            known.creates = max(0, known.creates - 1)
        if child is not None and _is_going(change.type, child):
            known.deletes.discard(child.metadata.uid)
        self._settle(key, known)

    def failed(
        self, key: Key, *, creates: int = 0, deletes: Collection[str] = ()
    ) -> None:
        """Writes that were expected did nothing: no event will come of them."""
        known = self._open.get(key)
        if known is not None:
            known.creates = max(0, known.creates - creates)
            known.deletes.difference_update(deletes)
            self._settle(key, known)

    def satisfied(self, key: Key, *, now: float) -> bool:
        """Whether the cache shows all that was written for a key, or had its time."""
        known = self._open.get(key)
        if known is not None and known.deadline <= now:
            del self._open[key]
            return True
        return known is None

    def forget(self, key: Key) -> None:
        """The parent is gone."""
        self._open.pop(key, None)

    def __len__(self) -> int:
        """Keys that something is in flight for."""
        return len(self._open)

    def _settle(self, key: Key, known: Open) -> None:
        if not known.creates and not known.deletes:
            del self._open[key]

    def _expire(self, now: float) -> None:
        while self._open:
            key, first = next(iter(self._open.items()))
            if first.deadline > now:
                break
            del self._open[key]


def _is_going(type: str, child: Any) -> bool:
    """A child that is being deleted counts as deleted: it only waits for others."""
    return type == "DELETED" or child.metadata.deletionTimestamp is not None
