"""The network between programs: messages that can be lost, late, or there twice.

A program serves at its address; another calls it and waits for the answer. The network
carries a message, not its sender: what was sent arrives, also if the sender has given
up, sleeps or is dead by then, and who answers goes on when nobody waits any more. What
the plan has for a call happens at one of two points, before it is answered or after.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context
from random import Random
from typing import Protocol, TypeAlias

from trimtab.client.errors import DeadlineExceeded, Disconnected, Unreachable
from trimtab.sim.loop import SimLoop
from trimtab.sim.ordered import SimTask
from trimtab.sim.plan import Fault
from trimtab.sim.server import Server
from trimtab.sim.trace import Trace

Answerer: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""What a program does with a message: its answer."""


class Talker(Protocol):
    """What the network needs to know of a replica."""

    name: str

    @property
    def talks(self) -> bool:
        """Whether messages get from it to other programs, and back."""

    def next_message_fault(self) -> Fault | None:
        """Count a call; what goes wrong with it."""

    def latency(self) -> float:
        """Seconds that a message takes, this time."""

    def struck(self, fault: Fault, about: str) -> None:
        """Do what a fault does to the whole replica."""


class _Call:
    """One message on its way, and whoever waits for its answer."""

    __slots__ = ("address", "done", "fault", "message", "sender")

    def __init__(
        self, sender: Talker, address: str, message: bytes, fault: Fault | None
    ) -> None:
        self.sender = sender
        self.address = address
        self.message = message
        self.fault = fault
        self.done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def __str__(self) -> str:
        return f"{self.sender.name} to {self.address}"

    @property
    def kind(self) -> str:
        return self.fault.kind if self.fault is not None else ""

    @property
    def slow(self) -> float:
        """Seconds that it is late, both ways together."""
        return self.fault.seconds if self.fault and self.kind == "slow" else 0.0


class _Endpoint:
    """Who serves at an address, and what is being answered there."""

    __slots__ = ("answer", "answering", "context", "owner")

    def __init__(self, owner: Talker, answer: Answerer, context: Context) -> None:
        self.owner = owner
        self.answer = answer
        self.context = context
        self.answering: dict[SimTask, _Call] = {}


class Network:
    """Every address of one world.

    Guarantees: :meth:`call` returns what the other program answered, or raises within
    its deadline: ``Unreachable`` if it never arrived; ``Disconnected`` or
    ``DeadlineExceeded`` if it may have, once or more often.
    """

    def __init__(
        self, loop: SimLoop, server: Server, trace: Trace, *, seed: int | str
    ) -> None:
        self._loop = loop
        self._server = server
        self._trace = trace
        self._random = Random(f"network {seed}")
        self._endpoints: dict[str, _Endpoint] = {}

    def serve(
        self, address: str, owner: Talker, answer: Answerer, *, context: Context
    ) -> None:
        """From now on messages to an address come to ``answer``."""
        self._endpoints[address] = _Endpoint(owner, answer, context)

    def serves(self, owner: Talker) -> bool:
        return any(each.owner is owner for each in self._endpoints.values())

    def leave(self, owner: Talker) -> Mapping[SimTask, object]:
        """A replica is gone: nobody serves there any more; what was being answered.

        Half of those who wait hear that the connection broke; the rest hear nothing.
        """
        left: dict[SimTask, object] = {}
        for address, endpoint in list(self._endpoints.items()):
            if endpoint.owner is not owner:
                continue
            del self._endpoints[address]
            for task, call in endpoint.answering.items():
                left[task] = None
                if self._random.random() < 0.5:
                    self._fail(call, Disconnected(f"{call}: the connection broke."))
        return left

    async def call(
        self, sender: Talker, address: str, message: bytes, *, deadline: float
    ) -> bytes:
        """Send a message, and wait for its answer."""
        fault = sender.next_message_fault()
        call = _Call(sender, address, message, fault)
        if fault is not None and fault.kind != "die-after":
            sender.struck(fault, f"a message to {address}")
        if call.kind == "refuse" or not sender.talks:
            await asyncio.sleep(sender.latency())
            raise Unreachable(f"{call}: connection refused (planted).")
        travel = sender.latency() + call.slow / 3
        self._server.later(travel, self._deliver, call)
        if call.kind == "duplicate" and fault is not None:
            again = _Call(sender, address, message, None)
            again.done.add_done_callback(_unheard)
            self._server.later(travel + fault.seconds, self._deliver, again)
        try:
            async with asyncio.timeout(deadline):
                return await call.done
        except TimeoutError:
            problem = f"{call}: no answer within {deadline:g} s."
            raise DeadlineExceeded(problem) from None

    def _deliver(self, call: _Call) -> None:
        """It is there; what happens to it, and to its answer."""
        endpoint = self._endpoints.get(call.address)
        if call.kind == "hang":
            return
        if endpoint is None:
            self._fail(call, Unreachable(f"{call}: nobody serves there."))
        elif call.kind == "lose" or not _connected(call, endpoint):
            self._fail(call, Disconnected(f"{call}: the connection broke."))
        else:
            task = self._loop.begin(
                _answered(endpoint.answer, call.message),
                name=f"{endpoint.owner.name} answers {call.sender.name}",
                context=endpoint.context.copy(),
            )
            endpoint.answering[task] = call
            task.add_done_callback(lambda done: self._back(endpoint, call, done))

    def _back(
        self, endpoint: _Endpoint, call: _Call, task: asyncio.Task[bytes]
    ) -> None:
        """It was answered; the answer travels back, if it does."""
        endpoint.answering.pop(task, None)  # type: ignore[call-overload]
        error = Disconnected("cancelled") if task.cancelled() else task.exception()
        if error is not None:
            self._trace.say(endpoint.owner.name, f"fails to answer {call}: {error!r}")
        if call.kind == "die-after" and call.fault is not None:
            call.sender.struck(call.fault, f"a message to {call.address}")
        elif call.kind == "hang-after":
            return
        elif (
            error is None and call.kind != "lose-answer" and _connected(call, endpoint)
        ):
            travel = call.sender.latency() + call.slow * 2 / 3
            self._server.later(travel, _arrive, call, task.result())
        else:
            self._fail(call, Disconnected(f"{call}: the answer was lost."))

    def _fail(self, call: _Call, problem: Exception) -> None:
        self._server.later(call.sender.latency(), _arrive, call, problem)


def _connected(call: _Call, endpoint: _Endpoint) -> bool:
    return call.sender.talks and endpoint.owner.talks


async def _answered(answer: Answerer, message: bytes) -> bytes:
    return await answer(message)


def _arrive(call: _Call, outcome: bytes | Exception) -> None:
    """Perhaps nobody waits for it any more."""
    if call.done.done():
        return
    if isinstance(outcome, Exception):
        call.done.set_exception(outcome)
    else:
        call.done.set_result(outcome)


def _unheard(done: asyncio.Future[bytes]) -> None:
    """Nobody waits for the answer to a message that arrives twice."""
    if not done.cancelled():
        done.exception()
