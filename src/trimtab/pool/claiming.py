"""Claiming: the steps from a free worker to one that serves exactly one checkout."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Final

from trimtab.client import TrimtabError, budget
from trimtab.pool import transitions
from trimtab.pool.calls import CallFailed, Target
from trimtab.pool.kinds import Checkout, LedgerEntry, Worker, WorkerPool
from trimtab.pool.limits import ttl_of
from trimtab.pool.parts import Parts, logger
from trimtab.pool.requests import (
    AcquireRequest,
    Grant,
    NotNow,
    Refused,
    Unavailable,
)
from trimtab.pool.retiring import Retirer
from trimtab.pool.states import Operation, Origin, Reason, Source, State
from trimtab.pool.swapping import Stale
from trimtab.pool.transitions import Impossible, carries

BEATS: Final = 4
"""Heartbeats of an activation within its budget."""
GIVE_BACK_WITHIN: Final = 5.0


class Again(TrimtabError):
    """This worker is not to be had; another may be."""

    @property
    def refusal(self) -> Refused:
        return NotNow(f"{self} Try again.", retry_after=0.1)


class Claimer:
    """Claims one worker for one request.

    Flow: ledger, row, activation where the pool has one, epoch.
    Errors: :class:`Again` for another worker; :class:`Full`; or what the API said. In
    every case what was taken is given back, here or by a reaper.
    """

    def __init__(self, parts: Parts, *, retirer: Retirer) -> None:
        self._parts = parts
        self._retirer = retirer

    async def claim(
        self,
        pool: WorkerPool,
        request: AcquireRequest,
        worker: Worker,
        *,
        asked: float,
    ) -> Grant:
        """Claim a worker for a request that was made at that moment."""
        parts, source = self._parts, self._source(worker, asked)
        checkout = Checkout(id=parts.unique(), holder=request.holder, since=parts.now())
        await self._enter(pool, request, worker, checkout.id)
        claimed = await self._write(pool, request, worker, checkout)
        try:
            target = await parts.keyring.target(claimed)
            if claimed.status.state is State.ACTIVATING:
                claimed = await self._activate(pool, claimed, target)
            await parts.calls.begin(
                target,
                epoch=claimed.status.epoch,
                checkout=checkout.id,
                tenant=request.tenant,
            )
        except CallFailed as error:
            await self._failed(claimed, error)
            raise Again(f"{worker} did not answer.") from error
        except (TrimtabError, asyncio.CancelledError):
            # Nobody was told of it, so whatever the worker knows, it is as good as new.
            await self._give_back(claimed)
            raise
        return self._grant(claimed, target, source=source, request=request, pool=pool)

    def _source(self, worker: Worker, asked: float) -> Source:
        if worker.status.state is not State.IDLE:
            return Source.HOT_IDLE
        row = self._parts.view.get(worker.key)
        return Source.SPAWN if row and row.entered > asked else Source.IDLE

    async def _enter(
        self, pool: WorkerPool, request: AcquireRequest, worker: Worker, checkout: str
    ) -> None:
        entry = LedgerEntry(
            checkout=checkout,
            worker=worker.metadata.name,
            cpu=worker.spec.cpu,
            memory=worker.spec.memory,
        )
        try:
            await self._parts.accounts.enter(pool, request.tenant, entry)
        except (TrimtabError, asyncio.CancelledError):
            self._parts.view.trust(worker.key)
            raise

    async def _write(
        self,
        pool: WorkerPool,
        request: AcquireRequest,
        worker: Worker,
        checkout: Checkout,
    ) -> Worker:
        """The one write that decides who has it."""
        parts = self._parts
        try:
            if not parts.may_act():
                raise Unavailable("This replica has not renewed its lease.")
            status = transitions.claim(
                worker,
                tenant=request.tenant,
                checkout=checkout,
                owner=parts.incarnation,
                ttl=request.ttl,
                activation=pool.spec.activation is not None,
            )
            return await parts.rows.swap(
                worker, status, operation=Operation.CLAIM, origin=Origin.ACQUIRE
            )
        except Unavailable:
            parts.view.trust(worker.key)
            self._leave(pool, request.tenant, checkout.id)
            raise
        except (Stale, Impossible) as error:
            row: Worker | None = error.row if isinstance(error, Stale) else None
            if row is not None and carries(row, checkout.id):
                return row  # it is ours, and somebody has written on top of it
            self._leave(pool, request.tenant, checkout.id)
            raise Again(f"{worker} went to somebody else.") from error

    async def _activate(
        self, pool: WorkerPool, worker: Worker, target: Target
    ) -> Worker:
        """Bind the worker to its tenant; the row shows that we are at it meanwhile.

        Guarantees: the heartbeat has ended before the row says hot.
        """
        parts, activation = self._parts, pool.spec.activation
        assert activation is not None
        assert worker.status.checkout is not None
        every = pool.spec.budgets.activation / BEATS
        beating = parts.background.begin(self._beat(worker, every))
        try:
            async with asyncio.timeout(pool.spec.budgets.activation):
                await parts.calls.activate(
                    target,
                    epoch=worker.status.epoch,
                    tenant=worker.status.tenant,
                    activation=activation,
                )
        except TimeoutError as error:
            raise CallFailed(f"{worker} was not activated in time.") from error
        finally:
            beating.cancel()
            await asyncio.wait([beating])
        row = parts.view.get(worker.key)
        become = partial(transitions.activated, checkout=worker.status.checkout.id)
        try:
            return await parts.rows.step(
                row.worker if row else worker,
                become,
                operation=Operation.ACTIVATE,
                origin=Origin.ACQUIRE,
            )
        except (Stale, Impossible) as error:
            raise CallFailed(f"{worker} was taken away meanwhile.") from error

    async def _beat(self, worker: Worker, every: float) -> None:
        parts = self._parts
        become = partial(transitions.beat, owner=parts.incarnation)
        while True:
            await asyncio.sleep(every)
            row = parts.view.get(worker.key)
            with suppress(TrimtabError):
                await parts.rows.step(
                    row.worker if row else worker,
                    become,
                    operation=Operation.HEARTBEAT,
                    origin=Origin.ACQUIRE,
                )

    async def _give_back(self, claimed: Worker) -> None:
        """Park a worker that was claimed and not handed out, or leave it to reapers."""
        parts, held = self._parts, claimed.status.checkout
        assert held is not None
        if claimed.status.state is State.ACTIVATING:
            await self._failed(claimed, CallFailed("its activation was broken off."))
            return
        become = partial(transitions.park, checkout=held.id, at=parts.now())
        try:
            with budget(GIVE_BACK_WITHIN):
                await parts.rows.step(
                    claimed, become, operation=Operation.PARK, origin=Origin.ACQUIRE
                )
                await self._retirer.left(claimed)
        except TrimtabError as error:
            logger.warning("%s is left to the reapers: %s", claimed, error)

    async def _failed(self, worker: Worker, error: CallFailed) -> None:
        """Never hand it out again: end it, or leave that to the reapers."""
        activating = worker.status.state is State.ACTIVATING
        reason = Reason.ACTIVATION_FAILED if activating else Reason.BEGIN_FAILED
        logger.warning("%s is ended, a call to it failed: %s", worker, error)
        row = self._parts.view.get(worker.key)
        try:
            await self._retirer.retire(
                row.worker if row else worker, reason, origin=Origin.ACQUIRE
            )
        except TrimtabError as trouble:
            logger.warning("%s is left to the reapers: %s", worker, trouble)

    def _leave(self, pool: WorkerPool, tenant: str, checkout: str) -> None:
        self._parts.background.start(self._left(pool, tenant, checkout))

    async def _left(self, pool: WorkerPool, tenant: str, checkout: str) -> None:
        with suppress(TrimtabError):
            await self._parts.accounts.leave(pool, tenant, [checkout])

    def _grant(
        self,
        worker: Worker,
        target: Target,
        *,
        source: Source,
        request: AcquireRequest,
        pool: WorkerPool,
    ) -> Grant:
        parts, status = self._parts, worker.status
        assert status.checkout is not None
        ttl = ttl_of(pool.spec, request.tenant, request.ttl)
        clamped = request.ttl is not None and ttl != request.ttl
        warning = f"The ttl was lowered to {ttl} s, the pool's maxTTL."
        lasts = timedelta(seconds=parts.options.lease_seconds)
        checkout = status.checkout.id
        return Grant(
            checkout=checkout,
            worker=worker.metadata.name,
            uid=worker.metadata.uid,
            namespace=worker.metadata.namespace,
            address=target.address,
            port=target.port,
            token=parts.keyring.token(target, checkout=checkout, epoch=status.epoch),
            epoch=status.epoch,
            ca=target.ca,
            renew_within=parts.options.lease_seconds,
            source=source,
            deadline=parts.now() + lasts,
            warning=warning if clamped else "",
        )
