"""Random writes and lists come to the same on the embedded server and on a real one.

What was found is kept, as small as it gets, in :mod:`tests.differential.stories.found`.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.differential import selecting
from tests.differential.fuzzed import ALL, Fuzzed
from tests.differential.fuzzing import Pair, Write, histories
from tests.differential.wire import Plain, Wire

FEW = 40
MOST_OF_FEW = 120

pytestmark = pytest.mark.cluster("real")


@pytest.fixture(scope="session")
def furnished(here: Wire, there: Wire) -> None:
    for wire in (here, there):
        selecting.furnish(wire)


def _fuzz_writes(pair: Pair, kind: Fuzzed, *, cases: int) -> None:
    @_settings(cases)
    @given(histories(kind))
    def same(history: list[Write]) -> None:
        found = pair.differences(kind, history)
        assert not found, "\n".join(found)

    same()


def _fuzz_lists(here: Wire, there: Wire, *, cases: int) -> None:
    @_settings(cases)
    @given(selecting.queries())
    def same(query: Plain) -> None:
        found = selecting.differences(here, there, query)
        assert not found, "\n".join(found)

    same()


def _settings(cases: int) -> settings:
    """The few are always the same ones, the thousands are new each time."""
    return settings(
        max_examples=cases,
        derandomize=cases <= MOST_OF_FEW,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.plural)
def test_a_few_histories_of_writes_come_to_the_same(pair: Pair, kind: Fuzzed) -> None:
    _fuzz_writes(pair, kind, cases=FEW)


@pytest.mark.usefixtures("furnished")
def test_a_few_selectors_and_pages_come_to_the_same(here: Wire, there: Wire) -> None:
    _fuzz_lists(here, there, cases=MOST_OF_FEW)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.plural)
def test_thousands_of_histories_of_writes_come_to_the_same(
    pair: Pair, kind: Fuzzed, cases: int
) -> None:
    _fuzz_writes(pair, kind, cases=cases)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("furnished")
def test_thousands_of_selectors_and_pages_come_to_the_same(
    here: Wire, there: Wire, cases: int
) -> None:
    _fuzz_lists(here, there, cases=cases)
