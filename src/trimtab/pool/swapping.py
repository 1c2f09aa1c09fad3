"""Swapping: the one way to write a worker's row, a compare-and-swap.

How it is done is in :mod:`trimtab.runtime.swapping`; here it is said of what, and each
write is counted by what it was for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimtab.api import wire
from trimtab.client import Client
from trimtab.pool import transitions
from trimtab.pool.kinds import Worker, WorkerStatus
from trimtab.pool.states import Operation, Origin, Outcome
from trimtab.runtime import swapping
from trimtab.runtime.swapping import Part, Swaps
from trimtab.runtime.swapping import Stale as Stale

Count = Callable[[Operation, Outcome, Origin], None]


class Rows:
    """Reads and writes rows, and tells of each one that it saw.

    Flow: a function of :mod:`trimtab.pool.transitions` makes a status of a worker;
    ``swap`` writes it, and answers with the worker as it is then.
    """

    def __init__(
        self,
        client: Client,
        *,
        saw: Callable[[Worker], None],
        gone: Callable[[Worker], None],
        count: Count,
    ) -> None:
        self._swaps = Swaps(client, STATUS, saw=saw, gone=gone)
        self._count = count

    async def swap(
        self,
        worker: Worker,
        status: WorkerStatus,
        *,
        operation: Operation,
        origin: Origin,
    ) -> Worker:
        """Write a status in place of the one that ``worker`` has.

        Guarantees: one write, and one more where its answer is lost. When it returns,
        the row was, at that revision, what ``worker`` is with ``status``. Every attempt
        is counted.

        Errors: :class:`Stale` when the row was not as ``worker`` any more. Any other
        error means that nobody knows: the row must be read before it is used.
        """
        count = self._counting(operation, origin)
        return await self._swaps.swap(worker, status, count=count)

    async def step(
        self,
        worker: Worker,
        make: Callable[[Worker], WorkerStatus],
        *,
        operation: Operation,
        origin: Origin,
    ) -> Worker:
        """Take a step that is ours to take whoever else writes the row: a mark, say.

        Where the row was written meanwhile, ``make`` is asked again, of the row as it
        is now, and raises ``Impossible`` if the step is not ours any more.

        Errors: as those of :meth:`swap`, and those of ``make``.
        """
        count = self._counting(operation, origin)
        return await self._swaps.step(worker, make, count=count)

    async def read(self, worker: Worker) -> Worker:
        """The row as it is now. Errors: :class:`Stale` if it is gone."""
        return await self._swaps.read(worker)

    def _counting(
        self, operation: Operation, origin: Origin
    ) -> Callable[[swapping.Outcome], None]:
        return lambda outcome: self._count(operation, Outcome(outcome), origin)


def changes(old: WorkerStatus, new: WorkerStatus) -> dict[str, Any]:
    """A merge patch from one status to another; what went away is null.

    A row that was never written gets all of it, so that people see its state.
    """
    return swapping.difference(wire(old) if old.owner else {}, wire(new))


STATUS = Part(
    Worker,
    value=lambda worker: worker.status,
    patch=lambda worker, status: changes(worker.status, status),
    fence=transitions.fence,
)
