"""``trimtab sim``: an operator in a simulated world, where everything goes wrong."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from trimtab.cli import common

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trimtab.sim.plan import Plan
    from trimtab.sim.scenario import Scenario
    from trimtab.sim.search import Search
    from trimtab.sim.world import Report

ABOUT = """
Run three replicas of the operator that a Python file declares, in virtual time, while
calls fail, answers get lost, replicas die and people edit and delete; and check that it
ends well all the same. A failure is shown with the seed that replays it, the least that
it takes, and what happened. No cluster is needed.
"""
RUNS = 20


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser("sim", help="simulate an operator", description=ABOUT)
    made.set_defaults(run=run)
    made.add_argument("file", metavar="FILE", help="the operator's file or module")
    made.add_argument(
        "--scenario", metavar="NAME", help="which operator or scenario, of several"
    )
    made.add_argument("--seed", type=int, metavar="N", help="replay this one seed")
    made.add_argument(
        "--runs",
        type=common.count,
        metavar="N",
        help=f"how many seeds (default: {RUNS})",
    )
    made.add_argument(
        "--minutes", type=float, metavar="M", help="go on for so long instead"
    )
    made.add_argument(
        "--mode",
        default="random",
        choices=("random", "crash", "fail", "pause", "stale", "stop"),
        help="crash: die at every write; fail: lose every call once; pause: stand"
        " still at every write; stale: freeze the caches; stop: restart between any two"
        " writes (default: random)",
    )
    made.add_argument("--replicas", type=common.count, metavar="N", help="default: 3")


def run(options: argparse.Namespace) -> int:
    """Search for a seed that breaks a law; the exit code."""
    _order_sets()
    from trimtab.sim.provided import provided
    from trimtab.sim.search import Search

    search = Search(_scenario(options))
    try:
        with provided():
            return _search(search, options)
    except KeyboardInterrupt:
        _clear()
        print(f"Stopped after {search.totals.runs} runs.", flush=True)
        # A world that is taken apart in the middle of a step would complain of it.
        os._exit(common.INTERRUPTED)


def _order_sets() -> None:
    """Start anew if sets of text are walked in another order in each process."""
    if sys.flags.hash_randomization:
        environ = {**os.environ, "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environ)


def _scenario(options: argparse.Namespace) -> Scenario:
    import msgspec

    from trimtab.cli.loading import NotAnOperator, source_of
    from trimtab.sim.scenario import Scenario

    source = source_of(options.file)
    values = vars(source.module).values()
    found = {each.title: each for each in values if isinstance(each, Scenario)}
    if not found:
        operators = source.operators()
        found = {name: Scenario(operator=each) for name, each in operators.items()}
    if options.scenario:
        found = {name: each for name, each in found.items() if name == options.scenario}
    if len(found) != 1:
        names = ", ".join(found) or "nothing that can be simulated"
        raise NotAnOperator(
            f"{options.file} declares {names}; choose one with --scenario, or write "
            "app = trimtab.Operator('NAME')."
        )
    (scenario,) = found.values()
    if options.replicas:
        scenario = msgspec.structs.replace(scenario, replicas=options.replicas)
    return scenario


def _search(search: Search, options: argparse.Namespace) -> int:
    import time

    from trimtab.sim.search import summed

    began = time.monotonic()
    print(f"Simulating {search.scenario.title}.", flush=True)
    for plan in _plans(search, options, began):
        report = search.run(plan)
        _progress(search, time.monotonic() - began)
        if report.violations:
            _clear()
            return _failed(search, report, options)
    _clear()
    print("No law was broken.")
    print(summed(search.totals, real_seconds=time.monotonic() - began))
    return 0


def _plans(search: Search, options: argparse.Namespace, began: float) -> Iterator[Plan]:
    import time
    from itertools import count, islice

    if options.seed is not None and options.mode == "random":
        yield search.plan(options.seed)
        return
    if options.mode != "random":
        plans = search.systematic(options.mode, seed=options.seed or 0)
    else:
        plans = (search.plan(seed) for seed in count())
    if options.minutes is not None:
        for plan in plans:
            if time.monotonic() - began > options.minutes * 60:
                return
            yield plan
    else:
        most = None if options.mode != "random" and not options.runs else options.runs
        default = RUNS if options.mode == "random" else None
        yield from islice(plans, most or default)


def _failed(search: Search, report: Report, options: argparse.Namespace) -> int:
    from trimtab.sim.search import told

    print(f"Seed {report.plan.seed} broke a law; looking for the least that does …")
    smallest = search.shrink(report, tell=lambda *_: _progress(search, 0.0))
    _clear()
    print(told(smallest, of=report))
    mode = f" --mode {options.mode}" if options.mode != "random" else ""
    print(f"Replay: trimtab sim {options.file} --seed {report.plan.seed}{mode}")
    return 1


def _progress(search: Search, seconds: float) -> None:
    if sys.stderr.isatty():
        totals = search.totals
        rate = f"  {totals.runs / seconds:.1f} seeds/s" if seconds else ""
        hours = totals.seconds / 3600
        line = f"{totals.runs} runs  {hours:.1f} virtual hours{rate}"
        print(f"\r{line:<60}", end="", file=sys.stderr, flush=True)


def _clear() -> None:
    if sys.stderr.isatty():
        print(f"\r{'':<60}\r", end="", file=sys.stderr, flush=True)
