"""Mutants: bugs put back into the real code, and the search for them.

A mutant is a file of ``tests/sim/mutants``: which module, which text in it, and what
stands there instead. It is imported in a process of its own, in which that module is
compiled from the changed text. ``python -m tests.sim.mutation NAME`` says after how
many seeds the simulation finds it, and by which law.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import msgspec

FOLDER = Path(__file__).parent / "mutants"
ROOT = Path(__file__).parents[2]
NONE = "none"
"""The name of no mutant at all."""


class Change(msgspec.Struct, frozen=True):
    """One text of one module, and what stands there instead."""

    module: str
    old: str
    new: str

    @property
    def path(self) -> Path:
        place = self.module.replace(".", "/") + ".py"
        return ROOT / ("src" if self.module.startswith("trimtab") else "") / place


class Mutant(msgspec.Struct, frozen=True):
    """One bug."""

    bug: str
    """Its class, in the words of the design."""
    change: list[Change]
    scenario: str = "shops"
    mode: Any = "random"
    workload: int = 0
    """Of a mode that is systematic."""


class Outcome(msgspec.Struct, frozen=True):
    """How a mutant was found."""

    seeds: int
    """How many plans it took; 0 if it was not found."""
    law: str = ""
    """The one that was broken first."""
    sentence: str = ""


def names() -> list[str]:
    return sorted(each.stem for each in FOLDER.glob("*.toml"))


def mutant(name: str) -> Mutant:
    text = (FOLDER / f"{name}.toml").read_text()
    return msgspec.convert(tomllib.loads(text), Mutant)


class Mutating(importlib.machinery.SourceFileLoader):
    """Compiles a module from its changed text."""

    def __init__(self, name: str, path: str, changes: Sequence[Change]) -> None:
        super().__init__(name, path)
        self._changes = changes

    def get_code(self, fullname: str) -> CodeType:
        text = Path(self.path).read_text()
        for change in self._changes:
            assert text.count(change.old) == 1, f"{change.old!r} is not there once"
            text = text.replace(change.old, change.new)
        return compile(text, self.path, "exec")


class Finder(importlib.abc.MetaPathFinder):
    """Finds the changed modules before anybody else does."""

    def __init__(self, changes: Sequence[Change]) -> None:
        self._changes: dict[str, list[Change]] = {}
        for change in changes:
            self._changes.setdefault(change.module, []).append(change)

    def find_spec(
        self, fullname: str, path: Any, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._changes:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        loader = Mutating(fullname, spec.origin, self._changes[fullname])
        return importlib.util.spec_from_file_location(
            fullname, spec.origin, loader=loader
        )


def search(name: str, *, starts: Sequence[int], most: int) -> Iterator[Outcome]:
    """Look for a mutant, from each start anew; this process has it then.

    A start is the first of the seeds of a random search. A systematic one tries every
    write of one workload, with the seed that the start adds to it.
    """
    chosen = mutant(name) if name != NONE else Mutant(bug="", change=[])
    sys.meta_path.insert(0, Finder(chosen.change))
    worlds = importlib.import_module("tests.sim.worlds")
    # What is systematic tries every write, so there should not be many.
    less = {} if chosen.mode == "random" else {"seconds": 30.0, "objects": 2}
    scenarios = {**worlds.SCENARIOS, **worlds.SHIPPED}
    made = scenarios[chosen.scenario](**less)
    from trimtab.sim.provided import provided
    from trimtab.sim.search import Search

    plans: Iterable[Any]
    looking = Search(made)
    with provided():
        for start in starts:
            if chosen.mode == "random":
                plans = (looking.plan(start + number) for number in range(most))
            else:
                looking = Search(made)  # another one's undisturbed run has its seed
                seed = chosen.workload + start
                plans = islice(looking.systematic(chosen.mode, seed=seed), most)
            yield found(looking, plans)


def found(looking: Any, plans: Iterable[Any]) -> Outcome:
    """How many plans it takes until a law is broken."""
    for number, plan in enumerate(plans, 1):
        report = looking.run(plan)
        if report.violations:
            broken = report.violations[0]
            return Outcome(number, broken.law, broken.sentence)
    return Outcome(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=[*names(), NONE])
    parser.add_argument("--first", type=int, nargs="+", default=[0])
    parser.add_argument("--most", type=int, default=40)
    options = parser.parse_args()
    for outcome in search(options.name, starts=options.first, most=options.most):
        print(msgspec.json.encode(outcome).decode(), flush=True)


if __name__ == "__main__":
    main()
