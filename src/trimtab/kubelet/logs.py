"""Logs: what containers say, kept as a node keeps it, and read as kubectl asks.

One file for each start of a container, with a line for each line that it said:
``2026-01-02T03:04:05.000000006Z stdout F text``. A file that grows too long is put
aside under the time of that, and the oldest of those are removed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

import msgspec

from trimtab.api.times import parse_rfc3339

CHUNK = 1 << 16
LONGEST = 16 << 10
"""A line that is longer is kept in parts."""
FULL, PART = b"F", b"P"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what a container says is kept."""

    size: int = 10 << 20
    files: int = 5


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader of a log asks for."""

    follow: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: datetime | None = None
    limit: int | None = None

    @classmethod
    def of(cls, query: dict[str, str], *, now: datetime) -> Wanted:
        """From the query of a request; what is malformed is left out."""

        def number(name: str) -> int | None:
            text = query.get(name, "")
            return int(text) if text.isdecimal() else None

        since: datetime | None = None
        seconds = number("sinceSeconds")
        if seconds is not None:
            since = now - timedelta(seconds=seconds)
        elif query.get("sinceTime"):
            since = parse_rfc3339(query["sinceTime"])
        return cls(
            follow=query.get("follow") in ("true", "1"),
            timestamps=query.get("timestamps") in ("true", "1"),
            tail=number("tailLines"),
            since=since,
            limit=number("limitBytes"),
        )


class Log:
    """The log of one start of a container."""

    def __init__(
        self, path: Path, *, now: Callable[[], datetime], limits: Limits
    ) -> None:
        self.path = path
        self._now = now
        self._limits = limits
        self._rests: dict[str, bytes] = {}
        """What came without its newline, by stream."""
        self._readers: set[asyncio.Event] = set()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115
        self._size = self._file.tell()
        self.closed = False

    def write(self, stream: str, data: bytes) -> None:
        """Add what was said on ``stdout`` or ``stderr``."""
        *lines, rest = (self._rests.get(stream, b"") + data).split(b"\n")
        tag = f"{stamp(self._now())} {stream} ".encode()
        pieces = [piece for line in lines for piece in _pieces(tag, line)]
        while len(rest) >= LONGEST:
            pieces.append(b"%b%b %b\n" % (tag, PART, rest[:LONGEST]))
            rest = rest[LONGEST:]
        self._rests[stream] = rest
        if pieces:
            self._append(b"".join(pieces))

    def close(self) -> None:
        """Nothing more is said; what lacks its newline is kept as it is."""
        if self.closed:
            return
        for stream, rest in self._rests.items():
            if rest:
                tag = f"{stamp(self._now())} {stream} ".encode()
                self._append(b"%b%b %b\n" % (tag, PART, rest))
        self.closed = True
        self._file.close()
        self._wake()

    def _append(self, data: bytes) -> None:
        if self._size and self._size + len(data) > self._limits.size:
            self._rotate()
        with suppress(OSError):  # a full disk must not end the container
            self._file.write(data)
        self._size += len(data)
        self._wake()

    def _rotate(self) -> None:
        moment = self._now().strftime("%Y%m%d-%H%M%S%f")
        self._file.close()
        self.path.rename(self.path.with_name(f"{self.path.name}.{moment}"))
        self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115
        self._size = 0
        aside = sorted(self.path.parent.glob(f"{self.path.name}.*"))
        for old in aside[: max(0, len(aside) - self._limits.files + 1)]:
            old.unlink(missing_ok=True)

    def _wake(self) -> None:
        for reader in self._readers:
            reader.set()

    async def read(self, wanted: Wanted) -> AsyncIterator[bytes]:
        """What was said, in pieces; with ``follow``, also what will be."""
        awake = asyncio.Event()
        self._readers.add(awake)
        try:
            with Reading(self.path, wanted) as reading:
                while not reading.over:
                    awake.clear()
                    last = self.closed or not wanted.follow
                    if data := reading.next():
                        yield data
                    elif last:
                        return
                    else:
                        await awake.wait()
        finally:
            self._readers.discard(awake)


class Reading:
    """One pass through a log that may still grow and be put aside meanwhile."""

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self._path = path
        self._wanted = wanted
        self._left = wanted.limit
        self._rest = b""
        self._since = stamp(wanted.since) if wanted.since else ""

    def __enter__(self) -> Reading:
        self._file = open(self._path, "rb")
        if self._wanted.tail is not None:
            _seek_tail(self._file, self._wanted.tail)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def over(self) -> bool:
        return self._left == 0

    def next(self) -> bytes:
        """Some more of it; empty when there is no more for now."""
        made = b""
        while not made and (data := self._read()):
            *lines, self._rest = (self._rest + data).split(b"\n")
            made = b"".join(map(self._shown, lines))
        if self._left is not None:
            made = made[: self._left]
            self._left -= len(made)
        return made

    def _read(self) -> bytes:
        data = self._file.read(CHUNK)
        if data or not self._moved():
            return data
        data = self._file.read(CHUNK)  # what came between the two looks
        if not data:
            self._file.close()
            self._file = open(self._path, "rb")  # noqa: SIM115
            data = self._file.read(CHUNK)
        return data

    def _moved(self) -> bool:
        try:
            now = os.stat(self._path).st_ino
        except FileNotFoundError:
            return False
        return now != os.fstat(self._file.fileno()).st_ino

    def _shown(self, line: bytes) -> bytes:
        when, _, rest = line.partition(b" ")
        _, _, rest = rest.partition(b" ")
        tag, _, text = rest.partition(b" ")
        if self._since and when.decode() < self._since:
            return b""
        end = b"" if tag == PART else b"\n"
        return (when + b" " if self._wanted.timestamps else b"") + text + end


def _seek_tail(file: BinaryIO, lines: int) -> None:
    """Stand before the last so many lines."""
    position = file.seek(0, os.SEEK_END)
    wanted = lines + 1
    data = b""
    while position and data.count(b"\n") < wanted:
        step = min(CHUNK, position)
        position = file.seek(position - step)
        data = file.read(step) + data
    ends = [index for index, byte in enumerate(data) if byte == 10]
    start = ends[-wanted] + 1 if len(ends) >= wanted else 0
    file.seek(position + start)


def stamp(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}000Z"


def _pieces(tag: bytes, line: bytes) -> Iterator[bytes]:
    while len(line) > LONGEST:
        yield b"%b%b %b\n" % (tag, PART, line[:LONGEST])
        line = line[LONGEST:]
    yield b"%b%b %b\n" % (tag, FULL, line)
