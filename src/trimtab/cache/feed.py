"""Feeds: one list and the watch that follows it, for ever, into a living store.

A feed lists a kind (in one namespace or in all), then watches from the revision of the
list. Whatever ends the watch, the feed goes on: from the last revision if it can, with
a new list if the server has forgotten that revision. A list lands in the store beside
what is there, page by page; only at its end is what it did not have taken out.

An object that cannot be read as its class does not stop the others. It is named in the
log, and the store keeps its last readable state until a readable one or its deletion
comes; if there was none, the store does not have it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import Enum
from random import Random
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from trimtab.api.resource import Resource
from trimtab.cache.ahead import ahead
from trimtab.cache.changes import Change
from trimtab.cache.options import FeedOptions, Way
from trimtab.cache.order import Order
from trimtab.cache.store import Relist, Store
from trimtab.cache.trouble import Troubles, is_refusal
from trimtab.cache.unreadable import Unreadable, at_revision, read
from trimtab.client import Bookmark, Client, Listing, Watch
from trimtab.client.errors import (
    Disconnected,
    Gone,
    Malformed,
    NotFound,
    Stalled,
    TrimtabError,
)
from trimtab.client.rooms import Room

R = TypeVar("R", bound=Resource)
Publish: TypeAlias = Callable[[Change[R]], None]

FIRST_PAGE = 200
SMALLEST_PAGE, LARGEST_PAGE = 20, 2000
# A stream of what is there ends with a bookmark. A server that does not know of it
# sends everything and then nothing; this is how long nothing may last.
END_WITHIN = 15.0
# A watch that is open for so long counts as one, also if there was nothing to say.
STEADY = 1.0

logger = logging.getLogger("trimtab.cache")


class State(Enum):
    """Where a feed is in its life."""

    IDLE = "idle"
    """Not running: not yet, or no longer."""
    LISTING = "listing"
    """Objects go into the store; what the list lacks is still in it."""
    WATCHING = "watching"
    """The store has all up to the last revision; events follow it."""
    WAITING = "waiting"
    """Something failed; a pause lasts before the next try."""


class Feed(Generic[R]):
    """Keeps a store as the server is, for one kind in one namespace or in all.

    Flow: ``run()`` lists and watches until it is cancelled. Each change is handed to
    ``publish`` once the store has it. ``listed`` is called with the namespace when the
    first list is in the store.
    Guarantees: an object that the server has all the time is never reported deleted;
    one that it no longer has is reported deleted once, with its last known state;
    events that come twice or late change nothing. Never more than one page is held.
    Errors: none leave ``run()``; :meth:`problem` tells of the present one.
    """

    def __init__(
        self,
        client: Client,
        store: Store[R],
        *,
        publish: Publish[R],
        listed: Callable[[str | None], None],
        random: Random,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        options: FeedOptions | None = None,
    ) -> None:
        self.namespace = namespace
        self.state = State.IDLE
        self.synced = False
        """True when the first list is in the store, and from then on."""
        self.lists = self.watches = self.errors = 0
        self.heard: float | None = None
        """When the server last said something, by the loop's clock."""
        self._client = client
        self._store = store
        self._publish = publish
        self._listed_first = listed
        self._options = options or FeedOptions()
        self._troubles = Troubles(self._options, random)
        self._selected: dict[str, Any] = {
            "namespace": namespace,
            "labels": labels or None,
            "fields": fields or None,
        }
        self._way: Way = self._options.way
        self._page = FIRST_PAGE
        self._raw = store.needs_raw
        """Whether objects are read one by one here, not by the client all at once."""
        self._opened = 0.0
        """When the present watch was answered."""
        self._revision = ""
        """The store has everything up to this; empty when a list is needed."""
        self._known = ""
        """The newest revision that was ever seen."""
        self._rewound = False
        """Whether the server went back in time, so that older is newer."""
        self._order = Order()
        self._missing = 0
        """How often in a row the server said that it has no such kind."""

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self._store.kind.__resource__}{where}"

    async def run(self) -> None:
        """List and watch until cancelled."""
        try:
            while True:
                pause = 0.0
                try:
                    await self._once()
                except Exception as error:
                    pause = self._failed(error)
                self.state = State.WAITING
                await asyncio.sleep(pause)
        finally:
            self.state = State.IDLE

    def problem(self, now: float) -> str | None:
        """Why the store may be behind, in one sentence; None while it follows."""
        text = self._troubles.problem(now, steady=self._is_steady(now))
        return text and f"The cache of {self} does not follow the server: {text}"

    async def _once(self) -> None:
        """One round: a list if one is needed, and the watch after it, to its end."""
        if self._revision:
            await self._follow(self._watch(resource_version=self._revision))
        elif self._way == "stream":
            await self._stream()
        else:
            await self._list()

    # Lists

    async def _list(self) -> None:
        """Read all pages into the store; the next round watches from there."""
        self.state = State.LISTING
        listing = self._client.list(
            self._store.kind, page=self._page, raw=self._raw, **self._selected
        )
        listing.page = self._page
        first = await self._fetched(listing)
        relist = self._begin(listing.resource_version)
        try:
            await self._take_pages(relist, listing, first)
            self._listed(relist, listing.resource_version)
        finally:
            relist.abandon()  # nothing, once it is finished

    async def _take_pages(
        self, relist: Relist[R], listing: Listing[Any], page: Room
    ) -> None:
        """Take in every page, while the server makes the one after it."""
        while listing.more:
            async with ahead(self._fetched(listing)) as following:
                self._take_page(relist, listing.read(page))
                del page
            page = following.result()
        self._take_page(relist, listing.read(page))

    async def _fetched(self, listing: Listing[Any]) -> Room:
        """The next page; those after it shall be about as long as is asked for."""
        asked = listing.page
        page = await listing.fetch()
        self.heard = asyncio.get_running_loop().time()
        if listing.more:  # so it has as many objects as were asked for
            fitting = self._options.page_bytes * asked // len(page)
            self._page = min(max(fitting, SMALLEST_PAGE), LARGEST_PAGE)
            listing.page = self._page
        return page

    def _begin(self, revision: str = "") -> Relist[R]:
        """Have the store ready for a list, which may be older than what it has."""
        # A restored backup: what the store knows is of a future that never came.
        rewound = self._rewound or self._order.is_older(revision, than=self._known)
        return self._store.begin(self.namespace, rewound=rewound)

    def _take_page(self, relist: Relist[R], items: list[Any]) -> None:
        items.reverse()  # so that pop() takes the first, and lets go of it
        while items:
            self._list_one(relist, items.pop())

    def _list_one(self, relist: Relist[R], item: Any) -> None:
        if not self._raw:
            change = relist.put(item)
        elif isinstance(found := self._read(item), Unreadable):
            relist.keep(found.key)
            return
        else:
            change = relist.put(found, raw=bytes(item))
        if change is not None:
            self._publish(change)

    def _listed(self, relist: Relist[R], revision: str) -> None:
        for change in relist.finish():
            self._publish(change)
        self.lists += 1
        self._missing, self._rewound = 0, False
        self._revision = self._known = revision
        self._order.restart(revision)
        self._store.observed(revision, self.namespace)
        if not self.synced:
            self.synced = True
            self._listed_first(self.namespace)

    async def _stream(self) -> None:
        """Read what is there as the beginning of a watch, and go on with that watch."""
        self.state = State.LISTING
        relist = self._begin()
        watch = self._watch(initial_events=True)
        try:
            async with watch:
                rest = await self._stream_in(relist, watch)
                await self._events(watch, rest)
        finally:
            relist.abandon()

    async def _stream_in(self, relist: Relist[R], watch: Watch[Any]) -> list[Any]:
        """Up to the bookmark at the end; returns the events that came behind it."""
        while batch := await self._soon(watch):
            self.heard = asyncio.get_running_loop().time()
            for place, event in enumerate(batch):
                if not isinstance(event, Bookmark):
                    self._list_one(relist, event.object)
                elif event.initial_events_end:
                    self._listed(relist, event.resource_version)
                    return batch[place + 1 :]
            del batch
        raise Disconnected(
            f"{self}: the watch ended before all that is there had been sent."
        )

    async def _soon(self, watch: Watch[Any]) -> list[Any]:
        """The next events of a stream whose end is due."""
        try:
            async with asyncio.timeout(END_WITHIN):
                return await watch.batch()
        except TimeoutError as error:
            raise Stalled(
                f"{self}: the server sent what is there, or nothing, and no end of it "
                f"within {END_WITHIN:.3g} s."
            ) from error

    # Watches

    def _watch(self, **more: Any) -> Watch[Any]:
        self.watches += 1
        return self._client.watch(
            self._store.kind,
            raw=self._raw,
            idle=self._options.idle,
            **self._selected,
            **more,
        )

    async def _follow(self, watch: Watch[Any]) -> None:
        async with watch:
            await self._events(watch, [])

    async def _events(self, watch: Watch[Any], batch: list[Any]) -> None:
        """Take events until the server ends the watch."""
        clock = asyncio.get_running_loop().time
        self.state, self._opened = State.WATCHING, clock()
        heard = self.heard
        if batch:
            self._take_batch(batch)
        await watch.deliver(self._hear)
        if heard == self.heard and not self._is_steady(clock()):
            raise Disconnected(f"{self}: the server ended the watch at once.")

    def _hear(self, batch: list[Any]) -> None:
        self._heard()
        self._take_batch(batch)

    def _is_steady(self, now: float) -> bool:
        """Whether a watch has been open for long enough to call it one."""
        return self.state is State.WATCHING and now - self._opened >= STEADY

    def _take_batch(self, batch: list[Any]) -> None:
        for event in batch:
            if isinstance(event, Bookmark):
                self._mark(event.resource_version)
            elif self._raw:
                self._take_raw(event.type, event.object)
            else:
                self._take(event.type, event.object)
        self._store.observed(self._revision, self.namespace)

    def _take(self, kind: str, obj: R, *, raw: bytes | None = None) -> None:
        """Put one event into the store, unless the store is past it."""
        judgement = self._order.judge(kind, obj.metadata)
        if judgement == "old":
            return
        if kind == "DELETED":
            change = self._store.remove(obj)
        elif judgement == "late":
            change = self._take_late(obj, raw)
        else:
            change = self._store.put(obj, raw=raw)
        self._advance(obj.metadata.resourceVersion)
        if change is not None:
            self._publish(change)

    def _take_late(self, obj: R, raw: bytes | None) -> Change[R] | None:
        """Take an event that the watch seems to be past, as a list would have it.

        From a watch, the store takes no new object at a revision that was observed.
        """
        relist = self._store.begin(self.namespace)
        try:
            return relist.put(obj, raw=raw)
        finally:
            relist.abandon()

    def _take_raw(self, kind: str, item: msgspec.Raw) -> None:
        found = self._read(item)
        if not isinstance(found, Unreadable):
            self._take(kind, found, raw=bytes(item))
            return
        revision = found.metadata.resourceVersion
        old = self._store.get(found.key)
        if kind == "DELETED" and old is not None:
            self._take(kind, at_revision(old, revision))
        elif kind == "DELETED" and found.key in self._store:
            # Only its key is kept, so a list must tell that it is gone.
            raise Gone(f"{self}: {'/'.join(found.key)} was deleted.", status=410)
        elif revision:
            self._advance(revision)

    def _advance(self, revision: str) -> None:
        if not self._order.is_older(revision, than=self._revision):
            self._revision = self._known = revision

    def _mark(self, revision: str) -> None:
        if self._order.is_older(revision, than=self._revision):
            self._rewound = True
            raise Gone(f"{self}: the server is at an older revision.", status=410)
        self._revision = self._known = revision
        self._order.restart(revision)

    def _read(self, item: msgspec.Raw) -> R | Unreadable:
        found = read(self._store.kind, item, about=self)
        self.errors += isinstance(found, Unreadable)
        return found

    # Failures

    def _heard(self) -> None:
        """The watch goes on: whatever was wrong is over. A list alone would not do."""
        self.heard = asyncio.get_running_loop().time()
        if self._troubles.over():
            logger.info("%s: following the server again.", self)

    def _failed(self, error: Exception) -> float:
        """Make sense of what ended a round; the seconds to wait before the next."""
        if not isinstance(error, TrimtabError):
            logger.error("%s: the feed failed; it starts again.", self, exc_info=error)
        self.errors += 1
        now = asyncio.get_running_loop().time()
        pause = self._troubles.add(error, now=now, steady=self._is_steady(now))
        first = logging.WARNING if isinstance(error, NotFound) else logging.INFO
        level = first if self._troubles.failures == 1 else logging.DEBUG
        logger.log(level, "%s: %s", self, error)
        self._turn(error)
        return pause

    def _turn(self, error: Exception) -> None:
        """Decide what the next round does differently, if anything."""
        listing = not self._revision
        if isinstance(error, NotFound):
            self._revision = ""
            self._missing += 1
            if self._missing > 1:  # once may be a server that is just starting
                self._empty()
        elif isinstance(error, Malformed) or not isinstance(error, TrimtabError):
            # One by one, the objects that can be read are; a list tells of the rest.
            self._raw, self._revision = True, ""
        elif isinstance(error, Stalled) and self._troubles.failures > 1:
            # Nothing since the last silence either: perhaps this revision never comes.
            self._revision = ""
        elif isinstance(error, Gone):
            self._revision = ""
            if listing:  # pages that take longer than the server's memory lasts
                self._way = "stream"
        elif listing and is_refusal(error, streaming=self._way == "stream"):
            self._way = "pages" if self._way == "stream" else "stream"

    def _empty(self) -> None:
        """The kind is gone, and all objects with it."""
        for change in self._store.begin(self.namespace).finish():
            self._publish(change)
