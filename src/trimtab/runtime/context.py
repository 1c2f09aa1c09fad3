"""The context: what a handler is given besides the object.

It reads from the caches that the controller declared, writes under the controller's
name, and ends with the reconcile: a handler that outlives its time, or its leadership,
holds a context in which every write raises.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from trimtab.api.conditions import Conditions, StatusWord
from trimtab.api.objects import Object
from trimtab.api.resource import Resource
from trimtab.cache import Informer
from trimtab.client import Client, TrimtabError
from trimtab.runtime import statuses
from trimtab.runtime.events import EventType
from trimtab.runtime.logs import Logger, bound
from trimtab.runtime.reconcile import Cause, Key, Result
from trimtab.runtime.writing import Writer

R = TypeVar("R", bound=Resource)

logger = logging.getLogger("trimtab.runtime")


class Ended(TrimtabError):
    """The reconcile is over; its context writes no more."""


class Context:
    """One reconcile's view of the world, and its way to change it."""

    __slots__ = (
        "_conditions",
        "_given",
        "_over",
        "_parent",
        "_writer",
        "causes",
        "failures",
        "writes",
    )

    def __init__(
        self,
        writer: Writer,
        parent: Resource,
        *,
        causes: Sequence[Cause],
        failures: int,
    ) -> None:
        self._writer = writer
        self._parent: Any = parent
        self._given: dict[str, dict[str, Any]] = {}
        self._conditions: Conditions | None = None
        self._over = ""
        self.causes = causes
        """Why this reconcile runs."""
        self.failures = failures
        """How many reconciles of this object failed in a row before it."""
        self.writes = 0
        """What was sent so far."""

    @property
    def log(self) -> Logger:
        """A logger that knows the object."""
        name = self._writer.definition.name
        return bound(logger, controller=name, object=self._parent)

    @property
    def client(self) -> Client:
        """The shared client, for reads of what is not watched."""
        return self._writer.client

    @property
    def now(self) -> datetime:
        """The time for people; never compare it with another host's."""
        return self._writer.now()

    def get(
        self, kind: type[R], name: str, *, namespace: str | None = None
    ) -> R | None:
        """One object of a kind that this controller watches; own writes are seen."""
        return self._informer(kind).store.get((self._namespace(kind, namespace), name))

    def children(self, kind: type[R]) -> list[R]:
        """The objects of an owned kind that belong to this one."""
        return self._informer(kind).store.children(self._parent.metadata.uid)

    def select(self, kind: type[R], index: str, value: str) -> list[R]:
        """The objects of a watched kind that an index of it finds."""
        return self._informer(kind).store.by(index, value)

    def keys(self, kind: type[Resource], index: str, value: str) -> list[Key]:
        """The keys that an index finds, also those of objects kept as no more."""
        return self._informer(kind).store.keys_by(index, value)

    def values_of(self, kind: type[Resource], key: Key, index: str) -> tuple[str, ...]:
        """What an index finds an object by, whatever is kept of it."""
        return self._informer(kind).store.values_of(key, index)

    async def apply(self, obj: R) -> R:
        """Make ``obj`` so: create it, or change the fields that it mentions.

        Flow: it gets the namespace of the object that is reconciled, the operator's
        label, and a reference to its owner, unless it names them itself. It is sent as
        a server-side apply under this controller's field manager, which takes fields
        over from others.

        Guarantees: what was there and is not mentioned stays. Nothing is sent if this
        very intent was applied last and the object is still what that made of it.

        Errors: :class:`Conflict` in a leader's work if the object changed since it was
        read; the reconcile runs again soon.
        """
        self._check()
        answer, sent = await self._writer.apply(obj, parent=self._parent)
        return self._wrote(answer, sent)

    async def swap(self, obj: R) -> R:
        """Apply ``obj`` only if it is still at its ``metadata.resourceVersion``.

        Errors: :class:`Conflict` if somebody has written, deleted or remade it since.
        """
        self._check()
        revision = obj.metadata.resourceVersion
        if not revision:
            raise ValueError(
                f"{obj} has no resourceVersion to compare with; start from the object "
                "that was read."
            )
        answer, sent = await self._writer.apply(
            obj, parent=self._parent, revision=revision
        )
        return self._wrote(answer, sent)

    async def delete(self, obj: Resource) -> None:
        """Delete this very object (by uid); nothing happens if it is gone already."""
        self._check()
        self.writes += await self._writer.delete(obj)

    def status(self, status: Object) -> None:
        """State status fields; they are written with the rest when the handler ends.

        A whole status states every field of the controller. A partial
        (``Kind.status_of("node")(…)``) states its owner's that it was given.
        """
        self._check()
        owner = statuses.owner_of_status(status)
        given = statuses.stated(status, self._parent)
        given.pop(statuses.CONDITIONS, None)
        self._given[owner] = {**self._given.get(owner, {}), **given}
        before = statuses.conditions_or_none(self._parent)
        if before is not None:
            self._restate(statuses.restated(status, before), before)

    def _restate(self, said: Conditions, before: Conditions) -> None:
        """Conditions that came with a status: those that say something new."""
        if said:
            held = {**(self._conditions or before), **said}
            self._conditions = Conditions(held.values())
            self._writer.state(said)

    def condition(
        self,
        type: str,
        status: bool | StatusWord | None,
        *,
        reason: str,
        message: str = "",
    ) -> None:
        """State a condition of the object; written with the status, one of each type.

        ``lastTransitionTime`` changes only with the status, and ``observedGeneration``
        is that of the object which the handler was given.
        """
        self._check()
        before = self._conditions
        if before is None:
            before = statuses.conditions_of(self._parent)
        self._conditions = before.set(
            type,
            status,
            reason=reason,
            message=message,
            now=self.now,
            observed_generation=self._parent.metadata.generation or None,
        )
        self._writer.state((type,))

    def event(self, reason: str, message: str, *, type: EventType = "Normal") -> None:
        """Tell people what happened (``kubectl describe``); never fails, may be cut."""
        self._check()
        self._writer.recorder.event(self._parent, type, reason, message)

    def done(
        self, *, status: Object | None = None, after: float | None = None
    ) -> Result:
        """The result of a reconcile that went well, with the status to write."""
        return Result(after=after, status=status)

    async def flush(self) -> None:
        """Write what was stated so far; the runtime does it when the handler ends."""
        self._check()
        given, self._given = self._given, {}
        said, self._conditions = self._conditions, None
        stater = ""
        if said is not None:
            stater = statuses.owner_of_conditions(self._parent)
            given.setdefault(stater, {})
            if statuses.conditions_of(self._parent).had_duplicates:
                self._parent = await self._writer.collapse(self._parent)
                self.writes += 1
        for owner, fields in given.items():
            await self._state(owner, fields, said if owner == stater else None)

    async def _state(
        self, owner: str, fields: Mapping[str, Any], said: Conditions | None
    ) -> None:
        self._parent, sent = await self._writer.status(
            self._parent, owner=owner, given=fields, said=said
        )
        self.writes += sent

    @property
    def parent(self) -> Any:
        """The object that is reconciled, as the last write left it."""
        return self._parent

    @property
    def pending(self) -> bool:
        """Whether something was stated that is not written yet."""
        return bool(self._given) or self._conditions is not None

    def adopt(self, obj: R) -> R:
        """Go on from what a write of the runtime's own made of the object."""
        self._parent = obj
        self.writes += 1
        return obj

    def end(self, why: str) -> None:
        """Nothing is written through this context any more."""
        self._over = why

    def _wrote(self, answer: R, sent: bool) -> R:
        self.writes += sent
        if isinstance(answer, type(self._parent)) and answer.key == self._parent.key:
            self._parent = answer
        return answer

    def _check(self) -> None:
        if self._over:
            raise Ended(
                f"{self._parent}: nothing can be written through this context any "
                f"more: {self._over}."
            )

    def _namespace(self, kind: type[Resource], given: str | None) -> str:
        if not kind.__resource__.namespaced:
            return ""
        place: str = self._parent.metadata.namespace
        return place if given is None else given

    def _informer(self, kind: type[R]) -> Informer[R]:
        informer = self._writer.informers.get(kind)
        if informer is None:
            name = self._writer.definition.name
            raise LookupError(
                f"{name} watches no {kind.__name__}; declare it with owns= or watches=,"
                f" or read it from the server with ctx.client.get({kind.__name__}, …)."
            )
        return informer
