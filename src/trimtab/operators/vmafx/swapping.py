"""Writing a job's run: a compare-and-swap, and what to do when its answer is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimtab.api import wire
from trimtab.client import Ambiguous, Client, Conflict, NotFound, TrimtabError
from trimtab.operators.vmafx.kinds import Run, VmafxJob

_TRIES = 8


class Stale(TrimtabError):
    """Somebody else wrote first, or the job is gone: nothing was written."""


class Runs:
    """Reads jobs and writes their runs, and tells of each one that it saw."""

    def __init__(self, client: Client, *, saw: Callable[[VmafxJob], None]) -> None:
        self._client = client
        self._saw = saw

    async def swap(self, job: VmafxJob, run: Run) -> VmafxJob:
        """Write a run in place of the one that the job was read with.

        Errors: :class:`Stale` when it is not as it was read. Any other error means that
        nobody knows: the job must be read before it is used.
        """
        metadata = job.metadata
        body = {
            "metadata": {
                "uid": metadata.uid,
                "resourceVersion": metadata.resourceVersion,
            },
            "status": {"run": difference(wire(job.status.run), wire(run))},
        }
        try:
            written = await self._client.patch(
                VmafxJob,
                metadata.name,
                body,
                namespace=metadata.namespace,
                subresource="status",
            )
        except (Conflict, NotFound):
            raise Stale(f"{job} was written by somebody else first.") from None
        except Ambiguous:
            written = await self.read(job)
            if written.status.run != run:
                raise Stale(f"{job} does not carry what was written to it.") from None
        self._saw(written)
        return written

    async def read(self, job: VmafxJob) -> VmafxJob:
        """The job as it is now. Errors: :class:`Stale` when it is gone."""
        namespace, name = job.key
        try:
            found = await self._client.get(VmafxJob, name, namespace=namespace)
        except NotFound:
            raise Stale(f"{job} is gone.") from None
        if found.metadata.uid != job.metadata.uid:
            raise Stale(f"{job} is another one now.")
        self._saw(found)
        return found

    async def step(
        self, job: VmafxJob, make: Callable[[VmafxJob], Run | None]
    ) -> VmafxJob:
        """Take a step whoever else writes the job meanwhile.

        ``make`` is asked again of the job as it is now whenever a write was late; None
        means that there is nothing left to write.

        Errors: :class:`Stale` when the job is gone; those of ``make``.
        """
        for _ in range(_TRIES):
            run = make(job)
            if run is None:
                return job
            try:
                return await self.swap(job, run)
            except Stale:
                job = await self.read(job)
        raise Stale(f"{job} was written by others {_TRIES} times in a row.")


def difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A merge patch that makes one out of the other; what went away is null."""
    made: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if value != before:
                made[key] = difference(before, value)
        elif value != before:
            made[key] = value
    return made
