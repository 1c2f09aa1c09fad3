"""Laws of the pool in the simulation: whoever crashes, nothing leaks or is shared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec
import pytest

from tests.pool.pool_laws import WORKERS
from tests.pool.pool_people import SMALL, TINY
from tests.pool.pool_world import leaderless_scenario, pool_scenario, unled_scenario
from tests.sim.searching import no_law_is_broken
from trimtab.sim import Fault, Plan, Scenario, run
from trimtab.sim.modes import Mode
from trimtab.sim.plan import FaultKind
from trimtab.sim.provided import provided
from trimtab.sim.search import Search, told
from trimtab.sim.server import ObjectChange, Server

SEEDS = 8
FEW = 3
MANY = 300
LOST: tuple[FaultKind, ...] = ("lose-answer",)
MODES: tuple[Mode, ...] = ("crash", "stop", "pause", "stale", "fail")


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    with provided():
        yield


class Moves:
    """Counts what rows do, so that a town where nothing happens proves nothing."""

    seen: Counter[tuple[str, str]] = Counter()

    def __init__(self) -> None:
        Moves.seen = Counter()

    def __call__(self, server: Server, change: ObjectChange) -> Iterator[str]:
        if change.resource == WORKERS and change.before and change.after:
            old, new = (
                (each.get("status") or {}) for each in (change.before, change.after)
            )
            self.seen[old.get("state", ""), new.get("state", "")] += 1
            self.seen["marked", new.get("retireReason", "")] += bool(
                new.get("reaper") and not old.get("reaper")
            )
        yield from ()


@pytest.mark.simulation
@pytest.mark.timeout(600)
def test_a_town_does_all_that_workers_can_do() -> None:
    scenario = pool_scenario()
    report = run(
        msgspec.structs.replace(scenario, always=[*scenario.always, Moves]),
        Plan(seed=1, acts=()),
    )
    assert not report.violations, told(report)
    for move in (
        ("spawning", "idle"),
        ("idle", "hot"),
        ("idle", "activating"),
        ("activating", "hot"),
        ("hot", "hot-idle"),
        ("hot-idle", "hot"),
        ("hot-idle", "draining"),
        ("draining", "retired"),
        ("marked", "holder-dead"),
    ):
        assert Moves.seen[move] > 0, (move, Moves.seen)


@pytest.mark.simulation
@pytest.mark.timeout(600)
def test_random_runs_break_no_law() -> None:
    search = Search(pool_scenario())
    no_law_is_broken(search, (search.plan(seed) for seed in range(SEEDS)))


@pytest.mark.simulation
@pytest.mark.timeout(600)
def test_nothing_leaks_where_nobody_ever_leads() -> None:
    search = Search(leaderless_scenario())
    no_law_is_broken(search, (search.plan(seed) for seed in range(FEW)))


@pytest.mark.simulation
@pytest.mark.timeout(600)
def test_a_replica_that_cannot_renew_hands_out_nothing_when_others_may_reap() -> None:
    search = Search(unled_scenario())
    no_law_is_broken(search, (search.plan(seed) for seed in range(FEW)))


@pytest.mark.simulation
@pytest.mark.timeout(600)
def test_no_write_is_a_bad_moment_to_crash() -> None:
    search = Search(tiny())
    no_law_is_broken(search, search.systematic("crash", seed=1))


@pytest.mark.simulation
@pytest.mark.timeout(600)
def test_no_answer_to_a_write_must_come() -> None:
    search = Search(tiny())
    seen = search.undisturbed(Plan(seed=1, acts=()))
    plans = (
        Plan(seed=1, acts=(), faults=(Fault(replica, number, kind, writes=True),))
        for kind in LOST
        for replica, most in enumerate(seen.writes_of)
        for number in range(1, most + 1)
    )
    no_law_is_broken(search, plans)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_random_runs_break_no_law() -> None:
    search = Search(pool_scenario())
    no_law_is_broken(search, (search.plan(seed) for seed in range(MANY)))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mode", MODES)
def test_no_single_call_is_a_bad_moment(mode: Mode) -> None:
    search = Search(small())
    no_law_is_broken(search, search.systematic(mode, seed=1))


def small() -> Scenario:
    return pool_scenario(SMALL, seconds=20.0)


def tiny() -> Scenario:
    return pool_scenario(TINY, seconds=15.0)
