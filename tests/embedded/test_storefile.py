"""A store's file is opened by one process, if it is whole, or left as it was."""

from __future__ import annotations

import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from trimtab.embedded.store import (
    Row,
    Store,
    StoreDamaged,
    StoreForeign,
    StoreLocked,
    StoreProblem,
    StoreTooNew,
    StoreUnavailable,
)
from trimtab.embedded.storefile import FORMAT, PAGE_BYTES, open_file

OPEN_AND_WAIT = """
import sys
from trimtab.embedded.store import Store
store = Store(sys.argv[1])
store.put("a", b"1")
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def fill(path: Path, *, rows: int = 40) -> list[Row]:
    """A store with a little of everything: long values, history, free pages."""
    generator = random.Random(7)
    with closing(Store(path)) as store:
        for number in range(rows):
            store.put(f"/{number % 29}", generator.randbytes(400 * (number % 23)))
        store.compact(rows // 4)
        store.delete("/3", make=lambda _: b"last")
        return store.range("")


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file there: its bytes and when it was written."""
    return {
        each.name: (each.read_bytes(), each.stat().st_mtime_ns)
        for each in sorted(folder.iterdir())
        if each.is_file()
    }


def refused(path: Path, kind: type[StoreProblem], match: str = ".") -> None:
    """It does not open, says so in one sentence, and nothing has changed."""
    before = contents(path.parent)
    with pytest.raises(kind, match=match) as raised:
        Store(path)
    sentence = str(raised.value)
    assert str(path) in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert contents(path.parent) == before


def overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def test_what_was_written_is_there_when_it_is_opened_again(path: Path) -> None:
    rows = fill(path)
    with closing(Store(path)) as store:
        assert store.range("") == rows
        assert store.statistics().objects == len(rows)
    assert list(path.parent.iterdir()) == [path]


def test_closing_twice_is_closing_once(path: Path) -> None:
    store = Store(path)
    store.close()
    store.close()
    Store(path).close()


def test_nobody_else_may_read_the_files(path: Path) -> None:
    mask = os.umask(0)
    try:
        with closing(Store(path)) as store:
            store.put("secret", b"x")
            modes = {each.name: each.stat().st_mode for each in path.parent.iterdir()}
    finally:
        os.umask(mask)
    assert {"store.db", "store.db-wal"} <= modes.keys()
    assert {mode & 0o777 for mode in modes.values()} == {0o600}


def test_full_durability_is_there_for_the_asking(path: Path) -> None:
    with closing(open_file(path, synchronous="full")) as file:
        assert file.query("PRAGMA synchronous") == [(2,)]
    with closing(open_file(path, synchronous="normal")) as file:
        assert file.query("PRAGMA synchronous") == [(1,)]
        assert file.query("PRAGMA journal_mode") == [("wal",)]


def test_a_page_that_was_overwritten_is_always_noticed(path: Path) -> None:
    fill(path)
    good = path.read_bytes()
    noise = random.Random(3).randbytes(PAGE_BYTES)
    assert len(good) > 40 * PAGE_BYTES
    for page in range(len(good) // PAGE_BYTES):
        for bad in (noise, bytes(PAGE_BYTES)):
            overwrite(path, page * PAGE_BYTES, bad)
            before = path.read_bytes()
            # Of a page that is free it does not matter.
            try:
                with closing(Store(path)) as store:
                    store.range("")
                    store.changes(since=store.compacted)
            except (StoreDamaged, StoreForeign):
                assert path.read_bytes() == before
            else:
                assert free(good, page)
            path.write_bytes(good)


def free(database: bytes, page: int) -> bool:
    """Whether SQLite has that page on its list of free ones."""
    trunk, found = int.from_bytes(database[32:36]), set()
    while trunk:
        start = (trunk - 1) * PAGE_BYTES
        words = [
            int.from_bytes(database[at : at + 4])
            for at in range(start, start + PAGE_BYTES, 4)
        ]
        found |= {trunk, *words[2 : 2 + words[1]]}
        trunk = words[0]
    return page + 1 in found


def test_one_changed_byte_of_a_value_is_noticed(path: Path) -> None:
    with closing(Store(path)) as store:
        store.put("a", b"x" * 1000 + b"needle" + b"x" * 1000)
    overwrite(path, path.read_bytes().index(b"needle"), b"N")
    refused(path, StoreDamaged, "revision 2")


@pytest.mark.parametrize("kept", [0, 50, 100, 4096, 5000, 40960])
def test_a_file_that_was_cut_is_damaged(path: Path, kept: int) -> None:
    fill(path)
    os.truncate(path, kept)
    refused(path, StoreDamaged)


@pytest.mark.parametrize(
    "mischief",
    [
        "DELETE FROM value WHERE revision = (SELECT max(revision) FROM current)",
        "DELETE FROM log WHERE revision = 20",
        "DELETE FROM meta",
        "UPDATE meta SET revision = 1000",
        "UPDATE meta SET compacted = compacted - 1",
        "DELETE FROM current WHERE key = '/5'",
        "DROP TABLE log",
        "ALTER TABLE log ADD COLUMN more",
        "CREATE INDEX more ON log (key)",
    ],
)
def test_tables_that_disagree_are_damage(path: Path, mischief: str) -> None:
    fill(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(mischief)
    refused(path, StoreDamaged, "tables")


def test_a_damaged_file_keeps_the_journal_that_may_save_it(path: Path) -> None:
    """After a kill the journal holds the newest writes: nothing may replay it."""
    fill(path)
    with subprocess.Popen(
        [sys.executable, "-c", OPEN_AND_WAIT, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        process.kill()
    assert path.with_name("store.db-wal").stat().st_size > 0
    path.with_name("store.db.lock").unlink()
    overwrite(path, path.stat().st_size // 2, os.urandom(PAGE_BYTES))
    refused(path, StoreDamaged)


def test_a_journal_without_its_file_is_damage(path: Path) -> None:
    path.with_name("store.db-wal").write_bytes(b"the last writes")
    refused(path, StoreDamaged, "journal")


@pytest.mark.parametrize("text", [b"apiVersion: v1\n", b"\0" * 8192])
def test_another_file_is_left_alone(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    refused(path, StoreForeign)


def test_another_database_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (a)")
    refused(path, StoreForeign)


def test_a_file_from_a_newer_version_is_left_alone(path: Path) -> None:
    fill(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    refused(path, StoreTooNew, f"format {FORMAT + 1}")


def test_a_folder_or_a_pipe_is_no_file(path: Path) -> None:
    path.mkdir()
    refused(path, StoreUnavailable, "not a regular file")
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(StoreUnavailable, match="not a regular file"):
        Store(path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="no such file or directory"):
        Store(tmp_path / "nowhere" / "store.db")


@contextmanager
def powerless() -> Iterator[Path]:
    """A folder where this process may do only what the modes of files say."""
    with TemporaryDirectory(dir="/tmp") as folder:
        try:
            yield Path(folder)
        finally:
            if os.getuid() == 0:
                os.seteuid(0)
            Path(folder).chmod(0o700)


@pytest.mark.parametrize("locked", ["folder", "file"])
def test_what_may_not_be_written_says_so(locked: str) -> None:
    with powerless() as folder:
        path = folder / "store.db"
        Store(path).close()
        path.chmod(0o600 if locked == "folder" else 0o400)
        folder.chmod(0o555 if locked == "folder" else 0o777)
        if os.getuid() == 0:
            os.seteuid(65534)
        with pytest.raises(StoreUnavailable, match="permission denied"):
            Store(path)
        assert list(folder.iterdir()) == [path]


def test_a_store_is_open_once_in_a_process(path: Path) -> None:
    with closing(Store(path)) as store:
        with pytest.raises(StoreLocked, match=f"process {os.getpid()}"):
            Store(path)
        alias = path.with_name("alias")
        alias.symlink_to(path)
        with pytest.raises(StoreLocked):
            Store(alias)
        store.put("a", b"")
    Store(path).close()


def test_a_second_process_is_refused_until_the_first_has_died(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OPEN_AND_WAIT, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        refused(path, StoreLocked, f"process {process.pid}")
        process.send_signal(signal.SIGKILL)
        process.wait()
        with closing(Store(path)) as store:
            assert store.get("a") == Row("a", b"1", 2, 2)


def test_another_program_in_the_file_is_an_answer_too(path: Path) -> None:
    fill(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLocked, match="another program"):
            Store(path)
        shell.execute("ROLLBACK")
    with closing(Store(path)), closing(sqlite3.connect(path, timeout=0)) as shell:
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            shell.execute("SELECT * FROM current")


def test_a_creation_that_was_interrupted_leaves_nothing_in_the_way(path: Path) -> None:
    path.with_name("store.db.new").write_bytes(b"half")
    path.with_name("store.db.new-journal").write_bytes(b"half")
    Store(path).close()
    assert list(path.parent.iterdir()) == [path]


def test_a_new_file_appears_complete_or_not_at_all(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Store(path)
    assert not path.exists()
    Store(path).close()
    assert list(path.parent.iterdir()) == [path]


def test_a_full_disk_fails_the_write_and_nothing_else(path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with closing(Store(path)) as store:
        store.put("a", b"1")
        room = path.with_name("store.db-wal").stat().st_size + 3 * PAGE_BYTES
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        try:
            for _ in range(3):
                with pytest.raises(StoreUnavailable, match="disk"):
                    store.put("a", b"x" * 100_000)
                assert store.get("a") == Row("a", b"1", 2, 2)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert store.put("a", b"2").revision == 3
    with closing(Store(path)) as store:
        assert [change.value for change in store.changes(since=1)] == [b"1", b"2"]


def test_damage_that_shows_later_is_told_in_the_same_words(path: Path) -> None:
    fill(path, rows=200)
    with closing(Store(path)) as store:
        size = path.stat().st_size
        overwrite(path, 4 * PAGE_BYTES, os.urandom(size - 4 * PAGE_BYTES))
        with pytest.raises(StoreDamaged):
            store.range("")
