"""The search: runs until a law is broken, and then the least that breaks it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from trimtab.sim.modes import SYSTEMATIC, Mode
from trimtab.sim.plan import Act, Plan, acts_of, faults_of
from trimtab.sim.scenario import Scenario
from trimtab.sim.world import Report, run

T = TypeVar("T")

WORKLOADS: Final = 4
"""Random runs share this many workloads, whose undisturbed ends are known then."""
SHRINKS: Final = 80
"""Runs that making a failure smaller may take."""


class Totals(msgspec.Struct):
    """What all runs of a search come to."""

    runs: int = 0
    seconds: float = 0.0
    steps: int = 0
    calls: int = 0
    writes: int = 0
    faults: Counter[str] = msgspec.field(default_factory=Counter)

    def add(self, report: Report) -> None:
        self.runs += 1
        self.seconds += report.seconds
        self.steps += report.steps
        self.calls += report.calls
        self.writes += report.writes
        self.faults.update(report.faults)


class Search:
    """Runs the plans of one scenario.

    Guarantees: a seed stands for the same plan in every search of a scenario.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.totals = Totals()
        # As many as there are workloads; a search makes no others.
        self._undisturbed: dict[tuple[Act, ...], Report] = {}

    def plan(self, seed: int) -> Plan:
        """The random plan that a seed stands for."""
        scenario = self.scenario
        faults = faults_of(
            seed,
            replicas=scenario.operators + scenario.talking,
            kinds=scenario.faults,
            programs=scenario.talking,
        )
        return Plan(
            seed=seed, acts=self.acts(seed), faults=faults, pods_fail=seed % 2 == 1
        )

    def acts(self, seed: int) -> tuple[Act, ...]:
        scenario = self.scenario
        objects = scenario.objects if scenario.made else 0
        return acts_of(seed % WORKLOADS, seconds=scenario.seconds, objects=objects)

    def systematic(self, mode: Mode, *, seed: int = 0) -> Iterator[Plan]:
        """Every plan of a systematic mode, for the workload of a seed."""
        undisturbed = self.undisturbed(Plan(seed=seed, acts=self.acts(seed)))
        yield from SYSTEMATIC[mode](self.scenario, undisturbed)

    def undisturbed(self, plan: Plan) -> Report:
        """The same acts, and nothing goes wrong; remembered."""
        known = self._undisturbed.get(plan.acts)
        if known is None:
            known = run(self.scenario, plan.without_faults())
            if len(self._undisturbed) < 2 * WORKLOADS:
                self._undisturbed[plan.acts] = known
        return known

    def run(self, plan: Plan) -> Report:
        """Run a plan, and compare it with its undisturbed run; the report of either."""
        undisturbed = self.undisturbed(plan)
        if undisturbed.violations:
            report = undisturbed  # no fault is needed to break a law
        else:
            report = run(self.scenario, plan, undisturbed=undisturbed.state)
        self.totals.add(report)
        return report

    def shrink(
        self, report: Report, *, tell: Callable[[int, Plan], None] = lambda *_: None
    ) -> Report:
        """The smallest plan found that breaks one of the same laws."""
        best, left = report, SHRINKS

        def breaks(plan: Plan) -> bool:
            nonlocal best, left
            if left <= 0:
                return False
            left -= 1
            found = self.run(plan)
            if not found.laws & report.laws:
                return False
            best = found
            tell(SHRINKS - left, plan)
            return True

        plan = report.plan
        replace = msgspec.structs.replace
        if plan.pods_fail and breaks(replace(plan, pods_fail=False)):
            plan = best.plan
        least(plan.faults, lambda some: breaks(replace(best.plan, faults=some)))
        least(best.plan.acts, lambda some: breaks(replace(best.plan, acts=some)))
        return best


def least(items: Sequence[T], breaks: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """A part of ``items`` of which nothing can be left out: delta debugging."""
    kept = tuple(items)
    size = len(kept)
    while size >= 1:
        place = 0
        while place < len(kept):
            fewer = kept[:place] + kept[place + size :]
            if breaks(fewer):
                kept = fewer
            else:
                place += size
        size //= 2
    return kept


def told(report: Report, *, of: Report | None = None, lines: int = 30) -> str:
    """A failure for a reader: what broke, what it took, and the last steps."""
    text = [f"Seed {report.plan.seed} breaks a law:"]
    for each in report.violations[:5]:
        text.append(f"  {each.law}, at {each.at:.3f} s: {each.sentence}")
    before = (of or report).plan
    text += _listed("What went wrong", report.plan.faults, before.faults)
    text += _listed("What people did", report.plan.acts, before.acts)
    if report.plan.pods_fail:
        text.append("Pods had bad luck as well.")
    text.append("The last steps:")
    text += [f"  {line}" for line in report.timeline[-lines:]]
    return "\n".join(text)


def _listed(what: str, items: Sequence[Any], before: Sequence[Any]) -> list[str]:
    if not items:
        return [f"{what}: nothing; it breaks without."]
    enough = f" ({len(items)} of {len(before)} are enough)"
    return [
        f"{what}{enough if len(items) < len(before) else ''}:",
        *(f"  {_act(each) if isinstance(each, Act) else each}" for each in items),
    ]


def _act(act: Act) -> str:
    return f"{act.at:.3f} s: {act.kind} object {act.target}"


def summed(totals: Totals, *, real_seconds: float) -> str:
    """One sentence about all runs."""
    kinds: Mapping[str, int] = totals.faults
    faults = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    rate = totals.runs / real_seconds if real_seconds else 0.0
    return (
        f"{totals.runs} runs, {totals.seconds / 3600:.1f} virtual hours, "
        f"{totals.steps:,} steps, {totals.calls:,} calls, {rate:.1f} seeds a second.\n"
        f"Faults: {faults or 'none'}."
    )
