"""The queue: which key is reconciled next, and when. Synchronous, without a clock.

Laws, each with a test:

- One entry per key. What comes for a waiting key joins its entry: the earliest due time
  and the best priority win, the causes add up (the first eight are kept).
- A key that is being worked on is never handed out. What comes for it meanwhile waits
  for the end of that work.
- Nothing is handed out before it is due. Of what is due, a better priority goes first;
  every sixteenth take serves a worse one instead, so that none waits for ever.
- Within a priority namespaces take turns: with *k* of them ready, each is served within
  *k* takes.
- A key that failed waits for longer each time, until a success. After so many failures
  in a row its breaker is open: see :class:`~trimtab.runtime.backoff.Breaker`.
- Memory is bounded by the keys that wait or are worked on.
"""

from __future__ import annotations

from enum import IntEnum
from heapq import heapify, heappop, heappush
from random import Random

import msgspec

from trimtab.runtime.backoff import Backoff, Breaker
from trimtab.runtime.lanes import SWEEP, Entry, Lane, Place
from trimtab.runtime.reconcile import Cause, Key

READY, DELAYED, WORKING, AGAIN, GONE = Place
CAUSES = 8
TIMER = (Cause("timer"),)
RETRY = (Cause("retry"),)


class Priority(IntEnum):
    """What goes first; the number says it, the smaller the sooner."""

    CHANGE = 0  # something happened just now
    REQUEUE = 1  # a timer or a retry
    INITIAL = 2  # the first list
    RESYNC = 3  # nothing happened; a look in any case


CHANGE, REQUEUE, INITIAL, RESYNC = map(int, Priority)

# Every AGING-th take prefers the lanes in one of these orders, in turn, so that each of
# the worse lanes is the preferred one once in AGING * 3 takes.
AGING = 16
AGED = (
    (RESYNC, INITIAL, REQUEUE, CHANGE),
    (INITIAL, REQUEUE, RESYNC, CHANGE),
    (REQUEUE, RESYNC, INITIAL, CHANGE),
)


class QueueStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue holds at one moment."""

    ready: int
    delayed: int
    working: int
    failing: int
    """Keys whose last work failed."""
    open: int
    """Keys whose breaker is open."""
    oldest: float
    """Seconds that the ready entry which is due the longest has waited."""
    ready_by_priority: dict[Priority, int]


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue knows of one key."""

    working: bool
    """It is being worked on just now."""
    due: float | None
    """When it is next; None if nothing waits for it."""
    causes: tuple[Cause, ...]
    failures: int
    """How many times in a row it has failed."""
    held: bool
    """Its breaker is open: only news of the object bring it back sooner."""


class Queue:
    """Keys with due times, priorities and causes; see the module for its laws."""

    def __init__(
        self,
        *,
        random: Random,
        backoff: Backoff | None = None,
        breaker: Breaker | None = None,
    ) -> None:
        self._random = random
        self._backoff = backoff or Backoff()
        self._breaker = breaker or Breaker()
        # Every key that waits or is worked on, with its one entry.
        self._entries: dict[Key, Entry] = {}
        # What came for a key while it was worked on.
        self._again: dict[Key, Entry] = {}
        self._lanes = [Lane() for _ in Priority]
        self._ready = 0  # live entries in all lanes
        # A heap of the delayed entries, and of `_gone` leftovers that were superseded.
        self._delayed: list[Entry] = []
        self._gone = 0
        self._failures: dict[Key, int] = {}
        # Keys whose breaker is open; each of them is delayed.
        self._open: set[Key] = set()
        # Keys that were woken while they were worked on.
        self._woken: set[Key] = set()
        self._takes = 0
        self._sequence = 0
        self._causes: tuple[Cause, ...] = ()

    def add(
        self,
        key: Key,
        *,
        now: float,
        due: float | None = None,
        priority: int = CHANGE,
        cause: Cause | None = None,
        wake: bool = False,
    ) -> None:
        """Ask for work on a key, at once or at ``due``.

        ``wake`` brings a key back whose breaker is open: something about it is new.
        """
        # Many keys in a row come for one reason; they share one tuple.
        causes = self._causes
        if cause is None:
            causes = ()
        elif len(causes) != 1 or causes[0] is not cause:
            self._causes = causes = (cause,)
        if due is None or due < now:
            due = now
        entry = self._entries.get(key)
        if entry is None:
            self._entries[key] = entry = Entry(due, 0, key, priority, causes, READY)
            if due > now:
                self._delay(entry)
            else:
                self._ready += 1
                self._lanes[priority].push(entry)
        elif entry.place is WORKING:
            self._add_again(Entry(due, 0, key, priority, causes, AGAIN))
            if wake:
                self._woken.add(key)
        else:
            if self._open and key in self._open:
                if wake:
                    self._open.remove(key)
                else:
                    due = entry.due
            self._join(entry, now=now, due=due, priority=priority, causes=causes)

    def take(self, now: float) -> Entry | None:
        """The entry to work on next, until ``done`` or ``failed``; None if none is due.

        Its ``key``, ``causes``, ``failures``, ``priority`` and ``waited`` tell of it.
        """
        delayed = self._delayed
        if delayed and delayed[0].due <= now:
            self.ripen(now)
        if not self._ready:
            return None
        self._ready -= 1
        self._takes += 1
        if self._takes % AGING:
            for lane in self._lanes:
                if lane.live:
                    break
        else:
            lane = self._aged()
        entry = lane.pop()
        entry.place = WORKING
        entry.waited = now - entry.due
        if self._failures:
            entry.failures = self._failures.get(entry.key, 0)
        return entry

    def done(self, key: Key, *, now: float, after: float | None = None) -> None:
        """The work on a key ended well; ``after`` asks for it again in some time."""
        entry = self._entries.pop(key)
        assert entry.place is WORKING, f"{key} was not being worked on"
        if self._failures:
            self._failures.pop(key, None)
        if after is not None:
            self._add_again(Entry(now + after, 0, key, REQUEUE, TIMER, AGAIN))
        if self._again and (again := self._again.pop(key, None)) is not None:
            self._woken.discard(key)
            self._put(again, now)

    def failed(self, key: Key, *, now: float, after: float | None = None) -> float:
        """The work on a key failed: it comes back by itself. Says in how many seconds.

        Flow: without ``after`` the failure counts, and the pause grows with the count
        until the breaker opens. With it, the pause is that one and nothing counts. What
        came for the key meanwhile brings it back sooner, unless the breaker opened.
        """
        entry = self._entries.pop(key)
        assert entry.place is WORKING, f"{key} was not being worked on"
        pause, held = (after, False) if after is not None else self._count(key)
        causes = _joined(entry.causes, RETRY)
        retry = Entry(now + pause, 0, key, REQUEUE, causes, AGAIN)
        again = self._again.pop(key, None)
        self._woken.discard(key)
        if again is not None:
            retry.priority = min(retry.priority, again.priority)
            retry.causes = _joined(causes, again.causes)
            if not held:
                retry.due = min(retry.due, again.due)
        self._put(retry, now)
        return max(0.0, retry.due - now)

    def forget(self, key: Key) -> None:
        """The object of a key is gone: drop what waits for it, and its failures."""
        self._failures.pop(key, None)
        self._open.discard(key)
        self._again.pop(key, None)
        self._woken.discard(key)
        entry = self._entries.get(key)
        if entry is not None and entry.place is not WORKING:
            del self._entries[key]
            self._drop(entry)

    def ripen(self, now: float) -> int:
        """Move what has become due to where it is taken from; say how much is there."""
        delayed = self._delayed
        while delayed and delayed[0].due <= now:
            entry = heappop(delayed)
            if entry.place is GONE:
                self._gone -= 1
                continue
            self._open.discard(entry.key)
            self._ready += 1
            self._lanes[entry.priority].push(entry)
        return self._ready

    def next_due(self) -> float | None:
        """When the first of the delayed entries is due; None if there is none."""
        delayed = self._delayed
        while delayed and delayed[0].place is GONE:
            heappop(delayed)
            self._gone -= 1
        return delayed[0].due if delayed else None

    @property
    def ready(self) -> int:
        """Entries that can be taken; ``ripen`` adds those that have become due."""
        return self._ready

    def __len__(self) -> int:
        """Keys that wait, whether due or not; one that is worked on may wait again."""
        return self._ready + len(self._delayed) - self._gone + len(self._again)

    def statistics(self, now: float) -> QueueStatistics:
        """What the queue holds; it looks at every entry, so not for each take."""
        self.ripen(now)
        delayed = len(self._delayed) - self._gone
        due = [e.due for e in self._entries.values() if e.place is READY]
        return QueueStatistics(
            ready=self._ready,
            delayed=delayed,
            working=len(self._entries) - self._ready - delayed,
            failing=len(self._failures),
            open=len(self._open),
            oldest=now - min(due, default=now),
            ready_by_priority={p: self._lanes[p].live for p in Priority},
        )

    def waiting(self, key: Key) -> Waiting:
        """What waits for a key, for people who ask."""
        entry = self._entries.get(key)
        working = entry is not None and entry.place is WORKING
        next_one = self._again.get(key) if working else entry
        return Waiting(
            working=working,
            due=None if next_one is None else next_one.due,
            causes=() if next_one is None else next_one.causes,
            failures=self._failures.get(key, 0),
            held=key in self._open,
        )

    def _aged(self) -> Lane:
        order = AGED[self._takes // AGING % len(AGED)]
        return next(self._lanes[number] for number in order if self._lanes[number].live)

    def _put(self, entry: Entry, now: float) -> None:
        """Give an entry of a key that has none its place."""
        self._entries[entry.key] = entry
        if entry.due > now:
            self._delay(entry)
        else:
            self._ready += 1
            self._lanes[entry.priority].push(entry)

    def _delay(self, entry: Entry) -> None:
        entry.place = DELAYED
        self._sequence = entry.sequence = self._sequence + 1
        heappush(self._delayed, entry)

    def _drop(self, entry: Entry) -> None:
        """Take a waiting entry out of its place."""
        if entry.place is READY:
            self._ready -= 1
            self._lanes[entry.priority].remove(entry)
            return
        entry.place = GONE
        self._gone += 1
        if self._gone > SWEEP and self._gone * 2 > len(self._delayed):
            self._delayed = [e for e in self._delayed if e.place is DELAYED]
            heapify(self._delayed)
            self._gone = 0

    def _join(
        self,
        entry: Entry,
        *,
        now: float,
        due: float,
        priority: int,
        causes: tuple[Cause, ...],
    ) -> None:
        """Add what came for a waiting key to its entry.

        An entry never moves: where another place is due to it, a new one goes there.
        """
        entry.causes = causes = _joined(entry.causes, causes)
        better = priority < entry.priority
        due = min(due, entry.due)
        if entry.place is DELAYED and due == entry.due:
            if better:
                entry.priority = priority
        elif entry.place is DELAYED or better:
            self._drop(entry)
            priority = min(priority, entry.priority)
            self._put(Entry(due, 0, entry.key, priority, causes, READY), now)

    def _add_again(self, entry: Entry) -> None:
        """Keep what comes for a key that is worked on until that work ends."""
        again = self._again.setdefault(entry.key, entry)
        if again is not entry:
            again.due = min(again.due, entry.due)
            again.priority = min(again.priority, entry.priority)
            again.causes = _joined(again.causes, entry.causes)

    def _count(self, key: Key) -> tuple[float, bool]:
        """Count a failure: the pause that follows, and whether nothing shortens it.

        A key that was woken during its last trial gets the pause of the backoff instead
        of the cooldown; it does not come back at once, because a handler that wakes its
        own key and fails would never rest.
        """
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        held = failures >= self._breaker.failures
        if held and key not in self._woken:
            self._open.add(key)
            return self._breaker.cooldown, True
        return self._backoff.pause(failures, random=self._random), held


def _joined(some: tuple[Cause, ...], more: tuple[Cause, ...]) -> tuple[Cause, ...]:
    """The different causes of both, the first ones if there are too many."""
    for cause in more:
        if len(some) < CAUSES and cause not in some:
            some = (*some, cause)
    return some
