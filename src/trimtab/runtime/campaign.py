"""A campaign: the requests with which one replica takes, keeps and releases a Lease.

It runs in whichever event loop it is given, with a client of its own, and tells the
other side (:mod:`trimtab.runtime.leadership`) when a term begins and when it is over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from random import Random
from typing import Protocol

from trimtab.api.kinds.coordination import Lease
from trimtab.client import Client, WatchEvent, budget
from trimtab.client.errors import Conflict, NotFound, TrimtabError
from trimtab.runtime.fence import Fence
from trimtab.runtime.lease import NEVER, Elector, LeaseOptions, Proposal

logger = logging.getLogger("trimtab.runtime.leadership")

RELEASE_WITHIN = 2.0
"""Seconds for a release: whoever stops must not wait for a server that is away."""
SILENT = 1.5
"""Retries after which a watch that says nothing counts as silent."""
RELEASE_TRIES = 3
"""A renewal that was under way may come in between."""


class Side(Protocol):
    """Whom a campaign is for; called in the campaign's own loop and thread."""

    def won(self, fence: Fence) -> None:
        """A term begins; its leader may write as long as the fence says so."""

    def lost(self, why: str) -> None:
        """It is over, and its fence is revoked already."""

    def problem(self, now: float) -> str | None:
        """Why this replica should not lead; None if nothing speaks against it."""


class Campaign:
    """Contends for one Lease until it is cancelled."""

    def __init__(
        self,
        client: Client,
        *,
        options: LeaseOptions,
        side: Side,
        random: Random,
        now: Callable[[], datetime],
    ) -> None:
        self.elector = Elector(options)
        self.emptied = asyncio.Event()
        """Set from outside when nothing of the last term runs any more."""
        self._client = client
        self._options = options
        self._side = side
        self._random = random
        self._now = now
        self._clock = asyncio.get_running_loop().time
        self._bell = asyncio.Event()
        """Set when the Lease may have become free: look at once."""
        self._sure = True
        """Whether the Lease was seen since the last write that may have failed."""
        self._heard = "", NEVER
        """The revision of the Lease that the watch told last, and when."""
        self._failing = ""
        """The kind of the last failure, so that each is told once and not for ever."""

    async def run(self) -> None:
        """Take the Lease, keep it, lose it; and again only once the term is empty."""
        while True:
            await self._take()
            fence = Fence(self._clock, deadline=self.elector.deadline)
            self._side.won(fence)
            why = await self._keep(fence)
            fence.revoke(why)
            self._side.lost(why)
            await self.emptied.wait()
            self.emptied.clear()

    async def release(self) -> None:
        """Let the Lease go if it is ours, so that another can have it at once.

        Assumptions: ``run`` has ended, and so has whatever it led.
        """
        if not self.elector.contended:
            return
        try:
            with budget(RELEASE_WITHIN):
                for _ in range(RELEASE_TRIES):
                    with suppress(Conflict):
                        await self._let_go()
                        return
        except TrimtabError as error:
            logger.warning("The lease was not released and runs out: %s", error)

    async def _let_go(self) -> None:
        await self._read()
        proposal = self.elector.release(wall=self._now())
        if proposal is not None:
            await self._write(proposal)
            logger.info("Released the lease %s.", self._options.name)

    async def _take(self) -> None:
        """Return when the Lease is ours.

        Guarantees: it is looked at at the moment when it can be taken, and before that
        once per retry, unless a watch has just told of a renewal. Looking is enough by
        itself; the watch saves waiting after a release, and requests.
        """
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(self._listen())
            while not await self._contend():
                await self._wait()
            listening.cancel()

    async def _wait(self) -> None:
        """Return when the Lease should be looked at, or the bell has rung."""
        due = self._clock() + self._options.retry * self._random.uniform(0.8, 1.0)
        while not self._bell.is_set() and (left := self._pause(due)) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._bell.wait()
        self._bell.clear()

    async def _contend(self) -> bool:
        """Look at the Lease, and take it if that may be; whether it is ours now."""
        try:
            with budget(self._options.renew_deadline / 2):
                await self._read()
                await self._propose()
            self._failing = ""
        except Conflict as error:
            logger.debug("Another replica was faster: %s", error)
        except TrimtabError as error:
            self._failed("The lease cannot be contended for", error)
        return self._time_left() > 0

    async def _propose(self) -> None:
        if self._side.problem(self._clock()) is None and self._time_left() <= 0:
            # The clock is read again: nothing may lie between it and the sending.
            proposal = self.elector.propose(now=self._clock(), wall=self._now())
            if proposal is not None:
                await self._write(proposal)

    def _time_left(self) -> float:
        """Seconds until a holder has to give up; none if the Lease is not ours."""
        return self.elector.renewed + self._options.renew_deadline - self._clock()

    def _pause(self, due: float) -> float:
        """Seconds to wait, as things are: until then, or until the watch is silent."""
        now, expires = self._clock(), self.elector.expires()
        if expires <= now:
            return due - now
        told = self._heard[1] + SILENT * self._options.retry
        return min(max(due, told), expires) - now

    async def _listen(self) -> None:
        """Ring the bell when the Lease is released, deleted or taken by another.

        A server that forbids the watch, or a watch that says nothing, costs only time.
        """
        while True:
            try:
                await self._watch()
            except TrimtabError as error:
                logger.debug("The lease is looked at without a watch: %s", error)
            await asyncio.sleep(self._options.retry)

    async def _watch(self) -> None:
        async with self._client.watch(
            Lease,
            namespace=self._options.namespace,
            fields={"metadata.name": self._options.name},
            idle=2 * self._options.duration,
        ) as events:
            async for event in events:
                if not isinstance(event, WatchEvent):
                    continue
                revision = event.object.metadata.resourceVersion
                self._heard = revision, self._clock()
                if _is_free(event) or self._is_news(event):
                    self._bell.set()

    def _is_news(self, event: WatchEvent[Lease]) -> bool:
        return event.object.spec.holderIdentity != self.elector.holder

    async def _keep(self, fence: Fence) -> str:
        """Renew until that is no longer possible; the reason, as part of a sentence."""
        elector, options = self.elector, self._options
        while True:
            await asyncio.sleep(max(0.0, min(options.retry, self._time_left())))
            why, left = self._side.problem(self._clock()), self._time_left()
            if why is None and left <= 0:
                why = f"it was not renewed within {options.renew_deadline:g} s"
            if why is None:
                await self._renew(min(left, options.renew_deadline / 2))
                if not elector.ours:
                    why = f"it is held by {elector.holder or 'nobody'} now"
            if why is not None:
                return why
            fence.extend(elector.deadline)

    async def _renew(self, seconds: float) -> None:
        """Try to renew, and once more if the Lease is not what it was thought to be."""
        try:
            with budget(seconds):
                if self._sure:
                    with suppress(Conflict, NotFound):
                        return await self._renew_once()
                await self._read()
                if self.elector.ours:
                    await self._renew_once()
        except TrimtabError as error:
            self._failed("The lease was not renewed", error)

    async def _renew_once(self) -> None:
        self._sure = False
        proposal = self.elector.propose(now=self._clock(), wall=self._now())
        if proposal is not None:
            await self._write(proposal)
            self._sure, self._failing = True, ""

    async def _read(self) -> None:
        options = self._options
        try:
            lease = await self._client.get(
                Lease, options.name, namespace=options.namespace
            )
        except NotFound:
            self.elector.saw(None, now=self._clock())
        else:
            # What was heard of before was there by then: it was seen at that moment.
            revision, heard = self._heard
            known = lease.metadata.resourceVersion == revision
            self.elector.saw(lease, now=heard if known else self._clock())

    async def _write(self, proposal: Proposal) -> None:
        options = self._options
        if proposal.resource_version:
            lease = await self._client.patch(
                Lease, options.name, proposal.patch(), namespace=options.namespace
            )
        else:
            lease = await self._client.create(proposal.lease(options))
        self.elector.saw(lease, now=self._clock())

    def _failed(self, what: str, error: TrimtabError) -> None:
        again = self._failing == type(error).__name__
        self._failing = type(error).__name__
        level = logging.DEBUG if again else logging.WARNING
        logger.log(level, "%s; it is tried again: %s", what, error)


def _is_free(event: WatchEvent[Lease]) -> bool:
    return event.type == "DELETED" or not event.object.spec.holderIdentity
