"""What every search in a test asks: that none of its runs breaks a law."""

from __future__ import annotations

from collections.abc import Iterable

from trimtab.sim import Plan
from trimtab.sim.search import Search, told


def no_law_is_broken(search: Search, plans: Iterable[Plan]) -> None:
    for plan in plans:
        report = search.run(plan)
        assert not report.violations, told(report)
