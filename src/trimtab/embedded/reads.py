"""Reads: requests for one object, for a list, or for a watch of either."""

from __future__ import annotations

import msgspec

from trimtab.embedded import components, status
from trimtab.embedded.answers import Answer, WatchAnswer
from trimtab.embedded.forms import Renderer
from trimtab.embedded.lists import (
    list_page,
    list_request,
    number_of,
    too_large_version,
)
from trimtab.embedded.registry import Registry
from trimtab.embedded.requests import ApiRequest, Target
from trimtab.embedded.selection import selection_of
from trimtab.embedded.streams import Streams


class Reads:
    """Reads what a registry has, and begins watches of it."""

    def __init__(self, registry: Registry, *, streams: Streams) -> None:
        self._registry = registry
        self._store = registry.store
        self._streams = streams

    def answer(
        self, request: ApiRequest, target: Target, renderer: Renderer
    ) -> Answer | WatchAnswer:
        """What a path names, as its renderer shows it."""
        if renderer.kind.prefix == components.PREFIX:
            return _components(request, target, renderer)
        if target.watch or (request.flag("watch") and not target.name):
            return self._streams.begin(request, target, renderer)
        if target.name:
            return self._one(request, target, renderer)
        return self._many(request, target, renderer)

    def _one(self, request: ApiRequest, target: Target, renderer: Renderer) -> Answer:
        kind = renderer.kind
        asked = number_of(request.query.get("resourceVersion", ""))
        if asked > self._store.revision:
            raise too_large_version(asked, self._store.revision)
        row = self._registry.row(kind, target.namespace, target.name)
        renderer.fits(many=False)
        [value] = kind.current([row.value])
        return Answer(content_type=renderer.form.media, body=renderer.one(value))

    def _many(self, request: ApiRequest, target: Target, renderer: Renderer) -> Answer:
        kind = renderer.kind
        selection = selection_of(request.query, kind=kind)
        asked = list_request(request, current=self._store.revision)
        if selection.is_one and (target.namespace or not kind.namespaced):
            asked = msgspec.structs.replace(asked, limit=0)
        convert = kind.current if selection.is_of_version(kind) else None
        page = list_page(
            self._store,
            kind.within(target.namespace),
            asked,
            selection.matcher(),
            convert=convert,
        )
        renderer.fits(many=True)
        values = page.values if convert else kind.current(page.values)
        pieces = renderer.many(values, page.metadata())
        return Answer(content_type=renderer.form.media, body=pieces)


def _components(request: ApiRequest, target: Target, renderer: Renderer) -> Answer:
    kind = renderer.kind
    if target.watch or request.flag("watch"):
        raise status.method_not_allowed(kind.about, "watch")
    renderer.fits(many=not target.name)
    if target.name:
        body = renderer.one(components.one_of(kind, target.name))
        return Answer(content_type=renderer.form.media, body=body)
    matches = selection_of(request.query, kind=kind).matcher()
    values = filter(matches, components.all_of(kind)) if matches else None
    pieces = renderer.many(values or components.all_of(kind), {})
    return Answer(content_type=renderer.form.media, body=pieces)
