"""Streams: how a watch begins, from what a request asks for."""

from __future__ import annotations

from random import Random

from trimtab.embedded import bodies, status
from trimtab.embedded.answers import Chunks, WatchAnswer
from trimtab.embedded.calls import Calls
from trimtab.embedded.forms import Renderer
from trimtab.embedded.lists import number_of, too_large_version, wants_initial
from trimtab.embedded.requests import ApiRequest, Target
from trimtab.embedded.selection import selection_of
from trimtab.embedded.watching import Hub, View, Watcher
from trimtab.embedded.webhooks.watching import ConvertingWatcher, stored_view

WATCH_SECONDS = (1800.0, 3600.0)


class Streams:
    """Begins watches on the changes of one store."""

    def __init__(self, hub: Hub, *, calls: Calls, random: Random) -> None:
        self._hub = hub
        self._calls = calls
        self._random = random

    def begin(
        self, request: ApiRequest, target: Target, renderer: Renderer
    ) -> WatchAnswer:
        """A watch of what a path names, as its renderer tells of it."""
        kind = renderer.kind
        if renderer.form.media == bodies.YAML:
            raise status.not_acceptable(bodies.WATCHED)
        initial = wants_initial(request)
        since = number_of(request.query.get("resourceVersion", ""))
        current = self._hub.store.revision
        if initial and since > current:
            raise too_large_version(since, current)
        bookmarks = request.flag("allowWatchBookmarks")
        seconds = request.number("timeoutSeconds")
        selection = selection_of(request.query, kind=kind, name=target.name)
        view = View(
            prefix=kind.within(target.namespace),
            matches=selection.matcher(),
            render=renderer.event,
            form=renderer.shared,
            bookmark=renderer.bookmark,
            failure=renderer.failure,
        )
        later = selection.is_of_version(kind)
        watcher = Watcher(
            self._hub,
            view if kind.conversion is None else stored_view(view, select=not later),
            since=current if initial or not since else since,
            initial=initial,
            initial_end=initial and bookmarks,
            bookmarks=bookmarks,
            timeout=float(seconds or self._random.uniform(*WATCH_SECONDS)),
        )
        chunks: Chunks = watcher
        if kind.conversion is not None:
            chunks = ConvertingWatcher(
                watcher,
                renderer=renderer,
                calls=self._calls,
                matches=view.matches if later else None,
            )
        return WatchAnswer(watcher=chunks, content_type=renderer.stream_media)
