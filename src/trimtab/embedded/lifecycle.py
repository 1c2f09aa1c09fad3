"""Lifecycle: what the server does by itself, because of what was written.

Garbage follows its owner, a namespace takes its contents along, a CRD comes to be
served and takes its objects along, events grow old. Each change in the store may put
work on one queue; the server works it off in small steps, between requests. What is on
the queue can always be found again from the store: nothing is lost with the process.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice

import msgspec

from trimtab.embedded.catalog import Catalog
from trimtab.embedded.definitions import CLEANUP_FINALIZER, establish, is_true
from trimtab.embedded.deletion import FOREGROUND, ORPHAN, DeleteOptions, Preconditions
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.owners import Owners
from trimtab.embedded.registry import Registry
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Change, Mismatch, Row, Store
from trimtab.embedded.watching import resource_of

EVENT_SECONDS = 3600.0
NAMESPACES = "core/namespaces/"
CRDS = "apiextensions.k8s.io/customresourcedefinitions/"
EVENTS = ("core/events/", "events.k8s.io/events/")
BATCH = 100
# How many objects one step of the server's own work deletes.
SWEEP = 20


class _Reference(msgspec.Struct, gc=False):
    uid: str = ""
    blockOwnerDeletion: bool | None = None


class _Meta(msgspec.Struct, gc=False):
    name: str = ""
    uid: str = ""
    namespace: str = ""
    deletionTimestamp: str | None = None
    finalizers: list[str] | None = None
    ownerReferences: list[_Reference] | None = None


class _Head(msgspec.Struct, gc=False):
    metadata: _Meta


_head = msgspec.json.Decoder(_Head).decode


class Lifecycle:
    """The queue, and the few indexes that say what concerns whom."""

    def __init__(
        self,
        store: Store,
        *,
        catalog: Catalog,
        registry: Registry,
        now: Callable[[], float],
        furnish: Callable[[str], None],
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._registry = registry
        self._now = now
        self._furnish = furnish
        self._queue: deque[tuple[Callable[[str], None], str]] = deque()
        self._queued: set[tuple[str, str]] = set()
        self._sweeps: dict[str, Iterator[Row]] = {}
        self._owners = Owners()
        self._waiting: dict[str, str] = {}
        self._terminating: set[str] = set()
        self._dying: set[str] = set()
        self._ageing: list[tuple[float, str]] = []
        self._expires: dict[str, float] = {}

    def start(self) -> None:
        """Find in the store what there is to do, then follow its changes."""
        for row in self._store.range(CRDS):
            crd = msgspec.json.decode(row.value)
            if is_true(crd, "Established"):
                self._catalog.register(crd)
        for kind in list(self._catalog.stored_kinds()):
            for row in self._rows(kind.prefix):
                self._look(row.key, row.value)
        self._store.subscribe(self._seen)

    def step(self, limit: int = 20) -> bool:
        """Do some of what is due; True if there is more."""
        for _ in range(min(limit, len(self._queue))):
            work, key = self._queue.popleft()
            self._queued.discard((work.__name__, key))
            try:
                work(key)
            except ApiProblem:
                continue  # gone or changed in the meantime: its change queued it again
        self._expire()
        return bool(self._queue)

    def due_in(self) -> float | None:
        """Seconds until the next event expires; None if there is none."""
        if not self._ageing:
            return None
        return max(0.0, self._ageing[0][0] - self._now())

    def _rows(self, prefix: str) -> Iterator[Row]:
        after = ""
        while rows := self._store.range(prefix, after=after, limit=BATCH):
            yield from rows
            after = rows[-1].key

    def _later(self, work: Callable[[str], None], key: str) -> None:
        if (work.__name__, key) not in self._queued:
            self._queued.add((work.__name__, key))
            self._queue.append((work, key))

    def _seen(self, change: Change) -> None:
        if change.value is not None:
            self._look(change.key, change.value)
        else:
            self._gone(change.key, change.previous or b"{}")

    def _look(self, key: str, value: bytes) -> None:
        """An object is there: what does that mean for others?"""
        meta = _head(value).metadata
        resource = resource_of(key)
        references = meta.ownerReferences or ()
        self._name(
            key, ((each.uid, bool(each.blockOwnerDeletion)) for each in references)
        )
        if references:
            self._later(self._collect, key)
        if meta.deletionTimestamp:
            if FOREGROUND in (meta.finalizers or ()) and meta.uid not in self._waiting:
                self._waiting[meta.uid] = key
                self._later(self._foreground, key)
            if ORPHAN in (meta.finalizers or ()):
                self._later(self._orphan, key)
        if resource == NAMESPACES:
            self._later(self._namespace, key)
        elif resource == CRDS:
            self._later(self._definition, key)
        elif resource in EVENTS:
            self._age(key)

    def _gone(self, key: str, value: bytes) -> None:
        """An object is gone: who was waiting for that?"""
        meta = _head(value).metadata
        self._name(key, ())
        self._waiting.pop(meta.uid, None)
        for dependent in self._owners.dependents(meta.uid):
            self._later(self._collect, dependent)
        if meta.namespace in self._terminating:
            self._later(self._namespace, NAMESPACES + meta.namespace)
        resource = resource_of(key)
        if resource == NAMESPACES:
            self._terminating.discard(key.removeprefix(NAMESPACES))
        elif resource == CRDS:
            self._catalog.forget(key.removeprefix(CRDS))
            self._dying.discard(key.removeprefix(CRDS))
        else:
            self._defined(resource)

    def _defined(self, resource: str) -> None:
        """The last object of a CRD that is being deleted may be gone."""
        group, plural, _ = resource.split("/")
        if f"{plural}.{group}" in self._dying:
            self._later(self._definition, f"{CRDS}{plural}.{group}")

    def _name(self, key: str, references: Iterable[tuple[str, bool]]) -> None:
        """Keep the index of owners; one that waited for this object may be free."""
        for uid in self._owners.name(key, references):
            if uid in self._waiting and not self._owners.is_blocked(uid):
                self._later(self._foreground, self._waiting[uid])

    def _object(self, key: str) -> tuple[Kind, Plain] | None:
        row = self._store.get(key)
        kind = self._catalog.by_prefix(key)
        if row is None or kind is None:
            return None
        return kind, kind.decode(row.value)

    def _collect(self, key: str) -> None:
        """Garbage collection: an object whose owners are all gone goes too."""
        found = self._object(key)
        if found is None:
            return
        kind, obj = found
        meta = metadata_of(obj)
        owners = meta.get("ownerReferences") or []
        states = [self._owner_state(meta, owner) for owner in owners]
        if "unknown" in states:
            return
        if not owners or "solid" in states:
            if "absent" in states:
                kept = [o for o, s in zip(owners, states, strict=True) if s != "absent"]
                self._registry.amend(kind, key, _set_owners(kept))
            return
        if meta.get("deletionTimestamp") and "waiting" not in states:
            return
        policy = "Background"
        if "waiting" in states and self._owners.has_dependents(meta["uid"]):
            policy = "Foreground"
        self._delete(kind, msgspec.convert(meta, _Meta), policy)

    def _owner_state(self, meta: Plain, owner: Plain) -> str:
        """Whether an owner is there (solid), goes after this (waiting) or absent.

        It is unknown, and so nobody's to judge, if we do not serve its kind, or if it
        would be in a namespace and the dependent is in none.
        """
        kind = self._catalog.by_kind(owner.get("apiVersion", ""), owner.get("kind", ""))
        namespace = meta.get("namespace", "")
        if kind is None or (kind.namespaced and not namespace):
            return "unknown"
        row = self._store.get(kind.key(namespace, owner["name"]))
        if row is None:
            return "absent"
        found = _head(row.value).metadata
        if found.uid != owner.get("uid"):
            return "absent"
        dying = found.deletionTimestamp and FOREGROUND in (found.finalizers or ())
        return "waiting" if dying else "solid"

    def _delete(self, kind: Kind, meta: _Meta, policy: str) -> None:
        options = DeleteOptions(
            propagationPolicy=policy, preconditions=Preconditions(uid=meta.uid)
        )
        self._registry.delete(kind, meta.namespace, meta.name, options)

    def _foreground(self, key: str) -> None:
        """An object that goes after its dependents: start them, or let it go."""
        found = self._object(key)
        if found is None:
            return
        kind, obj = found
        uid = metadata_of(obj)["uid"]
        if not self._owners.is_blocked(uid):
            self._registry.amend(kind, key, _drop_finalizer(FOREGROUND))
            return
        for dependent in self._owners.dependents(uid):
            self._later(self._collect, dependent)

    def _orphan(self, key: str) -> None:
        """An object that leaves its dependents behind: unhook them, then let it go."""
        found = self._object(key)
        if found is None:
            return
        kind, obj = found
        uid = metadata_of(obj)["uid"]
        for dependent in self._owners.dependents(uid):
            held = self._object(dependent)
            if held is None:
                continue
            owners = metadata_of(held[1]).get("ownerReferences") or ()
            kept = [each for each in owners if each.get("uid") != uid]
            self._registry.amend(held[0], dependent, _set_owners(kept))
        self._registry.amend(kind, key, _drop_finalizer(ORPHAN))

    def _namespace(self, key: str) -> None:
        """Furnish a namespace that is new; empty one that is being deleted."""
        found = self._object(key)
        if found is None:
            return
        kind, obj = found
        name = metadata_of(obj)["name"]
        if not metadata_of(obj).get("deletionTimestamp"):
            self._furnish(name)
            return
        if name not in self._terminating:
            self._terminating.add(name)
            self._sweep_later(key, [each.within(name) for each in self._namespaced()])
        if key in self._sweeps or not self._is_empty(name):
            return

        def finished(obj: Plain) -> None:
            obj["spec"] = {}

        self._registry.amend(kind, key, finished)

    def _namespaced(self) -> Iterator[Kind]:
        return (each for each in self._catalog.stored_kinds() if each.namespaced)

    def _is_empty(self, namespace: str) -> bool:
        return not any(
            self._store.range(kind.within(namespace), limit=1)
            for kind in self._namespaced()
        )

    def _sweep_later(self, key: str, prefixes: Iterable[str]) -> None:
        """Have everything under some prefixes deleted, for a namespace or a CRD.

        Nothing is added to it meanwhile: admission sees to that.
        """
        self._sweeps[key] = (row for prefix in prefixes for row in self._rows(prefix))
        self._later(self._sweep, key)

    def _sweep(self, key: str) -> None:
        """Delete a few of those objects; at the end look again at whose they were."""
        rows = list(islice(self._sweeps[key], SWEEP))
        for row in rows:
            kind = self._catalog.by_prefix(row.key)
            meta = _head(row.value).metadata
            with suppress(ApiProblem, Mismatch):  # it may be gone since it was read
                if kind is None:  # a CRD without a version that is served
                    self._store.delete(row.key)
                elif not meta.deletionTimestamp:
                    self._delete(kind, meta, "Background")
        if len(rows) == SWEEP:
            self._later(self._sweep, key)
            return
        del self._sweeps[key]
        work = self._namespace if key.startswith(NAMESPACES) else self._definition
        self._later(work, key)

    def _definition(self, key: str) -> None:
        """Serve what a CRD describes; delete its objects before it goes."""
        found = self._object(key)
        if found is None:
            return
        kind, crd = found
        name = metadata_of(crd)["name"]
        if not metadata_of(crd).get("deletionTimestamp"):
            others = [
                each.crd
                for each in self._catalog.custom_kinds()
                if metadata_of(each.crd)["name"] != name
            ]
            self._registry.amend(
                kind,
                key,
                lambda crd: establish(crd, others, now=self._registry.stamps.time()),
            )
            row = self._store.get(key)
            assert row is not None, "an amended CRD that is not deleted stays"
            crd = kind.decode(row.value)
            if is_true(crd, "Established"):
                self._catalog.register(crd)
            return
        prefix = f"{crd['spec']['group']}/{crd['spec']['names']['plural']}/"
        if name not in self._dying:
            self._dying.add(name)
            if self._catalog.of_crd(name):
                self._catalog.register(crd)
            self._sweep_later(key, [prefix])
        if key not in self._sweeps and not self._store.range(prefix, limit=1):
            self._registry.amend(kind, key, _drop_finalizer(CLEANUP_FINALIZER))

    def _age(self, key: str) -> None:
        """An event lives for an hour after its last change."""
        if key not in self._expires:
            heapq.heappush(self._ageing, (self._now() + EVENT_SECONDS, key))
        self._expires[key] = self._now() + EVENT_SECONDS

    def _expire(self) -> None:
        while self._ageing and self._ageing[0][0] <= self._now():
            _, key = heapq.heappop(self._ageing)
            due = self._expires[key]
            if due > self._now():
                heapq.heappush(self._ageing, (due, key))
                continue
            del self._expires[key]
            if self._store.get(key) is not None:
                self._store.delete(key)


def _set_owners(kept: list[Plain]) -> Callable[[Plain], None]:
    def change(obj: Plain) -> None:
        meta = metadata_of(obj)
        if kept:
            meta["ownerReferences"] = kept
        else:
            meta.pop("ownerReferences", None)

    return change


def _drop_finalizer(name: str) -> Callable[[Plain], None]:
    def change(obj: Plain) -> None:
        meta = metadata_of(obj)
        left = [each for each in meta.get("finalizers") or () if each != name]
        if left:
            meta["finalizers"] = left
        else:
            meta.pop("finalizers", None)

    return change
