"""State: what was learned, on disk, so that killing a trainer costs nothing.

A snapshot has everything; a log has the samples that came after it. Feeding the log to
what the snapshot holds gives the same weights to the last bit, because the snapshot has
the state of chance as well.
"""

from __future__ import annotations

import fcntl
import io
import logging
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.operators.vmafx.training import durable
from trimtab.operators.vmafx.training.checkpoints import Record
from trimtab.operators.vmafx.training.judging import Verdict
from trimtab.operators.vmafx.training.problems import StateProblem
from trimtab.operators.vmafx.training.samples import Sample

_CRC: Final = 9  # eight digits and a space
_META: Final = "meta"

logger = logging.getLogger("trimtab.operators.vmafx.training")


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """All of a snapshot that is no array of numbers."""

    # The sum of the base model: what was learned from another one is of no use.
    base: str
    log: int = 0
    samples: int = 0
    steps: int = 0
    waiting: int = 0
    loss: float | None = None
    paused: bool = False
    # The number of samples at the last judgement.
    judged: int = 0
    # The highest version that this snapshot knows of, and the one in use.
    newest: int = 0
    good: Record = Record()
    history: tuple[Record, ...] = ()
    gate: Verdict | None = None
    gates: tuple[tuple[int, Verdict], ...] = ()
    losses: tuple[tuple[int, float], ...] = ()
    rollbacks: int = 0
    held: int = 0
    clips: int = 0
    jobs: tuple[tuple[str, bool], ...] = ()
    chance: tuple[int, tuple[int, ...], float | None] | None = None


class Snapshot(msgspec.Struct, frozen=True):
    """Everything that a trainer knows."""

    meta: Meta
    arrays: Mapping[str, NDArray[Any]]


class Store:
    """The files of a trainer, which one at a time may have.

    Flow: ``read`` once; then ``append`` and ``save`` as it goes.

    Guarantees: what ``append`` was given and returned from outlives any crash; ``save``
    takes the log's place at once or not at all.

    Errors: :class:`StateProblem` for a folder that somebody else has, and for files
    that cannot be read; ``OSError`` for what the disk refuses, after which nothing has
    changed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logged = 0
        """Samples in the log."""
        self.unsure = False
        """A save failed midway: nothing is appended before another has succeeded."""
        self._number = 0
        self._length = 0
        self._log: int | None = None
        self._hold: int | None = None

    def __enter__(self) -> Self:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._hold = os.open(self.folder / "lock", flags, 0o600)
            fcntl.flock(self._hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise StateProblem(
                f"Another trainer has {self.folder}: stop it, or name another folder."
            ) from None
        except OSError as error:
            why = (error.strerror or "no reason given").lower()
            raise StateProblem(f"{self.folder} cannot be used: {why}.") from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the folder go."""
        for each in (self._log, self._hold):
            if each is not None:
                os.close(each)
        self._log = self._hold = None

    def read(self) -> tuple[Snapshot | None, list[Sample]]:
        """What was saved, and the samples that came after."""
        snapshot = self._snapshot()
        self._number = snapshot.meta.log if snapshot else 0
        found, self._length = self._logged()
        self.logged = len(found)
        self._open()
        self._clean()
        return snapshot, found

    def append(self, samples: Sequence[Sample]) -> None:
        """Write samples down; when this returns, they may be acknowledged."""
        assert self._log is not None
        assert not self.unsure
        content = b"".join(map(_line, samples))
        # What a failed attempt left is overwritten: only whole groups count.
        os.ftruncate(self._log, self._length)
        done = 0
        while done < len(content):
            done += os.pwrite(self._log, content[done:], self._length + done)
        os.fsync(self._log)
        self._length += len(content)
        self.logged += len(samples)

    def save(self, snapshot: Snapshot) -> None:
        """Write a snapshot, after which the log is empty."""
        number = self._number + 1
        meta = msgspec.structs.replace(snapshot.meta, log=number)
        packed = io.BytesIO()
        raw = np.frombuffer(msgspec.json.encode(meta), dtype=np.uint8)
        np.savez(packed, allow_pickle=False, **{**snapshot.arrays, _META: raw})
        # A log of this number may be there, of a save that did not come to its end.
        self._path(number).unlink(missing_ok=True)
        # Until it has, nobody knows which log the snapshot on disk goes with.
        self.unsure = True
        durable.write(self.folder / "snapshot.npz", packed.getvalue())
        self._number, self._length, self.logged = number, 0, 0
        self._open()
        self.unsure = False
        self._clean()

    def _path(self, number: int) -> Path:
        return self.folder / f"samples-{number:06d}.log"

    def _open(self) -> None:
        if self._log is not None:
            os.close(self._log)
            self._log = None
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._log = os.open(self._path(self._number), flags, 0o600)
        durable.sync(self.folder)

    def _clean(self) -> None:
        """Remove the logs of earlier snapshots."""
        for each in self.folder.glob("samples-*.log"):
            if each != self._path(self._number):
                each.unlink(missing_ok=True)

    def _snapshot(self) -> Snapshot | None:
        path = self.folder / "snapshot.npz"
        if not path.exists():
            return None
        try:
            with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            meta = msgspec.json.decode(arrays.pop(_META).tobytes(), type=Meta)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise StateProblem(
                f"{path} cannot be read: restore it, or remove the folder to begin "
                "again."
            ) from error
        return Snapshot(meta, arrays)

    def _logged(self) -> tuple[list[Sample], int]:
        """The samples of the log, and where the last one of them ends."""
        path = self._path(self._number)
        content = path.read_bytes() if path.exists() else b""
        found: list[Sample] = []
        at = 0
        while (end := content.find(b"\n", at)) >= 0:
            sample = _sample(content[at:end])
            if sample is None:
                break
            found.append(sample)
            at = end + 1
        if at < len(content):
            logger.warning(
                "The last %d bytes of %s were being written when it ended: they were "
                "never acknowledged, and are left out.",
                len(content) - at,
                path,
            )
        return found, at


def _line(sample: Sample) -> bytes:
    content = msgspec.json.encode(sample)
    return b"%08x %b\n" % (zlib.crc32(content), content)


def _sample(line: bytes) -> Sample | None:
    """What a line of the log holds; None if it was not written as a whole."""
    content = line[_CRC:]
    if line[:_CRC] != b"%08x " % zlib.crc32(content):
        return None
    try:
        return msgspec.json.decode(content, type=Sample)
    except msgspec.DecodeError:
        return None
