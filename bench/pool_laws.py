"""Many simulated runs of the pool, in one process: how many seeds break no law.

``python bench/pool_laws.py --runs 1000`` tries that many seeds of a town with three
replicas, two pools and five tenants, in which everything goes wrong; ``--minutes``
stops it earlier. ``--town`` chooses another town, ``--mode`` a systematic search. A
seed that breaks a law is told, and the rest are tried all the same.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.pool.pool_people import SMALL, TINY
from tests.pool.pool_world import (
    leaderless_scenario,
    lone_scenario,
    pool_scenario,
    unled_scenario,
)
from trimtab.sim import Scenario
from trimtab.sim.modes import MODES
from trimtab.sim.plan import Plan
from trimtab.sim.provided import provided
from trimtab.sim.search import Search, summed, told

TOWNS: dict[str, Callable[[], Scenario]] = {
    "full": pool_scenario,
    "leaderless": leaderless_scenario,
    "unled": unled_scenario,
    "lone": lone_scenario,
    "small": partial(pool_scenario, SMALL, seconds=20.0),
    "tiny": partial(pool_scenario, TINY, seconds=15.0),
}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("--town", choices=TOWNS, default="full")
    made.add_argument("--mode", choices=MODES, default="random")
    made.add_argument("--first", type=int, default=0, help="the first seed")
    made.add_argument("--runs", type=int, default=100)
    made.add_argument("--minutes", type=float, default=1e9)
    return made


def plans(search: Search, options: argparse.Namespace) -> Iterator[Plan]:
    if options.mode == "random":
        seeds = range(options.first, options.first + options.runs)
        return (search.plan(seed) for seed in seeds)
    every = search.systematic(options.mode, seed=options.first)
    return islice(every, options.runs)


def main() -> int:
    options = parser().parse_args()
    if sys.flags.hash_randomization:
        # Sets of text are walked in one order in all processes, or a seed is no seed.
        environ = {**os.environ, "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environ)
    search, broken, began = Search(TOWNS[options.town]()), 0, time.monotonic()
    with provided():
        for number, plan in enumerate(plans(search, options), 1):
            report = search.run(plan)
            if report.violations:
                broken += 1
                print(told(report), flush=True)
            seconds = time.monotonic() - began
            if number % 10 == 0:
                line = f"{number} runs, {broken} broken, {seconds:.0f} s"
                print(f"{options.town} {options.mode}: {line}", flush=True)
            if seconds > options.minutes * 60:
                break
    print(f"{broken} of {search.totals.runs} runs broke a law.")
    print(summed(search.totals, real_seconds=time.monotonic() - began))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
