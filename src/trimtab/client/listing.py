"""Lists, read page by page: an async iterator that never holds more than one page."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

import msgspec

from trimtab.client import answers
from trimtab.client.calls import Calls
from trimtab.client.errors import Malformed
from trimtab.client.kinds import Kind, ListMeta, info_of, page_type, type_of
from trimtab.client.paths import path, query
from trimtab.client.rooms import Room
from trimtab.client.transport import Request

T = TypeVar("T")


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for: where, which, from which revision, in pages of what size."""

    namespace: str | None = None
    labels: str | None = None
    fields: str | None = None
    page: int = 500
    resource_version: str | None = None
    match: str | None = None
    raw: bool = False

    def request(self, kind: Kind, *, after: str = "") -> Request:
        """The request for the page that begins ``after`` a continue token."""
        fresh = not after  # a continue token carries the revision by itself
        return Request(
            method="GET",
            path=path(info_of(kind), namespace=self.namespace),
            query=query(
                (
                    ("labelSelector", self.labels),
                    ("fieldSelector", self.fields),
                    ("limit", self.page or None),
                    ("continue", after),
                    ("resourceVersion", self.resource_version if fresh else None),
                    ("resourceVersionMatch", self.match if fresh else None),
                )
            ),
        )


class Listing(Generic[T]):
    """The objects of a list, one by one; pages are fetched as they are needed.

    Guarantees: all pages are of one revision (``resource_version``, known after the
    first page); objects already handed out are not kept. With ``raw`` they come as the
    JSON that was sent, unread.
    Errors: :class:`Gone` if the revision was compacted between two pages: list again.
    """

    def __init__(
        self, calls: Calls, kind: Kind, asked: ListQuery, *, deadline: float | None
    ) -> None:
        self._calls = calls
        self._kind = kind
        self._asked = asked
        self._item = msgspec.Raw if asked.raw else type_of(kind)
        self._deadline = deadline
        self._items: list[T] = []
        self._rooms: list[Room] = []
        """Where pages were that have been read."""
        self._after = ""
        self._more = True
        self.page = asked.page
        """Objects to ask for in the next page."""
        self.page_bytes = 0
        """How long the last page was."""
        self.resource_version = ""
        """The revision of the whole list."""
        self.remaining: int | None = None
        """How many objects follow the last page read, if the server says so."""

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        while not self._items:
            if not self._more:
                raise StopAsyncIteration
            self._items = await self.next_page()
            self._items.reverse()  # so that pop() takes the first, and lets go of it
        return self._items.pop()

    async def pages(self) -> AsyncIterator[list[T]]:
        """The same objects, a page at a time."""
        while self._more:
            yield await self.next_page()

    @property
    def more(self) -> bool:
        """Whether another page is to come."""
        return self._more

    async def next_page(self) -> list[T]:
        """Fetch the next page; empty when there is none."""
        return self.read(await self.fetch()) if self._more else []

    async def fetch(self) -> Room:
        """The next page, unread. The one after it can be asked for at once.

        That way a server makes one page while the one before it is being read.
        """
        asked = msgspec.structs.replace(self._asked, page=self.page)
        request = asked.request(self._kind, after=self._after)
        room = self._rooms.pop() if self._rooms else Room()
        await self._calls.fill(room, request, verb="list", deadline=self._deadline)
        self.page_bytes = len(room)
        meta = _metadata(room, about=request)
        if meta.continue_ and meta.continue_ == self._after:
            raise Malformed(
                f"{request}: the server names the page that it just sent as the next "
                "one, so the list would never end."
            )
        self._after = meta.continue_
        self._more = bool(meta.continue_)
        self.remaining = meta.remainingItemCount
        self.resource_version = meta.resourceVersion
        return room

    def read(self, room: Room) -> list[T]:
        """The objects of a page that was fetched; another one may be put there next."""
        about = self._asked.request(self._kind)
        try:
            page = answers.decode(page_type(self._item), room.view(), about=about)
        finally:
            if room.leave():
                self._rooms.append(room)
        return page.items or []


class _Head(msgspec.Struct, gc=False):
    """A list without its items."""

    metadata: ListMeta = ListMeta()


# Servers write the metadata of a list before its items; of custom kinds, at the end.
_FIRST = re.compile(
    rb'\{"kind":"\w+","apiVersion":"[^"]+","metadata":(\{[^{}]*\}),"items":'
)
_LAST = re.compile(rb'\],"kind":"\w+","metadata":(\{[^{}]*\})\}\s*$')
_NEAR = 4096


def _metadata(room: Room, *, about: Request) -> ListMeta:
    """The metadata of a page, mostly without reading the whole of it."""
    body = room.view()
    try:
        found = _FIRST.match(body, 0, _NEAR) or _LAST.search(
            body, max(0, len(body) - _NEAR)
        )
        if found is None:
            return answers.decode(_Head, body, about=about).metadata
        text = found[1]
        del found  # it points into the room
        return answers.decode(ListMeta, text, about=about)
    finally:
        room.leave()
