"""Swapping: writing a part of an object's status as a compare-and-swap.

For whoever must win or lose a race for an object: a worker that is claimed, a job that
is given away. A write names the uid and the revision it was decided on, so of several
writers one wins. If its answer is lost, the object is read again: what carries exactly
what was written is ours. If it is as it was, it is fenced, so that the write cannot
come to pass any more; and then, or if it carries anything else, we are :class:`Stale`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from trimtab.api import Resource, wire
from trimtab.api.objects import Object
from trimtab.client import Ambiguous, Client, Conflict, NotFound, TrimtabError

STEP_TRIES: Final = 8
SETTLE_TRIES: Final = 4

R = TypeVar("R", bound=Resource)
V = TypeVar("V", bound=Object)

Outcome = Literal["written", "recovered", "stale", "failed"]
"""How a write went; ``recovered`` is one whose answer was lost."""


class Stale(TrimtabError):
    """Somebody else wrote first, or the object is gone; nothing was written by us.

    ``row`` is what is there now, where that is known.
    """

    def __init__(self, message: str, *, row: Any = None) -> None:
        super().__init__(message)
        self.row = row


class Part(msgspec.Struct, Generic[R, V], frozen=True):
    """The part of a status that is swapped: how it is read, written and fenced."""

    kind: type[R]
    value: Callable[[R], V]
    patch: Callable[[R, V], dict[str, Any]]
    """The merge patch of the status that puts a value in place of what it has."""
    fence: Callable[[R], V]
    """A value that differs from what it has, and means the same."""


def _nobody(_: object) -> None:
    """Nobody wants to know."""


class Swaps(Generic[R, V]):
    """Reads objects and swaps a part of them, and tells of each one that it saw.

    Flow: of an object as it was read, a pure function makes the value to write;
    ``swap`` writes it, and answers with the object as it is then.
    """

    def __init__(
        self,
        client: Client,
        part: Part[R, V],
        *,
        saw: Callable[[R], None],
        gone: Callable[[R], None] = _nobody,
    ) -> None:
        self._client = client
        self._part = part
        self._saw = saw
        self._gone = gone

    async def swap(
        self, held: R, value: V, *, count: Callable[[Outcome], None] = _nobody
    ) -> R:
        """Write a value in place of the one that ``held`` has.

        Guarantees: one write, and one more where its answer is lost. When it returns,
        the object was, at that revision, what ``held`` is with ``value``. Every attempt
        is counted once.

        Errors: :class:`Stale` when the object was not as ``held`` any more. Any other
        error means that nobody knows: the object must be read before it is used.
        """
        try:
            written, outcome = await self._write(held, value)
        except Stale:
            count("stale")
            raise
        except TrimtabError:
            count("failed")
            raise
        count(outcome)
        self._saw(written)
        return written

    async def step(
        self,
        held: R,
        make: Callable[[R], V | None],
        *,
        count: Callable[[Outcome], None] = _nobody,
    ) -> R:
        """Take a step that is ours to take whoever else writes the object.

        Where the object was written meanwhile, ``make`` is asked again, of the object
        as it is now; None means that there is nothing left to write.

        Errors: as those of :meth:`swap`, and those of ``make``.
        """
        for _ in range(STEP_TRIES):
            value = make(held)
            if value is None:
                return held
            try:
                return await self.swap(held, value, count=count)
            except Stale as stale:
                held = stale.row or await self.read(held)
        raise Stale(f"{held} was written by others {STEP_TRIES} times in a row.")

    async def read(self, held: R) -> R:
        """The object as it is now. Errors: :class:`Stale` if it is gone."""
        namespace, name = held.key
        try:
            found = await self._client.get(self._part.kind, name, namespace=namespace)
        except NotFound:
            self._gone(held)
            raise Stale(f"{held} is gone.") from None
        if found.metadata.uid != held.metadata.uid:
            self._gone(held)
            raise Stale(f"{held} is another one now.")
        self._saw(found)
        return found

    async def _write(self, held: R, value: V) -> tuple[R, Outcome]:
        try:
            return await self._patch(held, value), "written"
        except Conflict:
            raise Stale(f"{held} was written by somebody else first.") from None
        except NotFound:
            self._gone(held)
            raise Stale(f"{held} is gone.") from None
        except Ambiguous:
            return await self._settle(held, value), "recovered"

    async def _patch(self, held: R, value: V) -> R:
        metadata = held.metadata
        body = {
            "metadata": {
                "uid": metadata.uid,
                "resourceVersion": metadata.resourceVersion,
            },
            "status": self._part.patch(held, value),
        }
        return await self._client.patch(
            self._part.kind,
            metadata.name,
            body,
            namespace=metadata.namespace,
            subresource="status",
        )

    async def _settle(self, held: R, value: V) -> R:
        """Find out whether a write happened whose answer was lost.

        Where the object is as it was, the write may still be on its way: then it is
        fenced, and either that write fails from now on, or it was faster.

        Errors: :class:`Stale` if it did not happen, and never will.
        """
        part = self._part
        for _ in range(SETTLE_TRIES):
            found = await self.read(held)
            # On the wire, where times have no parts of seconds.
            if wire(part.value(found)) == wire(value):
                return found
            if found.metadata.resourceVersion != held.metadata.resourceVersion:
                raise Stale(f"{held} carries another write.", row=found)
            with suppress(Conflict, Ambiguous):
                fenced = await self._patch(found, part.fence(found))
                self._saw(fenced)
                raise Stale(f"{held} was not written.", row=fenced)
        raise Ambiguous(f"Nobody can tell what became of a write to {held}.")


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
