"""How many seeds it takes to find each bug that is put back into the real code.

``python bench/mutants.py`` searches for every mutant of ``tests/sim/mutants`` from five
fixed starts, one after the other on one core. A search that has ended is written to
``bench/mutants.jsonl`` at once and is not done again, so this can be ended at any
moment and goes on where it was; then ``docs/evidence/mutants.md`` is made from that
file. Names limit it to those, ``--again`` searches also for what is known already, and
``--page`` searches for nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from textwrap import fill

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec

from tests.sim.mutation import ROOT, Mutant, Outcome, mutant, names

STARTS = (0, 1000, 2000, 3000, 4000)
SEEDS = 90
"""A search gives up after so many: that mutant has survived it."""
RECORD = ROOT / "bench" / "mutants.jsonl"
PAGE = ROOT / "docs" / "evidence" / "mutants.md"
HEAD = """# Mutants: how soon the simulation finds each bug

Each bug of `tests/sim/mutants` is put back into the code that is named, and the
simulation searches for it from five fixed starts: seeds 0, 1000, 2000, 3000 and 4000
of the random search, or five schedules of a systematic mode. *Plans* is how many each
search ran until a law was broken; the law is the one that was mostly broken first. The
same tree gives the same figures; these are not all of one tree, but each of the tree of
its day. `python bench/mutants.py` searches for what is not in `bench/mutants.jsonl` so
far, and makes this page from it; with `--again`, for all of it.

| mutant | bug | where | search | searches | plans | median | found by the law |
|---|---|---|---|---|---|---|---|
"""


class Search(msgspec.Struct, frozen=True):
    """One search that has ended."""

    mutant: str
    start: int
    seeds: int
    """How many plans it took; 0 if it was not found."""
    law: str
    day: str


Known = dict[str, dict[int, Search]]


def known(path: Path = RECORD) -> Known:
    """All searches that have ended, by mutant and start; the last word counts."""
    found: Known = {}
    for line in path.read_bytes().splitlines() if path.exists() else ():
        each = msgspec.json.decode(line, type=Search)
        found.setdefault(each.mutant, {})[each.start] = each
    return found


def missing(name: str, found: Known) -> list[int]:
    return [start for start in STARTS if start not in found.get(name, {})]


def searched(name: str, starts: Sequence[int]) -> Iterator[Search]:
    """The searches from some starts, each as it ends, in a process that has the bug."""
    command = [sys.executable, "-m", "tests.sim.mutation", name]
    command += ["--most", str(SEEDS), "--first", *map(str, starts)]
    environ = {**os.environ, "PYTHONHASHSEED": "0"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        for start, line in zip(starts, process.stdout, strict=False):
            made = msgspec.json.decode(line, type=Outcome)
            day = datetime.now(UTC).date().isoformat()
            yield Search(name, start, made.seeds, made.law, day)
    if process.returncode:
        raise RuntimeError(f"The search for {name} failed with {process.returncode}.")


def row(name: str, bug: Mutant, found: Sequence[Search]) -> str:
    """A line of the table."""
    laws = [each.law for each in found if each.seeds]
    often = max(sorted(set(laws)), key=laws.count, default="none: it survives")
    places = ", ".join(dict.fromkeys(f"`{each.module}`" for each in bug.change))
    plans = ", ".join(str(each.seeds or "never") for each in found)
    cells = [name, bug.bug, places, f"{bug.scenario}, {bug.mode}", str(len(found))]
    return "| " + " | ".join([*cells, plans, f"{middle(found):g}", often]) + " |"


def middle(found: Iterable[Search]) -> float:
    return float(median(each.seeds or SEEDS for each in found))


def page(found: Known) -> str:
    """The page, of all that is known; mutants that are gone are left out."""
    there = {
        name: [each for _, each in sorted(found[name].items())]
        for name in names()
        if found.get(name)
    }
    rows = [row(name, mutant(name), some) for name, some in there.items()]
    return HEAD + "\n".join(rows) + "\n" + summary(there)


def summary(there: dict[str, list[Search]]) -> str:
    every = [each for some in there.values() for each in some]
    medians = [middle(some) for some in there.values()]
    survived = sum(not each.seeds for each in every)
    ends = f"{survived} of them found nothing in {SEEDS} plans"
    ends = ends if survived else "every one of them found its bug"
    days = sorted({each.day for each in every})
    told = (
        f"{len(there)} mutants, {len(every)} searches, from {days[0]} to {days[-1]}; "
        f"{ends}. The median of the medians is {median(medians):g}, the largest "
        f"{max(medians):g}."
    )
    left = [name for name in names() if len(there.get(name, ())) < len(STARTS)]
    also = f"Searches are still to be done for: {', '.join(left)}." if left else ""
    return "".join(
        f"\n{fill(each, 88, break_on_hyphens=False)}\n" for each in (told, also) if each
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these mutants")
    parser.add_argument("--again", action="store_true", help="also what is known")
    parser.add_argument("--page", action="store_true", help="only make the page")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(names()))
    if unknown:
        parser.error(f"there is no mutant {', '.join(unknown)} in tests/sim/mutants")
    return options


def main() -> int:
    options = arguments()
    chosen = options.names or names()
    for name in () if options.page else chosen:
        starts = STARTS if options.again else missing(name, known())
        for each in searched(name, starts) if starts else ():
            with RECORD.open("ab") as record:
                record.write(msgspec.json.encode(each) + b"\n")
            print(f"{name} from {each.start}: {each.seeds or 'never'}", flush=True)
    found = known()
    PAGE.write_text(page(found))
    done = all(not missing(name, found) for name in chosen)
    lost = [each for name in chosen for each in found.get(name, {}).values()]
    return 0 if done and all(each.seeds for each in lost) else 1


if __name__ == "__main__":
    sys.exit(main())
