"""What can be wrong with a store's file, each in one sentence for the user.

All of them are raised before anything was written, or for a write that did not happen.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from trimtab.client.errors import TrimtabError


class StoreProblem(TrimtabError):
    """The data cannot be used; the message is one sentence for the user."""


class StoreDamaged(StoreProblem):
    """The file is not whole."""

    def __init__(self, path: Path | None, what: str) -> None:
        super().__init__(
            f"The store {named(path)} is damaged ({what}) and was left as it is:"
            " put a copy in its place, or move it away to start with an empty one."
        )


class StoreForeign(StoreProblem):
    """The file is something else than a store."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"The file {path} does not begin as a Trimtab store does and was left as"
            " it is: name another file, or move this one away."
        )


class StoreTooNew(StoreProblem):
    """The file was written by a later Trimtab."""

    def __init__(self, path: Path, *, found: int, known: int) -> None:
        super().__init__(
            f"The store {path} has format {found}, made by a newer Trimtab, and this"
            f" one reads format {known}: use the newer Trimtab, or another file."
        )


class StoreLocked(StoreProblem):
    """Somebody else has the file open."""

    def __init__(self, path: Path | None, holder: str = "") -> None:
        who = f"process {holder}" if holder else "another program"
        super().__init__(
            f"The store {named(path)} is in use by {who}:"
            " stop that one first, or name another file."
        )


class StoreUnavailable(StoreProblem):
    """The file or its folder cannot be read or written, or the disk is full."""

    def __init__(self, path: Path | None, what: str) -> None:
        super().__init__(
            f"The store {named(path)} cannot be read or written ({what}):"
            " see to the disk, the folder and the permissions, or name another file."
        )


def named(path: Path | None) -> str:
    return "in memory" if path is None else str(path)


def problem(error: sqlite3.Error, path: Path | None) -> Exception:
    """What a complaint of SQLite's means; a mistake of our own stays what it is."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreDamaged(path, str(error))
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreLocked(path)
    disk = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
    if code in (*disk, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return StoreUnavailable(path, str(error))
    return error
