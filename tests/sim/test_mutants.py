"""Bugs that are put back into the real code are found.

A mutant that survives is a law that is missing.
"""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest

from tests.sim.mutation import ROOT, Outcome, mutant, names

SEEDS = 90
QUICK = ("lost-retry",)
SLOW = [each for each in names() if each.startswith(("pool-", "sessions-"))]
"""Those of the pool and of sessions: a run of their towns takes seconds."""


def outcome(name: str, *, most: int) -> Outcome:
    """Of a search in a process of its own, in which the bug is."""
    command = [sys.executable, "-m", "tests.sim.mutation", name, "--most", str(most)]
    environ = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout, type=Outcome)


@pytest.mark.parametrize("name", names())
def test_a_mutant_changes_what_is_there(name: str) -> None:
    for change in mutant(name).change:
        assert change.path.read_text().count(change.old) == 1, change.module
        assert change.new != change.old


@pytest.mark.parametrize("name", QUICK)
def test_a_bug_that_any_run_shows_is_found_at_once(name: str) -> None:
    assert outcome(name, most=2).seeds in (1, 2)


def is_found(name: str) -> None:
    found = outcome(name, most=SEEDS)
    assert found.seeds, f"{mutant(name).bug}: no law of the simulation sees it"


@pytest.mark.simulation
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted({*names()} - {*QUICK, *SLOW}))
def test_a_bug_is_found(name: str) -> None:
    is_found(name)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", SLOW)
def test_a_bug_of_a_town_is_found(name: str) -> None:
    is_found(name)
