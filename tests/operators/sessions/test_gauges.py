"""Laws of the gauges: sessions are counted as they come and go, and by phase alone."""

from __future__ import annotations

from collections import Counter
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from trimtab.api import Metadata
from trimtab.cache.store import Store
from trimtab.operators.sessions.decisions import PHASE
from trimtab.operators.sessions.kinds import (
    ACTIVE,
    TERMINAL,
    AgenticSession,
    AgenticSessionStatus,
    Phase,
)
from trimtab.operators.sessions.operator import kept

PHASES = sorted(ACTIVE | TERMINAL)
STEPS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from([*PHASES, "gone"])), max_size=40
)


def session(number: int, phase: str, *, version: int) -> AgenticSession:
    metadata = Metadata(
        name=str(number),
        namespace="team",
        uid=f"uid-{number}",
        resourceVersion=str(version),
    )
    status = AgenticSessionStatus(phase=cast(Phase, phase))
    return AgenticSession(metadata=metadata, status=status)


@given(STEPS)
def test_fault_a_the_gauges_are_counts_of_the_index_whatever_comes_and_goes(
    steps: list[tuple[int, str]],
) -> None:
    store = Store(AgenticSession, indexes=[PHASE], keep=kept)
    there: dict[int, str] = {}
    for version, (number, phase) in enumerate(steps, start=1):
        if phase != "gone":
            store.put(session(number, phase, version=version))
            there[number] = phase
        elif number in there:
            last = there.pop(number)
            store.remove(session(number, last, version=version))
        expected = {("phase", each): 0 for each in PHASE.counted}
        counts = Counter(("phase", each) for each in there.values())
        assert store.statistics().counted == {**expected, **counts}


def test_the_labels_of_the_gauges_are_a_closed_set() -> None:
    assert sorted(PHASE.counted) == PHASES
