"""Leadership: one replica at a time runs the leader's work, and can lose it and go on.

The main loop runs the work. The Lease is taken and renewed in a thread of its own, with
its own event loop and client, so that a busy main loop does not lose it; but a main
loop that is stuck for long does, on purpose.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from enum import Enum
from random import Random

import msgspec

from trimtab.client import Client
from trimtab.runtime.campaign import Campaign
from trimtab.runtime.fence import Fence
from trimtab.runtime.lease import LeaseOptions

logger = logging.getLogger(__name__)


class State(Enum):
    """Where a replica stands."""

    IDLE = "idle"
    """Not running: not yet, or not any more. It holds nothing."""
    CONTENDING = "contending"
    """Another leads, or nobody yet; its caches are warm meanwhile."""
    LEADING = "leading"
    """The leader's work runs, under a fence."""
    EMPTYING = "emptying"
    """The term is over and its work was cancelled, but has not ended. This replica
    does not contend before that."""


class LeadershipStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one replica's leadership."""

    state: State
    is_leader: bool
    terms: int
    """How often this replica has led."""
    transitions: int
    """How often the Lease has changed hands, as it was last seen."""
    holder: str
    """Who held the Lease when it was last seen."""
    last_renewed: float | None
    """When this replica last sent a renewal that held, by the loop's clock."""


class _Term:
    """One time of leading: its fence, and whether it is over."""

    def __init__(self, fence: Fence) -> None:
        self.fence = fence
        self.over = asyncio.Event()


class Leadership:
    """Contends for a Lease for ever, and leads whenever it has it.

    Flow: ``run`` contends; it calls ``lead`` when the Lease is won, cancels it when the
    Lease is lost, waits until it has ended, and contends again. ``stop`` does the same
    once, releases the Lease, and lets ``run`` return.

    Guarantees: ``lead`` runs at most once at a time here. Its fence is revoked before
    it is cancelled, unless it is stopped: then it is renewed until it has ended, so
    that what is under way can finish. Of all replicas whose clocks run equally fast, at
    most one has a fence that is valid.

    Assumptions: ``connect`` gives a client of its own, with credentials of its own: it
    is used, and closed, in another thread. ``lead`` returns only when nothing of its
    work runs any more, threads included. ``now`` is the wall clock, for people.
    With ``thread=False`` all is done in the running loop, for simulations.
    """

    def __init__(
        self,
        connect: Callable[[], Client],
        options: LeaseOptions,
        *,
        random: Random,
        now: Callable[[], datetime],
        on_change: Callable[[bool], None] | None = None,
        thread: bool = True,
    ) -> None:
        self.options = options
        self.fence = Fence(lambda: 0.0, deadline=-math.inf)
        """Of the term that runs, or of the last one. ``lead`` takes it when it begins,
        and its work keeps it."""
        self._connect = connect
        self._random = random
        self._now = now
        self._on_change = on_change
        self._thread = thread
        self._state = State.IDLE
        self._terms = 0
        self._last_renewed: float | None = None
        self._term: _Term | None = None
        self._campaign: Campaign | None = None
        self._failure: Exception | None = None
        self._beaten = 0.0
        """When the main loop last showed that it turns."""

    @property
    def is_leader(self) -> bool:
        """Whether this replica leads at this moment."""
        return self._state is State.LEADING and self.fence.valid

    def statistics(self) -> LeadershipStatistics:
        elector = self._campaign.elector if self._campaign else None
        if elector is not None and elector.ours:
            self._last_renewed = elector.renewed
        return LeadershipStatistics(
            state=self._state,
            is_leader=self.is_leader,
            terms=self._terms,
            transitions=elector.transitions if elector else 0,
            holder=elector.holder if elector else "",
            last_renewed=self._last_renewed,
        )

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Contend until stopped or cancelled, and lead whenever the Lease is ours.

        Guarantees: when it returns or raises, ``lead`` has ended, and the Lease is
        released if the server could be reached within two seconds.

        Errors: what ``lead`` raises; it also returns if ``lead`` does so by itself.
        """
        assert self._state is State.IDLE, "it is running already"
        self._begin()
        try:
            async with self._campaigning():
                await self._serve(lead)
        finally:
            self._state = State.IDLE
            self._finished.set()
        if self._failure is not None:
            raise self._failure

    async def stop(self) -> None:
        """Cancel the leader's work, wait for it, release the Lease; ``run`` returns.

        Assumptions: not called by ``lead`` itself, which it waits for.
        """
        if self._state is not State.IDLE:
            self._end()
            await self._finished.wait()

    def _begin(self) -> None:
        self._main = asyncio.get_running_loop()
        self._other = asyncio.SelectorEventLoop() if self._thread else self._main
        self._clock = self._other.time
        self._terms_won: asyncio.Queue[_Term | None] = asyncio.Queue()
        self._newest: _Term | None = None
        self._stopping = False
        self._leave = asyncio.Event()
        self._left = asyncio.Event()
        self._finished = asyncio.Event()
        self._failure = None
        self._beaten = self._clock()
        self._state = State.CONTENDING

    def _end(self) -> None:
        """No further term, and no further turn of this one."""
        self._stopping = True
        self._terms_won.put_nowait(None)
        if self._term is not None:
            self._term.over.set()

    # In the main loop

    async def _serve(self, lead: Callable[[], Awaitable[None]]) -> None:
        while (term := await self._terms_won.get()) is not None:
            if not term.over.is_set() and not self._stopping:
                await self._lead(term, lead)
            if self._stopping:
                return
            self._state = State.CONTENDING
            self._beat()
            campaign = self._campaign
            assert campaign is not None
            _call(self._other, campaign.emptied.set)

    async def _lead(self, term: _Term, lead: Callable[[], Awaitable[None]]) -> None:
        """Lead until the term is over, and return when its work has ended."""
        self._term, self.fence = term, term.fence
        self._terms += 1
        self._changed(State.LEADING)
        try:
            async with asyncio.TaskGroup() as group:
                work = group.create_task(self._work(lead, term))
                await term.over.wait()
                self._changed(State.EMPTYING)
                work.cancel()
        finally:
            term.fence.revoke("its term is over")
            self._term = None
            if self._state is State.LEADING:
                self._changed(State.EMPTYING)

    async def _work(self, lead: Callable[[], Awaitable[None]], term: _Term) -> None:
        try:
            await lead()
        except Exception as error:
            if not term.over.is_set():
                self._failure = error
            else:
                logger.exception("The leader's work failed while it was ended.")
        if not term.over.is_set():
            self._end()

    def _changed(self, state: State) -> None:
        self._state = state
        if self._on_change is not None:
            self._on_change(state is State.LEADING)

    def _beat(self) -> None:
        self._beaten = self._clock()

    # In the campaign's loop, which is another thread's

    def won(self, fence: Fence) -> None:
        logger.info("Leading: %s holds the lease.", self.options.identity)
        term = self._newest = _Term(fence)
        _call(self._main, self._terms_won.put_nowait, term)

    def lost(self, why: str) -> None:
        logger.warning("Leading no more: the lease %s: %s.", self.options.name, why)
        assert self._newest is not None, "nothing is lost that was not won"
        _call(self._main, self._newest.over.set)

    def problem(self, now: float) -> str | None:
        if not _call(self._main, self._beat):
            return "the event loop of the replica is closed"
        silence = now - self._beaten
        if silence > self.options.stuck:
            return f"the event loop of the replica has been stuck for {silence:.0f} s"
        return None

    async def _contend(self) -> None:
        """The whole life of the campaign; it ends when it is told to leave."""
        try:
            async with self._connect() as client:
                self._campaign = Campaign(
                    client,
                    options=self.options,
                    side=self,
                    random=self._random,
                    now=self._now,
                )
                async with asyncio.TaskGroup() as group:
                    contending = group.create_task(self._campaign.run())
                    await self._leave.wait()
                    contending.cancel()
                await self._campaign.release()
        except Exception as error:
            self._failure = error
            if self._newest is not None:
                self._newest.fence.revoke("its renewals failed")
            _call(self._main, self._end)

    # Between the two

    @asynccontextmanager
    async def _campaigning(self) -> AsyncIterator[None]:
        """The campaign goes on inside, and has released the Lease at the end."""
        thread: threading.Thread | None = None
        async with asyncio.TaskGroup() as group:
            if self._thread:
                # Not to be waited for by an interpreter that ends without our leave:
                # it would renew for ever, for work that runs no more.
                name = f"lease {self.options.name}"
                thread = threading.Thread(
                    target=self._elsewhere, name=name, daemon=True
                )
                thread.start()
            else:
                group.create_task(self._here())
            try:
                yield
            finally:
                _call(self._other, self._leave.set)
                await self._left.wait()
                if thread is not None:
                    thread.join()  # telling us was the last thing that it did

    def _elsewhere(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._other) as runner:
                runner.run(self._contend())
        finally:
            _call(self._main, self._left.set)

    async def _here(self) -> None:
        try:
            await self._contend()
        finally:
            self._left.set()


def _call(
    loop: asyncio.AbstractEventLoop,
    function: Callable[..., object],
    *arguments: object,
) -> bool:
    """Have a loop, perhaps another thread's, call this soon; False if it is closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *arguments)
        return True
    return False
