"""A law of copies in the simulation: they live as long as somebody needs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.operators.sessions.copying import End, copies_scenario
from tests.sim.searching import no_law_is_broken
from trimtab.sim.provided import provided
from trimtab.sim.search import Search

SEEDS = 2
MANY = 60


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    with provided():
        yield


@pytest.mark.simulation
@pytest.mark.timeout(300)
@pytest.mark.parametrize("ends", ["runs", "stops", "orphaned"])
def test_copied_secrets_live_exactly_as_long_as_someone_needs_them(ends: End) -> None:
    search = Search(copies_scenario(ends=ends))
    no_law_is_broken(search, (search.plan(seed) for seed in range(SEEDS)))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("ends", ["runs", "stops", "orphaned"])
def test_copies_are_right_after_many_runs(ends: End) -> None:
    search = Search(copies_scenario(ends=ends))
    no_law_is_broken(search, (search.plan(seed) for seed in range(MANY)))
