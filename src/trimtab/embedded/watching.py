"""Watching: every watcher reads the same bounded log of changes, at its own pace.

A watcher has no queue: it has a position, the last revision it has seen. The log keeps
the newest changes of each resource in memory; a watcher that is further behind reads on
in the store's history, and one that is behind even that is told that its revision has
expired. So a slow watcher costs nothing, and nothing is buffered for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from trimtab.embedded import status
from trimtab.embedded.store import Change, Compacted, Store

LOG_BYTES = 16 << 20
DEFINITIONS = "apiextensions.k8s.io/customresourcedefinitions/"
CHUNK_BYTES = 256 << 10
CATCH_UP = 200
BOOKMARK_SECONDS = 60.0
BOOKMARK_BEFORE_END = 2.0


class Entry:
    """A change in the log, with what has been rendered of it so far."""

    __slots__ = ("change", "rendered", "size")

    def __init__(self, change: Change) -> None:
        self.change = change
        self.rendered: dict[Any, bytes] = {}
        self.size = len(change.value or b"") + len(change.previous or b"") + 200


class Log:
    """The newest changes of one resource, oldest first."""

    __slots__ = ("ended", "entries", "floor", "waiting")

    def __init__(self, floor: int) -> None:
        self.entries: deque[Entry] = deque()
        self.floor = floor
        """Changes after this revision are all here."""
        self.ended = False
        """The resource is no longer served: nothing will come after what is here."""
        self.waiting: set[asyncio.Future[None]] = set()

    def wake(self) -> None:
        """Let those who wait look again."""
        for future in self.waiting:
            _wake(future)


class Hub:
    """The logs of all resources, fed by the store, bounded together."""

    def __init__(self, store: Store, *, limit: int = LOG_BYTES) -> None:
        self.store = store
        self._limit = limit
        self._size = 0
        self._logs: dict[str, Log] = {}
        self._order: deque[Log] = deque()
        store.subscribe(self._take)

    def log(self, resource: str) -> Log:
        """The log of a resource, kept from its first watcher on."""
        found = self._logs.get(resource)
        if found is None:
            found = self._logs[resource] = Log(self.store.revision)
        return found

    def forget(self) -> None:
        """Drop the logs; who is behind finds out from the store."""
        self._size = 0
        self._order.clear()
        for log in self._logs.values():
            log.entries.clear()
            log.floor = self.store.revision

    def _take(self, change: Change) -> None:
        if change.value is None and change.key.startswith(DEFINITIONS):
            self._end(change.key.removeprefix(DEFINITIONS))
        log = self._logs.get(resource_of(change.key))
        if log is None:
            return
        entry = Entry(change)
        log.entries.append(entry)
        self._order.append(log)
        self._size += entry.size
        while self._size > self._limit and len(self._order) > 1:
            oldest = self._order.popleft()
            dropped = oldest.entries.popleft()
            oldest.floor = dropped.change.revision
            self._size -= dropped.size
        log.wake()

    def _end(self, definition: str) -> None:
        """A definition is gone, and its objects before it: so are its watches."""
        plural, _, group = definition.partition(".")
        log = self._logs.pop(f"{group}/{plural}/", None)
        if log is not None:
            log.ended = True
            log.wake()

    def since(
        self, log: Log, prefix: str, revision: int
    ) -> tuple[Sequence[Entry], int]:
        """Changes of a resource after a revision, and up to which revision they go.

        If they are many and the log has forgotten them, it is only some of them.
        """
        if revision >= log.floor:
            return _after(log.entries, revision), self.store.revision
        changes = self.store.changes(since=revision, prefix=prefix, limit=CATCH_UP)
        entries = [Entry(change) for change in changes]
        whole = len(changes) < CATCH_UP
        return entries, self.store.revision if whole else changes[-1].revision


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def resource_of(key: str) -> str:
    """The part of a key that all objects of a resource share."""
    group, plural, _ = key.split("/", 2)
    return f"{group}/{plural}/"


def _after(entries: deque[Entry], revision: int) -> Sequence[Entry]:
    """The tail of a log; most watchers are almost at its end, so look from there."""
    found: list[Entry] = []
    for entry in reversed(entries):
        if entry.change.revision <= revision:
            break
        found.append(entry)
    found.reverse()
    return found


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What one watcher wants to see: which objects, and in which form."""

    prefix: str
    """Keys of the objects that are watched; ends with a slash, or is one key."""
    matches: Callable[[bytes], bool] | None
    """The selectors; None takes everything."""
    render: Callable[[str, bytes, int], bytes]
    """Event type, object and revision to the bytes of the event's line."""
    form: Any
    """What renderings may be shared with: equal forms render alike."""
    bookmark: Callable[[int, bool], bytes]
    failure: Callable[[status.ApiProblem], bytes]
    tell: Callable[[Change], bytes] | None = None
    """If it is given, changes are told by it as they are, for somebody else to select
    among."""


class Watcher:
    """One watch: initial objects if they were asked for, then changes."""

    def __init__(
        self,
        hub: Hub,
        view: View,
        *,
        since: int,
        initial: bool,
        initial_end: bool,
        bookmarks: bool,
        timeout: float,
    ) -> None:
        self._hub = hub
        self._view = view
        self._log = hub.log(resource_of(view.prefix))
        self._position = since
        self._initial = initial
        self._initial_end = initial_end
        self._after = ""
        self._bookmarks = bookmarks
        self._closed = False
        self._timeout = timeout
        self._ends: float | None = None
        self._next_bookmark = 0.0

    def close(self) -> None:
        """End the watch; whoever waits for a chunk gets the empty one."""
        self._closed = True
        self._log.wake()

    async def chunk(self) -> bytes:
        """Some whole event lines, as soon as there are any; empty when it is over."""
        loop = asyncio.get_running_loop()
        if self._ends is None:
            self._ends = loop.time() + self._timeout
            self._next_bookmark = self._bookmark_at(loop.time())
        while not self._closed and loop.time() < self._ends:
            data = self._collect()
            if not data and self._bookmarks and loop.time() >= self._next_bookmark:
                data = self._view.bookmark(self._position, False)
            if data:
                self._next_bookmark = self._bookmark_at(loop.time())
                return data
            if self._log.ended:
                break
            await self._wait(min(self._ends, self._next_bookmark) - loop.time())
        return b""

    def _bookmark_at(self, now: float) -> float:
        """When the next bookmark is due: every minute, and shortly before the end."""
        assert self._ends is not None, "the watch has begun"
        last = self._ends - BOOKMARK_BEFORE_END
        due = now + BOOKMARK_SECONDS
        return min(due, last) if last > now else due

    async def _wait(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._log.waiting.add(future)
        # A timer that wakes us, too, costs a third of a timeout that cancels us.
        timer = loop.call_later(max(0.0, seconds), _wake, future)
        try:
            await future
        finally:
            timer.cancel()
            self._log.waiting.discard(future)

    def _collect(self) -> bytes:
        """What there is to send now, about a chunk of it."""
        try:
            if self._initial:
                return self._collect_initial()
            return self._collect_changes()
        except Compacted:
            self._closed = True
            newest = self._hub.store.revision
            problem = status.expired(
                f"too old resource version: {self._position} ({newest})"
            )
            return self._view.failure(problem)

    def _collect_initial(self) -> bytes:
        lines: list[bytes] = []
        size = 0
        while size < CHUNK_BYTES:
            rows = self._hub.store.range(
                self._view.prefix,
                after=self._after,
                limit=CATCH_UP,
                revision=self._position,
            )
            for row in rows:
                if self._view.matches is None or self._view.matches(row.value):
                    lines.append(self._view.render("ADDED", row.value, row.revision))
                    size += len(lines[-1])
            if len(rows) < CATCH_UP:
                self._initial = False
                if self._initial_end:
                    lines.append(self._view.bookmark(self._position, True))
                break
            self._after = rows[-1].key
        return b"".join(lines)

    def _collect_changes(self) -> bytes:
        lines: list[bytes] = []
        size = 0
        entries, reached = self._hub.since(self._log, self._view.prefix, self._position)
        for entry in entries:
            self._position = entry.change.revision
            if not entry.change.key.startswith(self._view.prefix):
                continue
            line = self._line(entry)
            if line:
                lines.append(line)
                size += len(line)
                if size >= CHUNK_BYTES:
                    return b"".join(lines)
        # Also where nothing concerned this view: its position must not grow old.
        # One that waits for a revision to come stays where it is.
        self._position = max(self._position, reached)
        return b"".join(lines)

    def _line(self, entry: Entry) -> bytes:
        """The line of a change for this view; empty if it does not concern it."""
        matches = self._view.matches
        change = entry.change
        if self._view.tell is not None:
            return self._view.tell(change)
        if matches is None:
            kind, value = _plain(change)
        else:
            is_now = change.value is not None and matches(change.value)
            was = change.previous is not None and matches(change.previous)
            if change.value is None or not is_now:
                if not was:
                    return b""
                kind, value = "DELETED", change.previous or b""
            else:
                kind, value = ("MODIFIED" if was else "ADDED"), change.value
        shared = (self._view.form, kind)
        line = entry.rendered.get(shared)
        if line is None:
            line = self._view.render(kind, value, change.revision)
            entry.rendered[shared] = line
        return line


def _plain(change: Change) -> tuple[str, bytes]:
    if change.value is None:
        return "DELETED", change.previous or b""
    return ("ADDED" if change.previous is None else "MODIFIED"), change.value
