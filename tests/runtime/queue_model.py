"""The queue as one would write it without a thought for speed: what it must do."""

from __future__ import annotations

import math

import msgspec

from trimtab.runtime import Cause, Entry
from trimtab.runtime.queue import AGING, CAUSES, REQUEUE, RETRY, TIMER
from trimtab.runtime.reconcile import Key


class Wish(msgspec.Struct):
    """What is known of one key."""

    due: float
    priority: int
    causes: list[Cause]

    def join(self, other: Wish) -> None:
        self.due = min(self.due, other.due)
        self.priority = min(self.priority, other.priority)
        self.join_causes(other.causes)

    def join_causes(self, causes: list[Cause]) -> None:
        new = [cause for cause in causes if cause not in self.causes]
        self.causes = [*self.causes, *new][:CAUSES]


class Model:
    """Every law of the queue, checked at each take."""

    def __init__(self, *, limit: int, cooldown: float) -> None:
        self.limit = limit
        self.cooldown = cooldown
        self.waiting: dict[Key, Wish] = {}
        self.working: dict[Key, Wish] = {}
        self.again: dict[Key, Wish] = {}
        self.woken: set[Key] = set()
        self.failures: dict[Key, int] = {}
        self.open: set[Key] = set()
        self.takes = 0
        # For each ready (priority, namespace): who was served since it became ready, or
        # since it was served itself.
        self.served: dict[tuple[int, str], set[str]] = {}

    def add(self, key: Key, wish: Wish, *, wake: bool) -> None:
        if key in self.working:
            self._join(self.again, key, wish)
            if wake:
                self.woken.add(key)
        elif key in self.open and not wake:
            wish.due = self.waiting[key].due
            self.waiting[key].join(wish)
        else:
            self.open.discard(key)
            self._join(self.waiting, key, wish)

    def ready(self, now: float) -> dict[Key, Wish]:
        ready = {k: wish for k, wish in self.waiting.items() if wish.due <= now}
        self.open -= ready.keys()
        return ready

    def take(self, entry: Entry | None, now: float) -> None:
        ready = self.ready(now)
        if entry is None:
            assert not ready, "a key that is due was not handed out"
            return
        self.takes += 1
        assert entry.key not in self.working, "a key was handed out twice at once"
        assert entry.key in ready, "a key was handed out that is not due"
        wish = self.working[entry.key] = self.waiting.pop(entry.key)
        assert list(entry.causes) == wish.causes
        assert entry.priority == wish.priority
        assert entry.waited == now - wish.due
        assert entry.failures == self.failures.get(entry.key, 0)
        if self.takes % AGING:
            assert wish.priority == min(w.priority for w in ready.values())
        self._check_turns(ready, wish.priority, entry.key[0])

    def _check_turns(self, ready: dict[Key, Wish], lane: int, taken: str) -> None:
        """No namespace is served twice while another one waits for its turn."""
        places = {(wish.priority, key[0]) for key, wish in ready.items()}
        self.served = {place: self.served.get(place, set()) for place in places}
        self.served[lane, taken] = set()
        for (priority, namespace), served in self.served.items():
            if priority == lane and namespace != taken:
                assert taken not in served, f"{taken} was served twice before another"
                served.add(taken)

    def done(self, key: Key, now: float, after: float | None) -> None:
        del self.working[key]
        self.failures.pop(key, None)
        self.woken.discard(key)
        if after is not None:
            self._join(self.again, key, Wish(now + after, REQUEUE, list(TIMER)))
        if key in self.again:
            self.waiting[key] = self.again.pop(key)

    def failed(self, key: Key, now: float, after: float | None, pause: float) -> None:
        """Takes the random pause of the real queue, and checks it where it is fixed."""
        wish = self.working.pop(key)
        again = self.again.pop(key, None)
        woken = key in self.woken
        self.woken.discard(key)
        held = False
        if after is None:
            self.failures[key] = self.failures.get(key, 0) + 1
            held = self.failures[key] >= self.limit
        if held and not woken:
            # The difference of two moments, which rounds.
            assert math.isclose(pause, self.cooldown)
            self.open.add(key)
        elif after is not None and again is None:
            assert pause == max(0.0, now + after - now)
        retry = Wish(now + pause, REQUEUE, wish.causes)
        retry.join_causes(list(RETRY))
        if again is not None:
            if not held and again.due <= now + pause:
                retry.due = again.due
            retry.priority = min(retry.priority, again.priority)
            retry.join_causes(again.causes)
        self.waiting[key] = retry

    def forget(self, key: Key) -> None:
        for known in (self.waiting, self.again, self.failures):
            known.pop(key, None)
        self.open.discard(key)
        self.woken.discard(key)

    @staticmethod
    def _join(wishes: dict[Key, Wish], key: Key, wish: Wish) -> None:
        if key in wishes:
            wishes[key].join(wish)
        else:
            wishes[key] = wish
