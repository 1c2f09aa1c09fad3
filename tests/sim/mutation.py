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
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import msgspec

FOLDER = Path(__file__).parent / "mutants"
ROOT = Path(__file__).parents[2]


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
    mode: str = "random"
    workload: int = 0
    """Of a mode that is systematic."""


class Outcome(msgspec.Struct, frozen=True):
    """How a mutant was found."""

    seeds: int
    """How many plans it took; 0 if it was not found."""
    laws: list[str]
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


def search(name: str, *, first: int, most: int) -> Outcome:
    """Look for a mutant with the plans from ``first`` on; this process has it then."""
    chosen = mutant(name)
    sys.meta_path.insert(0, Finder(chosen.change))
    worlds = importlib.import_module("tests.sim.worlds")
    scenario = {"shops": worlds.shop_scenario, "websites": worlds.website_scenario}
    # What is systematic tries every write, so there should not be many.
    less = {} if chosen.mode == "random" else {"seconds": 30.0, "objects": 2}
    made = scenario[chosen.scenario](**less)
    first = first if chosen.mode == "random" else chosen.workload
    return found(made, chosen.mode, first=first, most=most)


def found(scenario: Any, mode: Any, *, first: int, most: int) -> Outcome:
    from itertools import islice

    from trimtab.sim.provided import provided
    from trimtab.sim.search import Search

    looking = Search(scenario)
    plans: Iterable[Any]
    with provided():
        if mode == "random":
            plans = (looking.plan(first + number) for number in range(most))
        else:
            plans = islice(looking.systematic(mode, seed=first), most)
        for number, plan in enumerate(plans, 1):
            report = looking.run(plan)
            if report.violations:
                sentence = report.violations[0].sentence
                return Outcome(number, sorted(report.laws), sentence)
    return Outcome(0, [])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=[*names(), "none"])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--most", type=int, default=40)
    options = parser.parse_args()
    outcome = search(options.name, first=options.first, most=options.most)
    print(msgspec.json.encode(outcome).decode())


if __name__ == "__main__":
    main()
