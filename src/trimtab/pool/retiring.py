"""Retiring: the way out of a worker, in an order in which every crash can be mended.

Draining is written first, so that nobody gets the worker any more; then its pod is
deleted; then the row says that it is over; then its ledgers are left. Whoever finds a
row halfway does the rest, and doing a step twice does no harm.
"""

from __future__ import annotations

from trimtab.api import Resource
from trimtab.client import NotFound
from trimtab.kinds import Pod, Secret
from trimtab.pool import transitions
from trimtab.pool.kinds import Worker, WorkerPool
from trimtab.pool.parts import Parts
from trimtab.pool.states import Operation, Origin, Reason, State
from trimtab.pool.view import pool_of


class Retirer:
    """Ends workers.

    Errors of all: ``Stale`` when somebody else wrote the row meanwhile; then nothing
    was touched after that. Any other error leaves the row draining, which every
    replica's reaper takes further.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def retire(self, worker: Worker, reason: Reason, *, origin: Origin) -> None:
        """End a worker now, whoever has it."""
        worker = await self.drain(worker, reason, origin=origin)
        await self.finish(worker, origin=origin)

    async def drain(
        self, worker: Worker, reason: Reason, *, origin: Origin, keep: bool = False
    ) -> Worker:
        """Let nobody have it any more; with ``keep`` its holder may finish."""
        if worker.status.state is State.DRAINING:
            if keep or worker.status.checkout is None:
                return worker
            status = transitions.give_up(worker)
        else:
            status = transitions.drain(worker, reason=reason, keep=keep)
        drained = await self._parts.rows.swap(
            worker, status, operation=Operation.DRAIN, origin=origin
        )
        if drained.status.checkout is None:
            await self.left(worker)
        return drained

    async def finish(self, worker: Worker, *, origin: Origin) -> None:
        """Take a draining worker without a checkout to its end."""
        status = transitions.retire(worker)
        await self._delete(worker, Pod, Secret)
        ended = await self._parts.rows.swap(
            worker, status, operation=Operation.RETIRE, origin=origin
        )
        await self._free_slot(ended)

    async def lose(self, worker: Worker, reason: Reason, *, origin: Origin) -> None:
        """Its pod ended by itself: so did the worker."""
        status = transitions.lose(worker, reason=reason)
        # First: nobody looks for Secrets of rows that are over, as for their pods.
        await self._delete(worker, Secret)
        ended = await self._parts.rows.swap(
            worker, status, operation=Operation.RETIRE, origin=origin
        )
        await self._delete(ended, Pod)
        await self.left(worker)
        await self._free_slot(ended)

    async def left(self, before: Worker) -> None:
        """The checkout that a row had is over: it counts no more."""
        checkout, pool = before.status.checkout, self._pool(before)
        if checkout is not None and pool is not None:
            await self._parts.accounts.leave(pool, before.status.tenant, [checkout.id])

    async def _free_slot(self, worker: Worker) -> None:
        pool = self._pool(worker)
        if pool is not None:
            await self._parts.accounts.leave(pool, "", [worker.metadata.name])

    async def _delete(self, worker: Worker, *kinds: type[Resource]) -> None:
        for kind in kinds:
            try:
                await self._parts.client.delete(
                    kind, worker.metadata.name, namespace=worker.metadata.namespace
                )
            except NotFound:
                continue

    def _pool(self, worker: Worker) -> WorkerPool | None:
        return self._parts.pools.get(pool_of(worker))
