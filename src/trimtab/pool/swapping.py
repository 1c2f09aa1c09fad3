"""Swapping: the one way to write a worker's row, a compare-and-swap.

A write names the uid and the revision it was decided on, so of several writers one
wins. If its answer is lost, the row is read again: what carries exactly what was
written is ours. If the row is as it was, it is fenced, so that the write cannot come to
pass any more; and then, or if it carries anything else, we are :class:`Stale`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from trimtab.api import wire
from trimtab.client import Ambiguous, Client, Conflict, NotFound, TrimtabError
from trimtab.pool import transitions
from trimtab.pool.kinds import Worker, WorkerStatus
from trimtab.pool.states import Operation, Origin, Outcome

STEP_TRIES: Final = 8
SETTLE_TRIES: Final = 4

Count = Callable[[Operation, Outcome, Origin], None]


class Stale(TrimtabError):
    """Somebody else wrote first, or the row is gone; nothing was written by us.

    ``row`` is what is there now, where that is known.
    """

    def __init__(self, message: str, *, row: Worker | None = None) -> None:
        super().__init__(message)
        self.row = row


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
        self._client = client
        self._saw = saw
        self._gone = gone
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
        try:
            written, outcome = await self._write(worker, status)
        except Stale:
            self._count(operation, Outcome.STALE, origin)
            raise
        except TrimtabError:
            self._count(operation, Outcome.FAILED, origin)
            raise
        self._count(operation, outcome, origin)
        self._saw(written)
        return written

    async def _write(
        self, worker: Worker, status: WorkerStatus
    ) -> tuple[Worker, Outcome]:
        try:
            return await self._patch(worker, status), Outcome.WRITTEN
        except Conflict:
            raise Stale(f"{worker} was written by somebody else first.") from None
        except NotFound:
            self._gone(worker)
            raise Stale(f"{worker} is gone.") from None
        except Ambiguous:
            return await self._settle(worker, status), Outcome.RECOVERED

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
        for _ in range(STEP_TRIES):
            try:
                return await self.swap(
                    worker, make(worker), operation=operation, origin=origin
                )
            except Stale as stale:
                worker = stale.row or await self.read(worker)
        raise Stale(f"{worker} was written by others {STEP_TRIES} times in a row.")

    async def read(self, worker: Worker) -> Worker:
        """The row as it is now. Errors: :class:`Stale` if it is gone."""
        namespace, name = worker.key
        try:
            found = await self._client.get(Worker, name, namespace=namespace)
        except NotFound:
            self._gone(worker)
            raise Stale(f"{worker} is gone.") from None
        if found.metadata.uid != worker.metadata.uid:
            self._gone(worker)
            raise Stale(f"{worker} is another one now.") from None
        self._saw(found)
        return found

    async def _patch(self, worker: Worker, status: WorkerStatus) -> Worker:
        metadata = worker.metadata
        body = {
            "metadata": {
                "uid": metadata.uid,
                "resourceVersion": metadata.resourceVersion,
            },
            "status": changes(worker.status, status),
        }
        return await self._client.patch(
            Worker,
            metadata.name,
            body,
            namespace=metadata.namespace,
            subresource="status",
        )

    async def _settle(self, worker: Worker, status: WorkerStatus) -> Worker:
        """Find out whether a write happened whose answer was lost.

        Where the row is as it was, the write may still be on its way: then the row is
        fenced, and either that write fails from now on, or it was faster.

        Errors: :class:`Stale` if it did not happen, and never will.
        """
        for _ in range(SETTLE_TRIES):
            found = await self.read(worker)
            # On the wire, where times have no parts of seconds.
            if wire(found.status) == wire(status):
                return found
            if found.metadata.resourceVersion != worker.metadata.resourceVersion:
                raise Stale(f"{worker} carries another write.", row=found)
            with suppress(Conflict, Ambiguous):
                fenced = await self._patch(found, transitions.fence(found))
                self._saw(fenced)
                raise Stale(f"{worker} was not written.", row=fenced)
        raise Ambiguous(f"Nobody can tell what became of a write to {worker}.")


def changes(old: WorkerStatus, new: WorkerStatus) -> dict[str, Any]:
    """A merge patch from one status to another; what went away is null.

    A row that was never written gets all of it, so that people see its state.
    """
    before = wire(old) if old.owner else {}
    after = wire(new)
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    return changed | {key: None for key in before if key not in after}
