"""Replicas: processes of the world, which die and come back.

A replica lives several lives, each on a host of its own. Its faults are counted over
all of them. What it keeps from one life to the next is what a machine keeps: its name,
and how wrong its clock is. What a life is about is up to its kind: an operator's
manager (:mod:`trimtab.sim.operating`), or any program (:mod:`trimtab.sim.programs`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextvars import Context, copy_context
from random import Random
from typing import Final

import msgspec

from trimtab.client import Client
from trimtab.client.transport import Request
from trimtab.embedded.inprocess import in_process_config
from trimtab.sim.hosts import HOST, Host
from trimtab.sim.loop import SimLoop
from trimtab.sim.network import Network
from trimtab.sim.ordered import SimTask
from trimtab.sim.plan import MEANING, Fault
from trimtab.sim.server import Server
from trimtab.sim.trace import Trace
from trimtab.sim.transport import HANDLING, SimTransport

READS: Final = frozenset({"GET", "HEAD"})
# Not what an operator is about, and written all the time.
OWN_BUSINESS: Final = ("/leases", "/events")
LEAST, SPREAD = 0.0004, 0.0036
"""Seconds that a message takes at the least, and how many more it may."""
PATIENCE: Final = 35.0
"""Seconds after which a replica that reaches nobody must say so."""

BY_ITSELF: Final = "a replica does not end by itself"
DROWNED: Final = "an answer is read up to a bound"
RUNS_ON: Final = "nothing of a replica runs on after its end"


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What all replicas of a world share."""

    loop: SimLoop
    server: Server
    trace: Trace
    network: Network
    seed: int
    broken: Callable[[str, str], None]
    """Called with a law and how it was broken."""


class Replica:
    """One process, from its first life to its last.

    Flow: ``start`` begins a life; ``die`` ends it without a word, ``stop`` as SIGTERM
    does. Either comes back when its time is up, unless the replica is retired.
    """

    program = False
    """Whether it is no operator's."""

    def __init__(
        self, name: str, number: int, *, around: Surroundings, faults: Iterable[Fault]
    ) -> None:
        self.number = number
        self.name = name
        self.cut_until = self.stale_until = self._unled_until = self._apart_until = 0.0
        self.calls = self.writes = self.messages = 0
        self.leased = 0.0
        """When it last asked for its lease, or renewed it."""
        self.host: Host | None = None
        self.retired = False
        self.lives = 0
        self.skew = 0.0
        self._loop = around.loop
        self._server = around.server
        self._trace = around.trace
        self._network = around.network
        self._broken = around.broken
        self._random = Random(f"replica {around.seed} {number}")
        self._chance = self._random.random
        self._faults = {(_counter(each), each.number): each for each in faults}
        self._transports: list[SimTransport] = []
        self._life: asyncio.Task[None] | None = None
        self._context: Context | None = None
        self._back_in = 1.0

    # Lives

    def start(self) -> None:
        """Begin a life."""
        if self.retired or self.running:
            return
        self.lives += 1
        random = Random(self._random.getrandbits(64))
        uptime = self._random.uniform(0, 1e6)
        self.host = Host(self.name, random=random, skew=self.skew, uptime=uptime)
        self._context = context = copy_context()
        context.run(HOST.set, self.host)
        self._trace.say(self.name, "starts")
        self._life = self._loop.begin(
            self._live(self.host), name=self.name, context=context
        )
        self._life.add_done_callback(self._ended)

    @property
    def running(self) -> bool:
        return self.host is not None and self.host.alive

    @property
    def life(self) -> asyncio.Task[None] | None:
        return self._life

    @property
    def idle(self) -> bool:
        """Whether it is well, and nothing is left that it will do by itself."""
        return self.running

    async def _live(self, host: Host) -> None:
        self._transports = []
        async with self._client() as client:
            await self._work(client, host)

    async def _work(self, client: Client, host: Host) -> None:
        """What a life is about."""
        raise NotImplementedError

    def _client(self) -> Client:
        assert self.host is not None
        transport = SimTransport(self, self._server)
        self._transports.append(transport)
        random = Random(self.host.random.getrandbits(64))
        return Client(in_process_config(), transport=transport, random=random)

    def die(self, *, back_in: float) -> None:
        """End this life without a word."""
        if self.host is None or not self.running:
            return
        self._trace.say(self.name, "dies")
        self._loop.bury(self.host)
        self._sever()
        self._network.leave(self)
        self._server.later(back_in, self.start)

    def stop(self) -> None:
        """Tell it to stop, as SIGTERM does."""
        raise NotImplementedError

    def retire(self) -> None:
        """Stop, and do not come back."""
        self.retired = True
        self.stop()

    def _ended(self, life: asyncio.Task[None]) -> None:
        host = self.host
        assert host is not None
        host.alive = False
        error = None if life.cancelled() else life.exception()
        if error is not None:
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            self._broken(BY_ITSELF, f"{self.name}: {error!r}")
        answering = self._network.leave(self)
        left = [each for each in self._loop.tasks_of(host) if each not in answering]
        self._left_behind(left)
        if answering:
            self._loop.bury(host)  # nobody waits for what it still answered
        self._trace.say(self.name, "has ended")
        self._server.later(self._back_in, self.start)

    def _left_behind(self, tasks: list[SimTask]) -> None:
        if tasks:
            names = ", ".join(each.get_name() for each in tasks[:4])
            self._broken(
                RUNS_ON, f"{self.name} has stopped, and still there run: {names}."
            )
        open_ = sum(each.statistics().connections_open for each in self._transports)
        if open_:
            self._broken(
                RUNS_ON, f"{self.name} has stopped, and {open_} watches are still open."
            )

    def drowned(self, request: Request, size: int) -> None:
        what = f"{size >> 20} MiB of the answer to {request.method} {request.path}"
        self._broken(DROWNED, f"{self.name} has read {what}.")

    # What goes wrong

    def heal(self) -> None:
        """From now on nothing goes wrong any more."""
        self.cut_until = self.stale_until = self._unled_until = self._apart_until = 0.0
        if self.host is not None:
            self._loop.resume(self.host)
        self._faults.clear()
        self._back_in = 1.0
        self.start()

    def next_fault(self, request: Request) -> Fault | None:
        self.calls += 1
        fault = self._faults.pop(("call", self.calls), None)
        if is_write(request):
            self.writes += 1
            fault = self._faults.pop(("write", self.writes), None) or fault
        return fault

    def next_message_fault(self) -> Fault | None:
        """Count a call to another program; what goes wrong with it."""
        self.messages += 1
        return self._faults.pop(("message", self.messages), None)

    def reaches(self, request: Request) -> bool:
        now = self._loop.time()
        lease = "/leases" in request.path and now < self._unled_until
        return now >= self.cut_until and not lease

    @property
    def talks(self) -> bool:
        """Whether messages get from it to other programs, and back."""
        return self._loop.time() >= max(self.cut_until, self._apart_until)

    def _is_known_cut_off(self, host: Host | None) -> None:
        """A replica that has been cut off for long says so, if it has a way to."""

    def latency(self) -> float:
        return LEAST + SPREAD * self._chance()

    def struck(self, fault: Fault, about: str) -> None:
        if fault.kind == "cancel" and not HANDLING.get():
            return
        length = f" ({fault.seconds:g} s)" if fault.seconds else ""
        what = f"{about}: {MEANING[fault.kind]}{length}"
        self._trace.fault(self.name, fault.kind, what)
        now = self._loop.time()
        match fault.kind:
            case "die" | "die-after":
                self.die(back_in=fault.seconds)
            case "stop":
                self._back_in = fault.seconds
                self.stop()
            case "cut":
                self.cut_until = now + fault.seconds
                self._sever()
                if fault.seconds > PATIENCE:
                    look = fault.seconds - 0.5
                    self._server.later(look, self._is_known_cut_off, self.host)
            case "unled":
                self._unled_until = now + fault.seconds
            case "apart":
                self._apart_until = now + fault.seconds
            case "pause" if self.host is not None:
                self._loop.pause(self.host)
                self._server.later(fault.seconds, self._loop.resume, self.host)
            case "stale":
                self.stale_until = now + fault.seconds
            case "forget":
                self._server.forget()
            case "jump":
                self.skew += fault.seconds
                if self.host is not None:
                    self.host.skew = self.skew

    def _sever(self) -> None:
        for transport in self._transports:
            transport.sever()

    def called(self, request: Request, status: int, doing: str) -> None:
        what = f"{request.method} {request.path} {status}"
        if "/leases/" in request.path:
            self.leased = self._loop.time()
        self._trace.call(self.name, what)
        if is_write(request):
            self._trace.say(self.name, what + (f"  [{doing}]" if doing else ""))


def is_write(request: Request) -> bool:
    """Whether a call writes what the operator is about."""
    if request.method in READS:
        return False
    return not any(
        f"{each}/" in request.path or request.path.endswith(each)
        for each in OWN_BUSINESS
    )


def _counter(fault: Fault) -> str:
    if fault.messages:
        return "message"
    return "write" if fault.writes else "call"
