"""Reading: get, list and watch, by class or by discovered kind."""

from __future__ import annotations

from typing import Any, TypeVar, Unpack, overload

from trimtab.api.resource import Info, Resource
from trimtab.client.kinds import Kind, Plain, type_of
from trimtab.client.listing import Listing, ListQuery
from trimtab.client.options import Listed, Reading, Watched, field_text, label_text
from trimtab.client.paths import query
from trimtab.client.session import Session
from trimtab.client.transport import Request
from trimtab.client.watch import IDLE, Watch, WatchQuery

R = TypeVar("R", bound=Resource)


class Reads(Session):
    """The verbs that change nothing; a failed one is tried again."""

    @overload
    async def get(self, kind: type[R], name: str, **options: Unpack[Reading]) -> R: ...
    @overload
    async def get(self, kind: Info, name: str, **options: Unpack[Reading]) -> Plain: ...
    async def get(self, kind: Kind, name: str, **options: Unpack[Reading]) -> Any:
        """Read one object; :class:`NotFound` if it is not there."""
        request = Request(
            method="GET",
            path=self._path(kind, namespace=options.get("namespace"), name=name),
            query=query((("resourceVersion", options.get("resource_version")),)),
        )
        return await self._calls.call(
            request, verb="get", into=type_of(kind), deadline=options.get("deadline")
        )

    @overload
    def list(self, kind: type[R], **options: Unpack[Listed]) -> Listing[R]: ...
    @overload
    def list(self, kind: Info, **options: Unpack[Listed]) -> Listing[Plain]: ...
    def list(self, kind: Kind, **options: Unpack[Listed]) -> Listing[Any]:
        """Objects of a kind: ``async for pod in client.list(Pod)``; see Listing."""
        asked = ListQuery(
            namespace=options.get("namespace"),
            labels=label_text(options.get("labels")),
            fields=field_text(options.get("fields")),
            page=options.get("page", 500),
            resource_version=options.get("resource_version"),
            match=options.get("match"),
            raw=options.get("raw", False),
        )
        return Listing(self._calls, kind, asked, deadline=options.get("deadline"))

    @overload
    def watch(self, kind: type[R], **options: Unpack[Watched]) -> Watch[R]: ...
    @overload
    def watch(self, kind: Info, **options: Unpack[Watched]) -> Watch[Plain]: ...
    def watch(self, kind: Kind, **options: Unpack[Watched]) -> Watch[Any]:
        """Changes of a kind: ``async with client.watch(Pod) as events``; see Watch."""
        asked = WatchQuery(
            namespace=options.get("namespace"),
            labels=label_text(options.get("labels")),
            fields=field_text(options.get("fields")),
            resource_version=options.get("resource_version"),
            initial_events=options.get("initial_events", False),
            bookmarks=options.get("bookmarks", True),
            timeout=options.get("timeout"),
            raw=options.get("raw", False),
        )
        return Watch(
            self._calls,
            kind,
            asked,
            deadline=options.get("deadline"),
            idle=options.get("idle", IDLE),
        )
