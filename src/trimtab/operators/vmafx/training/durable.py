"""Files that a crash leaves as they were, or as they should be, and never between."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Put a file in the place of what is there.

    Guarantees: when this returns, the content outlives a crash of the machine. Whoever
    reads it before, or after a crash, finds the old one or the new one as a whole.

    Assumptions: nobody else writes in the folder.
    """
    temporary = path.with_name(f".{path.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(temporary, flags, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)  # one that was left may have had another
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    os.replace(temporary, path)
    sync(path.parent)


def sync(folder: Path) -> None:
    """Make what was renamed in a folder outlive a crash."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
