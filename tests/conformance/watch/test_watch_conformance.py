"""Trimtab's informer keeps the laws in every scenario."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.watch.laws import broken
from tests.conformance.watch.ours import Ours
from tests.conformance.watch.scenarios import SCENARIOS, anything
from tests.conformance.watch.stage import Scenario, perform
from tests.conformance.watch.subjects import Program, Report, Way
from tests.conformance.watch.world import World

ROOT = Path(__file__).resolve().parents[3]
OURS = (sys.executable, "-m", "tests.conformance.watch.peers.ours")
WITHIN = 240.0


def cases() -> Iterator[Any]:
    for each in SCENARIOS:
        marks = [pytest.mark.long, pytest.mark.timeout(600)] if each.long else []
        yield pytest.param(each, id=each.name.replace(" ", "-"), marks=marks)


@pytest.mark.parametrize("scenario", [*cases()])
async def test_no_scenario_makes_a_ghost_a_loss_or_a_flicker(
    scenario: Scenario, tmp_path: Path
) -> None:
    if not scenario.memory:
        verdict = await perform(scenario, Ours(), folder=tmp_path)
        assert (verdict.outcome, verdict.notes) == ("ok", "")
        return
    environ = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    subject = Program(*OURS, environ=environ, log=tmp_path / "log")
    patience = WITHIN if scenario.long else 30.0
    verdict = await perform(scenario, subject, folder=tmp_path, patience=patience)
    assert verdict.outcome == "ok"


@pytest.mark.parametrize("seed", range(2, 6))
async def test_no_order_of_faults_breaks_a_law(seed: int, tmp_path: Path) -> None:
    scenario = Scenario("anything", partial(anything, seed=seed))
    assert (await perform(scenario, Ours(), folder=tmp_path)).outcome == "ok"


# The suite itself


@pytest.mark.parametrize(
    ("law", "report"),
    [
        ("ghost", Report(snapshot={"default/a": "1002", "default/b": "1001"})),
        ("loss", Report(snapshot={})),
        ("stale", Report(snapshot={"default/a": "1001"})),
        (
            "flicker",
            Report(
                snapshot={"default/a": "1002"},
                added={"default/a": 2},
                deleted={"default/a": 1},
            ),
        ),
        (
            "untold",
            Report(snapshot={"default/a": "1002"}, added={"default/b": 1}),
        ),
    ],
)
def test_each_law_is_broken_by_what_breaks_it(law: str, report: Report) -> None:
    world = World()
    world.create("a")
    world.touch("a")
    right = Report(snapshot={"default/a": "1002"}, added={"default/a": 1})
    assert broken(right, world) == []
    assert law in [words.partition(":")[0] for words in broken(report, world)]


async def test_an_informer_that_never_lists_again_is_found_out(tmp_path: Path) -> None:
    class Deaf(Ours):
        """Stops to follow after its first list."""

        async def start(self, kubeconfig: Path, *, way: Way, idle: float) -> None:
            await super().start(kubeconfig, way=way, idle=idle)
            await self.informer.wait_synced()
            self.first = await super().report()

        async def report(self) -> Report:
            return self.first

    [scenario] = [each for each in SCENARIOS if each.name == "410 as answer"]
    verdict = await perform(scenario, Deaf(), folder=tmp_path, patience=0.5)
    assert "ghost" in verdict.outcome
    assert "loss" in verdict.outcome
