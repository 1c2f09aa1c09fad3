"""Files that hold secrets: read and written whole, and for this user only."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from trimtab.client.errors import TrimtabError


class FileProblem(TrimtabError):
    """A file or folder that cannot be used; the message is one sentence for people."""

    def __init__(self, path: Path, error: OSError, *, advice: str) -> None:
        why = error.strerror or type(error).__name__
        super().__init__(f"{path} cannot be used ({why}): {advice}.")


def make_private_folder(path: Path, *, advice: str) -> None:
    """Make a folder, and those above it, that only this user can look into.

    One that is there stays as it is, if it can be written to.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Asking whether we may is no answer on every system: only doing it is.
        descriptor, probe = tempfile.mkstemp(dir=path, prefix=".trimtab-")
        os.close(descriptor)
        os.unlink(probe)
    except OSError as error:
        raise FileProblem(path, error, advice=advice) from error


def write_private(path: Path, content: bytes, *, advice: str) -> None:
    """Write a file of mode 0600 in place of what is there, all of it or nothing.

    Guarantees: whoever reads it, also after a crash, finds the old content or the new.
    """
    temporary = ""
    try:
        # A link stays a link; what it points to gets the content.
        target = path.resolve()
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".trimtab-")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        if temporary:
            with suppress(OSError):
                os.unlink(temporary)
        raise FileProblem(path, error, advice=advice) from error


def read(path: Path, *, advice: str) -> bytes | None:
    """What a file holds; None if there is no such file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileProblem(path, error, advice=advice) from error
