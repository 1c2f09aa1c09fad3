"""Runs one plan with everything in it and prints the digest of all that happened.

Run as a program, by a test that compares processes: ``python -m tests.sim.replay``.
"""

from __future__ import annotations

import sys

from tests.sim.worlds import shop_scenario
from trimtab.sim import run
from trimtab.sim.provided import provided
from trimtab.sim.search import Search

if __name__ == "__main__":
    if "imports" in sys.argv:
        import decimal
        import xml.dom.minidom

        used = decimal.Decimal(1), xml.dom.minidom.Document()
    search = Search(shop_scenario(rest=60.0, seconds=40.0))
    with provided():
        for seed in (5,):
            report = run(search.scenario, search.plan(seed))
            print(report.digest, report.steps, sorted(report.laws))
