"""Releasing: the way back of a worker, and the proof that its holder still lives."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from trimtab.cache import Key
from trimtab.client import NotFound, TrimtabError
from trimtab.pool import transitions
from trimtab.pool.calls import CallFailed
from trimtab.pool.kinds import Worker, WorkerStatus
from trimtab.pool.limits import ttl_of
from trimtab.pool.parts import Parts, logger
from trimtab.pool.requests import Grant, NotYours
from trimtab.pool.retiring import Retirer
from trimtab.pool.states import TAKEN, Operation, Origin, Reason, State
from trimtab.pool.swapping import Stale
from trimtab.pool.transitions import Impossible, carries
from trimtab.pool.view import Row, pool_of


class Releaser:
    """Takes workers back: cleaned and parked, or ended."""

    def __init__(
        self, parts: Parts, *, retirer: Retirer, parked: Callable[[Key], None]
    ) -> None:
        self._parts = parts
        self._retirer = retirer
        self._parked = parked

    async def release(
        self,
        checkout: str,
        *,
        holder: str,
        clean: bool = True,
        worker: Key | None = None,
        origin: Origin = Origin.RELEASE,
    ) -> None:
        """End a checkout.

        Flow: the worker cleans up, the row is parked, the ledger is left. A worker that
        cannot clean up, or of which the holder says that it is not ``clean``, is ended.
        ``worker`` helps where the checkout was made by another replica a moment ago.

        Guarantees: releasing once more does no harm, and says :class:`NotYours`.

        Errors: :class:`NotYours`; or what the API server said, and then it must be
        released again.
        """
        row = await self._find(checkout, worker)
        held = row.status.checkout
        if held is None or held.id != checkout or held.holder != holder:
            raise NotYours(
                f"The checkout {checkout} is over, unknown, or another holder's."
            )
        if not clean or not await self._cleaned(row, checkout):
            await self._end(row, checkout, Reason.CLEAN_FAILED, origin)
        elif self._outlived(row):
            await self._end(row, checkout, Reason.NORMAL, origin)
        else:
            await self._park(row, checkout, origin)

    async def abandoned(self, grant: Grant, *, holder: str) -> None:
        """Nobody waits for this grant any more: its worker is for the next one."""
        key = (grant.namespace, grant.worker)
        try:
            await self.release(grant.checkout, holder=holder, worker=key)
        except TrimtabError as error:
            logger.warning("The abandoned %s is left to reapers: %s", grant, error)

    async def renew(
        self, holder: str, checkouts: Collection[str] | None = None
    ) -> None:
        """Show that a holder lives.

        Marks that a reaper made are cleared. Of the holder's checkouts those that it
        does not name, and that are older than the acquire budget, are released: their
        answer never reached it.

        Errors: what the API server said; then it must be renewed again.
        """
        await self._parts.holders.touch(holder, self._parts.clock())
        for row in self._parts.view.by_holder(holder):
            if row.worker.status.reaper:
                await self._unmark(row.worker)
            if checkouts is not None and self._is_unknown(row, checkouts):
                self._parts.background.start(self._return(row.worker, holder))

    async def _find(self, checkout: str, at: Key | None) -> Worker:
        known = self._parts.view.by_checkout(checkout)
        if known is not None:
            return known
        if at is not None:
            try:
                found = await self._parts.client.get(Worker, at[1], namespace=at[0])
            except NotFound:
                found = None
            if found is not None:
                self._parts.view.saw(found, self._parts.clock())
                return found
        raise NotYours(f"The checkout {checkout} is over, or unknown.")

    async def _cleaned(self, worker: Worker, checkout: str) -> bool:
        parts = self._parts
        try:
            target = await parts.keyring.target(worker)
            await parts.calls.clean(
                target, epoch=worker.status.epoch, checkout=checkout
            )
        except CallFailed as error:
            logger.warning("%s is ended, it was not cleaned: %s", worker, error)
            return False
        return True

    def _outlived(self, worker: Worker) -> bool:
        """Whether nobody should get it again."""
        pool = self._parts.pools.get(pool_of(worker))
        if pool is None or worker.status.state is State.DRAINING:
            return True
        ttl = ttl_of(pool.spec, worker.status.tenant, worker.status.ttl)
        return ttl == 0 or self._parts.outdated(pool, worker)

    async def _park(self, worker: Worker, checkout: str, origin: Origin) -> None:
        parts = self._parts
        become = partial(transitions.park, checkout=checkout, at=parts.now())
        try:
            parked = await parts.rows.step(
                worker, become, operation=Operation.PARK, origin=origin
            )
        except Impossible:
            await self._settled(worker, checkout)
            return
        parts.background.start(self._left(worker))
        if parked.status.state is State.DRAINING:
            await self._retirer.finish(parked, origin=origin)
        self._parked(pool_of(worker))

    async def _end(
        self, worker: Worker, checkout: str, reason: Reason, origin: Origin
    ) -> None:
        def become(row: Worker) -> WorkerStatus:
            if not carries(row, checkout):
                raise Impossible(f"{row} does not carry {checkout} any more.")
            if row.status.state is State.DRAINING:
                return transitions.give_up(row)
            return transitions.drain(row, reason=reason)

        try:
            drained = await self._parts.rows.step(
                worker, become, operation=Operation.DRAIN, origin=origin
            )
        except Impossible:
            await self._settled(worker, checkout)
            return
        self._parts.background.start(self._left(worker))
        await self._retirer.finish(drained, origin=origin)

    async def _settled(self, worker: Worker, checkout: str) -> None:
        """Somebody was faster: it is well if the checkout is over."""
        row = self._parts.view.get(worker.key)
        if row is not None and carries(row.worker, checkout):
            raise NotYours(
                f"The checkout {checkout} cannot be released while its worker is "
                f"{row.worker.status.state.value}; try again."
            )
        await self._left(worker)

    async def _left(self, before: Worker) -> None:
        try:
            await self._retirer.left(before)
        except TrimtabError as error:
            logger.warning("A ledger keeps an entry for reapers: %s", error)

    async def _unmark(self, worker: Worker) -> None:
        try:
            await self._parts.rows.step(
                worker,
                transitions.unmark,
                operation=Operation.UNMARK,
                origin=Origin.RELEASE,
            )
        except (Impossible, Stale) as error:
            logger.debug("There was nothing to unmark: %s", error)

    def _is_unknown(self, row: Row, checkouts: Collection[str]) -> bool:
        held, pool = (
            row.worker.status.checkout,
            self._parts.pools.get(pool_of(row.worker)),
        )
        if held is None or pool is None or held.id in checkouts:
            return False
        old = self._parts.clock() - row.entered > pool.spec.budgets.acquire
        return old and row.worker.status.state in TAKEN - {State.ACTIVATING}

    async def _return(self, worker: Worker, holder: str) -> None:
        held = worker.status.checkout
        assert held is not None
        try:
            await self.release(held.id, holder=holder, origin=Origin.REAPER)
        except TrimtabError as error:
            logger.warning("%s has a checkout that nobody knows: %s", worker, error)
