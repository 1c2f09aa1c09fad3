"""Files that are written as a whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from trimtab.client.errors import TrimtabError


class CannotWrite(TrimtabError):
    """A folder cannot be written where it was asked for."""


def write_folder(
    folder: Path, files: Mapping[str, str], *, replace: bool = False
) -> None:
    """Write a folder of text files, all of them or none.

    Flow: everything is written into a folder beside it, which then takes its name. With
    ``replace`` a folder that is there goes, once the new one is complete.

    Errors: :class:`CannotWrite` when it is there, or the disk says no.
    """
    folder = folder.absolute()
    if folder.exists() and not replace:
        raise CannotWrite(
            f"{folder} is there already; name another folder, or remove it first."
        )
    if folder.exists() and not folder.is_dir():
        raise CannotWrite(f"{folder} is not a folder; name another.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise CannotWrite(f"{folder} cannot be made: {error.strerror}.") from error
    try:
        _fill(made, files)
        _swap(made, folder)
    except OSError as error:
        raise CannotWrite(f"{folder} cannot be written: {error.strerror}.") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _fill(folder: Path, files: Mapping[str, str]) -> None:
    folder.chmod(0o755)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _swap(made: Path, folder: Path) -> None:
    if not folder.exists():
        os.rename(made, folder)
        return
    old = made.with_name(f"{made.name}.old")
    os.rename(folder, old)
    try:
        os.rename(made, folder)
    except OSError:
        os.rename(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
