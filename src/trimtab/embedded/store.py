"""The store: keys, values and one revision counter, on SQLite, for a single writer.

Every write makes the next revision. The past stays readable for a while: as the list of
changes that watches need, and as the state at a revision that consistent paging needs.
There is no thread and nothing to await: each call is done when it returns, and a store
belongs to the thread that opened it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import msgspec

from trimtab.client.errors import TrimtabError
from trimtab.embedded.history import (
    APPEND,
    Ages,
    Change,
    Compacted,
    History,
    Row,
    Totals,
    bounds,
)
from trimtab.embedded.storefile import Arguments, Synchronous, checksum, open_file
from trimtab.embedded.storeproblems import (
    StoreDamaged,
    StoreForeign,
    StoreLocked,
    StoreProblem,
    StoreTooNew,
    StoreUnavailable,
)
from trimtab.embedded.subscribers import Subscribers

__all__ = [
    "Change",
    "Compacted",
    "Mismatch",
    "Row",
    "Store",
    "StoreDamaged",
    "StoreForeign",
    "StoreLocked",
    "StoreProblem",
    "StoreStatistics",
    "StoreTooNew",
    "StoreUnavailable",
]

GET = (
    "SELECT current.key, value.value, current.revision, current.created FROM current"
    " CROSS JOIN value ON value.revision = current.revision WHERE current.key = ?"
)
RANGE = (
    "SELECT current.key, value.value, current.revision, current.created FROM current"
    " CROSS JOIN value ON value.revision = current.revision"
    " WHERE current.key >= ? AND current.key < ? ORDER BY current.key LIMIT ?"
)
COUNT = "SELECT count(*) FROM current WHERE key >= ? AND key < ?"
KEEP = "INSERT INTO value VALUES (?, ?, ?)"
POINT = (
    "INSERT INTO current VALUES (?, ?, ?) ON CONFLICT (key)"
    " DO UPDATE SET revision = excluded.revision, created = excluded.created"
)
UNPOINT = "DELETE FROM current WHERE key = ?"
# A scan reads about this much at a time; its first rows tell how many rows that is.
SCAN_BYTES = 1 << 20
SCAN_ROWS = 16
# The rows that are kept at hand: about a mebibyte at the most.
RECENT_ROWS = 64
RECENT_BYTES = 16 << 10
# Free pages up to this many, or a quarter of the file, are kept for the next writes.
SPARE_PAGES = 1024
VACUUM_PAGES = 128


class Mismatch(TrimtabError):
    """The key is not at the expected revision; ``current`` is what is there."""

    def __init__(self, key: str, *, current: Row | None) -> None:
        there = f"is at revision {current.revision}" if current else "does not exist"
        super().__init__(f"The key {key} {there}: read it again and decide anew.")
        self.key = key
        self.current = current


class StoreStatistics(msgspec.Struct, frozen=True):
    """What :meth:`Store.statistics` answers."""

    objects: int
    revision: int
    compacted: int
    changes: int
    """Remembered changes."""
    superseded_bytes: int
    """Bytes of values that only history needs."""
    file_bytes: int
    """The file and its journal; the database's own size if it is in memory."""


class Store:
    """Keys and values under one revision counter.

    *Guarantees.*
    A write that returned is kept when the process is killed at any moment, and its
    revision is never given to another write. After a power cut the file is whole, but
    the last moments may be missing; ``synchronous="full"`` waits for the disk at each
    write instead, and then they are not. The first revision of a fresh store is 1 and
    belongs to the empty state. No call costs more because more keys are stored, other
    than those that return them (and :meth:`count`, which walks them in an index).

    *Assumptions.*
    One thread. The folder is on a local disk: SQLite's journal and the lock beside the
    file are not safe on network file systems.

    *Errors.*
    Opening raises :class:`StoreProblem`: damaged, foreign, too new, locked or
    unavailable, and the file is as it was. Later calls raise it when the disk fails
    them; a write that did so did not happen.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        *,
        synchronous: Synchronous = "normal",
    ) -> None:
        self._file = open_file(path, synchronous=synchronous)
        self._history = History(self._file)
        self._ages = Ages()
        self._subscribers = Subscribers()
        self._recent: dict[str, Row] = {}
        """As they are now; what a write that failed may have changed is not in it."""

    @property
    def revision(self) -> int:
        """The last committed revision."""
        return self._history.totals.revision

    @property
    def compacted(self) -> int:
        """Changes up to this revision are gone; states from it on can be read."""
        return self._history.totals.compacted

    def get(self, key: str) -> Row | None:
        row = self._recent.get(key)
        if row is None:
            rows = self._file.query(GET, (key,))
            row = Row(*rows[0]) if rows else None
            if row is not None:
                self._remember(row)
        return row

    def _remember(self, row: Row) -> None:
        """A key that was just read or written is mostly the next one that is read."""
        recent = self._recent
        recent.pop(row.key, None)
        if len(row.value) <= RECENT_BYTES:
            recent[row.key] = row
            if len(recent) > RECENT_ROWS:
                del recent[next(iter(recent))]

    def range(
        self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0
    ) -> list[Row]:
        """The rows under a prefix in the order of their keys, those after ``after``.

        ``limit`` 0 is all of them. ``revision`` 0 is the current state, another the
        state as of that revision.

        *Errors.* :class:`Compacted` if that state is forgotten, ``ValueError`` if it
        has not come yet.
        """
        if revision not in (0, self.revision):
            return self._history.range(
                prefix, after=after, limit=limit, revision=revision
            )
        rows = self._file.query(RANGE, (*bounds(prefix, after), limit or -1))
        return [Row(*row) for row in rows]

    def scan(self, prefix: str, *, after: str = "", revision: int = 0) -> Iterator[Row]:
        """The same rows as :meth:`range`, with about a mebibyte of them in memory.

        *Guarantees.* All rows are of one revision, that of the call if none is named,
        whatever is written between them.

        *Errors.* :class:`Compacted` also in the middle, if the store forgets the
        revision while the scan goes on.
        """
        return self._scanned(prefix, after, revision or self.revision)

    def _scanned(self, prefix: str, after: str, revision: int) -> Iterator[Row]:
        limit = SCAN_ROWS
        while True:
            rows = self.range(prefix, after=after, limit=limit, revision=revision)
            yield from rows
            if len(rows) < limit:
                return
            after = rows[-1].key
            size = sum(len(row.value) for row in rows) // limit
            limit = min(max(SCAN_BYTES // max(size, 1), 1), 16 * limit)

    def count(self, prefix: str, *, after: str = "", revision: int = 0) -> int:
        """How many rows :meth:`range` would give; walks keys only."""
        if revision not in (0, self.revision):
            return self._history.count(prefix, after=after, revision=revision)
        [[count]] = self._file.query(COUNT, bounds(prefix, after))
        return int(count)

    def put(
        self,
        key: str,
        make: bytes | Callable[[int], bytes],
        *,
        expect: int | None = None,
    ) -> Row:
        """Write a value; ``make`` may be given the revision that it will have.

        ``expect`` is the revision that the key must be at: 0 if it must not exist,
        ``None`` if it does not matter.

        *Errors.* :class:`Mismatch` if it is at another. What ``make`` raises passes
        through, and nothing was written; it may read the store but not write to it.
        """
        before = self._checked(key, expect)
        revision = self.revision + 1
        value = self._made(make, revision)
        created = before.created if before else revision
        previous = before.value if before else None
        change = Change(revision, key, value, previous, created)
        self._commit(change, before=before, kept=value)
        return Row(key, value, revision, created)

    def delete(
        self,
        key: str,
        *,
        expect: int | None = None,
        make: Callable[[int], bytes] | None = None,
    ) -> Change:
        """Remove a key.

        ``make`` renders the last value with the revision of the deletion; that is what
        watchers are shown as ``previous``. States of the past keep the value as it was.

        *Errors.* :class:`Mismatch` as for :meth:`put`, and if there is no such key.
        """
        before = self._checked(key, expect)
        if before is None:
            raise Mismatch(key, current=None)
        revision = self.revision + 1
        kept = None if make is None else self._made(make, revision)
        last = before.value if kept is None else kept
        change = Change(revision, key, None, last, before.created)
        self._commit(change, before=before, kept=kept)
        return change

    def _checked(self, key: str, expect: int | None) -> Row | None:
        # Nobody else can write, so what is read here holds until the commit.
        before = self.get(key)
        if expect is not None and expect != (before.revision if before else 0):
            raise Mismatch(key, current=before)
        return before

    def _made(self, make: bytes | Callable[[int], bytes], revision: int) -> bytes:
        value = make(revision) if callable(make) else make
        if revision != self.revision + 1:
            raise RuntimeError("A value's maker must not write to the store.")
        assert isinstance(value, bytes)
        return value

    def _commit(
        self, change: Change, *, before: Row | None, kept: bytes | None
    ) -> None:
        deleted = change.value is None
        totals = self._history.totals
        superseded = len(before.value) if before else 0
        if deleted and kept is not None:
            superseded += len(kept)
        after = Totals(
            change.revision,
            totals.objects + (before is None) - deleted,
            totals.superseded + superseded,
            totals.compacted,
            totals.dropped,
        )
        replaced = before.revision if before else 0
        entry = self._history.entry(change, replaced=replaced, totals=after)
        steps: list[tuple[str, Arguments]] = [(APPEND, entry)]
        if kept is not None:
            proof = checksum(change.revision, kept)
            steps.append((KEEP, (change.revision, proof, kept)))
        if deleted:
            steps.append((UNPOINT, (change.key,)))
        else:
            steps.append((POINT, (change.key, change.revision, change.created)))
        try:
            self._file.transact(steps)
        except BaseException:
            self._recent.clear()
            self._resume()
            raise
        self._history.totals = after
        self._recent.pop(change.key, None)
        if change.value is not None:
            row = Row(change.key, change.value, change.revision, change.created)
            self._remember(row)
        self._subscribers.publish(change)

    def _resume(self) -> None:
        """After a write that failed, the file says whether it happened.

        It did if what failed came after the commit (an interrupt, an injected fault).
        Subscribers must see that change too; they do so with the next one.
        """
        before = self.revision
        self._history.totals = self._history.read_totals()
        if self.revision != before:
            missed = self.changes(since=before)
            self._subscribers.owe(missed)

    def changes(self, *, since: int, prefix: str = "", limit: int = 0) -> list[Change]:
        """The changes after revision ``since``, in order; ``limit`` 0 is all of them.

        *Errors.* :class:`Compacted` if some of them are forgotten.
        """
        return self._history.changes(since=since, prefix=prefix, limit=limit)

    def subscribe(self, callback: Callable[[Change], None]) -> Callable[[], None]:
        """Have ``callback`` called after each commit from now on; returns its end.

        *Guarantees.* Every change once, in order, without a gap, before the write
        returns. A callback may write: those changes follow when all subscribers have
        seen the present one. A callback that raises is logged and called no more (it
        has missed a change, so nothing later could be trusted); the write and the
        other callbacks are not touched by it.
        """
        return self._subscribers.add(callback, seen=self.revision)

    def compact(self, revision: int) -> None:
        """Forget the changes up to a revision, all in one call.

        *Errors.* ``ValueError`` if the revision has not come yet.
        """
        if revision > self.compacted:
            self._history.reach(revision)
        while self._history.forget(target=revision, keep_bytes=1 << 62):
            pass

    def maintain(
        self,
        now: float,
        *,
        keep_seconds: float = 300.0,
        keep_changes: int = 100_000,
        keep_bytes: int = 64 << 20,
    ) -> bool:
        """A few milliseconds of forgetting and tidying; for a timer.

        ``now`` is a monotonic clock. Changes are forgotten when they are older than
        ``keep_seconds`` (since the store was opened: it cannot know how long it was
        closed), or are more than ``keep_changes``, or when the values that only they
        need are more than ``keep_bytes``. Free pages beyond a quarter of the file are
        given back to the system.

        Returns whether there is more to do: call again soon then.
        """
        revision = self.revision
        old = self._ages.older(keep_seconds, now=now, revision=revision)
        target = max(old, revision - keep_changes)
        more = self._history.forget(target=target, keep_bytes=keep_bytes)
        return self._vacuum() or more

    def _vacuum(self) -> bool:
        pages, free = self._file.pages()
        excess = free - max(SPARE_PAGES, pages // 4)
        if excess > 0:
            self._file.shrink(min(excess, VACUUM_PAGES))
        return excess > VACUUM_PAGES

    def statistics(self) -> StoreStatistics:
        totals = self._history.totals
        return StoreStatistics(
            objects=totals.objects,
            revision=totals.revision,
            compacted=totals.compacted,
            changes=totals.revision - max(totals.compacted, 1),
            superseded_bytes=totals.superseded - totals.dropped,
            file_bytes=self._file.size(),
        )

    def close(self) -> None:
        """Let go of the file; twice is once."""
        self._file.close()
