"""How many seeds it takes to find each bug that is put back into the real code.

``python bench/mutants.py`` searches for every mutant of ``tests/sim/mutants`` from five
fixed starts, one after the other on one core, and writes ``docs/evidence/mutants.md``.
The same tree gives the same table. Names as arguments limit it to those, and then it
only prints.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec

from tests.sim.mutation import ROOT, Mutant, Outcome, mutant, names

STARTS = (0, 1000, 2000, 3000, 4000)
SEEDS = 90
"""A search gives up after so many: that mutant has survived it."""
PAGE = ROOT / "docs" / "evidence" / "mutants.md"
HEAD = """# Mutants: how soon the simulation finds each bug

Each bug of `tests/sim/mutants` is put back into the code that is named, and the
simulation searches for it from five fixed starts: seeds 0, 1000, 2000, 3000 and 4000
of the random search, or five schedules of a systematic mode. The figures are the plans
that each search ran until a law was broken; the law is the one that was mostly broken
first. `python bench/mutants.py` makes this page again; the same tree gives the same
table.

| mutant | bug | where | search | plans | median | found by the law |
|---|---|---|---|---|---|---|
"""


def outcomes(name: str) -> list[Outcome]:
    """Of each start, in a process in which the bug is."""
    command = [sys.executable, "-m", "tests.sim.mutation", name]
    command += ["--most", str(SEEDS), "--first", *map(str, STARTS)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr}")
    lines = done.stdout.splitlines()
    return [msgspec.json.decode(line, type=Outcome) for line in lines]


def row(name: str, bug: Mutant, found: Sequence[Outcome]) -> str:
    """A line of the table."""
    laws = [each.law for each in found if each.seeds]
    often = max(sorted(set(laws)), key=laws.count, default="none: it survives")
    places = ", ".join(dict.fromkeys(f"`{each.module}`" for each in bug.change))
    plans = ", ".join(str(each.seeds or "never") for each in found)
    middle = median(each.seeds or SEEDS for each in found)
    search = f"{bug.scenario}, {bug.mode}"
    return (
        f"| {name} | {bug.bug} | {places} | {search} | {plans} | {middle:g} | {often} |"
    )


def summary(found: Sequence[Sequence[Outcome]], seconds: float) -> str:
    medians = [median(each.seeds or SEEDS for each in some) for some in found]
    survived = sum(not each.seeds for some in found for each in some)
    searches = len(found) * len(STARTS)
    return (
        f"\n{len(found)} mutants, {searches} searches, of which {survived} found "
        f"nothing in {SEEDS} plans. The median of the medians is {median(medians):g}, "
        f"the largest {max(medians):g}. All of it took {seconds / 60:.0f} minutes of "
        "one core.\n"
    )


def main() -> int:
    chosen = sys.argv[1:] or names()
    began, rows, found = time.monotonic(), [], []
    for name in chosen:
        found.append(outcomes(name))
        rows.append(row(name, mutant(name), found[-1]))
        print(rows[-1], flush=True)
    used = os.times()
    told = summary(found, used.children_user + used.children_system)
    print(f"{told}({time.monotonic() - began:.0f} s on the clock.)")
    if chosen == names():
        PAGE.write_text(HEAD + "\n".join(rows) + "\n" + told)
    return 0 if all(each.seeds for some in found for each in some) else 1


if __name__ == "__main__":
    sys.exit(main())
