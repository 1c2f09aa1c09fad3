"""The store keeps keys and values under one revision counter, and remembers."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.embedded import history, store, storefile
from trimtab.embedded.history import STEP_CHANGES, Change, bounds
from trimtab.embedded.store import Compacted, Mismatch, Row, Store
from trimtab.embedded.storefile import StoreFile

STATEMENT = re.compile(r"(SELECT|INSERT|UPDATE|DELETE)\b")


@pytest.fixture(params=["memory", "file"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    path = None if request.param == "memory" else tmp_path / "store.db"
    with closing(Store(path)) as opened:
        yield opened


def keys(rows: list[Row]) -> list[str]:
    return [row.key for row in rows]


def test_a_fresh_store_is_empty_at_revision_one(db: Store) -> None:
    assert (db.revision, db.compacted) == (1, 0)
    assert db.range("") == []
    assert db.changes(since=0) == []
    assert db.get("a") is None


def test_every_write_makes_the_next_revision_and_its_value_can_carry_it(
    db: Store,
) -> None:
    first = db.put("a", lambda revision: b"at %d" % revision)
    second = db.put("a", lambda revision: b"at %d" % revision)
    assert first == Row("a", b"at 2", 2, 2)
    assert second == Row("a", b"at 3", 3, 2)
    assert db.get("a") == second
    assert db.delete("a").revision == db.revision == 4


def test_a_write_happens_only_at_the_expected_revision(db: Store) -> None:
    with pytest.raises(Mismatch, match="does not exist") as missing:
        db.put("a", b"1", expect=7)
    assert missing.value.current is None
    row = db.put("a", b"1", expect=0)
    for wrong in (0, 1, 3):
        with pytest.raises(Mismatch, match="is at revision 2") as refused:
            db.put("a", b"2", expect=wrong)
        assert refused.value.current == row
        with pytest.raises(Mismatch):
            db.delete("a", expect=wrong)
    assert db.revision == row.revision
    assert db.put("a", b"2", expect=2).revision == 3
    assert db.delete("a", expect=3).previous == b"2"


def test_what_is_not_there_cannot_be_deleted(db: Store) -> None:
    for expect in (None, 0, 5):
        with pytest.raises(Mismatch):
            db.delete("a", expect=expect)
    assert db.revision == 1


def test_a_maker_that_fails_leaves_no_trace(db: Store) -> None:
    db.put("a", b"1")

    def make(revision: int) -> bytes:
        raise KeyError(revision)

    with pytest.raises(KeyError):
        db.put("a", make)
    with pytest.raises(KeyError):
        db.delete("a", make=make)
    assert db.get("a") == Row("a", b"1", 2, 2)
    assert db.put("b", b"").revision == 3


def test_a_maker_may_read_but_not_write(db: Store) -> None:
    db.put("a", b"1")
    assert db.put("b", lambda _: db.range("a")[0].value).value == b"1"
    with pytest.raises(RuntimeError):
        db.put("c", lambda _: db.put("d", b"").value)
    assert keys(db.range("")) == ["a", "b", "d"]


def test_a_key_that_comes_again_is_another_creation(db: Store) -> None:
    db.put("a", b"1")
    db.delete("a")
    assert db.put("a", b"2") == Row("a", b"2", 4, 4)
    assert db.changes(since=2) == [
        Change(3, "a", None, b"1", 2),
        Change(4, "a", b"2", None, 4),
    ]


def test_watchers_see_a_deletion_as_rendered_and_the_past_keeps_it_as_it_was(
    db: Store,
) -> None:
    db.put("a", b"old")
    change = db.delete("a", make=lambda revision: b"old, gone at %d" % revision)
    assert change == Change(3, "a", None, b"old, gone at 3", 2)
    assert db.changes(since=2) == [change]
    assert db.range("", revision=2) == [Row("a", b"old", 2, 2)]
    db.compact(3)
    assert db.statistics().superseded_bytes == 0


def test_a_prefix_is_taken_literally(db: Store) -> None:
    names = ["/a", "/a/", "/a/%", "/a/_", "/a/b", "/a0", "/b", "/ab"]
    for name in names:
        db.put(name, b"")
    assert keys(db.range("/a/")) == ["/a/", "/a/%", "/a/_", "/a/b"]
    assert keys(db.range("/a/%")) == ["/a/%"]
    assert keys(db.range("/a/", after="/a/%", limit=1)) == ["/a/_"]
    assert keys(db.range("/a/", after="/Z")) == keys(db.range("/a/"))
    assert db.count("/a/", after="/a/_") == 1


# Letters at the edges: of bytes in UTF-8, of the surrogates, of Unicode itself.
LETTERS = st.sampled_from(
    ["\0", "a", "b", "\x7f", "é", "\ud7ff", "\ue000", chr(0x10FFFF)]
)
TEXTS = st.text(LETTERS, max_size=4)


@given(st.sets(TEXTS, max_size=12), TEXTS, TEXTS)
def test_a_range_is_what_starts_with_its_prefix_in_the_order_of_text(
    names: set[str], prefix: str, after: str
) -> None:
    with closing(Store(None)) as db:
        for name in names:
            db.put(name, b"")
        found = sorted(n for n in names if n.startswith(prefix) and n > after)
        # After the empty key is after nothing: that is how one asks for all.
        if "" in names and not prefix and not after:
            found.insert(0, "")
        assert keys(db.range(prefix, after=after)) == found
        assert db.count(prefix, after=after) == len(found)


def test_bounds_never_need_a_character_that_does_not_exist() -> None:
    for prefix in ("a\ud7ff", chr(0x10FFFF), "a" + chr(0x10FFFF)):
        low, high = bounds(prefix, "")
        assert low.encode() == prefix.encode()
        assert isinstance(high, bytes) or high.encode() > prefix.encode()


def test_a_page_is_of_the_revision_it_names(db: Store) -> None:
    for name in "abcd":
        db.put(name, b"1")
    then = db.revision
    db.put("b", b"2")
    db.put("b", b"3")
    db.delete("c")
    db.put("c", b"again")
    db.delete("d")
    db.put("aa", b"new")
    assert keys(db.range("", limit=2, revision=then)) == ["a", "b"]
    rest = db.range("", after="b", revision=then)
    assert rest == [Row("c", b"1", 4, 4), Row("d", b"1", 5, 5)]
    assert db.count("", after="a", revision=then) == 3
    assert db.range("", revision=db.revision) == db.range("")


def test_the_future_cannot_be_listed_and_the_forgotten_says_so(db: Store) -> None:
    for _ in range(5):
        db.put("a", b"")
    with pytest.raises(ValueError, match="future"):
        db.range("", revision=7)
    with pytest.raises(ValueError, match="future"):
        db.compact(7)
    db.compact(4)
    assert db.compacted == 4
    for call in (
        lambda: db.range("", revision=3),
        lambda: db.count("", revision=3),
        lambda: db.changes(since=3),
    ):
        with pytest.raises(Compacted, match="Revision 3") as refused:
            call()
        assert refused.value.oldest == 4
    assert [change.revision for change in db.changes(since=4)] == [5, 6]
    assert db.changes(since=4)[0].previous == b""
    assert db.range("", revision=4)[0].revision == 4
    db.compact(2)
    assert db.compacted == 4
    assert db.changes(since=99) == []


def test_a_scan_is_of_one_revision_whatever_is_written_meanwhile(db: Store) -> None:
    for number in range(200):
        db.put(f"{number:03}", b"x" * 9000)
    expected = db.range("")
    found = []
    for row in db.scan(""):
        found.append(row)
        db.put(row.key, b"y")
        db.put(row.key + "+", b"z")
    assert found == expected


def test_a_scan_holds_a_mebibyte_or_one_row(db: Store) -> None:
    sizes: list[int] = []
    for number in range(60):
        db.put(f"{number:03}", b"x" * 400_000)
    ranged = db.range

    def watched(prefix: str, **options: object) -> list[Row]:
        rows = ranged(prefix, **options)  # type: ignore[arg-type]
        sizes.append(sum(len(row.value) for row in rows))
        return rows

    db.range = watched  # type: ignore[method-assign]
    assert sum(1 for _ in db.scan("")) == 60
    assert max(sizes[1:]) <= store.SCAN_BYTES


def test_a_scan_whose_revision_is_forgotten_says_so(db: Store) -> None:
    for number in range(100):
        db.put(f"{number:03}", b"")
    rows = db.scan("")
    next(rows)
    db.put("x", b"")
    db.compact(db.revision)
    with pytest.raises(Compacted):
        list(rows)


def test_changes_come_in_order_by_prefix_and_by_limit(db: Store) -> None:
    for value in (b"1", b"2", b"3"):
        db.put("a/x", value)
        db.put("b/x", value)
    assert [change.revision for change in db.changes(since=1)] == [2, 3, 4, 5, 6, 7]
    page = db.changes(since=2, prefix="a/", limit=1)
    assert page == [Change(4, "a/x", b"2", b"1", 2)]
    assert db.changes(since=4, prefix="a/") == [Change(6, "a/x", b"3", b"2", 2)]


def test_changes_are_forgotten_by_number_in_small_steps(db: Store) -> None:
    for number in range(3 * STEP_CHANGES):
        db.put("a", b"%d" % number)
    steps, before = 1, db.compacted
    while db.maintain(0.0, keep_changes=10):
        assert db.compacted - before <= STEP_CHANGES + 1
        steps, before = steps + 1, db.compacted
    assert steps >= 3
    assert db.compacted == db.revision - 10
    assert len(db.changes(since=db.compacted)) == 10


def test_changes_are_forgotten_by_the_bytes_that_only_they_need(db: Store) -> None:
    for _ in range(50):
        db.put("a", b"x" * 1000)
    db.put("kept", b"x" * 1_000_000)
    while db.maintain(0.0, keep_bytes=10_000):
        pass
    assert 10_000 <= db.statistics().superseded_bytes < 11_000
    assert db.changes(since=db.compacted)[0].previous == b"x" * 1000


def test_changes_are_forgotten_when_they_are_old_and_never_before(db: Store) -> None:
    written: dict[int, float] = {}
    for second in range(1000):
        db.maintain(float(second), keep_seconds=100)
        assert all(second - written[gone] >= 100 for gone in range(2, db.compacted + 1))
        written[db.put("a", b"").revision] = float(second)
    oldest = db.changes(since=db.compacted)[0].revision
    assert written[oldest] >= 1000 - 110


def test_a_store_that_was_closed_waits_a_full_period(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "db")) as db:
        db.put("a", b"")
        db.maintain(0.0)
    with closing(Store(tmp_path / "db")) as db:
        db.maintain(1000.0)
        assert db.changes(since=1)
        db.maintain(1299.0)
        assert db.changes(since=1)
        db.maintain(1301.0)
        assert db.compacted == db.revision == 2


def test_the_counter_survives_forgetting_everything(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "db")) as db:
        db.put("a", b"")
        db.delete("a")
        db.compact(3)
    with closing(Store(tmp_path / "db")) as db:
        assert (db.revision, db.compacted) == (3, 3)
        assert db.put("a", b"").revision == 4


def test_the_file_does_not_grow_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "db"
    sizes = []
    with closing(Store(path)) as db:
        for round in range(6):
            for number in range(500):
                db.put(f"{number % 20}", b"%d" % round + b"x" * 7000)
                db.maintain(0.0, keep_changes=50)
            sizes.append(db.statistics().file_bytes)
    assert sizes[-1] <= sizes[1]


def test_room_that_is_no_longer_needed_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with closing(Store(path)) as db:
        for number in range(3000):
            db.put(f"{number}", b"x" * 7000)
        full = db.statistics().file_bytes
        for number in range(3000):
            db.delete(f"{number}")
        while db.maintain(0.0, keep_changes=0):
            pass
    assert path.stat().st_size < full / 3


def test_statistics_say_what_there_is(db: Store) -> None:
    db.put("a", b"12345")
    db.put("a", b"123")
    db.put("b", b"")
    found = db.statistics()
    assert (found.objects, found.revision, found.compacted) == (2, 4, 0)
    assert (found.changes, found.superseded_bytes) == (3, 5)
    assert found.file_bytes > 0


def test_no_statement_walks_a_whole_table() -> None:
    """What a call costs does not grow with what is stored."""
    statements = {
        name: text
        for module in (store, history)
        for name, text in vars(module).items()
        if name.isupper() and isinstance(text, str) and STATEMENT.match(text)
    }
    assert {"GET", "RANGE", "POINT", "CHANGES", "PAST_RANGE"} < statements.keys()
    with closing(sqlite3.connect(":memory:")) as connection:
        storefile.lay(connection)
        for name, text in statements.items():
            slots = len(set(re.findall(r"\?\d", text))) or text.count("?")
            plan = connection.execute(f"EXPLAIN QUERY PLAN {text}", (1,) * slots)
            for *_, step in plan.fetchall():
                # What was already narrowed down is walked; and the table of one row.
                assert not re.match(r"SCAN (?!past|\(subquery)", step), (name, step)


def test_another_thread_is_refused(db: Store) -> None:
    raised: list[BaseException] = []

    def read() -> None:
        try:
            db.get("a")
        except sqlite3.ProgrammingError as error:
            raised.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert len(raised) == 1


def test_a_write_that_failed_before_the_commit_did_not_happen(
    db: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.put("a", b"1")
    seen: list[int] = []
    db.subscribe(lambda change: seen.append(change.revision))
    with monkeypatch.context() as patch:
        patch.setattr(store, "POINT", "INSERT INTO nowhere VALUES (?, ?, ?)")
        with pytest.raises(sqlite3.OperationalError, match="nowhere"):
            db.put("a", b"2")
    assert db.get("a") == Row("a", b"1", 2, 2)
    assert db.put("a", b"3") == Row("a", b"3", 3, 2)
    assert db.changes(since=1)[-1].previous == b"1"
    assert seen == [3]


def test_a_write_that_failed_after_the_commit_happened_and_everybody_learns_of_it(
    db: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Change] = []
    db.subscribe(seen.append)
    commit: Callable[..., None] = StoreFile.transact

    def interrupted(*arguments: object) -> None:
        commit(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StoreFile, "transact", interrupted)
        with pytest.raises(KeyboardInterrupt):
            db.put("a", b"1")
    assert db.get("a") == Row("a", b"1", 2, 2)
    assert db.put("a", b"2").revision == 3
    assert seen == db.changes(since=1)
