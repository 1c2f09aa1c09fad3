"""Nothing that was acknowledged is lost, whenever the process or the machine dies."""

from __future__ import annotations

import os
import random
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.embedded.store_writer import last_words, value_at, write
from trimtab.embedded.store import Row, Store
from trimtab.embedded.storefile import PAGE_BYTES

ROOT = Path(__file__).resolve().parents[2]


class Ledger:
    """All that the killed writers have said, and so all that must be there."""

    def __init__(self) -> None:
        self.revision = 1
        self.rows: dict[str, Row] = {}

    def note(self, line: str) -> None:
        number, kind, key = line.split()
        assert int(number) == self.revision + 1, "a revision was lost or used twice"
        self.revision += 1
        self.apply(kind, key)

    def apply(self, kind: str, key: str) -> None:
        if kind == "delete":
            del self.rows[key]
            return
        created = self.rows[key].created if key in self.rows else self.revision
        value = value_at(key, self.revision)
        self.rows[key] = Row(key, value, self.revision, created)

    def check(self, store: Store) -> None:
        """The store holds this, and at most the one write that nobody heard of."""
        assert 0 <= store.revision - self.revision <= 1
        for change in store.changes(since=self.revision):
            kind = "delete" if change.value is None else "put"
            self.note(f"{change.revision} {kind} {change.key}")
        assert store.range("") == [self.rows[key] for key in sorted(self.rows)]
        assert store.statistics().objects == len(self.rows)
        check_history(store)


def check_history(store: Store) -> None:
    """What is remembered leads from the oldest state to the current one."""
    oldest = max(store.compacted, 1)
    state = {row.key: row for row in store.range("", revision=oldest)}
    revision = oldest
    for change in store.changes(since=oldest):
        revision += 1
        assert change.revision == revision
        former = state.pop(change.key, None)
        previous = former.value if former else None
        if change.value is None:
            assert former is not None
            words = last_words(change.key, revision)
            assert change.previous == (previous if words is None else words)
        else:
            assert change.previous == previous
            created = former.created if former else revision
            state[change.key] = Row(change.key, change.value, revision, created)
    assert revision == store.revision
    assert state == {row.key: row for row in store.range("")}


class Writer:
    """A writer in a process of its own. It starts at once and waits to be told."""

    def __init__(self, path: Path, seed: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.embedded.store_writer", path, str(seed)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def run_and_kill(self, known: int, *, after: float) -> list[str]:
        """Let it write for so many seconds after its first words; all that it said.

        If they are negative it is killed while it opens the store, or before.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(b"%d\n" % known)
        self.process.stdin.flush()
        pipe = self.process.stdout.fileno()
        said = b"" if after < 0 else os.read(pipe, 1 << 16)
        end = time.monotonic() + abs(after)
        while (left := end - time.monotonic()) > 0:
            if select.select([pipe], [], [], left)[0]:
                said += os.read(pipe, 1 << 16)
        self.close()
        # A line that is not whole was never said.
        whole = (said + self.rest).decode().rpartition("\n")[0]
        return [line for line in whole.splitlines() if line != "open"]

    def close(self) -> None:
        self.process.kill()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.rest = self.process.stdout.read()
        self.process.stdout.close()
        self.process.wait()


@contextmanager
def writers(path: Path, seeds: Iterator[int]) -> Iterator[Iterator[Writer]]:
    """One writer after another; the next gets ready while one is at work."""
    ready = [Writer(path, next(seeds))]

    def following() -> Iterator[Writer]:
        while True:
            ready.append(Writer(path, next(seeds)))
            yield ready.pop(0)

    try:
        yield following()
    finally:
        for writer in ready:
            writer.close()


def kill_again_and_again(
    folder: Path, *, seconds: float, seed: int, least: tuple[int, int] = (0, 0)
) -> tuple[int, int]:
    """Kill writers at random moments; how many, and how much they had written.

    It goes on until both are the least that is wanted, however long that takes: how
    much is written in a second says more about the machine than about the store.
    """
    chance = random.Random(seed)
    seeds = iter(lambda: chance.randrange(1 << 30), None)
    end = time.monotonic() + seconds
    kills = writes = 0
    while time.monotonic() < end or kills < least[0] or writes < least[1]:
        ledger, path = Ledger(), folder / f"{kills}.db"
        with writers(path, seeds) as line:
            for writer in line:
                after = chance.choice((chance.random(), -chance.random())) / 20
                for said in writer.run_and_kill(ledger.revision, after=after):
                    ledger.note(said)
                kills += 1
                # Every other time the next writer finds the file as the kill left it.
                if chance.random() < 0.5:
                    with closing(Store(path)) as store:
                        ledger.check(store)
                if chance.random() < 0.1 or time.monotonic() > end:
                    break
        with closing(Store(path)) as store:
            ledger.check(store)
        writes += ledger.revision
    return kills, writes


@pytest.mark.timeout(120)
def test_a_kill_at_any_moment_loses_nothing_that_was_acknowledged(
    tmp_path: Path,
) -> None:
    kills, writes = kill_again_and_again(tmp_path, seconds=4, seed=1, least=(5, 100))
    assert kills >= 5
    assert writes >= 100


@pytest.mark.long
def test_many_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    kills, writes = kill_again_and_again(tmp_path, seconds=240, seed=seed)
    print(kills, "kills,", writes, "writes")
    assert kills >= 200


class Disk:
    """What a disk held of one store: before and after a checkpoint, and the journal."""

    def __init__(self, folder: Path) -> None:
        path = folder / "original.db"
        journal = path.with_name("original.db-wal")
        self.revisions: dict[int, list[Row]] = {}
        chance = random.Random(5)
        with closing(Store(path)) as store:
            self.write(store, chance)
            self.first = store.revision
        with closing(Store(path)) as store:
            self.write(store, chance)
            self.last = store.revision
            self.before = path.read_bytes()
            self.journal = journal.read_bytes()
        self.after = path.read_bytes()

    def write(self, store: Store, chance: random.Random) -> None:
        for _ in range(100):
            write(store, chance)
            self.revisions[store.revision] = store.range("")
            if chance.random() < 0.1:
                store.maintain(0.0, keep_changes=20)

    def opened(self, path: Path, data: bytes, journal: bytes) -> int:
        """The revision that a machine finds which comes up with these bytes."""
        path.write_bytes(data)
        path.with_name(path.name + "-wal").write_bytes(journal)
        with closing(Store(path)) as store:
            assert store.range("") == self.revisions[store.revision]
            check_history(store)
            return store.revision


def test_a_journal_that_ends_anywhere_is_an_earlier_moment(tmp_path: Path) -> None:
    """After a power cut the end of the journal may be missing, or be noise."""
    disk = Disk(tmp_path)
    assert len(disk.journal) > 100 * PAGE_BYTES
    chance = random.Random(11)
    cuts = sorted(chance.randrange(len(disk.journal)) for _ in range(60))
    found = []
    for number, cut in enumerate([0, *cuts, len(disk.journal)]):
        noise = chance.randbytes(chance.choice((0, 100, 10_000)))
        path = tmp_path / f"{number}.db"
        found.append(disk.opened(path, disk.before, disk.journal[:cut] + noise))
    assert found == sorted(found)
    assert (found[0], found[-1]) == (disk.first, disk.last)
    assert len(set(found)) > 20


def test_a_checkpoint_that_ends_anywhere_loses_nothing(tmp_path: Path) -> None:
    """Until the journal is begun anew it has every page that the file may lack."""
    disk = Disk(tmp_path)
    chance = random.Random(12)
    pages = max(len(disk.before), len(disk.after)) // PAGE_BYTES
    for number in range(25):
        # What the file has not yet grown to is not there, or is empty.
        mixed = bytearray(disk.before)
        mixed.extend(bytes(chance.randrange(pages) * PAGE_BYTES))
        del mixed[max(pages * PAGE_BYTES, len(disk.before)) :]
        for page in range(len(mixed) // PAGE_BYTES):
            if chance.random() < 0.5:
                part = slice(page * PAGE_BYTES, (page + 1) * PAGE_BYTES)
                mixed[part] = disk.after[part]
        path = tmp_path / f"{number}.db"
        assert disk.opened(path, bytes(mixed), disk.journal) == disk.last
