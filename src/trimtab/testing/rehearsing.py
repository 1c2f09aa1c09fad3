"""Rehearsing: one reconcile as a plain unit test, with no server at all.

``done = await rehearse(app, site, given=[deployment])`` calls the handler once, with
the real context, caches and client, on objects that are only in memory; ``done`` tells
what it applied, deleted, stated and said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any, TypeVar

import msgspec

from trimtab.api import codec
from trimtab.api.objects import wire
from trimtab.api.resource import Resource
from trimtab.cache import Informer, Scope, owner
from trimtab.client import Client, Config
from trimtab.client.budget import budget
from trimtab.client.credentials import Static, TlsMaterial
from trimtab.client.paths import path
from trimtab.runtime.context import Context
from trimtab.runtime.definitions import Definition
from trimtab.runtime.events import EventType, Recorder
from trimtab.runtime.handling import Handling
from trimtab.runtime.metrics import ControllerMetrics
from trimtab.runtime.operator import Operator
from trimtab.runtime.reconcile import Cause
from trimtab.runtime.threads import Threads
from trimtab.runtime.writing import Writer
from trimtab.testing.desk import Desk

R = TypeVar("R", bound=Resource)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NAMESPACE = "default"


class Said(msgspec.Struct, frozen=True):
    """An event that the handler told of."""

    type: str
    reason: str
    message: str


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """What one reconcile did."""

    object: Any
    """The object that was reconciled, as it is now: with its status, its finalizers."""
    applied: Sequence[Any]
    """What was applied, in that order, complete with owner and label."""
    deleted: Sequence[Any]
    events: Sequence[Said]
    after: float | None
    """When it wants to look again."""

    def one(self, kind: type[R]) -> R:
        """The only object of a kind that was applied."""
        found = [each for each in self.applied if isinstance(each, kind)]
        assert len(found) == 1, f"{len(found)} objects of {kind.__name__} were applied"
        return found[0]


async def rehearse(
    app: Operator,
    obj: Resource,
    *,
    given: Iterable[Resource] = (),
    controller: str = "",
    failures: int = 0,
    now: datetime = NOON,
) -> Rehearsal:
    """Reconcile an object once, as ``app`` would, without a server.

    Flow: ``given`` are the objects that are there besides: children (of an owned kind,
    with a reference to ``obj`` or with none at all) and whatever is watched or read.
    The handler is called as the runtime calls it: the finalizer is put on first, an
    object with a ``deletionTimestamp`` is cleaned up.

    Errors: whatever the handler raises; ``LookupError`` when no controller of ``app``
    reconciles such an object, or several do and ``controller`` does not choose.
    """
    definition = _chosen(app, obj, controller)
    stage = _Stage(definition, now)
    parent = stage.put(obj)
    owned = {source.kind for source in definition.owns}
    for each in given:
        stage.put(each, parent=parent if type(each) in owned else None)
    ctx = Context(stage.writer, parent, causes=(Cause("change"),), failures=failures)
    threads = Threads(1)
    handling = Handling(definition, writer=stage.writer, threads=threads)
    try:
        with budget(definition.budget):
            result = await handling.reconcile(parent, ctx)
    finally:
        threads.close()
        await stage.client.close()
    return Rehearsal(
        object=stage.read(parent) or ctx.parent,
        applied=stage.writer.applied,
        deleted=stage.writer.deleted,
        events=stage.recorder.said,
        after=result.after,
    )


def _chosen(app: Operator, obj: Resource, name: str) -> Definition:
    found = [
        each
        for each in app.controllers()
        if isinstance(obj, each.kind) and name in ("", each.name)
    ]
    if len(found) != 1:
        names = ", ".join(each.name for each in found) or "no controller"
        raise LookupError(
            f"{names} of {app.name} reconciles {obj}; choose one with controller=."
        )
    return found[0]


class _Recorder(Recorder):
    """Keeps events instead of writing them."""

    said: list[Said]

    def event(
        self,
        obj: Resource,
        type: EventType,
        reason: str,
        message: str,
        *,
        field: str = "",
    ) -> None:
        self.said.append(Said(type, reason, message))


class _Writer(Writer):
    """Remembers what was written."""

    applied: list[Any]
    deleted: list[Any]

    async def apply(
        self, obj: R, *, parent: Resource, revision: str | None = None
    ) -> tuple[R, bool]:
        answer, sent = await super().apply(obj, parent=parent, revision=revision)
        self.applied.append(answer)
        return answer, sent

    async def delete(self, obj: Resource) -> bool:
        self.deleted.append(obj)
        return await super().delete(obj)


class _Stage:
    """All that a context needs, around a desk."""

    def __init__(self, definition: Definition, now: datetime) -> None:
        self.desk = Desk()
        self.client = Client(
            Config(
                server="https://nowhere.invalid",
                tls=TlsMaterial(),
                credentials=Static(),
                namespace=NAMESPACE,
                proxy=None,
                impersonate=None,
                source="a rehearsal",
            ),
            transport=self.desk,
            random=Random(1),
        )
        self.informers: dict[type[Resource], Informer[Any]] = {
            each.kind: Informer(
                self.client,
                each.kind,
                Scope(everything=True),
                random=Random(1),
                indexes=[*each.indexes, owner()],
            )
            for each in definition.sources
        }
        self.recorder = _Recorder(
            self.client,
            component=definition.operator,
            instance="rehearsal",
            now=lambda: now,
            random=Random(1),
        )
        self.recorder.said = []
        self.writer = _Writer(
            definition,
            client=self.client,
            informers=self.informers,
            recorder=self.recorder,
            metrics=ControllerMetrics(definition.name),
            now=lambda: now,
            fenced=False,
        )
        self.writer.applied, self.writer.deleted = [], []

    def put(self, obj: R, *, parent: Resource | None = None) -> R:
        """Lay an object down, and have the caches know it."""
        plain = wire(obj)
        info = obj.__resource__
        # What only a server sets is not written, but may well be given.
        every: dict[str, Any] = msgspec.to_builtins(obj.metadata)
        metadata = {key: value for key, value in every.items() if value}
        plain["metadata"] = metadata
        if info.namespaced:
            metadata.setdefault("namespace", NAMESPACE)
        if parent is not None and not metadata.get("ownerReferences"):
            metadata["ownerReferences"] = [
                {
                    "apiVersion": parent.apiVersion,
                    "kind": parent.kind,
                    "name": parent.metadata.name,
                    "uid": parent.metadata.uid,
                }
            ]
        made = codec.convert(type(obj), self.desk.put(self._path(obj), plain))
        informer = self.informers.get(type(obj))
        if informer is not None:
            informer.store.put(made)
        return made

    def read(self, obj: R) -> R | None:
        """An object as it is now; None if it is gone."""
        plain = self.desk.objects.get(self._path(obj))
        return None if plain is None else codec.convert(type(obj), plain)

    def _path(self, obj: Resource) -> str:
        return path(
            obj.__resource__,
            namespace=obj.metadata.namespace or NAMESPACE,
            name=obj.metadata.name,
        )
