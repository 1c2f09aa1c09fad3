"""The transport of a replica: each call can fail at a point before and one after.

A call travels to the server, is carried out in one step, and its answer travels back.
The network carries it, not the replica: what was sent arrives, also if the replica has
given up, sleeps or is dead by then. What the plan has for a call happens at one of the
two points.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Final, Protocol

from trimtab.client.errors import Closed, Disconnected, Unreachable
from trimtab.client.transport import (
    Progress,
    Request,
    Response,
    TransportStatistics,
)
from trimtab.embedded.api import Answer
from trimtab.embedded.driver import Stream
from trimtab.embedded.inprocess import Answered
from trimtab.sim.plan import Fault
from trimtab.sim.server import Server, Writer

HANDLING: ContextVar[str] = ContextVar("trimtab_sim_handling", default="")
"""What the running handler reconciles; empty outside of handlers."""
FLOOD: Final = b" " * (4 << 20)
FLOODS: Final = 20
"""So many pieces of nothing come before the body of an answer that is a flood."""
BOUND: Final = 72 << 20
"""Bytes of one answer that nobody reads who has a bound: the client's is less."""
TOO_MANY: Final = (("Retry-After", "1"),)
FAILURE: Final = b'{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d}'


class Line(Protocol):
    """What a transport needs to know of the replica that it belongs to."""

    name: str
    number: int
    program: bool
    cut_until: float
    stale_until: float

    def reaches(self, request: Request) -> bool:
        """Whether a message gets from the replica to the server, and back."""

    def next_fault(self, request: Request) -> Fault | None:
        """Count a call; what goes wrong with it."""

    def latency(self) -> float:
        """Seconds that a message takes, this time."""

    def struck(self, fault: Fault, about: str) -> None:
        """Do what a fault does to the whole replica, or to the server."""

    def called(self, request: Request, status: int, doing: str) -> None:
        """A call has been carried out."""

    def drowned(self, request: Request, size: int) -> None:
        """It has read so many bytes of one answer, which is more than any bound."""


class SimTransport:
    """Carries the requests of one client of one replica."""

    def __init__(self, line: Line, server: Server) -> None:
        self._line = line
        self._server = server
        self._writer = Writer(line.name, line.number, program=line.program)
        self._closed = False
        # A dictionary, not a set: its order is the same in every process.
        self._open: dict[SimResponse, None] = {}
        self._requests = 0

    async def send(self, request: Request, *, progress: Progress) -> Response:
        if self._closed:
            raise Closed(f"{request}: the client is closed; make a new one.")
        line = self._line
        fault = line.next_fault(request)
        self._requests += 1
        if fault is not None and fault.kind != "die-after":
            line.struck(fault, f"{request.method} {request.path}")
        kind = fault.kind if fault is not None else ""
        if kind == "refuse" or not line.reaches(request):
            await asyncio.sleep(line.latency())
            raise Unreachable(f"{request}: connection refused (planted).")
        # From here on the network has it, whatever becomes of the replica.
        progress.sent = True
        done: asyncio.Future[Answer | Stream]
        done = asyncio.get_running_loop().create_future()
        travel = line.latency() + (fault.seconds / 3 if kind == "slow" and fault else 0)
        doing = HANDLING.get()
        self._server.later(travel, self._deliver, request, fault, done, doing)
        if kind == "cancel" and doing:
            done.cancel()
        return self._answered(await done, request)

    def _deliver(
        self,
        request: Request,
        fault: Fault | None,
        done: asyncio.Future[Answer | Stream],
        doing: str,
    ) -> None:
        """The request is at the server; what happens to it there, and to its answer."""
        line, kind = self._line, fault.kind if fault is not None else ""
        if kind == "hang" or self._server.closed:
            return
        if kind == "lose" or not line.reaches(request):
            problem = Disconnected(f"{request}: the connection broke (planted).")
            return self._later(done, problem)
        if kind == "busy":
            busy = Answer(status=429, headers=TOO_MANY, body=FAILURE % 429)
            return self._later(done, busy)
        if kind == "error":
            return self._later(done, Answer(status=500, body=FAILURE % 500))
        answer = self._server.handle(request, writer=self._writer)
        line.called(request, answer.status, doing)
        if kind in ("hang-after", "die-after") and fault is not None:
            _close(answer)
            if kind == "die-after":
                line.struck(fault, f"{request.method} {request.path}")
        elif kind == "lose-answer":
            _close(answer)
            problem = Disconnected(f"{request}: the answer was lost (planted).")
            self._later(done, problem)
        else:
            if kind == "flood" and isinstance(answer, Answer):
                answer.body = iter([*[FLOOD] * FLOODS, _whole(answer)])
            slow = fault.seconds * 2 / 3 if kind == "slow" and fault else 0.0
            self._later(done, answer, after=slow)

    def _later(
        self,
        done: asyncio.Future[Answer | Stream],
        outcome: Answer | Stream | Exception,
        *,
        after: float = 0.0,
    ) -> None:
        travel = self._line.latency() + after
        self._server.later(travel, self._arrive, done, outcome)

    def _arrive(
        self,
        done: asyncio.Future[Answer | Stream],
        outcome: Answer | Stream | Exception,
    ) -> None:
        """The answer is back; perhaps nobody waits for it any more."""
        if done.done():
            if not isinstance(outcome, Exception):
                _close(outcome)
        elif isinstance(outcome, Exception):
            done.set_exception(outcome)
        else:
            done.set_result(outcome)

    def _answered(self, answer: Answer | Stream, request: Request) -> Response:
        response = SimResponse(answer, request, self._line, self)
        if self._closed:
            response.close()
            raise Closed(f"{request}: the client was closed meanwhile.")
        self._open[response] = None
        return response

    async def close(self) -> None:
        self._closed = True
        self.sever()

    def sever(self) -> None:
        """End every answer that is being read."""
        for response in tuple(self._open):
            response.close()

    def statistics(self) -> TransportStatistics:
        return TransportStatistics(
            connections_opened=self._requests, connections_open=len(self._open)
        )

    def forget(self, response: SimResponse) -> None:
        self._open.pop(response, None)

    @property
    def closed(self) -> bool:
        return self._closed


def _whole(answer: Answer) -> bytes:
    body = answer.body
    return body if isinstance(body, bytes) else b"".join(body)


def _close(answer: Answer | Stream) -> None:
    if isinstance(answer, Stream):
        answer.close()


class SimResponse(Answered):
    """An answer; a watch says nothing while the replica's view is stale."""

    def __init__(
        self,
        answer: Answer | Stream,
        request: Request,
        line: Line,
        transport: SimTransport,
    ) -> None:
        super().__init__(answer, request)
        self._line = line
        self._transport = transport
        self._severed = False
        self._size = 0

    async def chunk(self) -> bytes:
        if not isinstance(self._answer, Stream):
            # A piece may be empty, and nothing is what an end looks like.
            data = next(filter(None, self._pieces), b"")
            self._size += len(data)
            if self._size > BOUND:
                self._line.drowned(self._request, self._size)
            return data
        line, loop = self._line, asyncio.get_running_loop()
        data = await self._answer.chunk()
        if data:
            await asyncio.sleep(line.latency())
        if loop.time() < line.stale_until:
            await self._fresh()
        if self._severed or loop.time() < line.cut_until:
            if self._transport.closed:
                raise Closed(f"{self._request}: the client was closed meanwhile.")
            raise Disconnected(f"{self._request}: the watch broke off.")
        return data

    async def _fresh(self) -> None:
        """Wait while the replica's view is stale; it may heal before its time."""
        loop = asyncio.get_running_loop()
        while loop.time() < self._line.stale_until:  # noqa: ASYNC110
            await asyncio.sleep(0.5)

    def close(self) -> None:
        self._severed = True
        if isinstance(self._answer, Stream):
            self._answer.close()
        self._transport.forget(self)
