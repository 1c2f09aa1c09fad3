"""Laws of sessions in the simulation: whoever ends, and whatever does not answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.operators.sessions.simulated import (
    ONE,
    PATIENT,
    SESSIONS,
    hasty_scenario,
    phase_of,
    scenario,
)
from tests.sim.searching import no_law_is_broken
from trimtab.sim import Fault, Plan, Scenario, run
from trimtab.sim.modes import SYSTEMATIC, Mode
from trimtab.sim.provided import provided
from trimtab.sim.search import Search, told
from trimtab.sim.server import ObjectChange, Server

SEEDS = 8
MANY = 300


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    with provided():
        yield


class Moves:
    """Counts what sessions do, so that a town where nothing happens proves nothing."""

    seen: Counter[tuple[str, str]] = Counter()

    def __init__(self) -> None:
        Moves.seen = Counter()

    def __call__(self, server: Server, change: ObjectChange) -> Iterator[str]:
        if change.resource == SESSIONS and change.before and change.after:
            self.seen[phase_of(change.before), phase_of(change.after)] += 1
        yield from ()


@pytest.mark.simulation
@pytest.mark.timeout(600)
def test_a_town_does_all_that_sessions_can_do(tmp_path: Path) -> None:
    made = scenario(tmp_path)
    report = run(
        msgspec.structs.replace(made, always=[*made.always, Moves]),
        Plan(seed=1, acts=(), pods_fail=True),
    )
    assert not report.violations, told(report)
    for move in (
        ("Pending", "Creating"),
        ("Creating", "Running"),
        ("Running", "Stopping"),
        ("Stopping", "Stopped"),
        ("Stopping", "Pending"),
        ("Stopped", "Pending"),
    ):
        assert Moves.seen[move] > 0, (move, Moves.seen)


@pytest.mark.simulation
@pytest.mark.timeout(600)
def test_random_runs_break_no_law(tmp_path: Path) -> None:
    search = Search(scenario(tmp_path))
    no_law_is_broken(search, (search.plan(seed) for seed in range(SEEDS)))


@pytest.mark.simulation
@pytest.mark.timeout(600)
def test_no_write_of_a_start_or_a_stop_is_a_bad_moment_to_crash(tmp_path: Path) -> None:
    search = Search(one(tmp_path))
    no_law_is_broken(search, systematic(search, "crash"))


@pytest.mark.simulation
@pytest.mark.timeout(600)
def test_no_answer_to_a_write_must_come(tmp_path: Path) -> None:
    search = Search(one(tmp_path))
    seen = search.undisturbed(Plan(seed=1, acts=()))
    plans = (
        Plan(seed=1, acts=(), faults=(Fault(0, number, "lose-answer", writes=True),))
        for number in range(1, seen.writes_of[0] + 1)
    )
    no_law_is_broken(search, plans)


@pytest.mark.simulation
@pytest.mark.timeout(600)
def test_no_token_expires_under_a_runner_that_works_for_hours(tmp_path: Path) -> None:
    search = Search(patient(tmp_path))
    no_law_is_broken(search, (search.plan(seed) for seed in range(1)))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_wish_that_comes_before_the_last_one_was_obeyed_is_not_lost() -> None:
    search = Search(hasty_scenario())
    no_law_is_broken(search, (search.plan(seed) for seed in range(MANY // 6)))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_random_runs_break_no_law(tmp_path: Path) -> None:
    search = Search(scenario(tmp_path))
    no_law_is_broken(search, (search.plan(seed) for seed in range(MANY)))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mode", ["stop", "pause", "stale", "fail"])
def test_no_single_call_is_a_bad_moment(tmp_path: Path, mode: Mode) -> None:
    search = Search(one(tmp_path))
    no_law_is_broken(search, systematic(search, mode))


def systematic(search: Search, mode: Mode) -> Iterator[Plan]:
    """Every plan of a mode, where the backend alone does something."""
    seen = search.undisturbed(Plan(seed=1, acts=()))
    yield from SYSTEMATIC[mode](search.scenario, seen)


def one(folder: Path) -> Scenario:
    return scenario(folder, ONE, seconds=25.0)


def patient(folder: Path) -> Scenario:
    return scenario(folder, PATIENT, seconds=9000.0, patience=9000.0)
