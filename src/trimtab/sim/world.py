"""The world: one plan, run from the first start of a replica to the last one's end.

It has two halves. While people act, things go wrong, and laws about every write are
checked. Then nothing goes wrong any more, and all has to come to rest, as it would have
without any of it; people delete what they made, and nothing of it may stay.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from random import Random
from typing import Any, Final

import msgspec

from trimtab.sim.endings import Endings
from trimtab.sim.hosts import HOST
from trimtab.sim.kubelet import Kubelets
from trimtab.sim.laws import Laws
from trimtab.sim.loop import SimLoop, simulate
from trimtab.sim.network import Network
from trimtab.sim.operating import OperatorReplica
from trimtab.sim.people import People
from trimtab.sim.plan import Act, Fault, Plan
from trimtab.sim.programs import ProgramReplica
from trimtab.sim.provided import clocked
from trimtab.sim.replica import Replica, Surroundings
from trimtab.sim.scenario import Scenario
from trimtab.sim.server import Server
from trimtab.sim.trace import Trace

RESTS: Final = "it comes to rest"
ENDS: Final = "a replica that is told to stop does so within five seconds"
REFUSED: Final = "an operator asks only for what a simulation has"
FAILED: Final = "nothing fails where nobody sees it"
LOOK: Final = 5.0
"""Virtual seconds between two looks whether all is at rest."""
EMPTY: Final = 120.0
"""Virtual seconds without a write that are enough once all is deleted."""
MOST_BROKEN: Final = 20


class Violation(msgspec.Struct, frozen=True):
    """A law, and how it was broken."""

    law: str
    sentence: str
    at: float


class Report(msgspec.Struct, kw_only=True):
    """What became of one run."""

    plan: Plan
    violations: list[Violation]
    state: Mapping[str, Any]
    """How it ended, to be compared with other runs of the same acts."""
    digest: str
    timeline: list[str]
    seconds: float
    """Virtual ones."""
    steps: int
    calls: int
    writes: int
    """By replicas, of what the operator is about."""
    writes_of: tuple[int, ...]
    """The calls of each replica that write, while things could go wrong."""
    calls_of: tuple[int, ...]
    """All of them."""
    messages_of: tuple[int, ...] = ()
    """The calls of each replica to other programs."""
    faults: Counter[str]

    @property
    def laws(self) -> set[str]:
        """The laws that were broken."""
        return {each.law for each in self.violations}


class World:
    """Everything in one run."""

    def __init__(self, scenario: Scenario, plan: Plan, loop: SimLoop) -> None:
        self.scenario = scenario
        self.plan = plan
        self.loop = loop
        self.violations: list[Violation] = []
        self.trace = Trace(loop)
        self.server = Server(loop, seed=plan.seed)
        self.laws = Laws(scenario, self.server, self.broken)
        self.endings = Endings(scenario, self.server, self.broken)
        self.people = People(scenario, self.server, self.trace)
        self.around = Surroundings(
            loop=loop,
            server=self.server,
            trace=self.trace,
            network=Network(loop, self.server, self.trace, seed=plan.seed),
            seed=plan.seed,
            broken=self.broken,
        )
        self.kubelets = Kubelets(
            self.around, images=scenario.images, unlucky=plan.pods_fail
        )
        self.replicas = [self._replica(number) for number in range(scenario.operators)]
        """Of the operator."""
        self.programs = self._programs()
        random = Random(f"world {plan.seed}")
        for replica in self.everyone:
            replica.skew = random.uniform(-scenario.skew, scenario.skew)

    @property
    def everyone(self) -> list[Replica]:
        """Every replica, in the order of their numbers."""
        return [*self.replicas, *self.programs]

    def _replica(self, number: int) -> OperatorReplica:
        operator = self.scenario.operator
        assert operator is not None, "it has replicas"
        return OperatorReplica(
            operator,
            number,
            around=self.around,
            faults=self._faults(number),
        )

    def _faults(self, number: int) -> list[Fault]:
        return [each for each in self.plan.faults if each.replica == number]

    def _programs(self) -> list[ProgramReplica]:
        """Of all programs; those that faults strike come first."""
        made: list[ProgramReplica] = []
        for program in sorted(self.scenario.programs, key=lambda each: not each.struck):
            for place in range(program.replicas):
                number = len(self.replicas) + len(made)
                faults = self._faults(number) if program.struck else []
                name = f"{program.name}-{place}"
                made.append(
                    ProgramReplica(
                        program, name, number, around=self.around, faults=faults
                    )
                )
        return made

    def broken(self, law: str, sentence: str) -> None:
        """Note that a law does not hold."""
        if len(self.violations) < MOST_BROKEN:
            self.violations.append(Violation(law, sentence, self.loop.time()))
            self.trace.say("LAW BROKEN", f"{law}: {sentence}")

    async def run(self, *, undisturbed: Mapping[str, Any] | None) -> Report:
        """All of it, or up to the end of the half in which a law was broken."""
        self.loop.set_exception_handler(self._failed)
        state: Mapping[str, Any] = {}
        self.server.start()
        try:
            self.people.prepare()
            await self._disturbed()
            self._counted()
            if not self.violations:
                self._heal()
                await self._rests("after everything went wrong", self.scenario.rest)
                self.endings.at_rest(self.replicas, self.programs)
                state = self.endings.state()
                if undisturbed is not None and self.scenario.same:
                    self.endings.compare(dict(undisturbed))
            if not self.violations:
                await self._emptied()
        finally:
            await self._ended()
            self.server.close()
        return self._report(state)

    async def _disturbed(self) -> None:
        for number, replica in enumerate(self.everyone):
            self.server.later(number * 0.3, replica.start)
        for act in self.plan.acts:
            self.server.later(act.at, self._act, act)
        last = max((each.at for each in self.plan.acts), default=0.0)
        ends = self.loop.time() + max(self.scenario.seconds, last)
        while self.loop.time() < ends and not self.violations:
            self._check_failures()
            await asyncio.sleep(min(LOOK, ends - self.loop.time()))

    def _act(self, act: Act) -> None:
        self.people.act(act)

    def _heal(self) -> None:
        self.trace.say("world", "from here on nothing goes wrong any more")
        self.kubelets.unlucky = False
        for replica in self.everyone:
            replica.heal()

    def _counted(self) -> None:
        """Remember how far a fault could strike."""
        struck = self.everyone[: self.scenario.operators + self.scenario.talking]
        self.writes_of = tuple(each.writes for each in struck)
        self.calls_of = tuple(each.calls for each in struck)
        self.messages_of = tuple(each.messages for each in struck)

    async def _rests(self, when: str, seconds: float) -> None:
        """Wait until no replica has written for a while."""
        began = self.loop.time()
        self.laws.last_write = began
        while not self._is_at_rest(seconds):
            if self.loop.time() - began > self.scenario.patience:
                self.broken(
                    RESTS,
                    f"Replicas still write {self.scenario.patience:.0f} s {when}; the "
                    f"last was {self.laws.last_written}.",
                )
                return
            self._check_failures()
            await asyncio.sleep(LOOK)

    def _is_at_rest(self, seconds: float) -> bool:
        """Whether nothing was written for long, or for a while and nothing is due."""
        silence = self.loop.time() - self.laws.last_write
        quiet = silence >= self.scenario.quiet
        idle = quiet and all(each.idle for each in self.everyone)
        return idle or silence >= seconds

    def _check_failures(self) -> None:
        if self.server.failures:
            raise self.server.failures[0]

    async def _emptied(self) -> None:
        self.people.delete_all()
        # Nothing has failed lately, so no pause between two tries is long.
        await self._rests("after all was deleted", min(self.scenario.rest, EMPTY))
        self.endings.all_gone(self.replicas)

    async def _ended(self) -> None:
        """Stop every replica, whatever happened before."""
        for replica in self.everyone:
            replica.retire()
        self.kubelets.pods.close()
        living = [each.life for each in self.everyone if each.running and each.life]
        if living:
            _, left = await asyncio.wait(living, timeout=5.0)
            if left and not self.violations:
                self.broken(ENDS, f"{len(left)} of them did not.")
        if not self.violations:
            self.endings.ended()
        for replica in self.everyone:
            if replica.host is not None:
                self._asked_too_much(replica)
                self.loop.bury(replica.host)

    def _asked_too_much(self, replica: Replica) -> None:
        assert replica.host is not None
        for name in replica.host.refused[:1]:
            self.broken(REFUSED, f"{replica.name} asked for {name}.")

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.broken(FAILED, f"{context.get('message')}: {error!r}")

    def _report(self, state: Mapping[str, Any]) -> Report:
        return Report(
            plan=self.plan,
            violations=self.violations,
            state=state,
            digest=self.loop.digest(),
            timeline=list(self.trace.lines),
            seconds=self.loop.time(),
            steps=self.loop.steps,
            calls=self.trace.calls,
            writes=self.laws.writes,
            writes_of=self.writes_of,
            calls_of=self.calls_of,
            messages_of=self.messages_of,
            faults=self.trace.faults,
        )


def run(
    scenario: Scenario, plan: Plan, *, undisturbed: Mapping[str, Any] | None = None
) -> Report:
    """Run one plan; compare its end with that of an undisturbed run, if one is given.

    Guarantees: the same scenario and the same plan give the same report, digest
    included, in any process.
    """

    async def main(loop: SimLoop) -> Report:
        world = World(scenario, plan, loop)
        with _listening(world):
            return await world.run(undisturbed=undisturbed)

    def simulated() -> Report:
        with _current(), _quiet():
            return simulate(main, seed=plan.seed, within=clocked)

    return copy_context().run(simulated)


@contextmanager
def _current() -> Iterator[None]:
    """Nothing of an outer simulation is seen in this one."""
    token = HOST.set(None)
    try:
        yield
    finally:
        HOST.reset(token)


class _Ear(logging.Handler):
    """Puts what replicas log into the timeline."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.INFO)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        host = HOST.get()
        who = host.name if host is not None else "log"
        self._world.trace.note(
            who, f"{record.levelname.lower()}: {record.getMessage()}"
        )


@contextmanager
def _listening(world: World) -> Iterator[None]:
    ear, logger = _Ear(world), logging.getLogger("trimtab")
    logger.addHandler(ear)
    try:
        yield
    finally:
        logger.removeHandler(ear)


@contextmanager
def _quiet() -> Iterator[None]:
    """The logs of replicas go to the timeline and nowhere else."""
    logger = logging.getLogger("trimtab")
    before = logger.propagate, logger.level
    logger.propagate = False
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.propagate, level = before
        logger.setLevel(level)
