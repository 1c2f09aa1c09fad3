"""Simulation: the real operators in virtual time, with a fault at every call."""

from trimtab.sim.plan import Act, Fault, Plan, acts_of, faults_of
from trimtab.sim.programs import Here, Program
from trimtab.sim.scenario import BadScenario, Scenario
from trimtab.sim.world import Report, Violation, run

__all__ = [
    "Act",
    "BadScenario",
    "Fault",
    "Here",
    "Plan",
    "Program",
    "Report",
    "Scenario",
    "Violation",
    "acts_of",
    "faults_of",
    "run",
]
