"""A law of retention in the simulation: nothing of a session outlives it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.operators.sessions.retaining import retention_scenario
from tests.sim.searching import no_law_is_broken
from trimtab.sim.provided import provided
from trimtab.sim.search import Search

SEEDS = 4
MANY = 100


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    with provided():
        yield


@pytest.mark.simulation
@pytest.mark.timeout(300)
def test_nothing_of_a_terminal_session_outlives_its_retention() -> None:
    search = Search(retention_scenario())
    no_law_is_broken(search, (search.plan(seed) for seed in range(SEEDS)))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_retention_is_right_after_many_runs() -> None:
    search = Search(retention_scenario())
    no_law_is_broken(search, (search.plan(seed) for seed in range(MANY)))
