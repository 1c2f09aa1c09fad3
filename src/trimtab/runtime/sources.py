"""Sources: what a change of an object brings into a controller's queue.

One subscriber for each kind that a controller reconciles, owns or watches. They run in
the task that reads the watch, for every event, so they decide by the fewest comparisons
and leave the work to the workers.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

from trimtab.api.resource import Resource
from trimtab.cache import Change, Index, Key, Predicate
from trimtab.runtime.definitions import By, Definition, Source
from trimtab.runtime.queue import Priority
from trimtab.runtime.reconcile import Cause, Why
from trimtab.runtime.tracing import tracer
from trimtab.runtime.wishes import FIELD, asks
from trimtab.runtime.workqueue import WorkQueue
from trimtab.runtime.writing import Writer

INITIAL = int(Priority.INITIAL)
FIRST_LIST = Cause("initial")
TRACER = tracer("trimtab.runtime")

logger = logging.getLogger("trimtab.runtime")


class Chosen:
    """Which objects of a controller's kind are ever reconciled, by its ``when``.

    An index keeps the answer, so that it is known of objects of which only the key is
    kept. Where ``when`` fails there may be something to do, and the log says so.
    """

    __slots__ = ("_definition", "_warned", "index")

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._warned = False
        self.index = Index(f"when:{definition.name}", self._values)

    def __call__(self, obj: Any) -> bool:
        """Whether there may be anything to do for an object."""
        definition = self._definition
        if definition.when is None:
            return True
        if definition.finalizer and obj.metadata.deletionTimestamp is not None:
            return True  # the cleanup is due, whatever else is
        try:
            return definition.when(obj)
        except Exception:
            if not self._warned:
                self._warned = True
                logger.exception("Whether %s matters cannot be decided.", obj)
            return True

    def among(self, writer: Writer, key: Key) -> bool:
        """The same of an object that is known by its key."""
        if self._definition.when is None:
            return True
        return bool(writer.store.values_of(key, self.index.name))

    def _values(self, obj: Any) -> tuple[str, ...]:
        return ("yes",) if self(obj) else ()


class Subscriber(ABC):
    """What the three kinds of source have in common."""

    __slots__ = (
        "_chosen",
        "_predicate",
        "_queue",
        "_writer",
        "definition",
        "replaying",
        "source",
    )

    def __init__(
        self, definition: Definition, source: Source, queue: WorkQueue, writer: Writer
    ) -> None:
        self.definition = definition
        self.source = source
        self.replaying = True
        """While it is told of what was there already when the controller began."""
        self._queue = queue
        self._writer = writer
        self._chosen = Chosen(definition)
        self._predicate = (
            None
            if source.on_change is None
            else Predicate(source.kind, source.on_change)
        )

    @abstractmethod
    def __call__(self, change: Change[Any]) -> None:
        """Put into the queue whatever a change concerns."""

    def _fields(self, change: Change[Any]) -> tuple[str, ...] | None:
        """Which fields changed; None if nothing did that anybody here reads."""
        if self._predicate is not None and not self._predicate.matches(change):
            return None
        if change.type != "MODIFIED":
            return ()
        return change.differences() or None

    def _cause(
        self, why: Why, change: Change[Any], subject: str, fields: tuple[str, ...]
    ) -> Cause:
        if not TRACER.active:
            return Cause(why, subject, fields)
        about = {"object": "/".join(change.key), "fields": ", ".join(fields)}
        name = f"{change.type} {self.source.kind.kind}"
        with TRACER.span(name, attributes=about) as span:
            return Cause(why, subject, fields, span.link)


class Primary(Subscriber):
    """The objects that are reconciled: a change brings the object itself."""

    def __call__(self, change: Change[Any]) -> None:
        key = change.key
        if change.type == "DELETED":
            self._queue.forget(key)
            self._writer.forget(self.source.kind, key)
        elif not self._is_chosen(change):
            return
        elif change.initial:
            self._queue.add(key, priority=INITIAL, cause=FIRST_LIST)
        elif (fields := self._fields(change)) is not None:
            cause = self._cause("change", change, "", fields)
            self._queue.add(key, cause=cause, wake=_wakes(change))
        elif self._predicate is not None and asks(change.old, change.new):
            cause = self._cause("change", change, "", (FIELD,))
            self._queue.add(key, cause=cause, wake=True)

    def _is_chosen(self, change: Change[Any]) -> bool:
        if change.new is not None:
            return self._chosen(change.new)
        return self._chosen.among(self._writer, change.key)


class Related(Subscriber):
    """Objects whose changes bring others: those concerned before, and those now."""

    __slots__ = ()
    why: ClassVar[Why]

    def __call__(self, change: Change[Any]) -> None:
        if change.type == "DELETED":
            self._writer.forget(self.source.kind, change.key)
        if self.replaying:
            return  # whom it concerns is replayed as well
        fields = self._fields(change)
        if fields is None:
            return
        subject = change.new or change.old
        cause = self._cause(self.why, change, str(subject), fields)
        for key in {
            key
            for each in (change.old, change.new)
            if each is not None
            for key in self._concerned(each)
        }:
            if self._chosen.among(self._writer, key):
                self._queue.add(key, cause=cause)

    @abstractmethod
    def _concerned(self, obj: Resource) -> Iterable[Key]:
        """The keys of the objects that this one matters to."""


class Children(Related):
    """What the controller owns: a change brings the owner."""

    __slots__ = ()
    why = "owned"

    def _concerned(self, obj: Resource) -> Iterable[Key]:
        info = self.definition.kind.__resource__
        namespace = obj.metadata.namespace if info.namespaced else ""
        for each in obj.metadata.ownerReferences:
            group = each.apiVersion.rpartition("/")[0]
            if each.kind == info.kind and group == info.group:
                yield namespace, each.name


class Others(Related):
    """What the controller watches: a change brings the objects that ``to`` names."""

    __slots__ = ()
    why = "watched"

    def _concerned(self, obj: Resource) -> Iterable[Key]:
        if self.source.to is None:
            return
        if isinstance(self.source.to, By):
            for value in self.source.to.values(obj):
                yield from self._writer.store.keys_by(self.source.to.index, value)
            return
        namespaced = self.definition.kind.__resource__.namespaced
        for each in self.source.to(obj):
            if isinstance(each, str):
                yield (obj.metadata.namespace if namespaced else "", each)
            else:
                yield each


def _wakes(change: Change[Any]) -> bool:
    """Whether somebody asked for something new: a reason to try a failing object."""
    old, new = change.old, change.new
    return old is None or (
        new is not None
        and (old.metadata.generation != new.metadata.generation or asks(old, new))
    )
