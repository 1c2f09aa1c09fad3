"""Programs: anything that runs on a cluster and is no operator, in several replicas.

A program is an ``async def main(client, here)``. It runs until it is told to stop by a
cancellation, or until it ends, if it was declared to. Other programs are reached
through ``here``; so is the world, by a model that sees what no object shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextvars import copy_context
from typing import Final, TypeAlias

import msgspec

from trimtab.client import Client
from trimtab.sim.hosts import Host
from trimtab.sim.network import Answerer
from trimtab.sim.plan import Fault
from trimtab.sim.replica import BY_ITSELF, Replica, Surroundings
from trimtab.sim.server import Plain

DEADLINE: Final = 10.0
"""Seconds that a call to another program waits for its answer if it names no other."""


class Here:
    """The place of a program in its world: its name, its neighbours, its last words."""

    def __init__(self, replica: ProgramReplica, *, address: str) -> None:
        self.name = replica.name
        """Its machine's name. A program serves at it; a model pod, at its address."""
        self.address = address
        self.pod = replica.pod
        """Of a model pod: the object, as it was when the program started."""
        self._replica = replica

    def serve(self, answer: Answerer) -> None:
        """From now on messages come to ``answer``, each in a task of its own.

        Guarantees: what ``answer`` returns is sent back; if it raises, the caller is
        told that the connection broke. It is not cancelled when its caller gives up,
        and ends with the program.
        """
        replica = self._replica
        replica._network.serve(self.address, replica, answer, context=copy_context())

    async def call(
        self, address: str, message: bytes, *, deadline: float = DEADLINE
    ) -> bytes:
        """The answer of another program to a message.

        Guarantees: returns or raises within the deadline.

        Errors: ``Unreachable``: the message never arrived. ``Disconnected`` and
        ``DeadlineExceeded``: it may have, and more than once.
        """
        replica = self._replica
        return await replica._network.call(replica, address, message, deadline=deadline)

    def broken(self, law: str, sentence: str) -> None:
        """Say that something happened that must not; the run ends as a failure."""
        self._replica._broken(law, f"{self.name}: {sentence}")

    def say(self, sentence: str) -> None:
        """Put a line into the timeline."""
        self._replica._trace.say(self.name, sentence)


Main: TypeAlias = Callable[[Client, Here], Awaitable[None]]


class Program(msgspec.Struct, frozen=True):
    """What runs, and in how many replicas."""

    name: str
    """Replicas are called ``NAME-0``, ``NAME-1``, …"""
    main: Main
    replicas: int = 1
    ends: bool = False
    """Whether it may end by itself, and is not started again then. Default: it runs
    until it is told to stop."""
    struck: bool = True
    """Whether faults strike its calls. Default: they do."""


class ProgramReplica(Replica):
    """One process of a program."""

    program = True

    def __init__(
        self,
        made: Program,
        name: str,
        number: int,
        *,
        around: Surroundings,
        faults: Iterable[Fault] = (),
        address: str = "",
        pod: Plain | None = None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name, number, around=around, faults=faults)
        self.pod = pod
        self.finished = False
        """Whether it has ended by itself, as it may."""
        self._made = made
        self._address = address or name
        self._stopping = False
        self._tell = ended

    def start(self) -> None:
        if not self.finished and not self.running:
            self._stopping = False
            super().start()

    async def _work(self, client: Client, host: Host) -> None:
        await self._made.main(client, Here(self, address=self._address))
        if not self._made.ends and not self._stopping:
            self._broken(BY_ITSELF, f"{self.name} has returned.")
        self.finished = self._made.ends

    def stop(self) -> None:
        if self.running and self._life is not None and not self._stopping:
            self._stopping = True
            self._life.cancel()

    def _ended(self, life: asyncio.Task[None]) -> None:
        super()._ended(life)
        self._tell()

    @property
    def serves(self) -> bool:
        return self._network.serves(self)

    @property
    def idle(self) -> bool:
        return self.finished if self._made.ends else self.running
