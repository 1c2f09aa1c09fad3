"""A program that writes to a store as fast as it can, until it is killed.

It says on its standard output what it has done, one line for each write, when the write
has returned. What it writes follows from key and revision, so that whoever reads these
lines knows every value.
"""

from __future__ import annotations

import os
import random
import sys

from trimtab.embedded import history, store, storefile
from trimtab.embedded.store import Change, Store

KEYS = [f"/registry/pods/default/pod-{number:02}" for number in range(40)]
SIZES = (0, 10, 500, 3000, 7000, 7000, 20_000)


def value_at(key: str, revision: int) -> bytes:
    line = f"{key} at {revision}\n".encode()
    size = SIZES[revision % len(SIZES)]
    return line + b"." * size


def last_words(key: str, revision: int) -> bytes | None:
    """What a deletion shows to watchers; every third shows the value as it was."""
    return None if revision % 3 == 0 else b"gone: " + value_at(key, revision)


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def kind(change: Change) -> str:
    return "delete" if change.value is None else "put"


def write(db: Store, chance: random.Random) -> tuple[int, str, str]:
    """Change something; which revision that made, how, and of what."""
    key = chance.choice(KEYS)
    row = db.get(key)
    if row is not None and chance.random() < 0.25:
        words = last_words(key, db.revision + 1)
        make = None if words is None else lambda _: words
        change = db.delete(key, expect=row.revision, make=make)
        return change.revision, "delete", key
    expect = row.revision if row else 0
    row = db.put(key, lambda revision: value_at(key, revision), expect=expect)
    return row.revision, "put", key


def main(path: str, seed: int) -> None:
    # So that checkpoints, compaction and vacuum happen all the time.
    storefile.CHECKPOINT_PAGES = 60
    store.SPARE_PAGES = 20
    store.VACUUM_PAGES = 5
    history.STEP_CHANGES = 20
    chance = random.Random(seed)
    known = int(sys.stdin.readline())
    db = Store(path)
    for change in db.changes(since=known):
        say(change.revision, kind(change), change.key)
    say("open")
    while True:
        say(*write(db, chance))
        if chance.random() < 0.1:
            db.maintain(0.0, keep_changes=chance.randrange(5, 60))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
