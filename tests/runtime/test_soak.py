"""The soak of ``bench/soak.py`` in a minute and a half: churn, cuts, kills, and laws.

Memory is judged by its slope only there: the memos of bounded size that an operator
fills in its first ten thousand events are most of what a short run can see.
"""

from __future__ import annotations

import pytest

from bench.soaking.faults import Pace
from bench.soaking.run import WARM_UP, MiB, Plan, soak
from trimtab.testing import Kind

PACE = Pace(cuts=2.0, silences=15.0, long_silences=0.0, coups=8.0)
GROWTH = 10.0
"""MiB that the memos of a young operator may take; what is left behind takes more."""


@pytest.mark.long
@pytest.mark.cluster("embedded", "real")
@pytest.mark.timeout(400)
async def test_churn_cuts_and_kills_lose_nothing_and_leave_nothing_behind(
    request: pytest.FixtureRequest,
) -> None:
    kind: Kind = request.config.getoption("--cluster")
    plan = Plan(cluster=kind, seconds=90.0, rate=40.0, live=120, lease=4, pace=PACE)
    outcome = await soak(plan)
    assert outcome.broken == []
    assert outcome.left == []
    assert outcome.problems == []
    assert outcome.faults["leaders killed"] >= 1
    assert outcome.faults["leaders stopped beyond the lease"] >= 1
    assert outcome.faults["connections cut"] >= 10
    warm = [each for each in outcome.samples if each.seconds >= WARM_UP * plan.seconds]
    grown = max(each.resident for each in warm) - warm[0].resident
    assert grown / MiB < GROWTH
