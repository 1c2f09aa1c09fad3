"""The store answers as a list of everything that ever happened would."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from trimtab.embedded import history
from trimtab.embedded.store import Change, Compacted, Mismatch, Row, Store

KEYS = st.sampled_from(["/a", "/a/b", "/a/b/c", "/a/b0", "/b", "/b/%", "/ü/z"])
PREFIXES = st.sampled_from(["", "/", "/a", "/a/", "/a/b", "/b/", "/ü", "/none"])
VALUES = st.binary(max_size=6) | st.integers(1, 3).map(lambda n: b"x" * (n * 5000))
LIMITS = st.integers(0, 4)


class Write(NamedTuple):
    """One thing that happened: what it wrote and, of a deletion, what it showed."""

    key: str
    value: bytes | None
    shown: bytes | None = None


class Model:
    """Every write since the beginning; all answers are worked out from them."""

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.compacted = 0

    @property
    def revision(self) -> int:
        return len(self.writes) + 1

    def state(self, revision: int) -> dict[str, Row]:
        rows: dict[str, Row] = {}
        for number, write in enumerate(self.writes[: revision - 1], start=2):
            if write.value is None:
                del rows[write.key]
                continue
            created = rows[write.key].created if write.key in rows else number
            rows[write.key] = Row(write.key, write.value, number, created)
        return rows

    def range(self, prefix: str, after: str, revision: int) -> list[Row]:
        rows = self.state(revision)
        return [
            rows[key]
            for key in sorted(rows)
            if key.startswith(prefix) and (not after or key > after)
        ]

    def change(self, revision: int) -> Change:
        write = self.writes[revision - 2]
        before = self.state(revision - 1).get(write.key)
        after = self.state(revision).get(write.key)
        row = after or before
        assert row is not None
        last = before.value if before else None
        previous = last if write.shown is None else write.shown
        return Change(revision, write.key, write.value, previous, row.created)


class StoreMachine(RuleBasedStateMachine):
    """Writes, reads of all ages, forgetting and reopening, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "store.db")
        self.model = Model()
        self.clock = 0.0
        self.told: list[Change] = []
        self.open()

    def open(self) -> None:
        self.store = Store(self.path)
        self.store.subscribe(self.told.append)

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def expected(self, key: str, guess: str) -> tuple[int | None, bool]:
        """What to expect of a key, and whether that is right."""
        row = self.model.state(self.model.revision).get(key)
        current = row.revision if row else 0
        expect = {"any": None, "right": current, "wrong": current + 1, "none": 0}[guess]
        return expect, expect is None or expect == current

    @rule(
        key=KEYS, value=VALUES, guess=st.sampled_from(["any", "right", "wrong", "none"])
    )
    def put(self, key: str, value: bytes, guess: str) -> None:
        expect, right = self.expected(key, guess)
        current = self.model.state(self.model.revision).get(key)
        if not right:
            with pytest.raises(Mismatch) as refused:
                self.store.put(key, value, expect=expect)
            assert refused.value.current == current
            return
        row = self.store.put(key, lambda revision: value, expect=expect)
        self.model.writes.append(Write(key, value))
        assert row == self.model.state(self.model.revision)[key]

    @rule(
        key=KEYS,
        shown=st.none() | VALUES,
        guess=st.sampled_from(["any", "right", "wrong"]),
    )
    def delete(self, key: str, shown: bytes | None, guess: str) -> None:
        expect, right = self.expected(key, guess)
        make = None if shown is None else lambda revision: shown
        if not right or key not in self.model.state(self.model.revision):
            with pytest.raises(Mismatch):
                self.store.delete(key, expect=expect, make=make)
            return
        change = self.store.delete(key, expect=expect, make=make)
        self.model.writes.append(Write(key, None, shown))
        assert change == self.model.change(self.model.revision)

    @rule(
        prefix=PREFIXES, after=st.just("") | KEYS, limit=LIMITS, back=st.integers(0, 30)
    )
    def read(self, prefix: str, after: str, limit: int, back: int) -> None:
        revision = max(self.model.revision - back, 1)
        if revision < self.model.compacted:
            with pytest.raises(Compacted):
                self.store.range(prefix, after=after, limit=limit, revision=revision)
            with pytest.raises(Compacted):
                self.store.count(prefix, after=after, revision=revision)
            return
        rows = self.model.range(prefix, after, revision)
        found = self.store.range(prefix, after=after, limit=limit, revision=revision)
        assert found == (rows[:limit] if limit else rows)
        assert self.store.count(prefix, after=after, revision=revision) == len(rows)
        scanned = self.store.scan(prefix, after=after, revision=revision)
        assert list(scanned) == rows

    @rule(prefix=PREFIXES, limit=LIMITS, back=st.integers(0, 30))
    def catch_up(self, prefix: str, limit: int, back: int) -> None:
        since = max(self.model.revision - back, 1)
        if since < self.model.compacted:
            with pytest.raises(Compacted) as refused:
                self.store.changes(since=since, prefix=prefix, limit=limit)
            assert refused.value.oldest == self.model.compacted
            return
        changes = [
            self.model.change(revision)
            for revision in range(since + 1, self.model.revision + 1)
            if self.model.writes[revision - 2].key.startswith(prefix)
        ]
        found = self.store.changes(since=since, prefix=prefix, limit=limit)
        assert found == (changes[:limit] if limit else changes)

    @precondition(lambda self: self.model.writes)
    @rule(back=st.integers(0, 10))
    def compact(self, back: int) -> None:
        target = max(self.model.revision - back, 2)
        self.store.compact(target)
        self.model.compacted = max(self.model.compacted, target)

    @rule(
        seconds=st.floats(0, 200),
        keep_changes=st.integers(0, 40),
        keep_bytes=st.integers(0, 60_000),
    )
    def maintain(self, seconds: float, keep_changes: int, keep_bytes: int) -> None:
        self.clock += seconds
        more = self.store.maintain(
            self.clock, keep_changes=keep_changes, keep_bytes=keep_bytes
        )
        assert self.store.compacted >= self.model.compacted
        self.model.compacted = self.store.compacted
        statistics = self.store.statistics()
        if not more:
            assert statistics.changes <= keep_changes
            # The step that goes below the limit is not taken.
            held = [len(each.previous or b"") for each in self.remembered()]
            assert sum(held[1:]) <= keep_bytes

    def remembered(self) -> list[Change]:
        return self.store.changes(since=self.store.compacted)

    @rule()
    def reopen(self) -> None:
        statistics = self.store.statistics()
        self.store.close()
        with closing(sqlite3.connect(self.path)) as connection:
            [size] = connection.execute("SELECT sum(length(value)) FROM value")
        rows = self.model.state(self.model.revision).values()
        needed = sum(len(row.value) for row in rows) + statistics.superseded_bytes
        assert (size[0] or 0) == needed, "a value is kept that nobody needs"
        self.open()

    @invariant()
    def stands_where_the_model_stands(self) -> None:
        assert self.store.revision == self.model.revision
        assert self.store.compacted == self.model.compacted
        state = self.model.state(self.model.revision)
        statistics = self.store.statistics()
        assert statistics.objects == len(state)
        assert self.store.get("/a") == state.get("/a")

    @invariant()
    def subscribers_were_told_everything(self) -> None:
        assert len(self.told) == len(self.model.writes)
        if self.told:
            assert self.told[-1] == self.model.change(self.model.revision)


@pytest.mark.parametrize("step", [2, history.STEP_CHANGES])
def test_the_store_agrees_with_a_list_of_all_writes(
    step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With steps of forgetting that are small, and as they are."""
    monkeypatch.setattr(history, "STEP_CHANGES", step)
    run_state_machine_as_test(
        StoreMachine, settings=settings(max_examples=40, stateful_step_count=40)
    )


@pytest.mark.long
def test_the_store_agrees_with_a_list_of_all_writes_at_length() -> None:
    run_state_machine_as_test(
        StoreMachine, settings=settings(max_examples=1000, stateful_step_count=80)
    )
