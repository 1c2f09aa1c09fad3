"""The driver: runs an API within an event loop, for whoever carries requests to it.

The API itself is synchronous and knows no time. The driver has it do what follows from
writes, in small steps between requests; asks others what a request cannot go on
without; calls it again when something is due; keeps count; and makes go wrong what a
test has planted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Protocol

from trimtab.api.times import Duration
from trimtab.embedded import status
from trimtab.embedded.api import Answer, WatchAnswer
from trimtab.embedded.calls import Answered, Call, CallAnswer, Caller, Pending
from trimtab.embedded.faults import Fault, Faults, verb_of
from trimtab.embedded.metrics import CONTENT_TYPE, Metrics
from trimtab.embedded.requests import ApiRequest, Target, target_of
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import StoreProblem, StoreStatistics
from trimtab.embedded.webhooks.https import Https

logger = logging.getLogger(__name__)

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
METHODS = WRITES | {"GET", "HEAD"}
# The least time between two looks at what is due.
SHORTEST = 0.05
REQUEST_SECONDS = 34.0
"""So long a request may take that asks others."""


class Handler(Protocol):
    """What is driven; :class:`trimtab.embedded.api.Api` is one."""

    @property
    def deprecated(self) -> Collection[tuple[str, str, str, str]]: ...

    def admit(self, request: ApiRequest) -> ApiRequest: ...

    def handle(self, request: ApiRequest) -> Answer | WatchAnswer: ...

    def refusal(self, request: ApiRequest, problem: ApiProblem) -> Answer: ...

    def work(self) -> bool: ...

    def take_pending(self) -> Collection[Pending]: ...

    def due_in(self) -> float: ...

    def maintain(self) -> float: ...


class Cut(Exception):
    """The connection is to be ended in place of (the rest of) an answer."""


class Stream:
    """A watch under way: read it until it is over, then close it."""

    def __init__(
        self, answer: WatchAnswer, *, target: Target | None, driver: Driver
    ) -> None:
        self.status = answer.status
        self.content_type = answer.content_type
        self.target = target
        self._watcher = answer.watcher
        self._driver = driver
        self._cut = False
        self._events_left: int | None = None

    async def chunk(self) -> bytes:
        """Some whole events; empty when it is over.

        Errors: :class:`Cut` if a test wants it cut.
        """
        if self._events_left == 0:
            raise Cut
        data = await self._next()
        if self._cut:
            raise Cut
        if self._events_left is not None:
            lines = data.splitlines(keepends=True)[: self._events_left]
            self._events_left -= len(lines)
            data = b"".join(lines)
        return data

    async def _next(self) -> bytes:
        while True:
            try:
                return await self._watcher.chunk()
            except Pending as pending:
                await self._driver.make(pending)

    def cut_after(self, events: int) -> None:
        """Let so many events pass, then cut it."""
        self._events_left = events

    def cut(self) -> None:
        """Cut it now, whether anybody waits for an event or not."""
        self._cut = True
        self._events_left = 0
        self._watcher.close()

    def end(self) -> None:
        """End it well; whoever waits for an event is told that it is over."""
        self._watcher.close()

    def close(self) -> None:
        """Nobody reads it any more; twice is once."""
        self._watcher.close()
        self._driver.ended(self)


class Driver:
    """One API in one event loop.

    Flow: ``start`` when the loop runs, ``answer`` any number of times, ``close``.

    ``group`` is where others are asked about what the API does by itself; without it
    nobody is, and what they would have a say in is not done.
    """

    def __init__(
        self,
        api: Handler,
        *,
        faults: Faults | None = None,
        statistics: Callable[[], StoreStatistics] | None = None,
        caller: Caller | None = None,
        group: asyncio.TaskGroup | None = None,
    ) -> None:
        self.metrics = Metrics()
        self._group = group
        self._errands: set[asyncio.Task[None]] = set()
        self._caller = caller
        self._https: Https | None = None
        self._api = api
        self._faults = faults
        self._statistics = statistics
        self._streams: set[Stream] = set()
        self._working = False
        self._closed = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin with what is due by itself."""
        self._tick()
        self._kick()

    def close(self) -> None:
        """End every watch, and do nothing by itself any more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for stream in tuple(self._streams):
            stream.end()
        for errand in tuple(self._errands):
            errand.cancel()
        if self._https is not None:
            self._https.close()

    async def answer(self, request: ApiRequest) -> Answer | Stream:
        """Answer one request.

        Errors: :class:`Cut` if a test wants the connection cut.
        """
        # An empty set of faults is false, and costs a request nothing.
        fault = self._faults.take(request) if self._faults else None
        if fault is None:
            return await self._answer(request)
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.when == "after":
            return self._spoilt(request, await self._answer(request), fault)
        if fault.cut:
            raise Cut
        problem = fault.problem()
        return self.refuse(request, problem) if problem else await self._answer(request)

    def admit(self, request: ApiRequest) -> ApiRequest:
        """The request by whom it is really made, if they may; else ``ApiProblem``."""
        return self._api.admit(request)

    def refuse(self, request: ApiRequest, problem: ApiProblem) -> Answer:
        """The answer to a request that never comes to the API."""
        answer = self._api.refusal(request, problem)
        self._count(request, answer.status)
        return answer

    def ended(self, stream: Stream) -> None:
        """A stream is read no more."""
        if stream in self._streams:
            self._streams.discard(stream)
            self.metrics.watches -= 1
            if self._faults is not None:
                self._faults.ended(stream)

    def _spoilt(
        self, request: ApiRequest, answer: Answer | Stream, fault: Fault
    ) -> Answer | Stream:
        """The request is carried out; now what the fault wants of its answer."""
        if isinstance(answer, Stream):
            if fault.cut:
                answer.cut_after(fault.events)
            return answer
        if fault.cut:
            raise Cut
        problem = fault.problem()
        return self._api.refusal(request, problem) if problem else answer

    async def _answer(self, request: ApiRequest) -> Answer | Stream:
        try:
            try:
                answer = self._handled(request)
            except Pending as pending:
                answer = await self._asked(request, pending)
        except ApiProblem as problem:
            return self.refuse(request, problem)
        except StoreProblem as error:
            logger.error("%s %s: %s", request.method, request.path, error)
            return self.refuse(request, status.internal(str(error)))
        except Exception as error:
            logger.exception("%s %s failed.", request.method, request.path)
            what = f"{type(error).__name__}; the server's log says more"
            return self.refuse(request, status.internal(what))
        self._count(request, answer.status)
        if request.method in WRITES:
            self._kick()
        if isinstance(answer, WatchAnswer):
            return self._streaming(answer, request)
        return answer

    async def _asked(
        self, request: ApiRequest, pending: Pending
    ) -> Answer | WatchAnswer:
        """Ask others what a request needs to know, until it can be answered.

        Errors: 504 if that takes longer than the request has.
        """
        deadline = asyncio.get_running_loop().time() + seconds_of(request)
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    await self.make(pending)
                    try:
                        answer: Answer | WatchAnswer = pending.again()
                    except Pending as more:
                        pending = more
                    else:
                        return answer
        except TimeoutError:
            raise _out_of_time() from None

    async def make(self, pending: Pending) -> None:
        """Make calls at the same time, and note what comes of them."""
        if self._caller is None:
            self._https = self._caller = Https()
        async with asyncio.TaskGroup() as group:
            for call, uid in pending.calls.items():
                group.create_task(self._call(call, uid, pending))

    async def _call(self, call: Call, uid: str, pending: Pending) -> None:
        assert self._caller is not None, "there is one by now"
        body = call.head + uid.encode() + call.tail
        try:
            async with asyncio.timeout(call.timeout):
                answer = await self._caller(call, body)
        except TimeoutError:
            error = f'Post "{call.url}": context deadline exceeded'
            answer = CallAnswer(error=error)
        pending.exchange.answers[call] = Answered(uid, answer)

    def _handled(self, request: ApiRequest) -> Answer | WatchAnswer:
        if "timeout" in request.query:
            seconds_of(request)
        if request.path == "/metrics":
            self._api.admit(request)
            return self._metrics()
        return self._api.handle(request)

    def _metrics(self) -> Answer:
        store = self._statistics() if self._statistics else None
        text = self.metrics.text(store, deprecated=self._api.deprecated)
        return Answer(content_type=CONTENT_TYPE, body=text)

    def _streaming(self, answer: WatchAnswer, request: ApiRequest) -> Stream:
        stream = Stream(answer, target=target_of(request.path), driver=self)
        self._streams.add(stream)
        self.metrics.watches += 1
        if self._faults is not None:
            self._faults.begun(stream)
        if self._closed:
            stream.end()
        return stream

    def _count(self, request: ApiRequest, code: int) -> None:
        verb = request.method
        if verb == "GET":
            verb = verb_of(request, target_of(request.path)).upper()
        elif verb not in METHODS:
            verb = "OTHER"
        self.metrics.requests[verb, code] += 1

    def _kick(self) -> None:
        """Have the API do, from the next turn of the loop on, what follows."""
        if not self._working and not self._closed:
            self._working = True
            asyncio.get_running_loop().call_soon(self._step)

    def _step(self) -> None:
        more = False
        try:
            more = not self._closed and self._api.work()
        except Exception:
            logger.exception("What follows from a write failed; it is tried again.")
        self._ask_around()
        if more:
            asyncio.get_running_loop().call_soon(self._step)
        else:
            self._working = False
            self._tick_sooner()

    def _ask_around(self) -> None:
        """Ask others what the API has to know before it can do what follows."""
        if self._group is None or self._closed:
            return
        for pending in self._api.take_pending():
            task = self._group.create_task(self._errand(pending))
            self._errands.add(task)
            task.add_done_callback(self._errands.discard)

    async def _errand(self, pending: Pending) -> None:
        """Ask others, and go on with what they have to know about; never raises."""
        try:
            await self.make(pending)
        except Exception:
            logger.exception("Others could not be asked; it is as if they had failed.")
            for call, uid in pending.calls.items():
                failed = Answered(uid, CallAnswer(error="the call was not made"))
                pending.exchange.answers.setdefault(call, failed)
        try:
            pending.again()
        except Exception:
            logger.exception("What follows from a write failed; it is tried again.")
        self._kick()

    def _tick_sooner(self) -> None:
        """Look at what is due before it was thought to be, if something is."""
        loop = asyncio.get_running_loop()
        due = loop.time() + max(self._api.due_in(), SHORTEST)
        if self._timer is not None and not self._closed and due < self._timer.when():
            self._timer.cancel()
            self._timer = loop.call_at(due, self._tick)

    def _tick(self) -> None:
        """Do what is due, and come again when something is."""
        wait = 1.0
        try:
            wait = self._api.maintain()
        except Exception:
            logger.exception("What was due failed; it is tried again.")
        self._ask_around()
        if not self._closed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(wait, SHORTEST), self._tick)


def seconds_of(request: ApiRequest) -> float:
    """How long a request may take in all: as long as it says, and no longer than any.

    Errors: 400 for a time that nobody can read.
    """
    text = request.query.get("timeout", "")
    if not text or request.flag("watch"):
        return REQUEST_SECONDS
    try:
        asked = Duration(text).nanoseconds / 1e9
    except ValueError:
        what = "missing unit in" if text.isdecimal() and text != "0" else "invalid"
        raise status.bad_request(
            "invalid timeout specified in the request URL - time: "
            f"{what} duration {status.quoted(text)}"
        ) from None
    return min(asked, REQUEST_SECONDS) if asked > 0 else REQUEST_SECONDS


def _out_of_time() -> ApiProblem:
    message = "Timeout: request did not complete within the allotted timeout"
    return ApiProblem(504, "Timeout", message)
