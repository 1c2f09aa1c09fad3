"""What was: every change in order, the state as of a past revision, and forgetting.

The log has one row for each revision that is still remembered, and points at the values
before and after. A past state needs no copy of its own: it is the current state with
the later changes taken back. A key that has changed since revision R has exactly one
change after R whose previous revision is R or earlier, and that one was its value at R.

Forgetting walks the log from its old end. A value goes with the change that superseded
it, so after each step everything from the new end on can still be told, and a step can
be as small as one likes.
"""

from __future__ import annotations

from collections import deque

import msgspec

from trimtab.client.errors import TrimtabError
from trimtab.embedded.storefile import Arguments, StoreFile

TOTALS = (
    "SELECT coalesce(log.revision, meta.revision), coalesce(log.objects, meta.objects),"
    " coalesce(log.superseded, meta.superseded), meta.compacted, meta.dropped"
    " FROM meta LEFT JOIN log ON log.revision = (SELECT max(revision) FROM log)"
    " WHERE meta.id = 1"
)
APPEND = "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?)"
# A previous value that is itself in the answer is not read a second time.
CHANGES = (
    "SELECT log.revision, log.key, log.created, log.previous, log.deleted,"
    " after.value, before.value FROM log"
    " LEFT JOIN value AS after ON after.revision = log.revision"
    " LEFT JOIN value AS before ON before.revision = log.previous"
    " AND log.previous <= ?1"
    " WHERE log.revision > ?1 AND log.key >= ?2 AND log.key < ?3"
    " ORDER BY log.revision LIMIT ?4"
)
_AS_OF = (
    "SELECT key, revision, created FROM current"
    " WHERE key >= ?1 AND key < ?2 AND revision <= ?3"
    " UNION ALL SELECT key, previous, created FROM log"
    " WHERE revision > ?3 AND previous BETWEEN 1 AND ?3 AND key >= ?1 AND key < ?2"
)
# The values are fetched after the sorting, for the rows that are wanted.
PAST_RANGE = (
    "SELECT past.key, value.value, past.revision, past.created"
    f" FROM ({_AS_OF} ORDER BY 1 LIMIT ?4) AS past"
    " CROSS JOIN value ON value.revision = past.revision"
)
PAST_COUNT = f"SELECT count(*) FROM ({_AS_OF})"
# The newest change that one step may forget: of the next ?2, one that is old (?3) or
# that has more than enough superseded bytes after it (?4).
FORGETTABLE = (
    "SELECT revision, superseded FROM log WHERE revision > ?1 AND revision <= ?1 + ?2"
    " AND (revision <= ?3 OR superseded <= ?4) ORDER BY revision DESC LIMIT 1"
)
DROP_SUPERSEDED = (
    "DELETE FROM value WHERE revision IN"
    " (SELECT previous FROM log WHERE revision > ?1 AND revision <= ?2)"
)
DROP_LAST_VALUES = (
    "DELETE FROM value WHERE revision IN"
    " (SELECT revision FROM log WHERE revision > ?1 AND revision <= ?2 AND deleted)"
)
DROP_CHANGES = "DELETE FROM log WHERE revision <= ?"
REMEMBER = (
    "UPDATE meta SET revision = ?, objects = ?, superseded = ?, compacted = ?,"
    " dropped = ? WHERE id = 1"
)
# One step of forgetting takes about a millisecond or two.
STEP_CHANGES = 250
# How finely ages are told apart: in parts of the time that changes are kept.
AGE_PARTS = 32


class Compacted(TrimtabError):
    """What was asked for is no longer remembered; list again and go on from there."""

    def __init__(self, revision: int, *, oldest: int) -> None:
        super().__init__(
            f"Revision {revision} is no longer remembered, only {oldest} and later:"
            " list again and continue from that revision."
        )
        self.revision = revision
        self.oldest = oldest


class Row(msgspec.Struct, frozen=True, gc=False):
    """A key and its value, as of some revision."""

    key: str
    value: bytes
    revision: int
    """The revision of its last write."""
    created: int
    """The revision of its creation."""


class Change(msgspec.Struct, frozen=True, gc=False):
    """One write: a creation (no ``previous``), an update, a deletion (no ``value``)."""

    revision: int
    key: str
    value: bytes | None
    previous: bytes | None
    """Before the change; of a deletion, the last value in the form for watchers."""
    created: int


class Totals(msgspec.Struct, frozen=True, gc=False):
    """Where the store stands: all that must survive, and that is not a row."""

    revision: int
    objects: int
    superseded: int
    """Bytes of all values that were ever superseded; never falls."""
    compacted: int
    """Changes up to this revision are gone."""
    dropped: int
    """``superseded`` as it was at ``compacted``: the difference is still held."""


def bounds(prefix: str, after: str) -> tuple[str, str | bytes]:
    """The keys that start with ``prefix`` and come after ``after``, as [low, high)."""
    # With that letter begins the very next text there is.
    low = after + "\0" if after and after >= prefix else prefix
    letters = prefix
    while letters:
        if (last := ord(letters[-1])) < 0x10FFFF:
            # Surrogates are no characters: they cannot be stored, nor asked for.
            following = 0xE000 if last == 0xD7FF else last + 1
            return low, letters[:-1] + chr(following)
        letters = letters[:-1]
    # SQLite sorts bytes after all text.
    return low, b""


class History:
    """The remembered changes of one store. The store adds to them, this forgets."""

    def __init__(self, file: StoreFile) -> None:
        self._file = file
        self.totals = self.read_totals()

    def read_totals(self) -> Totals:
        [row] = self._file.query(TOTALS)
        return Totals(*row)

    def entry(self, change: Change, *, replaced: int, totals: Totals) -> Arguments:
        """The log's row for a change of what was written at ``replaced`` (or 0)."""
        deleted = change.value is None
        written = (change.revision, change.key, change.created, replaced, deleted)
        return (*written, totals.objects, totals.superseded)

    def reach(self, revision: int) -> None:
        """Refuse a revision that is forgotten, or that has not come yet."""
        if revision < self.totals.compacted:
            raise Compacted(revision, oldest=self.totals.compacted)
        if revision > self.totals.revision:
            raise ValueError(
                f"Revision {revision} is in the future of a store that is at"
                f" {self.totals.revision}: ask for one that was given out."
            )

    def changes(self, *, since: int, prefix: str, limit: int) -> list[Change]:
        if since < self.totals.compacted:
            raise Compacted(since, oldest=self.totals.compacted)
        low, high = bounds(prefix, "")
        values: dict[int, bytes] = {}
        found = []
        for (
            revision,
            key,
            created,
            replaced,
            deleted,
            after,
            before,
        ) in self._file.query(CHANGES, (since, low, high, limit or -1)):
            previous = values.pop(replaced, before)
            if deleted:
                last = previous if after is None else after
                found.append(Change(revision, key, None, last, created))
            else:
                values[revision] = after
                found.append(Change(revision, key, after, previous, created))
        return found

    def range(self, prefix: str, *, after: str, limit: int, revision: int) -> list[Row]:
        self.reach(revision)
        low, high = bounds(prefix, after)
        rows = self._file.query(PAST_RANGE, (low, high, revision, limit or -1))
        # They come in this order from the inner query, which SQL does not promise.
        rows.sort()
        return [Row(*row) for row in rows]

    def count(self, prefix: str, *, after: str, revision: int) -> int:
        self.reach(revision)
        [[count]] = self._file.query(PAST_COUNT, (*bounds(prefix, after), revision))
        return int(count)

    def forget(self, *, target: int, keep_bytes: int) -> bool:
        """One step: some of the changes up to ``target``, or that are too many bytes.

        Returns whether the next step may find more.
        """
        totals = self.totals
        excess = totals.superseded - keep_bytes
        if target <= totals.compacted and excess <= totals.dropped:
            return False
        start = max(totals.compacted, 1)
        found = self._file.query(FORGETTABLE, (start, STEP_CHANGES, target, excess))
        if not found:
            return False
        [(end, dropped)] = found
        after = msgspec.structs.replace(totals, compacted=end, dropped=dropped)
        self._file.transact(
            (
                (DROP_SUPERSEDED, (start, end)),
                (DROP_LAST_VALUES, (start, end)),
                (DROP_CHANGES, (end,)),
                (REMEMBER, msgspec.structs.astuple(after)),
            )
        )
        self.totals = after
        return bool(end == start + STEP_CHANGES)


class Ages:
    """How old revisions are, told by whoever says what time it is.

    Each mark says: at this time, this revision was already there. Nothing is kept over
    a restart: who has just begun to observe waits a full period.
    """

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()

    def older(self, seconds: float, *, now: float, revision: int) -> int:
        """The newest revision known to be that old (0: none); notes the present one."""
        marks = self._marks
        if not marks or now - marks[-1][0] >= seconds / AGE_PARTS:
            marks.append((now, revision))
        while len(marks) > 1 and now - marks[1][0] >= seconds:
            marks.popleft()
        time, then = marks[0]
        return then if now - time >= seconds else 0
