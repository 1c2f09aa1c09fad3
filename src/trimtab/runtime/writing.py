"""Writing: how a controller's applies, statuses and deletes reach the server.

Every write goes by server-side apply under the controller's own field manager, is
skipped if it would change nothing, and is seen at once by the caches that it was read
from. A leader's write carries the revision that it was decided on: the server refuses
it if somebody else, a newer leader perhaps, has written since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from trimtab.api import codec
from trimtab.api.conditions import Conditions
from trimtab.api.objects import wire
from trimtab.api.owners import owners
from trimtab.api.resource import Metadata, Resource, owner_of
from trimtab.cache import Informer, Key, Store
from trimtab.client import Client, NotFound
from trimtab.runtime import statuses
from trimtab.runtime.definitions import OPERATOR_LABEL, Definition
from trimtab.runtime.events import Recorder
from trimtab.runtime.ledger import Ledger, Place, carries, digest_of
from trimtab.runtime.metrics import ControllerMetrics
from trimtab.runtime.tracing import tracer

R = TypeVar("R", bound=Resource)
TRACER = tracer("trimtab.runtime")


class Writer:
    """What all reconciles of one controller write with."""

    def __init__(
        self,
        definition: Definition,
        *,
        client: Client,
        informers: Mapping[type[Resource], Informer[Any]],
        recorder: Recorder,
        metrics: ControllerMetrics,
        now: Callable[[], datetime],
        fenced: bool,
    ) -> None:
        self.definition = definition
        self.client = client
        self.informers = informers
        self.recorder = recorder
        self.now = now
        self.fenced = fenced
        self.ledger = Ledger(self._has)
        self._metrics = metrics
        self._types: set[str] = set()
        """The conditions that this controller states, of whichever object."""
        self._foreign: set[str] = set()
        """Those that it found and does not state."""

    @property
    def store(self) -> Store[Any]:
        """The objects that are reconciled, as the watch has them."""
        return self.informers[self.definition.kind].store

    def current(self, kind: type[R], key: Key) -> R | None:
        """The object as the cache has it, own writes included; None if not watched."""
        informer = self.informers.get(kind)
        return None if informer is None else informer.store.get(key)

    async def apply(
        self, obj: R, *, parent: Resource, revision: str | None = None
    ) -> tuple[R, bool]:
        """Make an object what ``obj`` says; the object then, and whether it was sent.

        With ``revision`` it is a compare-and-swap.
        """
        wanted = self._completed(obj, parent)
        kind, key = type(obj), wanted.key
        digest = digest_of(codec.encode(_without_status(wanted)))
        current = self.current(kind, key)
        place = (kind, key, "")
        if (
            revision is None
            and current is not None
            and self.ledger.stands(place, digest, current)
            and carries(current.metadata, wanted.metadata)
        ):
            self._metrics.wrote("apply", skipped=True)
            return current, False
        pinned = revision or (
            current.metadata.resourceVersion if self.fenced and current else ""
        )
        sent = _pinned(wanted, pinned, current.metadata.uid if current else "")
        with TRACER.span(f"apply {wanted}" if TRACER.active else ""):
            answer = await self.client.apply(
                sent, manager=self.definition.manager, force=True
            )
        self._metrics.wrote("apply", skipped=False)
        self._saw(answer)
        self._record(place, digest, answer)
        return answer, True

    async def status(
        self,
        current: R,
        *,
        owner: str,
        given: Mapping[str, Any],
        said: Conditions | None,
    ) -> tuple[R, bool]:
        """Write what one owner states of an object's status, if it is not there yet."""
        held = statuses.conditions_or_none(current)
        if held and owner == statuses.owner_of_conditions(current):
            await self._learn(current, held, self._manager(owner))
        whole = statuses.intent(
            given,
            owner=owner,
            current=current,
            conditions=held if said is None else said,
            types=self._types,
        )
        place = (type(current), current.key, _part(owner))
        digest = digest_of(codec.encode(statuses.meaning(whole)))
        if self.ledger.same(place, digest, current) and statuses.shows(current, whole):
            self._metrics.wrote("status", skipped=True)
            return current, False
        with TRACER.span(f"status of {current}" if TRACER.active else ""):
            answer = await self.client.apply_status(
                type(current),
                current.metadata.name,
                whole,
                namespace=current.metadata.namespace or None,
                manager=self._manager(owner),
                resource_version=current.metadata.resourceVersion,
                force=True,
            )
        self._metrics.wrote("status", skipped=False)
        self._saw(answer)
        self._record(place, digest, answer)
        return answer, True

    async def _learn(self, current: Resource, held: Conditions, manager: str) -> None:
        """Find out whose the conditions are that nobody has stated in this process.

        An apply that left out one of this controller's, stated before a restart, would
        remove it. The server knows; it is asked once for each type.
        """
        unknown = set(held) - self._types - self._foreign
        if not unknown:
            return
        found = await self.client.get(
            current.__resource__,
            current.metadata.name,
            namespace=current.metadata.namespace or None,
        )
        entries = found["metadata"].get("managedFields", ())
        ours = statuses.managed_types(entries, manager)
        self._types |= unknown & ours
        self._foreign |= unknown - ours

    async def collapse(self, current: R) -> R:
        """Write a list of conditions without the duplicates that somebody left."""
        conditions = statuses.conditions_of(current)
        body = {
            "metadata": {"resourceVersion": current.metadata.resourceVersion},
            "status": {statuses.CONDITIONS: conditions.__encode__()},
        }
        answer = await self._patch(current, body, how="merge", subresource="status")
        self._metrics.wrote("status", skipped=False)
        return answer

    async def delete(self, obj: Resource) -> bool:
        """Delete this very object; False if it is gone or going already."""
        if obj.metadata.deletionTimestamp is not None:
            return False
        pinned = obj.metadata.resourceVersion if self.fenced else None
        try:
            answer = await self.client.delete(
                type(obj),
                obj.metadata.name,
                namespace=obj.metadata.namespace or None,
                uid=obj.metadata.uid or None,
                resource_version=pinned,
                propagation="Background",
            )
        except NotFound:
            return False
        self._metrics.wrote("delete", skipped=False)
        self._gone(obj, answer)
        return True

    async def finalizers(self, obj: R, wanted: Iterable[str]) -> R:
        """Put exactly these finalizers on an object, if it has not changed since."""
        body = {
            "metadata": {
                "resourceVersion": obj.metadata.resourceVersion,
                "uid": obj.metadata.uid,
                "finalizers": list(wanted),
            }
        }
        answer = await self._patch(obj, body, how="merge")
        self._metrics.wrote("apply", skipped=False)
        return answer

    def state(self, types: Iterable[str]) -> None:
        """Remember which conditions this controller states."""
        self._types.update(types)
        self._foreign.difference_update(types)

    def forget(self, kind: type[Resource], key: Key) -> None:
        """An object is gone; nothing about it is kept."""
        parts = [""]
        if kind is self.definition.kind and hasattr(kind, "status"):
            parts += [_part(owner) for owner in _owners(kind)]
        self.ledger.forget(kind, key, *parts)

    async def _patch(self, obj: R, body: Any, **options: Any) -> R:
        answer: R = await self.client.patch(
            type(obj),
            obj.metadata.name,
            body,
            namespace=obj.metadata.namespace or None,
            manager=self.definition.manager,
            **options,
        )
        self._saw(answer)
        return answer

    def _saw(self, answer: Resource) -> None:
        informer = self.informers.get(type(answer))
        if informer is not None:
            informer.store.written(answer)

    def _record(self, place: Place, digest: int, answer: Resource) -> None:
        """Remember an apply, until the watch says that the object is gone.

        If it has said so already, before the answer came, nobody would forget it.
        """
        if self._has(type(answer), answer.key):
            self.ledger.record(place, digest, answer)

    def _has(self, kind: type[Resource], key: Key) -> bool:
        informer = self.informers.get(kind)
        return informer is not None and key in informer.store

    def _gone(self, obj: Resource, answer: Mapping[str, Any]) -> None:
        informer = self.informers.get(type(obj))
        if informer is None:
            return
        if answer.get("kind") == obj.kind and _lingers(answer["metadata"]):
            informer.store.written(codec.convert(type(obj), answer))
        else:
            informer.store.deleted(
                obj.key,
                obj.metadata.uid,
                # The DELETED event is often here before the answer is, and none comes
                # after it; with a revision the tombstone goes all the same.
                resource_version=obj.metadata.resourceVersion,
            )

    def _manager(self, owner: str) -> str:
        manager = self.definition.manager
        return f"{manager}.{owner}" if owner else manager

    def _completed(self, obj: R, parent: Resource) -> R:
        """The object with what makes it ours: its place, our label, its owner."""
        metadata = obj.metadata
        info = obj.__resource__
        namespace = metadata.namespace or (
            parent.metadata.namespace if info.namespaced else ""
        )
        if isinstance(obj, type(parent)) and (namespace, metadata.name) == parent.key:
            return _with(obj, metadata, namespace=namespace)
        changes: dict[str, Any] = {
            "namespace": namespace,
            "labels": {**metadata.labels, OPERATOR_LABEL: self.definition.operator},
        }
        within = parent.metadata.namespace in ("", namespace)
        if within and not any(each.controller for each in metadata.ownerReferences):
            changes["ownerReferences"] = [*metadata.ownerReferences, owner_of(parent)]
        return _with(obj, metadata, **changes)


def _owners(kind: type[Resource]) -> Iterable[str]:
    try:
        return owners(kind)
    except TypeError:
        return ()


def _lingers(metadata: Mapping[str, Any]) -> bool:
    """Whether an object that was deleted is still there, for a while or for somebody.

    A pod that no node has is gone at once, and is the answer all the same.
    """
    grace = metadata.get("deletionGracePeriodSeconds") or 0
    return bool(metadata.get("finalizers")) or grace > 0


def _part(owner: str) -> str:
    return f"status:{owner}"


def _with(obj: R, metadata: Metadata, **changes: Any) -> R:
    made = msgspec.structs.replace(metadata, **changes)
    return msgspec.structs.replace(obj, metadata=made)


def _pinned(obj: R, revision: str, uid: str) -> R:
    """The object as it must still be; with its uid, it is not made anew either."""
    if not revision:
        return _with(obj, obj.metadata, resourceVersion="", uid="")
    return _with(
        obj,
        obj.metadata,
        resourceVersion=revision,
        uid=obj.metadata.uid or uid,
    )


def _without_status(obj: Resource) -> dict[str, Any]:
    plain = wire(obj)
    plain.pop("status", None)
    for name in ("resourceVersion", "uid"):
        plain.get("metadata", {}).pop(name, None)
    return plain
