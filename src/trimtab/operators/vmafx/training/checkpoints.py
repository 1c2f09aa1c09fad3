"""Checkpoints: models that were kept, each under a number that is never given twice.

A model is written beside first, then its number is written down together with its sum,
then it is put where it belongs. Killed before the number was written down, there was no
checkpoint; killed after, the next start puts it there. So no number is lost either.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from trimtab.operators.vmafx.training import durable
from trimtab.operators.vmafx.training.outputs import Output, version_name
from trimtab.operators.vmafx.training.problems import StateProblem, UnknownVersion

LAST_GOOD: Final = "last-good"
KEEP: Final = 100
"""How many versions are kept: the oldest goes first, but never the good one."""
_DIGITS: Final = 9


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint; version 0 is the base, which there is always."""

    version: int = 0
    sha256: str = ""
    time: str = ""
    # The number of the last sample that it may have learned from.
    samples: int = 0

    @property
    def name(self) -> str:
        return version_name(self.version)


def find(version: str, *, good: Record, history: Sequence[Record]) -> Record:
    """The checkpoint that somebody names; ``v000000`` is the base.

    Errors: :class:`UnknownVersion` if there is none of this name.
    """
    if version in ("", LAST_GOOD):
        return good
    number = version.removeprefix("v")
    if number.isdecimal() and len(number) <= _DIGITS:
        for each in (Record(), *history):
            if each.version == int(number):
                return each
    names = ", ".join(each.name for each in history[-5:]) or "none"
    raise UnknownVersion(
        f"There is no version {version[:20]} to go back to; the last are: {names}."
    )


class _Written(msgspec.Struct, frozen=True):
    """What the disk says of the last checkpoint; ``put`` once it is in its place."""

    record: Record = Record()
    put: bool = True


class Shelf:
    """The numbers of models, and the models.

    Guarantees: whenever it is killed, each number names one content for ever, and the
    numbers that are there have no holes but those of models that were removed.

    Assumptions: one at a time has the folder; ``Store`` sees to it.

    Errors: ``OSError`` for what the disk refuses; :class:`StateProblem` for a record
    that cannot be read.
    """

    def __init__(self, folder: Path, output: Output, *, keep: int = KEEP) -> None:
        self._path = folder / "version.json"
        self._staged = folder / "staged.onnx"
        self._output = output
        self._keep = keep
        self._written = self._read()

    @property
    def last(self) -> Record:
        """The highest that was written down."""
        return self._written.record

    @property
    def next(self) -> int:
        """The number of the next checkpoint."""
        return max([self.last.version, *self._output.versions()]) + 1

    def publish(self, content: bytes, record: Record) -> Record:
        """Keep a model under the next number; its record.

        Flow: after an error, :meth:`finish` says whether it was kept all the same.
        """
        assert record.version == self.next
        digest = hashlib.sha256(content).hexdigest()
        record = msgspec.structs.replace(record, sha256=digest)
        durable.write(self._staged, content)
        self._write(_Written(record, put=False))
        self._put(content)
        return record

    def finish(self) -> Record:
        """Put the last model where it belongs, if it is not there; its record."""
        last = self.last
        if not self._written.put:
            content = self._staged.read_bytes() if self._staged.exists() else b""
            if hashlib.sha256(content).hexdigest() != last.sha256:
                raise StateProblem(
                    f"{self._staged} is not the model {last.name} that was written "
                    "down: restore it."
                )
            self._put(content)
        return last

    def read(self, version: int) -> bytes:
        """The model of a version. Errors: :class:`StateProblem` if it is gone."""
        return self._output.read(version)

    def point(self, version: int) -> None:
        """Say that this version is the one to use; those that are too old go."""
        self._output.point(version)
        there = [each for each in self._output.versions() if each != version]
        for each in there[: max(0, len(there) - self._keep + 1)]:
            self._output.remove(each)

    def _put(self, content: bytes) -> None:
        self._output.put(self.last.version, content, time=self.last.time)
        self.point(self.last.version)
        self._write(_Written(self.last))

    def _write(self, written: _Written) -> None:
        durable.write(self._path, msgspec.json.encode(written))
        self._written = written

    def _read(self) -> _Written:
        if not self._path.exists():
            return _Written()
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_Written)
        except msgspec.DecodeError as error:
            raise StateProblem(
                f"{self._path} does not say which versions there were: restore it."
            ) from error
