"""The queue against its model, and its laws one by one."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from tests.runtime.queue_model import Model, Wish
from trimtab.runtime import Backoff, Breaker, Cause, Entry, Priority, Queue
from trimtab.runtime.queue import AGING, CAUSES, CHANGE, INITIAL, REQUEUE, RESYNC
from trimtab.runtime.reconcile import Key

KEYS: list[Key] = [(namespace, name) for namespace in "abcd" for name in "xyz"]
CHOSEN = [Cause("change", f"Pod a/{number}") for number in range(12)]
LIMIT, COOLDOWN = 3, 64.0
# Quarters are exact as floats, so that the model may compare them.
quarters = st.integers(0, 40).map(lambda number: number / 4)


def queue() -> Queue:
    return Queue(
        random=Random(7),
        backoff=Backoff(first=0.25, cap=8.0),
        breaker=Breaker(failures=LIMIT, cooldown=COOLDOWN),
    )


def taken(queue: Queue, now: float) -> Entry:
    entry = queue.take(now)
    assert entry is not None
    return entry


class Machine(RuleBasedStateMachine):
    """Any sequence of calls; the model checks each answer."""

    @initialize()
    def begin(self) -> None:
        self.now = 0.0
        self.queue = queue()
        self.model = Model(limit=LIMIT, cooldown=COOLDOWN)

    @rule(
        key=st.sampled_from(KEYS),
        delay=st.none() | quarters,
        priority=st.sampled_from(list(Priority)),
        cause=st.none() | st.sampled_from(CHOSEN),
        wake=st.booleans(),
    )
    def add(
        self,
        key: Key,
        delay: float | None,
        priority: int,
        cause: Cause | None,
        wake: bool,
    ) -> None:
        due = None if delay is None else self.now + delay
        self.queue.add(
            key, now=self.now, due=due, priority=priority, cause=cause, wake=wake
        )
        wish = Wish(due or self.now, priority, [cause] if cause else [])
        self.model.add(key, wish, wake=wake)

    @rule(numbers=st.lists(st.integers(0, 11), min_size=2, max_size=12))
    def add_many(self, numbers: list[int]) -> None:
        for number in numbers:
            self.add(KEYS[number], None, RESYNC, None, False)

    @rule(times=st.integers(1, 6))
    def take(self, times: int) -> None:
        for _ in range(times):
            self.model.take(self.queue.take(self.now), self.now)

    @rule(times=st.integers(1, 40))
    def serve(self, times: int) -> None:
        """Long runs, in which turns and aging show."""
        for _ in range(times):
            entry = self.queue.take(self.now)
            self.model.take(entry, self.now)
            if entry is not None:
                self.queue.done(entry.key, now=self.now)
                self.model.done(entry.key, self.now, None)
                self.add(entry.key, None, entry.priority, None, False)

    @precondition(lambda self: self.model.working)
    @rule(which=st.randoms(use_true_random=False), after=st.none() | quarters)
    def done(self, which: Random, after: float | None) -> None:
        key = which.choice(list(self.model.working))
        self.queue.done(key, now=self.now, after=after)
        self.model.done(key, self.now, after)

    @precondition(lambda self: self.model.working)
    @rule(which=st.randoms(use_true_random=False), after=st.none() | quarters)
    def failed(self, which: Random, after: float | None) -> None:
        key = which.choice(list(self.model.working))
        pause = self.queue.failed(key, now=self.now, after=after)
        if after is None:  # a random pause: let the model's due be the same float
            entry = self.queue._entries[key]
            self.model.failed(key, self.now, None, entry.due - self.now)
            self.model.waiting[key].due = entry.due
        else:
            self.model.failed(key, self.now, after, pause)

    @rule(key=st.sampled_from(KEYS))
    def forget(self, key: Key) -> None:
        self.queue.forget(key)
        self.model.forget(key)

    @rule(seconds=quarters)
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def wait_for_next(self) -> None:
        """The time that it names is one at which something is due, and no later."""
        due = self.queue.next_due()
        later = [w.due for w in self.model.waiting.values() if w.due > self.now]
        if due is not None and due > self.now:
            assert due == min(later)
            self.now = due
        elif due is None:
            assert not later

    @invariant()
    def counts(self) -> None:
        if not hasattr(self, "queue"):
            return
        ready = self.model.ready(self.now)
        statistics = self.queue.statistics(self.now)
        assert statistics.ready == len(ready) == self.queue.ready
        assert statistics.delayed == len(self.model.waiting) - len(ready)
        assert statistics.working == len(self.model.working)
        assert statistics.failing == len(self.model.failures)
        assert statistics.open == len(self.model.open)
        assert sum(statistics.ready_by_priority.values()) == len(ready)
        oldest = min((wish.due for wish in ready.values()), default=self.now)
        assert statistics.oldest == self.now - oldest
        assert len(self.queue) == len(self.model.waiting) + len(self.model.again)


Machine.TestCase.settings = settings(max_examples=150, stateful_step_count=40)
TestTheQueueDoesWhatItsModelSays = Machine.TestCase


def test_a_key_comes_out_once_for_all_that_came_for_it() -> None:
    line = queue()
    for number in range(20):
        line.add(("a", "x"), now=0, cause=Cause("change", f"Pod a/{number}"))
    assert len(taken(line, 0).causes) == CAUSES
    assert line.take(0) is None


def test_a_key_is_never_handed_out_while_it_is_worked_on() -> None:
    line = queue()
    line.add(("a", "x"), now=0)
    entry = taken(line, 0)
    line.add(entry.key, now=0)
    assert line.take(0) is None
    line.done(entry.key, now=1)
    assert taken(line, 1).key == entry.key


def test_keys_of_one_namespace_come_out_in_the_order_they_came_in() -> None:
    line = queue()
    names = [str(number) for number in range(20)]
    for name in names[:10]:
        line.add(("a", name), now=0)
    out = [taken(line, 0).key[1] for _ in range(3)]
    for name in names[10:]:
        line.add(("a", name), now=0)
    out += [taken(line, 0).key[1] for _ in range(17)]
    assert out == names


def test_a_namespace_of_a_thousand_keys_takes_turns_with_a_namespace_of_one() -> None:
    line = queue()
    for number in range(1000):
        line.add(("large", str(number)), now=0)
    line.add(("small", "x"), now=0)
    assert [taken(line, 0).key[0] for _ in range(2)] == ["large", "small"]


@pytest.mark.parametrize("starving", [REQUEUE, INITIAL, RESYNC])
def test_no_priority_waits_for_ever(starving: int) -> None:
    line = queue()
    keys = {priority: ("a", str(priority)) for priority in range(4)}
    for priority, key in keys.items():
        line.add(key, now=0, priority=priority)
    for _ in range(3 * AGING):
        entry = taken(line, 0)
        if entry.priority == starving:
            break
        line.done(entry.key, now=0)
        line.add(entry.key, now=0, priority=entry.priority)
    assert entry.priority == starving


def test_a_live_change_moves_a_waiting_key_to_the_front() -> None:
    line = queue()
    for name in "xyz":
        line.add(("a", name), now=0, priority=INITIAL)
    line.add(("a", "z"), now=1, priority=CHANGE)
    entry = taken(line, 2)
    assert (entry.key, entry.waited) == (("a", "z"), 2.0)


def fail(line: Queue, key: Key, *, times: int, now: float = 0.0) -> float:
    """Fails a key so often; says when it is back."""
    for _ in range(times):
        line.add(key, now=now, wake=True)
        assert taken(line, now).key == key
        now += line.failed(key, now=now)
    return now


def test_pauses_grow_until_a_success() -> None:
    line = Queue(random=Random(7), backoff=Backoff(first=1.0, jitter=0.0))
    pauses = []
    line.add(("a", "x"), now=0)
    now = 0.0
    for _ in range(4):
        pauses.append(line.failed(taken(line, now).key, now=now))
        now += pauses[-1]
    assert pauses == [1.0, 2.0, 4.0, 8.0]
    entry = taken(line, now)
    assert entry.failures == 4
    line.done(entry.key, now=now, after=1.0)
    assert line.failed(taken(line, now + 1).key, now=now) == 1.0


def test_an_open_key_is_not_brought_back_by_ordinary_changes() -> None:
    line = queue()
    back = fail(line, ("a", "x"), times=LIMIT)
    line.add(("a", "x"), now=back - COOLDOWN, cause=CHOSEN[0])
    assert line.statistics(back - 0.5).open == 1
    assert line.take(back - 0.5) is None
    entry = taken(line, back)
    assert CHOSEN[0] in entry.causes


def test_an_open_key_that_is_woken_gets_one_trial() -> None:
    line = queue()
    now = fail(line, ("a", "x"), times=LIMIT) - COOLDOWN + 1
    line.add(("a", "x"), now=now, wake=True)
    entry = taken(line, now)
    assert line.failed(entry.key, now=now) == COOLDOWN
    line.add(("a", "x"), now=now)
    assert line.take(now + 1) is None


def test_a_handler_that_wakes_its_own_key_and_fails_does_not_run_hot() -> None:
    line = queue()
    now = fail(line, ("a", "x"), times=LIMIT)
    for _ in range(50):
        entry = taken(line, now)
        line.add(entry.key, now=now, wake=True)
        pause = line.failed(entry.key, now=now)
        assert 0.8 <= pause <= 8.0
        now += pause


def test_a_success_closes_the_breaker() -> None:
    line = queue()
    now = fail(line, ("a", "x"), times=LIMIT)
    line.done(taken(line, now).key, now=now)
    line.add(("a", "x"), now=now)
    assert line.failed(taken(line, now).key, now=now) < 1.0
    assert line.statistics(now).open == 0


def test_a_planned_retry_is_not_a_failure() -> None:
    line = queue()
    line.add(("a", "x"), now=0)
    for now in range(0, 100, 5):
        assert line.failed(taken(line, now).key, now=now, after=5.0) == 5.0
    assert line.statistics(100).failing == 0


def test_a_forgotten_key_leaves_nothing_behind() -> None:
    line = queue()
    fail(line, ("a", "x"), times=LIMIT)
    line.forget(("a", "x"))
    statistics = line.statistics(0)
    assert (len(line), statistics.failing, statistics.open) == (0, 0, 0)
    assert line.next_due() is None


def test_ending_work_that_was_not_begun_is_refused() -> None:
    line = queue()
    line.add(("a", "x"), now=0)
    with pytest.raises(AssertionError, match="not being worked on"):
        line.done(("a", "x"), now=0)


def test_memory_is_bounded_by_the_living_keys_however_often_they_move() -> None:
    line = queue()
    for number in range(2_000):
        key = ("a", str(number % 10))
        line.add(key, now=0, due=1e6 - number)  # ever earlier: each leaves a leftover
        line.add(("b", key[1]), now=0, priority=RESYNC)
        line.add(("b", key[1]), now=0, priority=CHANGE)  # from one lane to another
        line.done(taken(line, 0).key, now=0)
    assert len(line._delayed) < 200
    assert all(lane._gone < 200 for lane in line._lanes)


@pytest.mark.parametrize("namespaces", [1, 700, 4000])
@pytest.mark.parametrize("delay", [0.0, 1000.0])
def test_a_waiting_key_costs_less_than_300_bytes(namespaces: int, delay: float) -> None:
    keys = [(f"team-{n % namespaces}", f"session-{n}") for n in range(4000)]
    cause = Cause("initial", "Session")
    tracemalloc.start()
    try:
        line = queue()
        before, _ = tracemalloc.get_traced_memory()
        for number, key in enumerate(keys):
            now = float(number)
            line.add(key, now=now, due=now + delay, priority=INITIAL, cause=cause)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / len(keys) < 300
