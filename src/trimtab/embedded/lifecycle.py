"""The lifecycle: what becomes of objects whose owner, namespace or CRD comes or goes.

Garbage follows its owner, a namespace takes its contents along, a CRD comes to be
served and takes its objects along, events grow old. Each change in the store may put
work on a queue; the server works it off in small steps, between requests. What is on
the queue can always be found again from the store: nothing is lost with the process.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice

import msgspec

from trimtab.embedded.calls import Calls, Pending
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.definitions import CLEANUP_FINALIZER, establish, is_true
from trimtab.embedded.deletion import DeleteOptions, Preconditions
from trimtab.embedded.errands import SETTLED, Errands, account
from trimtab.embedded.garbage import Garbage, drop_finalizer, head
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.registry import Registry
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Change, Mismatch, Row, Store
from trimtab.embedded.terminating import report
from trimtab.embedded.watching import resource_of

EVENT_SECONDS = 3600.0
NAMESPACES = "core/namespaces/"
PODS = "core/pods/"
CRDS = "apiextensions.k8s.io/customresourcedefinitions/"
EVENTS = ("core/events/", "events.k8s.io/events/")
EVICTOR = account("namespace-controller")
BACKGROUND = DeleteOptions(propagationPolicy="Background")
SILENCE = 8.0
"""Seconds after which a namespace that waits says anew what for."""
BATCH = 100
# How many objects one step of the server's own work deletes.
SWEEP = 20


class Lifecycle:
    """The queue, and the few indexes that say what concerns whom."""

    def __init__(
        self,
        store: Store,
        *,
        catalog: Catalog,
        registry: Registry,
        calls: Calls,
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
        self._errands = Errands(calls, now=now)
        self._garbage = Garbage(
            store, catalog=catalog, registry=registry, errands=self._errands
        )
        self._terminating: set[str] = set()
        self._emptying: set[str] = set()
        self._kept: dict[str, None] = {}
        """Namespaces that may have to say why they are still there."""
        self._silent: dict[str, float] = {}
        """Until when those say nothing that have said it lately."""
        self._failures: dict[str, dict[str, str]] = {}
        """Of namespaces, why objects of some kinds could not be deleted."""
        self._dying: set[str] = set()
        self._ageing: list[tuple[float, str]] = []
        self._expires: dict[str, float] = {}

    def start(self) -> None:
        """Find in the store what there is to do, then follow its changes."""
        for row in self._store.range(CRDS):
            crd = msgspec.json.decode(row.value)
            if is_true(crd, "Established"):
                self._catalog.register(crd, revision=self._store.revision)
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
        more = self._errands.step(limit)
        self._expire()
        if not self._queue and self._errands.is_idle:
            self._report()
        return more or bool(self._queue)

    def take_pending(self) -> Collection[Pending]:
        """What others have to be asked before some of it can be done."""
        return self._errands.take_pending()

    def due_in(self) -> float | None:
        """Seconds until something is due by itself; None if nothing is."""
        found = [self._silent.get(name, 0.0) for name in self._kept]
        if self._ageing:
            found.append(self._ageing[0][0])
        waits = [max(0.0, each - self._now()) for each in found]
        retry = self._errands.due_in()
        return min(waits if retry is None else [*waits, retry], default=None)

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
        self._garbage.seen(key, head(value).metadata)
        resource = resource_of(key)
        if resource == NAMESPACES:
            self._later(self._namespace, key)
        elif resource == CRDS:
            self._later(self._definition, key)
        elif resource in EVENTS:
            self._age(key)

    def _gone(self, key: str, value: bytes) -> None:
        """An object is gone: who was waiting for that?"""
        meta = head(value).metadata
        self._garbage.gone(key, meta)
        if meta.namespace in self._terminating:
            self._later(self._namespace, NAMESPACES + meta.namespace)
        resource = resource_of(key)
        if resource == NAMESPACES:
            self._terminating.discard(key.removeprefix(NAMESPACES))
            self._emptying.discard(key.removeprefix(NAMESPACES))
            for told in (self._kept, self._silent, self._failures):
                told.pop(key.removeprefix(NAMESPACES), None)
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

    def _namespace(self, key: str) -> None:
        """Furnish a namespace that is new; empty one that is being deleted."""
        found = self._garbage.object(key)
        if found is None:
            return
        kind, obj = found
        name = metadata_of(obj)["name"]
        if not metadata_of(obj).get("deletionTimestamp"):
            self._furnish(name)
            return
        if key not in self._sweeps and self._is_emptied(key, name):
            self._registry.amend(kind, key, self._told(name))
            self._registry.amend(kind, key, _finish)
        else:
            self._kept[name] = None

    def _report(self) -> None:
        """Have namespaces say what they wait for, now that nothing is under way."""
        kind = self._catalog.find("", "v1", "namespaces")
        assert kind is not None, "it is built in"
        now = self._now()
        for name in [n for n in self._kept if self._silent.get(n, 0.0) <= now]:
            del self._kept[name]
            self._silent[name] = now + SILENCE
            self._registry.amend(kind, NAMESPACES + name, self._told(name))

    def _told(self, name: str) -> Callable[[Plain], None]:
        """What a namespace says of what is left in it: not of Pods that end, nor of
        what it says that it could not be deleted."""
        remaining, finalizers = Counter[str](), Counter[str]()
        failures = self._failures.get(name, {})
        for kind in self._namespaced() if name in self._emptying else ():
            rows = () if kind.prefix in failures else self._rows(kind.within(name))
            for row in rows:
                remaining[f"{kind.plural}.{kind.group}"] += 1
                finalizers.update(head(row.value).metadata.finalizers or ())
        return partial(
            report,
            remaining=remaining,
            finalizers=finalizers,
            failures=failures.values(),
            now=self._registry.stamps.time(),
        )

    def _is_emptied(self, key: str, name: str) -> bool:
        """Whether a namespace has nothing left; if not, see to it that it goes.

        Pods go first: what they use stays until they have ended.
        """
        pods = f"{PODS}{name}/"
        if name not in self._terminating:
            self._terminating.add(name)
            if self._store.range(pods, limit=1):
                self._sweep_later(key, [pods])
                return False
        if self._store.range(pods, limit=1):
            return False
        if name not in self._emptying:
            self._emptying.add(name)
            self._sweep_later(key, [each.within(name) for each in self._namespaced()])
            return False
        return self._is_empty(name)

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
            if key.startswith(NAMESPACES):
                self._errands.add(self._evict, row.key)
            else:
                self._drop(row)
        if len(rows) == SWEEP:
            self._later(self._sweep, key)
            return
        del self._sweeps[key]
        work = self._namespace if key.startswith(NAMESPACES) else self._definition
        self._later(work, key)

    def _evict(self, key: str) -> None:
        """Delete an object because its namespace goes."""
        found = self._garbage.object(key)
        if found is None or metadata_of(found[1]).get("deletionTimestamp"):
            return
        kind, meta = found[0], metadata_of(found[1])
        namespace = meta["namespace"]
        failures = self._failures.setdefault(namespace, {})
        try:
            self._garbage.delete(
                EVICTOR, kind, namespace, meta["name"], BACKGROUND, one=False
            )
            failures.pop(kind.prefix, None)
        except ApiProblem as problem:
            if problem.reason not in SETTLED:
                failures[kind.prefix] = problem.message
                self._kept[namespace] = None
            raise

    def _drop(self, row: Row) -> None:
        """Delete an object because its kind goes, which nobody is asked about."""
        kind = self._catalog.by_prefix(row.key)
        meta = head(row.value).metadata
        with suppress(ApiProblem, Mismatch):  # it may be gone since it was read
            if kind is None:  # a CRD without a version that is served
                self._store.delete(row.key)
            elif not meta.deletionTimestamp:
                wanted = Preconditions(uid=meta.uid)
                options = msgspec.structs.replace(BACKGROUND, preconditions=wanted)
                self._registry.delete(kind, meta.namespace, meta.name, options)

    def _definition(self, key: str) -> None:
        """Serve what a CRD describes; delete its objects before it goes."""
        found = self._garbage.object(key)
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
                self._catalog.register(crd, revision=self._store.revision)
            return
        prefix = f"{crd['spec']['group']}/{crd['spec']['names']['plural']}/"
        if name not in self._dying:
            self._dying.add(name)
            if self._catalog.of_crd(name):
                self._catalog.register(crd, revision=self._store.revision)
            self._sweep_later(key, [prefix])
        if key not in self._sweeps and not self._store.range(prefix, limit=1):
            self._registry.amend(kind, key, drop_finalizer(CLEANUP_FINALIZER))

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


def _finish(namespace: Plain) -> None:
    """Take away what keeps a namespace that is empty."""
    namespace["spec"] = {}
