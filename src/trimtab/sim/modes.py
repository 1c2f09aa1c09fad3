"""Modes: systematic sets of plans beside the random ones.

Each takes one workload, looks at how an undisturbed run of it goes, and makes a plan
for every point at which one thing can go wrong: nothing is left to chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from trimtab.sim.plan import Fault, FaultKind, Plan
from trimtab.sim.scenario import Scenario
from trimtab.sim.world import Report

Mode: TypeAlias = Literal["random", "crash", "fail", "pause", "stale", "stop"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
BACK_IN: Final = 3.0
"""Seconds after which a replica that died comes back."""
FROZEN: Final = 60.0
ASLEEP: Final = 30.0
"""Seconds: two lives of a lease."""
LOSSES: Final[tuple[FaultKind, ...]] = ("hang", "lose", "lose-answer")


def crash_at_every_write(scenario: Scenario, seen: Report) -> Iterator[Plan]:
    """Each write is, once before and once after it commits, a replica's last deed."""
    for replica, number in _writes(seen):
        for kind in ("die", "die-after"):
            yield _with(seen, replica, number, kind, BACK_IN)


def fail_every_call_once(scenario: Scenario, seen: Report) -> Iterator[Plan]:
    """Each call, reads and renewals included, hangs once, is lost once, and its answer.

    Writes come first: they are where most is to be found.
    """
    for replica, number in _writes(seen):
        for kind in LOSSES:
            yield _with(seen, replica, number, kind)
    for replica, most in enumerate(seen.calls_of):
        for number in range(1, most + 1):
            for kind in LOSSES:
                yield _with(seen, replica, number, kind, writes=False)
    for replica, most in enumerate(seen.messages_of):
        for number in range(1, most + 1):
            for kind in (*LOSSES, "duplicate"):
                fault = Fault(replica, number, kind, 1.0, messages=True)
                yield msgspec.structs.replace(seen.plan, faults=(fault,))


def stale_view(scenario: Scenario, seen: Report) -> Iterator[Plan]:
    """From each write on, the writer's caches stand still while others go on."""
    for replica, number in _writes(seen):
        yield _with(seen, replica, number, "stale", FROZEN)


def intermediate_states(scenario: Scenario, seen: Report) -> Iterator[Plan]:
    """The operator is stopped between any two writes, and started again."""
    for replica, number in _writes(seen):
        yield _with(seen, replica, number, "stop", BACK_IN)


def pause_at_every_write(scenario: Scenario, seen: Report) -> Iterator[Plan]:
    """At each write the replica stands still until another leads, and then goes on."""
    for replica, number in _writes(seen):
        yield _with(seen, replica, number, "pause", ASLEEP)


def _writes(seen: Report) -> Iterator[tuple[int, int]]:
    for replica, most in enumerate(seen.writes_of):
        for number in range(1, most + 1):
            yield replica, number


def _with(
    seen: Report,
    replica: int,
    number: int,
    kind: FaultKind,
    seconds: float = 0.0,
    *,
    writes: bool = True,
) -> Plan:
    fault = Fault(replica, number, kind, seconds, writes)
    return msgspec.structs.replace(seen.plan, faults=(fault,))


SYSTEMATIC: Final[dict[Mode, Callable[[Scenario, Report], Iterator[Plan]]]] = {
    "crash": crash_at_every_write,
    "fail": fail_every_call_once,
    "pause": pause_at_every_write,
    "stale": stale_view,
    "stop": intermediate_states,
}
