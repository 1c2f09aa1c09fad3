"""The file under the store: its format, who may open it, and all that is done to it.

One process at a time: it holds a lock on a small file beside the data (``NAME.lock``)
for as long as the data is open. A file is read and proven whole *before* SQLite may
write to it, so one that is refused is left as it was found, byte for byte. A new file
appears complete, or not at all: it is made under another name and renamed.

Once it is open, everything goes through the few methods of :class:`StoreFile`, and what
SQLite complains of leaves them as a :class:`~.storeproblems.StoreProblem`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import stat
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from trimtab.embedded.storeproblems import (
    StoreDamaged,
    StoreForeign,
    StoreLocked,
    StoreTooNew,
    StoreUnavailable,
    problem,
)

# "TRMT": says in the file's header that the tables are ours.
APPLICATION = 0x54524D54
# Raised by one whenever an older Trimtab could not read, or would spoil, the file.
FORMAT = 1
# Every value is written once, under the revision of its write. `current` and `log` only
# point at values; `log` holds exactly the revisions after `meta.compacted`, without a
# gap. Its last two columns are running totals, so that opening has nothing to count.
# `meta` holds the totals as of the last compaction, for when the log is empty.
SCHEMA = (
    """CREATE TABLE value (revision INTEGER PRIMARY KEY, checksum INTEGER NOT NULL,
    value BLOB NOT NULL)""",
    """CREATE TABLE current (key TEXT PRIMARY KEY, revision INTEGER NOT NULL,
    created INTEGER NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE log (revision INTEGER PRIMARY KEY, key TEXT NOT NULL,
    created INTEGER NOT NULL, previous INTEGER NOT NULL, deleted INTEGER NOT NULL,
    objects INTEGER NOT NULL, superseded INTEGER NOT NULL)""",
    """CREATE TABLE meta (id INTEGER PRIMARY KEY CHECK (id = 1),
    revision INTEGER NOT NULL, objects INTEGER NOT NULL, superseded INTEGER NOT NULL,
    compacted INTEGER NOT NULL, dropped INTEGER NOT NULL)""",
)
FIRST = "INSERT INTO meta VALUES (1, 1, 0, 0, 0, 0)"
# The laws between the tables; each gives a row where it is broken. SQLite's own check
# knows the pages, not what they mean. These walk whole tables, once, at the start.
LAWS = (
    """SELECT 1 FROM current LEFT JOIN value USING (revision)
    WHERE value.revision IS NULL LIMIT 1""",
    """SELECT 1 FROM log LEFT JOIN value ON value.revision = log.previous
    WHERE log.previous > 0 AND value.revision IS NULL LIMIT 1""",
    """SELECT 1 WHERE (SELECT count(*) FROM meta) <> 1""",
    """SELECT 1 FROM meta WHERE (SELECT count(*) FROM current) <>
    coalesce((SELECT objects FROM log ORDER BY revision DESC LIMIT 1), objects)""",
    """SELECT 1 FROM meta, (SELECT count(*) AS size, min(revision) AS low,
    max(revision) AS high FROM log) WHERE size > 0 AND (high - low + 1 <> size
    OR low <> max(compacted, 1) + 1 OR high < revision)""",
    """SELECT 1 FROM meta WHERE NOT EXISTS (SELECT 1 FROM log)
    AND revision <> max(compacted, 1)""",
)
VALUES = "SELECT revision, checksum, value FROM value"
MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100
PAGE_BYTES = 4096
# All that SQLite may hold of the file in memory.
CACHE_KIBIBYTES = 4096
# A checkpoint waits for the disk; every 4 MiB that is a matter of milliseconds.
CHECKPOINT_PAGES = 1000
# How long another program (a backup, a database shell) may hold us up.
PATIENCE_SECONDS = 1.0

Synchronous = Literal["normal", "full"]
Arguments = tuple[Any, ...]


class StoreFile:
    """An open database: one way in for reading, one for writing.

    *Guarantees.* A transaction is in the file when :meth:`transact` returns, and no
    part of it is when it raises a :class:`StoreProblem`. Reads see whole transactions.
    """

    def __init__(
        self, connection: sqlite3.Connection, *, path: Path | None, lock: Lock | None
    ) -> None:
        self.path = path
        self._connection = connection
        self._lock = lock

    def query(self, statement: str, arguments: Arguments = ()) -> list[Any]:
        """All rows of one statement."""
        try:
            return self._connection.execute(statement, arguments).fetchall()
        except sqlite3.Error as error:
            raise problem(error, self.path) from error

    def transact(self, steps: Iterable[tuple[str, Arguments]]) -> None:
        """All of the statements, or none of them."""
        execute = self._connection.execute
        try:
            execute("BEGIN IMMEDIATE")
            for statement, arguments in steps:
                execute(statement, arguments)
            execute("COMMIT")
        except BaseException as error:
            if self._connection.in_transaction:
                execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise problem(error, self.path) from error
            raise

    def pages(self) -> tuple[int, int]:
        """How many pages the database has, and how many of them are free."""
        [[pages]] = self.query("PRAGMA page_count")
        [[free]] = self.query("PRAGMA freelist_count")
        return int(pages), int(free)

    def shrink(self, pages: int) -> None:
        """Give free pages back to the system; at most so many."""
        try:
            # A script, since execute() stops after the first page of this pragma.
            self._connection.executescript(f"PRAGMA incremental_vacuum({pages})")
        except sqlite3.Error as error:
            raise problem(error, self.path) from error

    def size(self) -> int:
        """The bytes that the data takes, the journal included."""
        total = self.pages()[0] * PAGE_BYTES
        if self.path is not None:
            with contextlib.suppress(FileNotFoundError):
                total += beside(self.path, "-wal").stat().st_size
        return total

    def close(self) -> None:
        """Write the journal back into the file and let go of it; twice is once."""
        self._connection.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None


class Lock:
    """One process's right to one path; the kernel ends it with the process."""

    def __init__(self, path: Path) -> None:
        self._path = beside(path, ".lock")
        self._handle = -1
        while self._handle < 0:
            self._handle = self._attempt(path)

    def _attempt(self, path: Path) -> int:
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with contextlib.ExitStack() as undo:
            undo.callback(os.close, handle)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(handle, 20, 0).decode("ascii", "replace")
                raise StoreLocked(path, holder) from None
            # Who had it before us may just have removed what we opened.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(self._path)):
                    os.ftruncate(handle, 0)
                    os.pwrite(handle, b"%d" % os.getpid(), 0)
                    undo.pop_all()
                    return handle
        return -1

    def release(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._handle)


def open_file(
    path: str | os.PathLike[str] | None, *, synchronous: Synchronous
) -> StoreFile:
    """The store's file, made if there is none; ``None`` keeps everything in memory.

    *Errors.* :class:`StoreProblem` in all its kinds; nothing was written then.
    """
    if path is None:
        connection = connect(":memory:")
        lay(connection)
        return StoreFile(tuned(connection, synchronous), path=None, lock=None)
    place = Path(path).resolve()
    with contextlib.ExitStack() as undo, telling(place):
        lock = Lock(place)
        undo.callback(lock.release)
        if exists(place):
            prove(place)
        else:
            create(place)
        connection = undo.enter_context(contextlib.closing(connect(str(place))))
        # Before anything is read, and for good: SQLite then keeps the index of its
        # journal on the heap, takes no lock for each transaction, and lets nobody in.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        tuned(connection, synchronous).execute("BEGIN IMMEDIATE")
        connection.execute("COMMIT")
        undo.pop_all()
        return StoreFile(connection, path=place, lock=lock)


@contextlib.contextmanager
def telling(path: Path) -> Iterator[None]:
    """Errors of the system and of SQLite as problems of the store at ``path``."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        what = f"{(error.strerror or str(error)).lower()}: {where}"
        raise StoreUnavailable(path, what) from error
    except sqlite3.Error as error:
        raise problem(error, path) from error


def exists(path: Path) -> bool:
    """Whether there is a file to open; refuses what its header shows not to be ours."""
    if not os.path.lexists(path):
        if os.path.lexists(beside(path, "-wal")):
            raise StoreDamaged(path, f"it is gone, but not its journal {path.name}-wal")
        return False
    if not stat.S_ISREG(path.stat().st_mode):
        raise StoreUnavailable(path, "not a regular file")
    # Opened for writing only to learn whether that is allowed.
    with path.open("r+b") as file:
        header = file.read(HEADER_BYTES)
    check_header(path, header)
    return True


def check_header(path: Path, header: bytes) -> None:
    if not header or (header.startswith(MAGIC) and len(header) < HEADER_BYTES):
        raise StoreDamaged(path, "it is empty" if not header else "it was cut short")
    application = int.from_bytes(header[68:72])
    if not header.startswith(MAGIC) or application != APPLICATION:
        raise StoreForeign(path)
    if (found := int.from_bytes(header[60:64])) > FORMAT:
        raise StoreTooNew(path, found=found, known=FORMAT)
    if found < 1 or int.from_bytes(header[16:18]) != PAGE_BYTES:
        raise StoreDamaged(path, "its header makes no sense")


def prove(path: Path) -> None:
    """Refuse a file that is not whole, without writing to it.

    A connection that may only read replays the journal in memory and leaves both
    files alone; what it puts beside them is removed.
    """
    made = [beside(path, suffix) for suffix in ("-shm", "-wal")]
    made = [each for each in made if not each.exists()]
    address = f"file:{quote(str(path))}?mode=ro"
    try:
        with contextlib.closing(connect(address, uri=True)) as connection:
            found = connection.execute("SELECT sql FROM sqlite_schema").fetchall()
            if {sql for (sql,) in found} != set(SCHEMA):
                raise StoreDamaged(path, "its tables are not the ones that belong here")
            [(verdict,)] = connection.execute("PRAGMA quick_check(1)").fetchall()
            if verdict != "ok":
                raise StoreDamaged(path, " ".join(verdict.split()))
            if any(connection.execute(law).fetchall() for law in LAWS):
                raise StoreDamaged(path, "its tables disagree")
            for revision, expected, value in connection.execute(VALUES):
                if checksum(revision, value) != expected:
                    raise StoreDamaged(path, f"the value of revision {revision}")
    finally:
        for each in made:
            each.unlink(missing_ok=True)


def checksum(revision: int, value: bytes) -> int:
    """What tells a value from one that a failing disk has changed."""
    return zlib.crc32(value, revision & 0xFFFFFFFF)


def create(path: Path) -> None:
    """An empty store at ``path``: all of it, or nothing."""
    fresh = beside(path, ".new")
    for suffix in ("", "-wal", "-shm", "-journal"):
        beside(fresh, suffix).unlink(missing_ok=True)
    # It will hold Secrets, and SQLite gives its journal the same mode.
    os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with contextlib.closing(connect(str(fresh))) as connection:
        lay(connection)
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
    fresh.rename(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def connect(address: str, *, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(
        address, uri=uri, isolation_level=None, timeout=PATIENCE_SECONDS
    )


def lay(connection: sqlite3.Connection) -> None:
    """The format and the tables, in an empty database."""
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("BEGIN")
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    for statement in (*SCHEMA, FIRST):
        connection.execute(statement)
    connection.execute("COMMIT")


def tuned(
    connection: sqlite3.Connection, synchronous: Synchronous
) -> sqlite3.Connection:
    """The same connection, with the settings that are not kept in the file."""
    for setting in (
        f"synchronous = {synchronous}",
        "fullfsync = ON",  # where fsync alone does not reach the disk (macOS)
        f"cache_size = -{CACHE_KIBIBYTES}",
        "mmap_size = 0",
        "temp_store = MEMORY",
        # Overwriting what is freed would double the cost of forgetting.
        "secure_delete = OFF",
        f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
        f"journal_size_limit = {4 * CHECKPOINT_PAGES * PAGE_BYTES}",
    ):
        connection.execute(f"PRAGMA {setting}").fetchall()
    return connection


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
