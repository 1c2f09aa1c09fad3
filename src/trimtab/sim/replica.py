"""Replicas: real managers of an unchanged operator, which die and come back.

A replica lives several lives, each on a host of its own. Its faults are counted over
all of them. What it keeps from one life to the next is what a machine keeps: its name,
and how wrong its clock is.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable
from contextvars import copy_context
from copy import copy
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

import msgspec

from trimtab.client import Client
from trimtab.client.transport import Request
from trimtab.embedded.inprocess import in_process_config
from trimtab.runtime.definitions import Definition, Handler, is_asynchronous
from trimtab.runtime.manager import Manager, ManagerOptions
from trimtab.runtime.operator import Operator
from trimtab.sim.hosts import HOST, Host
from trimtab.sim.loop import SimLoop
from trimtab.sim.ordered import SimTask
from trimtab.sim.plan import MEANING, Fault
from trimtab.sim.server import Server
from trimtab.sim.threads import SimThreads
from trimtab.sim.trace import Trace
from trimtab.sim.transport import HANDLING, SimTransport

READS: Final = frozenset({"GET", "HEAD"})
# Not what an operator is about, and written all the time.
OWN_BUSINESS: Final = ("/leases", "/events")
LATENCY: Final = (0.0004, 0.004)
"""Seconds that a message takes, the least and the most."""


TAKES_PART: Final = ("contending", "leading")
"""Where a replica stands that takes part in an election."""
PATIENCE: Final = 35.0
"""Seconds after which a replica that reaches nobody must say so."""


class Replica:
    """One of the processes of an operator.

    Flow: ``start`` begins a life; ``die`` ends it without a word, ``stop`` as SIGTERM
    does. Either comes back when its time is up, unless the replica is retired.
    """

    def __init__(
        self,
        operator: Operator,
        number: int,
        *,
        loop: SimLoop,
        server: Server,
        trace: Trace,
        faults: Iterable[Fault],
        seed: int,
        broken: Callable[[str, str], None],
    ) -> None:
        self.number = number
        self.name = f"{operator.name}-{number}"
        self.cut_until = self.stale_until = self._unled_until = 0.0
        self.calls = self.writes = 0
        self.leased = 0.0
        """When it last asked for its lease, or renewed it."""
        self.manager: Manager | None = None
        self.host: Host | None = None
        self.retired = False
        self.lives = 0
        self.skew = 0.0
        self._operator = self._observed(operator)
        self._loop = loop
        self._server = server
        self._trace = trace
        self._random = Random(f"replica {seed} {number}")
        self._by_call = {each.number: each for each in faults if not each.writes}
        self._by_write = {each.number: each for each in faults if each.writes}
        self._broken = broken
        self._transports: list[SimTransport] = []
        self._life: asyncio.Task[None] | None = None
        self._busy: set[tuple[str, Any]] = set()
        self._heals = False

    # Lives

    def start(self) -> None:
        """Begin a life."""
        if self.retired or self.running:
            return
        self.lives += 1
        self._busy.clear()
        random = Random(self._random.getrandbits(64))
        uptime = self._random.uniform(0, 1e6)
        self.host = Host(self.name, random=random, skew=self.skew, uptime=uptime)
        context = copy_context()
        context.run(HOST.set, self.host)
        self._trace.say(self.name, "starts")
        self._life = self._loop.begin(
            self._live(self.host), name=self.name, context=context
        )
        self._life.add_done_callback(self._ended)

    @property
    def running(self) -> bool:
        return self.host is not None and self.host.alive

    async def _live(self, host: Host) -> None:
        self._transports = []
        async with self._client() as client:
            self.manager = Manager(
                self._operator,
                client,
                connect=self._client,
                random=Random(host.random.getrandbits(64)),
                now=lambda: datetime.fromtimestamp(host.wall(self._loop.time()), UTC),
                options=ManagerOptions(port=None),
                thread=False,
                threads=SimThreads,
            )
            await self.manager.run()

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
        self._server.later(back_in, self.start)

    def stop(self) -> None:
        """Tell it to stop, as SIGTERM does."""
        if self.manager is not None and self.running:
            self.manager.stop("a signal")

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
            self._broken("a replica does not end by itself", f"{self.name}: {error!r}")
        left = self._loop.tasks_of(host)
        self._left_behind(left)
        self._trace.say(self.name, "has ended")
        self._server.later(self._back_in, self.start)

    _back_in = 1.0

    def _left_behind(self, tasks: list[SimTask]) -> None:
        if tasks:
            names = ", ".join(each.get_name() for each in tasks[:4])
            self._broken(
                "nothing of a replica runs on after its end",
                f"{self.name} has stopped, and still there run: {names}.",
            )
        open_ = sum(each.statistics().connections_open for each in self._transports)
        if open_:
            self._broken(
                "nothing of a replica runs on after its end",
                f"{self.name} has stopped, and {open_} watches are still open.",
            )

    @property
    def life(self) -> asyncio.Task[None] | None:
        return self._life

    @property
    def idle(self) -> bool:
        """Whether it is well, and nothing waits in its queues, not even for later."""
        manager = self.manager
        if not self.running or manager is None or not manager.health.ready().healthy:
            return False
        led = manager.leadership
        if led is not None and led.statistics().state.value not in TAKES_PART:
            return False
        queues = [each.queue for each in manager.controllers if each.queue is not None]
        held = [each.statistics() for each in queues]
        return not any(
            each.ready or each.delayed or each.working or each.failing for each in held
        )

    # What goes wrong

    def heal(self) -> None:
        """From now on nothing goes wrong any more."""
        self._heals = True
        self.cut_until = self.stale_until = self._unled_until = 0.0
        if self.host is not None:
            self._loop.resume(self.host)
        self._by_call.clear()
        self._by_write.clear()
        self._back_in = 1.0
        self.start()

    def next_fault(self, request: Request) -> Fault | None:
        self.calls += 1
        fault = self._by_call.pop(self.calls, None)
        if is_write(request):
            self.writes += 1
            fault = self._by_write.pop(self.writes, None) or fault
        return fault

    def reaches(self, request: Request) -> bool:
        now = self._loop.time()
        lease = "/leases" in request.path and now < self._unled_until
        return now >= self.cut_until and not lease

    def _is_known_cut_off(self, host: Host | None) -> None:
        """A replica that has been cut off for long says that it is not ready."""
        cut = host is self.host and self._loop.time() < self.cut_until
        asleep = self.host is not None and self._loop.is_paused(self.host)
        if not cut or asleep or not self.running or self.manager is None:
            return
        if self.manager.health.ready().healthy:
            self._broken(
                "a replica that is cut off says so",
                f"{self.name} has not reached the server for long, and is ready.",
            )

    def latency(self) -> float:
        return self._random.uniform(*LATENCY)

    def struck(self, fault: Fault, request: Request) -> None:
        if fault.kind == "cancel" and not HANDLING.get():
            return
        about = f"{request.method} {request.path}: {MEANING[fault.kind]}"
        length = f" ({fault.seconds:g} s)" if fault.seconds else ""
        self._trace.fault(self.name, fault.kind, f"{about}{length}")
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

    # What handlers do

    def _observed(self, operator: Operator) -> Operator:
        """The operator, each of whose handlers is seen to begin and to end."""
        seen = copy(operator)
        controllers = tuple(self._seen(each) for each in operator.controllers())
        seen.controllers = lambda: controllers  # type: ignore[method-assign]
        return seen

    def _seen(self, definition: Definition) -> Definition:
        cleanup = definition.cleanup
        return msgspec.structs.replace(
            definition,
            handler=self._wrapped(definition.name, definition.handler),
            cleanup=cleanup and self._wrapped(definition.name, cleanup),
        )

    def _wrapped(self, name: str, handler: Handler) -> Handler:
        if not is_asynchronous(handler):

            @functools.wraps(handler)
            def plain(obj: Any, ctx: Any) -> Any:
                with _Turn(self, name, obj):
                    return handler(obj, ctx)

            return plain

        @functools.wraps(handler)
        async def awaited(obj: Any, ctx: Any) -> Any:
            with _Turn(self, name, obj):
                return await handler(obj, ctx)  # type: ignore[misc]

        return awaited

    def began(self, name: str, key: Any) -> None:
        if (name, key) in self._busy:
            self._broken(
                "an object is reconciled by one handler at a time",
                f"{self.name}: {name} was called for {'/'.join(key)} while it ran.",
            )
        self._busy.add((name, key))

    def ended(self, name: str, key: Any) -> None:
        self._busy.discard((name, key))


class _Turn:
    """One call of a handler."""

    __slots__ = ("_key", "_name", "_replica", "_token")

    def __init__(self, replica: Replica, name: str, obj: Any) -> None:
        self._replica = replica
        self._name = name
        self._key = obj.key

    def __enter__(self) -> None:
        self._replica.began(self._name, self._key)
        self._token = HANDLING.set(f"{self._name} {self._key[1]}")

    def __exit__(self, *error: object) -> None:
        HANDLING.reset(self._token)
        self._replica.ended(self._name, self._key)


def is_write(request: Request) -> bool:
    """Whether a call writes what the operator is about."""
    if request.method in READS:
        return False
    return not any(
        f"{each}/" in request.path or request.path.endswith(each)
        for each in OWN_BUSINESS
    )
