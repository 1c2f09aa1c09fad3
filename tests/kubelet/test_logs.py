"""Laws of logs: every line is there, with its time, until it is too old to keep."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.kubelet.logs import LONGEST, Limits, Log, Reading, Wanted

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Clock:
    """A second passes with each look."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def log_at(folder: Path, *, size: int = 1 << 20, files: int = 5) -> Log:
    limits = Limits(size=size, files=files)
    return Log(folder / "0.log", now=Clock(), limits=limits)


def read(path: Path, wanted: Wanted | None = None) -> bytes:
    with Reading(path, wanted or Wanted()) as reading:
        return b"".join(iter(reading.next, b""))


@settings(max_examples=40)
@given(pieces=st.lists(st.binary(max_size=40), max_size=20))
def test_what_was_said_is_read_back_however_it_came(
    pieces: list[bytes],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = log_at(Path(folder))
        for piece in pieces:
            log.write("stdout", piece)
        log.close()
        assert read(log.path) == b"".join(pieces)


def test_a_long_line_comes_back_in_one_piece(tmp_path: Path) -> None:
    log = log_at(tmp_path)
    line = b"x" * (3 * LONGEST + 7)
    log.write("stdout", line + b"\nnext\n")
    log.close()
    assert read(log.path) == line + b"\nnext\n"


def test_a_reader_chooses_lines_and_bytes(tmp_path: Path) -> None:
    log = log_at(tmp_path)
    for word in (b"one", b"two", b"three"):
        log.write("stdout", word + b"\n")
    assert read(log.path, Wanted(tail=2)) == b"two\nthree\n"
    assert read(log.path, Wanted(tail=0)) == b""
    assert read(log.path, Wanted(tail=9)) == b"one\ntwo\nthree\n"
    assert read(log.path, Wanted(limit=5)) == b"one\nt"
    since = START + timedelta(seconds=3)
    assert read(log.path, Wanted(since=since)) == b"three\n"
    stamped = read(log.path, Wanted(tail=1, timestamps=True))
    assert stamped == b"2026-01-02T03:04:08.000000000Z three\n"
    log.close()


def test_old_files_are_put_aside_and_at_last_removed(tmp_path: Path) -> None:
    log = log_at(tmp_path, size=200, files=3)
    for number in range(100):
        log.write("stdout", b"line %03d\n" % number)
    log.close()
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3
    assert all(each.stat().st_size <= 200 for each in files)
    assert read(log.path).endswith(b"line 099\n")


async def test_a_follower_hears_all_across_files_until_the_end(tmp_path: Path) -> None:
    log = log_at(tmp_path, size=300, files=50)
    heard = bytearray()

    async def follow() -> None:
        async for data in log.read(Wanted(follow=True)):
            heard.extend(data)

    async with asyncio.TaskGroup() as group:
        group.create_task(follow())
        for number in range(60):
            log.write("stdout", b"line %03d\n" % number)
            await asyncio.sleep(0)
        log.close()
    assert bytes(heard) == b"".join(b"line %03d\n" % number for number in range(60))
