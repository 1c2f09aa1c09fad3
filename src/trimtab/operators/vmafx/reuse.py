"""Reuse: scores that were made before, on disk, found by what the clips contain.

An entry is named by a hash of both files' bytes, the model, the segment and the tool,
so it is never wrong, whatever the files are called. It carries a hash of itself: what
was damaged is as if it were not there. The oldest used go when there are too many.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import tempfile
import threading
from array import array
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from trimtab.operators.vmafx.node import Scorer
from trimtab.operators.vmafx.problems import BadInput
from trimtab.operators.vmafx.scores import Score
from trimtab.operators.vmafx.scoring import MODEL
from trimtab.operators.vmafx.segments import Segment
from trimtab.operators.vmafx.sources import source

log = logging.getLogger(__name__)

MOST_BYTES = 1 << 30
MOST_ENTRIES = 10_000
# Counted up when a score comes to mean something else.
_FORM = "1"
_HASH = 32
_MOST_KNOWN = 256
# Seconds after which a change of a file shows in its times on every file system.
_SETTLED = 3.0

# Which file it is, and that nobody has written to it since.
_Mark = tuple[int, int, int, int, int]


class Counts(msgspec.Struct):
    """What became of those who asked."""

    hits: int = 0
    misses: int = 0
    damaged: int = 0
    evicted: int = 0


class Reuse:
    """Scores in a folder of its own.

    Guarantees: a score is given only for files with the same bytes, the same model, the
    same segment and the same ``tool``. Entries are written whole or not at all. After
    each one there are at most ``most_entries``, of ``most_bytes`` together.

    Assumptions: the folder is this user's alone. Several processes may share it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        tool: str,
        now: Callable[[], datetime],
        most_bytes: int = MOST_BYTES,
        most_entries: int = MOST_ENTRIES,
    ) -> None:
        """Errors: ``OSError`` where the folder cannot be, or is not ours alone."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = folder.stat()
        if owner.st_uid != os.getuid() or owner.st_mode & 0o022:
            raise PermissionError(f"{folder} can be written by others")
        self._folder = folder
        self._tool = tool
        self._now = now
        self._most_bytes = most_bytes
        self._most_entries = most_entries
        # Threads look here; no more than a few hundred files are remembered.
        self._known: dict[_Mark, bytes] = {}
        self._lock = threading.Lock()
        self.counts = Counts()

    def scorer(self, scorer: Scorer) -> Scorer:
        """The same scorer, which measures only what was not measured before."""

        async def scored(
            reference: str,
            distorted: str,
            *,
            model: str,
            progress: Callable[[int, int | None], None],
            segment: Segment | None = None,
        ) -> Score:
            async def measured() -> Score:
                return await scorer(
                    reference,
                    distorted,
                    model=model,
                    progress=progress,
                    segment=segment,
                )

            paths = _local(reference, distorted)
            if paths is None:
                return await measured()  # what is elsewhere is read once, by ffmpeg
            key = await asyncio.to_thread(self._key, paths, model, segment)
            found = await asyncio.to_thread(self._read, key) if key else None
            if found is not None:
                self.counts.hits += 1
                return found
            self.counts.misses += 1
            made = await measured()
            if key and key == await asyncio.to_thread(self._key, paths, model, segment):
                await asyncio.to_thread(self._write, key, made)
            return made

        return scored

    def _key(
        self, paths: tuple[Path, Path], model: str, segment: Segment | None
    ) -> str:
        """What an entry is called; empty if a file cannot be read."""
        which = f"{segment.index}/{segment.of}" if segment else ""
        about = (_FORM, self._tool, model or MODEL, which)
        whole = hashlib.sha256(msgspec.msgpack.encode(about))
        try:
            for path in paths:
                whole.update(self._content(path))
        except OSError:
            return ""  # who measures it says what is wrong
        return whole.hexdigest()

    def _content(self, path: Path) -> bytes:
        """The hash of a file; of one that was not written to since, from before."""
        with path.open("rb") as file:
            mark = _mark(file.fileno())
            with self._lock:
                known = self._known.pop(mark, None)
            if known is None:
                known = hashlib.file_digest(file, "sha256").digest()
                if _mark(file.fileno()) != mark:
                    raise OSError(f"{path} is being written")
        if self._now().timestamp() - mark[-1] / 1e9 < _SETTLED:
            return known  # who writes to it now may leave its times as they are
        with self._lock:
            self._known[mark] = known
            if len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return known

    def _read(self, key: str) -> Score | None:
        path = self._folder / key
        try:
            content = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        digest, body = content[:_HASH], content[_HASH:]
        try:
            if hashlib.sha256(body).digest() != digest:
                raise ValueError("its hash is another")
            found = msgspec.msgpack.decode(body, type=Score)
        except ValueError as error:
            self.counts.damaged += 1
            log.warning("A kept score, %s, is damaged and not used: %s", key, error)
            path.unlink(missing_ok=True)
            return None
        series = {name: array("d", each) for name, each in found.series.items()}
        return replace(found, series=series, reused=True)

    def _write(self, key: str, score: Score) -> None:
        body = msgspec.msgpack.encode(score, enc_hook=_plain)
        if len(body) > self._most_bytes:
            return
        name = ""
        try:
            handle, name = tempfile.mkstemp(dir=self._folder, prefix=".")
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(body).digest() + body)
            os.replace(name, self._folder / key)
            self._evict()
        except OSError as error:
            log.warning("A score could not be kept: %s", error)
            if name:
                Path(name).unlink(missing_ok=True)

    def _evict(self) -> None:
        """Let the oldest used go, until the rest is within the bounds."""
        entries = sorted(_entries(self._folder), reverse=True)
        size = 0
        for number, (_, bytes_of, path) in enumerate(entries):
            size += bytes_of
            if size > self._most_bytes or number >= self._most_entries:
                path.unlink(missing_ok=True)
                self.counts.evicted += 1


def _entries(folder: Path) -> list[tuple[int, int, Path]]:
    found = []
    for each in os.scandir(folder):
        try:
            status = each.stat()
        except FileNotFoundError:
            continue  # another process let it go
        found.append((status.st_mtime_ns, status.st_size, Path(each.path)))
    return found


def digest(path: Path) -> str:
    """The hash of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _mark(file: int) -> _Mark:
    found = os.fstat(file)
    # Nobody can set back when a file was last changed, as they can when written to.
    return (
        *(found.st_dev, found.st_ino, found.st_size),
        *(found.st_mtime_ns, found.st_ctime_ns),
    )


def _local(reference: str, distorted: str) -> tuple[Path, Path] | None:
    try:
        one, other = source(reference).path, source(distorted).path
    except BadInput:
        return None  # who measures it says what is wrong
    return None if one is None or other is None else (one, other)


def _plain(value: Any) -> list[float]:
    return list(value)
