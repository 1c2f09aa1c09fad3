"""Laws of the search: it finds nothing where nothing is wrong, and shrinks the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sim.searching import no_law_is_broken
from tests.sim.worlds import SCENARIOS, shop_scenario
from trimtab.sim import Act, Fault, Plan, Report, Scenario, Violation
from trimtab.sim.modes import Mode
from trimtab.sim.provided import provided
from trimtab.sim.search import Search, told

ROOT = Path(__file__).parents[2]
SEEDS = 25


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    with provided():
        yield


def small(name: str) -> Scenario:
    return SCENARIOS[name](seconds=30.0, objects=2)


@pytest.mark.parametrize("seed", [19])
def test_an_apply_is_forgotten_with_its_object_or_its_term(seed: int) -> None:
    """Objects that went while another replica led stayed in a ledger for ever, and so
    did one that was gone before the answer came."""
    acts = (Act(1.0, "create", 0, seed),)
    cut = Fault(0, 20, "cut", 20.0)
    search = Search(shop_scenario(seconds=40.0, rest=30.0))
    no_law_is_broken(search, iter([Plan(seed=seed, acts=acts, faults=(cut,))]))


class Cutting(Search):
    """A search in which exactly those plans fail that cut a replica off."""

    def run(self, plan: Plan) -> Report:
        cut = any(each.kind == "cut" for each in plan.faults)
        return Report(
            plan=plan,
            violations=[Violation("never cut", "It was.", 1.0)] if cut else [],
            state={},
            digest="",
            timeline=["the last step"],
            seconds=1.0,
            steps=1,
            calls=1,
            writes=1,
            writes_of=(1,),
            calls_of=(1,),
            faults=Counter(),
        )


def test_a_failure_is_made_as_small_as_it_can_be() -> None:
    search = Cutting(shop_scenario())
    faults = tuple(Fault(0, number, "slow", 0.1) for number in range(3, 9))
    acts = (Act(1.0, "create", 0, 1), Act(2.0, "touch", 0, 1))
    cut = Fault(0, 9, "cut", 0.5)
    plan = Plan(seed=1, acts=acts, faults=(*faults, cut), pods_fail=True)
    failed = search.run(plan)
    smallest = search.shrink(failed)
    assert smallest.plan == Plan(seed=1, acts=(), faults=(cut,))
    assert "1 of 7 are enough" in told(smallest, of=failed)
    assert "the last step" in told(smallest, of=failed)


def simulated(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trimtab", "sim", *arguments]
    environ = {**os.environ, "TRIMTAB_TRACEBACK": "1"}
    environ.pop("PYTHONHASHSEED", None)
    return subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )


def test_the_command_simulates_a_file_that_knows_nothing_of_it() -> None:
    done = simulated("examples/website.py", "--runs", "1", "--replicas", "1")
    assert done.returncode == 0, done.stderr
    assert "No law was broken." in done.stdout
    assert "virtual hours" in done.stdout


def test_the_command_shows_a_failure_with_the_seed_that_replays_it(
    tmp_path: Path,
) -> None:
    website = (ROOT / "examples" / "website.py").read_text()
    text = website + (
        "\n\nfrom trimtab.sim import Scenario\n\n\n"
        "def no_website(server):\n"
        "    for each in server.of('example.com/websites'):\n"
        "        yield 'There is a website.'\n\n\n"
        "scenario = Scenario(operator=app, at_rest=[no_website], replicas=1,\n"
        "                    seconds=10, rest=20, objects=1)\n"
    )
    file = tmp_path / "broken.py"
    file.write_text(text)
    done = simulated(str(file), "--runs", "4")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "no_website" in done.stdout
    assert f"Replay: trimtab sim {file} --seed" in done.stdout


def test_the_command_says_what_it_cannot_simulate(tmp_path: Path) -> None:
    file = tmp_path / "empty.py"
    file.write_text("x = 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "trimtab", "sim", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "declares nothing that can be simulated" in done.stderr


@pytest.mark.simulation
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", list(SCENARIOS))
def test_random_runs_break_no_law(name: str) -> None:
    search = Search(SCENARIOS[name]())
    no_law_is_broken(search, (search.plan(seed) for seed in range(SEEDS)))


@pytest.mark.simulation
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["crash", "pause", "stale", "stop"])
@pytest.mark.parametrize("name", list(SCENARIOS))
def test_no_single_write_is_a_bad_moment(name: str, mode: Mode) -> None:
    search = Search(small(name))
    no_law_is_broken(search, search.systematic(mode, seed=1))


@pytest.mark.simulation
@pytest.mark.timeout(600)
def test_no_single_call_must_succeed() -> None:
    search = Search(shop_scenario(seconds=15.0, objects=1, rest=60.0))
    no_law_is_broken(search, search.systematic("fail", seed=1))
