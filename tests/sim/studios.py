"""Scoring in the simulation as mutants need it: with the operator that tells of it.

The studio of the scoring's own laws has gateways, nodes and producers; here two
replicas of its operator run beside them, with the laws that hold for any operator.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tests.operators.vmafx.studio import HERE, TINY, studio_scenario
from trimtab.operators.vmafx.operator import make
from trimtab.sim import Scenario


def told_scenario(**changes: Any) -> Scenario:
    """A small studio, and an operator that says what becomes of its jobs."""
    given: dict[str, Any] = {
        "name": "told studio",
        "operator": make(scope=HERE, random=Random(1)),
        "replicas": 2,
        "installs": (),
        "objects": 0,
        # Longer than an Event of an object that has had too many is held back.
        "rest": 420.0,
    }
    return studio_scenario(TINY, **{**given, **changes})


def cut_off_scenario(**changes: Any) -> Scenario:
    """A studio in which machines are cut off or stand still, and nothing else."""
    return studio_scenario(**{"faults": ("cut", "pause"), **changes})
