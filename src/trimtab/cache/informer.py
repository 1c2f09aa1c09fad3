"""Informers: a store that follows the server for one scope, and who wants to know.

An informer runs one feed for each namespace of its scope, or one for all of them. Where
the scope chooses namespaces by label, a small feed of the namespaces themselves starts
and stops the others. The scope can be replaced while it runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from trimtab.api.resource import Resource
from trimtab.cache.accounting import Accountant
from trimtab.cache.changes import Change
from trimtab.cache.feed import Feed
from trimtab.cache.indexes import Index
from trimtab.cache.keeping import Form, Keep
from trimtab.cache.options import FeedOptions
from trimtab.cache.scope import Scope
from trimtab.cache.store import Store
from trimtab.client import Client

R = TypeVar("R", bound=Resource)

logger = logging.getLogger("trimtab.cache")


class Place(Resource, version="v1", kind="Namespace", builtin=True, namespaced=False):
    """A namespace, of which only the name matters: the server minds its labels."""


class InformerStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What an informer holds and has done since it was made."""

    objects: int
    bytes: int
    """As accounted: an estimate from samples."""
    by_form: dict[Form, int]
    counted: dict[tuple[str, str], int]
    """How many objects an index finds by each value that it counts."""
    relists: int
    """Lists beyond the first of each feed."""
    watches: int
    """Watches that were asked for."""
    lag: float
    """Seconds since the feed that has been silent for longest heard something."""
    errors: int


class Selection(NamedTuple):
    """Which objects of its namespace a feed is for."""

    labels: str
    fields: str


class Running(NamedTuple):
    """A feed at work."""

    feed: Feed[Any]
    selection: Selection
    task: asyncio.Task[None]


class Informer(Generic[R]):
    """The objects of a kind that a scope names, kept as the server has them.

    Flow: ``run()`` in a task group; ``wait_synced()``; then read ``store``, and
    ``subscribe()`` to what changes.
    Guarantees: a subscriber sees each object ADDED before anything else of it, also one
    that comes late; changes of an object in order; DELETED once, also for what was
    deleted unseen or left the scope. A subscriber that raises is logged and goes on.
    When ``run()`` is cancelled nothing of it stays behind, and the store stays as it
    was.
    Assumptions: subscribers return soon; they run within the feed.
    """

    def __init__(
        self,
        client: Client,
        kind: type[R],
        scope: Scope,
        *,
        random: Random,
        indexes: Iterable[Index] = (),
        keep: Keep[R] | None = None,
        accountant: Accountant | None = None,
        options: FeedOptions | None = None,
    ) -> None:
        scope.check(kind)
        self.kind = kind
        self.scope = scope
        self.store = Store(kind, indexes=indexes, keep=keep, accountant=accountant)
        self._client = client
        self._random = random
        self._options = options or FeedOptions()
        self._subscribers: tuple[Callable[[Change[R]], None], ...] = ()
        self._feeds: dict[str | None, Running] = {}
        self._places: Store[Place] = Store(Place)
        """The namespaces that the scope's label selector chooses."""
        self._finder: Running | None = None
        """The feed of those."""
        self._planned = False
        """Whether the feeds are those that the scope asks for."""
        self._replan = asyncio.Event()
        self._unsynced: set[str | None] = set()
        """Feeds that have not read their first list."""
        self._synced = asyncio.Event()
        self._past = [0, 0, 0]
        """Relists, watches and errors of feeds that have ended."""

    def __str__(self) -> str:
        return str(self.kind.__resource__)

    # Readers

    @property
    def synced(self) -> bool:
        """Whether everything in scope has been in the store once.

        A namespace that comes into scope by its labels later does not change it.
        """
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def subscribe(self, call: Callable[[Change[R]], None]) -> Callable[[], None]:
        """Have ``call`` told of each change; first, of all that is there already.

        Returns what ends it.
        """

        def listener(change: Change[R]) -> None:
            call(change)

        self._subscribers += (listener,)
        for key in list(self.store.keys()):
            new = self.store.get(key)
            change = Change(type="ADDED", key=key, old=None, new=new, initial=True)
            self._tell(listener, change)

        def unsubscribe() -> None:
            kept = [each for each in self._subscribers if each is not listener]
            self._subscribers = tuple(kept)

        return unsubscribe

    def problem(self, now: float) -> str | None:
        """Why the store may be behind, in one sentence; None while it follows."""
        found = [text for feed in self._all() if (text := feed.problem(now))]
        if len(found) > 1:
            return f"{found[0]} ({len(found) - 1} other feeds have problems, too.)"
        return found[0] if found else None

    def statistics(self) -> InformerStatistics:
        feeds = self._all()
        held = self.store.statistics()
        relists, watches, errors = self._past
        return InformerStatistics(
            objects=held.objects,
            bytes=held.bytes,
            by_form=held.by_form,
            counted=held.counted,
            relists=relists + sum(max(0, each.lists - 1) for each in feeds),
            watches=watches + sum(each.watches for each in feeds),
            lag=self._lag(),
            errors=errors + sum(each.errors for each in feeds),
        )

    def _lag(self) -> float:
        times = [feed.heard for feed in self._all() if feed.heard is not None]
        if not times:
            return 0.0
        return max(0.0, asyncio.get_running_loop().time() - min(times))

    def _all(self) -> list[Feed[Any]]:
        feeds = [each.feed for each in self._feeds.values()]
        return feeds if self._finder is None else [self._finder.feed, *feeds]

    # Running

    def rescope(self, scope: Scope) -> None:
        """Follow another scope from now on.

        Guarantees: objects of both scopes stay as they are; those that are only in the
        old one are DELETED, those only in the new one ADDED. ``synced`` is False until
        the new scope has been listed.
        """
        scope.check(self.kind)
        if scope != self.scope:
            self.scope = scope
            self._synced.clear()
            self._plan_again()

    async def run(self) -> None:
        """Follow the server until cancelled."""
        self._plan_again()
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._replan.clear()
                    await self._adjust(group)
                    self._check_synced()
                    await self._replan.wait()
        finally:
            self._retire(*self._feeds.values())
            self._feeds.clear()
            self._finder = None

    def _plan_again(self) -> None:
        self._planned = False
        self._replan.set()

    async def _adjust(self, group: asyncio.TaskGroup) -> None:
        """Have exactly the feeds that the scope asks for."""
        await self._find_places(group)
        wanted = self._wanted()
        over = [
            name
            for name, each in self._feeds.items()
            if name not in wanted or each.selection != wanted[name]
        ]
        await self._stop(*(self._feeds.pop(name) for name in over))
        self._drop_outside(wanted)
        for name, selection in wanted.items():
            if name not in self._feeds:
                self._unsynced.add(name)
                self._feeds[name] = _start(
                    group, self._feed(name, selection), selection
                )
        self._unsynced &= wanted.keys()
        self._planned = not self._replan.is_set()

    async def _find_places(self, group: asyncio.TaskGroup) -> None:
        """Have a feed of namespaces if the scope chooses among them."""
        selection = Selection(self.scope.namespaces_where, "")
        if self._finder is not None and self._finder.selection != selection:
            finder, self._finder = self._finder, None
            await self._stop(finder)
        if selection.labels and self._finder is None:
            feed = Feed(
                self._client,
                self._places,
                publish=self._moved,
                listed=self._found,
                random=self._random,
                labels=selection.labels,
                options=self._options,
            )
            self._finder = _start(group, feed, selection)

    def _wanted(self) -> dict[str | None, Selection]:
        """What the scope asks for: by namespace, or None for all of them."""
        scope = self.scope
        selection = Selection(scope.labels, scope.fields)
        names: list[str | None] = [*scope.namespaces]
        if scope.namespaces_where:
            names += [place.metadata.name for place in self._places.values()]
        elif not names:
            names = [None]
        return dict.fromkeys(names, selection)

    def _drop_outside(self, wanted: dict[str | None, Selection]) -> None:
        if None in wanted:
            return
        held = {namespace for namespace, _ in list(self.store.keys())}
        for name in held - wanted.keys():
            for change in self.store.drop(name):
                self._publish(change)

    def _feed(self, namespace: str | None, selection: Selection) -> Feed[R]:
        return Feed(
            self._client,
            self.store,
            publish=self._publish,
            listed=self._listed,
            random=self._random,
            namespace=namespace,
            labels=selection.labels,
            fields=selection.fields,
            options=self._options,
        )

    async def _stop(self, *over: Running) -> None:
        for each in over:
            each.task.cancel()
        if over:
            await asyncio.wait([each.task for each in over])
        self._retire(*over)

    def _retire(self, *over: Running) -> None:
        for feed in (each.feed for each in over):
            counts = max(0, feed.lists - 1), feed.watches, feed.errors
            self._past = [a + b for a, b in zip(self._past, counts, strict=True)]

    # What feeds tell

    def _publish(self, change: Change[R]) -> None:
        if change.replaced is not None:
            self._publish(change.replaced)
        for call in self._subscribers:
            self._tell(call, change)

    def _tell(self, call: Callable[[Change[R]], None], change: Change[R]) -> None:
        try:
            call(change)
        except Exception:
            logger.exception(
                "%s %s: a subscriber failed; it is told of the next change all the "
                "same.",
                self.kind.__resource__.kind,
                "/".join(filter(None, change.key)),
            )

    def _moved(self, change: Change[Place]) -> None:
        """A namespace came into scope, or left it."""
        if change.type != "MODIFIED":
            self._plan_again()

    def _found(self, _: str | None) -> None:
        """All namespaces in scope are known for the first time."""
        self._plan_again()

    def _listed(self, namespace: str | None) -> None:
        self._unsynced.discard(namespace)
        self._check_synced()

    def _check_synced(self) -> None:
        known = self._finder is None or self._finder.feed.synced
        if self._planned and known and not self._unsynced:
            self._synced.set()


def _start(group: asyncio.TaskGroup, feed: Feed[Any], selection: Selection) -> Running:
    return Running(feed, selection, group.create_task(feed.run(), name=str(feed)))
