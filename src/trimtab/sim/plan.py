"""Plans: everything that will happen to a world besides the operator, as plain data.

A plan says what people do and when, and what goes wrong at which call. The same plan
with fewer entries is a plan, too: that is how a failure is made smaller. A fault names
the call that it strikes by its number, counted over all the lives of a replica.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final, Literal, TypeAlias, get_args

import msgspec

FaultKind: TypeAlias = Literal[
    "refuse",
    "busy",
    "error",
    "lose",
    "lose-answer",
    "hang",
    "hang-after",
    "slow",
    "stale",
    "cancel",
    "die",
    "die-after",
    "stop",
    "cut",
    "unled",
    "pause",
    "forget",
    "jump",
    "flood",
    "duplicate",
    "apart",
]
MESSAGE_FAULTS: Final[tuple[FaultKind, ...]] = (
    "refuse",
    "lose",
    "lose-answer",
    "hang",
    "hang-after",
    "slow",
    "duplicate",
    "apart",
    "die",
    "die-after",
    "pause",
)
"""What can go wrong with a call from one program to another."""
FAULTS: Final[tuple[FaultKind, ...]] = tuple(
    each for each in get_args(FaultKind) if each not in ("duplicate", "apart")
)
"""What can go wrong with a call to the server."""
MEANING: Final[dict[FaultKind, str]] = {
    "refuse": "the connection was refused",
    "busy": "the server said 429: come back in a second",
    "error": "the server said 500 and did nothing",
    "lose": "it was lost before the server had it",
    "lose-answer": "it was carried out, and its answer was lost",
    "hang": "it was lost, and no answer ever came",
    "hang-after": "it was carried out, and no answer ever came",
    "slow": "it took long",
    "stale": "the replica's watches said nothing for a while",
    "cancel": "what the handler waited for was cancelled",
    "die": "the replica died before it was sent",
    "die-after": "it was carried out, and the replica died",
    "stop": "the replica was told to stop, and started again",
    "cut": "the replica was cut off from the server for a while",
    "unled": "calls about the replica's lease were lost for a while",
    "pause": "the whole replica stood still for a while, and went on",
    "forget": "the server forgot its history, so watches had to begin anew",
    "jump": "the replica's wall clock jumped",
    "flood": "its answer was longer than anybody should read",
    "duplicate": "it arrived twice",
    "apart": "the replica reached no other program for a while",
}
# The longest that each lasts, in seconds; what is not here has no length.
LONGEST: Final[dict[FaultKind, float]] = {
    "slow": 12.0,
    "stale": 60.0,
    "die": 40.0,
    "die-after": 40.0,
    "stop": 20.0,
    "cut": 90.0,
    "unled": 40.0,
    "pause": 60.0,
    "jump": 3600.0,
    "duplicate": 8.0,
    "apart": 60.0,
}


class Fault(msgspec.Struct, frozen=True, order=True):
    """One thing that goes wrong at one call of one replica."""

    replica: int
    number: int
    """Of the call that it strikes, from 1."""
    kind: FaultKind
    seconds: float = 0.0
    """How long it lasts; a jump's may be negative."""
    writes: bool = False
    """Count only calls that write (and neither a Lease nor an Event)."""
    messages: bool = False
    """Count only calls to other programs, which are no calls to the server."""

    def __str__(self) -> str:
        what = "write" if self.writes else "message" if self.messages else "call"
        length = f" ({self.seconds:g} s)" if self.seconds else ""
        return (
            f"replica {self.replica}, {what} {self.number}: {self.kind}{length}: "
            f"{MEANING[self.kind]}"
        )


ActKind: TypeAlias = Literal[
    "create", "edit", "touch", "delete", "meddle", "scribble", "stranger"
]
ACTS: Final[tuple[ActKind, ...]] = get_args(ActKind)


BURST: Final = 0.03
"""Seconds between two acts of a burst: about as long as a reconcile takes."""
LATER: Final[tuple[ActKind, ...]] = ("edit", "edit", "touch", "meddle", "scribble")
"""What may happen to an object that is there, and how often beside the rest."""


class Act(msgspec.Struct, frozen=True, order=True):
    """One thing that somebody does."""

    at: float
    kind: ActKind
    """``create``, ``edit`` (the spec), ``touch`` (a label) and ``delete`` are a
    client's, to an object that is reconciled; ``meddle`` and ``scribble`` are a human
    who deletes or changes a child by hand; ``stranger`` makes something of a child's
    kind that is nobody's."""
    target: int
    """Which object, of those that the plan makes."""
    seed: int = 0
    """What the object looks like."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    seed: int
    """Of the scheduler, the latencies and the hosts' own chance."""
    acts: tuple[Act, ...]
    faults: tuple[Fault, ...] = ()
    pods_fail: bool = False
    """Whether kubelets have bad luck: crashes, evictions, images that do not come."""

    def without_faults(self) -> Plan:
        return msgspec.structs.replace(self, faults=(), pods_fail=False)


def acts_of(seed: int, *, seconds: float, objects: int) -> tuple[Act, ...]:
    """What people do in one workload: every object is made first, some are deleted."""
    random = Random(f"acts {seed}")
    acts: list[Act] = []
    for target in range(objects):
        at = random.uniform(0, seconds * 0.6)
        acts.append(Act(at, "create", target, random.getrandbits(32)))
        for _ in range(random.randrange(6)):
            at = _next(random, at, seconds)
            kind = random.choice(LATER)
            acts.append(Act(at, kind, target, random.getrandbits(32)))
        if random.random() < 0.4:
            acts.append(Act(_next(random, at, seconds), "delete", target))
        if random.random() < 0.3:
            at = random.uniform(0, seconds)
            acts.append(Act(at, "stranger", target, random.getrandbits(32)))
    return tuple(sorted(_rounded(acts)))


def _next(random: Random, at: float, seconds: float) -> float:
    """People act in bursts: half of what they do falls into what was begun before."""
    if random.random() < 0.5:
        return min(at + random.uniform(0, BURST), seconds)
    return random.uniform(at, seconds)


def _rounded(acts: Iterable[Act]) -> Iterable[Act]:
    return (msgspec.structs.replace(each, at=round(each.at, 3)) for each in acts)


def faults_of(
    seed: int,
    *,
    replicas: int,
    kinds: Iterable[FaultKind] = FAULTS,
    programs: int = 0,
) -> tuple[Fault, ...]:
    """What goes wrong in one run: sometimes one thing, sometimes a dozen.

    The last ``programs`` of the replicas call each other.
    """
    random = Random(f"faults {seed}")
    chosen = tuple(kinds)
    made = []
    for _ in range(random.choice((1, 2, 3, 5, 8, 13)) if replicas else 0):
        if programs and random.random() < 0.4:
            made.append(_message_fault(random, replicas, programs))
            continue
        kind = random.choice(chosen)
        writes = random.random() < 0.5
        number = 1 + int(random.expovariate(1 / 12 if writes else 1 / 60))
        length = _length(random, kind)
        # The first one leads as a rule, so what happens to it matters most.
        replica = 0 if random.random() < 0.4 else random.randrange(replicas)
        made.append(Fault(replica, number, kind, length, writes))
    return tuple(sorted(made))


def _length(random: Random, kind: FaultKind) -> float:
    length = round(random.uniform(0, LONGEST.get(kind, 0.0)), 1)
    return length * random.choice((-1, 1)) if kind == "jump" else length


def _message_fault(random: Random, replicas: int, programs: int) -> Fault:
    kind = random.choice(MESSAGE_FAULTS)
    number = 1 + int(random.expovariate(1 / 12))
    replica = random.randrange(replicas - programs, replicas)
    return Fault(replica, number, kind, _length(random, kind), messages=True)
