"""The allocator: hands out workers, takes them back, and wakes those who wait.

What decides is synchronous: whose turn it is (:mod:`trimtab.pool.waiting`) and which
worker they get (:mod:`trimtab.pool.view`). What takes time, the writes and the calls,
is done in tasks of its own: a requester who gives up does not break it off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

from trimtab.cache import Key
from trimtab.client import TrimtabError, budget
from trimtab.pool import limits
from trimtab.pool.claiming import Again, Claimer
from trimtab.pool.kinds import Shape, Worker, WorkerPool
from trimtab.pool.parts import Parts, Tasks, logger
from trimtab.pool.releasing import Releaser
from trimtab.pool.requests import (
    AcquireRequest,
    Full,
    Grant,
    Never,
    NotNow,
    Refused,
    Unavailable,
)
from trimtab.pool.retiring import Retirer
from trimtab.pool.shapes import Size, best_fit, size_of
from trimtab.pool.spawning import Spawner
from trimtab.pool.states import PARKED, Origin, Reason
from trimtab.pool.view import Row
from trimtab.pool.waiting import Line, Waiter

RETRY_AFTER: Final = 1.0
TRIES: Final = 8
"""Workers that one request tries before it stands in line again."""
CLAIMS: Final = 32
"""Requests for one pool that are worked on at once: of a crowd, the first are served
while the last wait, and not all when the last one is. An activation takes its time, so
pools that have one are not held to it."""


class Ask:
    """A request, and where its answer goes. Cancelled means that nobody waits."""

    __slots__ = ("answer", "began", "ends", "refusal", "request")

    def __init__(self, request: AcquireRequest, now: float) -> None:
        loop = asyncio.get_running_loop()
        self.request = request
        self.answer: asyncio.Future[Grant] = loop.create_future()
        self.began = now
        self.ends = now + request.wait
        self.refusal: Refused | None = None

    def refused(self) -> Refused:
        """What to say when the wait is over."""
        return self.refusal or NotNow(
            f"No worker of {self.request.pool[1]} was free for {self.request.tenant} "
            f"within {self.request.wait:g} s; try again.",
            retry_after=RETRY_AFTER,
        )

    def give_up(self) -> Grant | None:
        """Whoever asked is gone; what they got at that very moment, if anything."""
        if self.answer.cancel() or self.answer.cancelled():
            return None
        return None if self.answer.exception() else self.answer.result()

    def refuse(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class Allocator:
    """Acquire, release, renew and drain.

    Guarantees: a worker has at most one checkout, and nobody is told of it before the
    worker itself has acknowledged its epoch. A worker on which a call failed is never
    handed out again. Tenants take turns. No limit is exceeded, whatever other replicas
    do. What a requester that gave up would have got is parked.

    Errors: :class:`Refused` in its kinds, or what the API server said.
    """

    def __init__(self, parts: Parts, *, retirer: Retirer) -> None:
        self._parts = parts
        self._retirer = retirer
        self._lines: dict[Key, Line[Ask]] = {}
        self._evicting: set[Key] = set()
        self._places: dict[Key, asyncio.Semaphore] = {}
        self._tasks = Tasks(parts.group)
        self.spawner = Spawner(parts, retirer=retirer, changed=self.dispatch)
        self._claimer = Claimer(parts, retirer=retirer)
        self._releaser = Releaser(parts, retirer=retirer, parked=self.dispatch)

    async def acquire(self, request: AcquireRequest) -> Grant:
        """One worker for one holder, waiting in line for up to ``request.wait``.

        Flow: an entry in the tenant's ledger, the worker's row, the call that gives the
        worker its epoch, and only then the answer.
        """
        self._check(request)
        now = self._parts.clock()
        shapes = best_fit(self._parts.pool(request.pool).spec.shapes, request)
        ask = Ask(request, now)
        waiter = Waiter(request.tenant, tuple(each.name for each in shapes), ask)
        line = self._lines.setdefault(request.pool, Line())
        line.add(waiter)
        self._touch(request.holder)
        self.dispatch(request.pool)
        try:
            await asyncio.wait([ask.answer], timeout=request.wait)
            if not ask.answer.done() and line.remove(waiter):
                raise ask.refused()
            return await ask.answer
        except asyncio.CancelledError:
            given = None if line.remove(waiter) else ask.give_up()
            if given is not None:
                self._parts.background.start(
                    self._releaser.abandoned(given, holder=request.holder)
                )
            raise

    async def release(
        self,
        checkout: str,
        *,
        holder: str,
        clean: bool = True,
        worker: Key | None = None,
    ) -> None:
        """The holder needs it no more; see :meth:`Releaser.release`."""
        await self._releaser.release(
            checkout, holder=holder, clean=clean, worker=worker
        )

    async def renew(
        self, holder: str, checkouts: Collection[str] | None = None
    ) -> None:
        """The holder lives, and has these checkouts; see :meth:`Releaser.renew`."""
        await self._releaser.renew(holder, checkouts)

    async def drain(self, worker: Key) -> None:
        """Let a worker go as soon as nobody uses it.

        Errors: :class:`Never` if there is none; ``Stale`` if it changed meanwhile.
        """
        row = self._parts.view.get(worker)
        if row is None:
            raise Never(f"There is no worker {worker[0]}/{worker[1]}; see what is.")
        drained = await self._retirer.drain(
            row.worker, Reason.DRAINED, origin=Origin.REQUEST, keep=True
        )
        if drained.status.checkout is None:
            await self._retirer.finish(drained, origin=Origin.REQUEST)

    # Decisions: none of these awaits anything

    def dispatch(self, key: Key) -> None:
        """Give what is free to those whose turn it is, and have the rest spawned."""
        line, pool = self._lines.get(key), self._parts.pools.get(key)
        if not line or pool is None or not self._parts.may_act():
            return

        def offer(waiter: Waiter[Ask]) -> Worker | None:
            return self._parts.view.candidate(key, waiter.tenant, waiter.shapes)

        for waiter, worker in line.serve(offer):
            self._tasks.start(self._complete(line, waiter, worker))
        self._spawn(pool, line)

    def freed(self, key: Key, tenant: str) -> None:
        """A ledger has changed: those it kept out may try again."""
        if not tenant:
            self.spawner.full.discard(key)
        elif key in self._lines:
            self._lines[key].unblock(tenant)
        self.dispatch(key)

    def retry(self) -> None:
        """Let all try again who were kept out: a wake-up may have come too early."""
        self.spawner.full.clear()
        for key, line in list(self._lines.items()):
            if line:
                line.unblock_all()
                self.dispatch(key)

    def waiting(self, key: Key) -> int:
        """How many stand in line."""
        return len(self._lines.get(key, ()))

    async def stop(self, within: float) -> None:
        """Tell all who wait, and see what is under way to its end.

        Assumptions: ``parts.stopping`` is set, so nothing new begins.
        """
        for line in self._lines.values():
            line.unblock_all()
            for waiter, _ in line.serve(lambda _: True):
                waiter.value.refuse(_stops())
        await self._tasks.end(within)
        await self.spawner.stop()

    def forget(self, key: Key) -> None:
        """The pool is gone, and nobody gets anything of it."""
        line = self._lines.pop(key, None)
        self._places.pop(key, None)
        if line is not None:
            line.unblock_all()
            for waiter, _ in line.serve(lambda _: True):
                waiter.value.refuse(Never(f"The pool {key[0]}/{key[1]} was deleted."))

    def _check(self, request: AcquireRequest) -> None:
        """Refuse at once what cannot be had, here or at all."""
        if not self._parts.may_act():
            raise Unavailable(
                "This replica hands out nothing: it stops, or has not renewed its "
                "lease; ask another one.",
                retry_after=RETRY_AFTER,
            )
        if not request.tenant or not request.holder:
            raise Never("A request needs a tenant and a holder; name both.")
        pool = self._parts.pool(request.pool)
        cap = limits.cap_of(pool.spec, request.tenant)
        shapes = best_fit(pool.spec.shapes, request)
        broken = [cap.broken_by(1, Size() + size_of(each)) for each in shapes]
        if all(broken):
            raise Never(
                f"The limit on {broken[0]} of tenant {request.tenant} is below one "
                f"worker of {request.pool[1]}; ask for a smaller one, or raise it."
            )

    def _spawn(self, pool: WorkerPool, line: Line[Ask]) -> None:
        """Start what those in line lack, and what is not on its way already."""
        shapes = {each.name: each for each in pool.spec.shapes}
        for name, count in line.demand().items():
            missing = count - self.spawner.in_flight(pool.key, name)
            if missing <= 0 or name not in shapes:
                continue
            if pool.key in self.spawner.full:
                self._make_room(pool, shapes[name])
            else:
                # The ledger decides; this only saves asking it in vain.
                room = pool.spec.maxWorkers - self._parts.view.living(pool.key)
                self.spawner.start(pool, shapes[name], max(1, min(missing, room)))

    def _make_room(self, pool: WorkerPool, shape: Shape) -> None:
        """End the worker that has been parked for longest: no slot is left."""
        if pool.key in self._evicting:
            return
        parked = [
            row
            for row in self._parts.view.rows(pool.key)
            if row.worker.status.state in PARKED and not row.suspect
        ]
        if parked:
            self._evicting.add(pool.key)
            oldest = min(parked, key=lambda row: row.entered)
            self._parts.background.start(self._evict(pool.key, oldest))

    # What takes time

    async def _evict(self, key: Key, row: Row) -> None:
        self._parts.view.suspect(row.worker.key)
        try:
            await self._retirer.retire(
                row.worker, Reason.SURPLUS, origin=Origin.ACQUIRE
            )
        except TrimtabError as error:
            logger.debug("%s was not ended to make room: %s", row.worker, error)
        finally:
            self._evicting.discard(key)

    async def _complete(
        self, line: Line[Ask], waiter: Waiter[Ask], worker: Worker
    ) -> None:
        """Turn a worker that was chosen into an answer, or choose another."""
        ask, key = waiter.value, waiter.value.request.pool
        try:
            async with self._place(key):
                grant = await self._claim(waiter, worker)
        except Full as full:
            ask.refusal = full
            line.block(waiter.tenant)
            self._back(line, waiter)
        except Again as again:
            ask.refusal = again.refusal
            self._back(line, waiter)
        except TrimtabError as error:
            ask.refuse(error)
        except asyncio.CancelledError:
            ask.refuse(_stops())
            raise
        else:
            if ask.answer.done():
                await self._releaser.abandoned(grant, holder=ask.request.holder)
            else:
                ask.answer.set_result(grant)
        finally:
            self.dispatch(key)

    def _place(self, key: Key) -> AbstractAsyncContextManager[object]:
        """Where a claim is worked on; see ``CLAIMS``."""
        pool = self._parts.pools.get(key)
        if pool is None or pool.spec.activation is not None:
            return nullcontext()
        return self._places.setdefault(key, asyncio.Semaphore(CLAIMS))

    async def _claim(self, waiter: Waiter[Ask], worker: Worker | None) -> Grant:
        request = waiter.value.request
        pool = self._parts.pool(request.pool)
        seconds = pool.spec.budgets.acquire
        if pool.spec.activation is not None:
            seconds += pool.spec.budgets.activation
        with budget(seconds):
            for _ in range(TRIES):
                if worker is None:
                    break
                try:
                    return await self._claimer.claim(
                        pool, request, worker, asked=waiter.value.began
                    )
                except Again:
                    worker = self._parts.view.candidate(
                        request.pool, waiter.tenant, waiter.shapes
                    )
        raise Again(f"All workers of {pool} that were tried went to others.")

    def _back(self, line: Line[Ask], waiter: Waiter[Ask]) -> None:
        """Stand in line again, in front; or be refused, if the time is up."""
        ask = waiter.value
        if ask.answer.done():
            return
        if self._parts.clock() >= ask.ends or self._parts.stopping:
            ask.refuse(ask.refused())
            return
        line.add(waiter, first=True)

    def _touch(self, holder: str) -> None:
        if self._parts.holders.is_due(holder, self._parts.clock()):
            self._parts.background.start(self._touched(holder))

    async def _touched(self, holder: str) -> None:
        try:
            await self._parts.holders.touch(holder, self._parts.clock())
        except TrimtabError as error:
            logger.warning("The lease of holder %s was not renewed: %s", holder, error)


def _stops() -> Unavailable:
    return Unavailable("This replica stops; ask another one.", retry_after=0.0)
