"""Laws of jobs in the simulation: whoever dies or is late, each ends exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec
import pytest

from tests.operators.vmafx.studio import TINY, Studio, studio_scenario
from tests.operators.vmafx.studio_laws import JOBS, SPLIT, CancelledJobsStop
from tests.operators.vmafx.studio_people import people_scenario, split_job
from tests.sim.searching import no_law_is_broken
from trimtab.operators.vmafx.kinds import VmafxJob
from trimtab.sim import Fault, Plan, Scenario, run
from trimtab.sim.modes import Mode
from trimtab.sim.plan import FaultKind
from trimtab.sim.provided import provided
from trimtab.sim.search import Search, told
from trimtab.sim.server import ObjectChange, Server

SEEDS = 16
MANY = 500
LOST: tuple[FaultKind, ...] = ("lose-answer", "hang-after")
MODES: tuple[Mode, ...] = ("stop", "pause", "stale", "fail")


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    with provided():
        yield


class Outcomes:
    """Counts how runs end, so that a studio where nothing happens proves nothing."""

    seen: Counter[str] = Counter()

    def __call__(self, server: Server, change: ObjectChange) -> Iterator[str]:
        if change.resource == JOBS and change.before and change.after:
            old, new = (
                ((each.get("status") or {}).get("run") or {}).get("outcome", "")
                for each in (change.before, change.after)
            )
            self.seen[new] += old != new
        yield from ()


@pytest.mark.simulation
@pytest.mark.timeout(600)
def test_random_runs_break_no_law_and_all_that_can_happen_does() -> None:
    Outcomes.seen = Counter()
    scenario = studio_scenario()
    always = [*scenario.always, Outcomes]
    search = Search(msgspec.structs.replace(scenario, always=always))
    no_law_is_broken(search, (search.plan(seed) for seed in range(SEEDS)))
    for outcome in ("completed", "failed", "cancelled", "expired", "released"):
        assert Outcomes.seen[outcome] > 0, Outcomes.seen


@pytest.mark.simulation
@pytest.mark.timeout(600)
def test_jobs_of_people_end_once_and_say_so_whatever_people_do() -> None:
    SPLIT.clear()
    search = Search(people())
    no_law_is_broken(search, (search.plan(seed) for seed in range(SEEDS // 2)))
    assert SPLIT, "no job in segments came to its end"


@pytest.mark.simulation
@pytest.mark.timeout(600)
def test_no_write_is_a_bad_moment_to_crash() -> None:
    search = Search(tiny())
    plans = list(search.systematic("crash", seed=1))
    assert len(plans) > 40
    no_law_is_broken(search, plans)


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


@pytest.mark.simulation
def test_a_cancelled_job_stops_at_once_when_nothing_goes_wrong() -> None:
    scenario = studio_scenario()
    always = [*scenario.always, CancelledJobsStop]
    for seed in range(6):
        plan = Plan(seed=seed, acts=())
        report = run(msgspec.structs.replace(scenario, always=always), plan)
        assert not report.violations, told(report)


@pytest.mark.simulation
@pytest.mark.parametrize(("of_people", "seed"), [(False, 391), (True, 349)])
def test_a_seed_that_broke_a_law_once_breaks_none(of_people: bool, seed: int) -> None:
    search = Search(people() if of_people else studio_scenario())
    no_law_is_broken(search, [search.plan(seed)])


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("of_people", [False, True])
def test_many_random_runs_break_no_law(of_people: bool) -> None:
    search = Search(people() if of_people else studio_scenario())
    no_law_is_broken(search, (search.plan(seed) for seed in range(MANY)))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mode", MODES)
def test_no_single_call_is_a_bad_moment(mode: Mode) -> None:
    search = Search(tiny())
    no_law_is_broken(search, search.systematic(mode, seed=1))


@pytest.mark.long
@pytest.mark.timeout(600)
def test_no_write_for_a_job_in_segments_is_a_bad_moment_to_crash() -> None:
    SPLIT.clear()
    studio = Studio(nodes=2, jobs=1, slots=1, leaves=0.0)
    search = Search(people_scenario(studio, samples={VmafxJob: split_job}, seconds=5.0))
    plans = list(search.systematic("crash", seed=1))
    assert len(plans) > 40
    no_law_is_broken(search, plans)
    assert len(SPLIT) >= len(plans), "each of them has its score, whoever died"


def people() -> Scenario:
    return people_scenario(Studio(nodes=2, jobs=6))


def tiny() -> Scenario:
    return studio_scenario(TINY)
