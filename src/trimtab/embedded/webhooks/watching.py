"""Watching what a webhook converts: events are held back until they are converted.

The watch below runs on what is stored, as all do, and tells its events in a form of its
own. Here they are converted, as many at once as have come, selected among if they are
to be selected by what the webhook makes of them, and told as they are wished for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from trimtab.embedded import status
from trimtab.embedded.calls import Calls, Exchange
from trimtab.embedded.forms import Renderer
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Change
from trimtab.embedded.watching import View, Watcher

READY = ""
"""Stands for the type of an event that is written already."""
CHANGED = "CHANGED"
"""Stands for that of one that depends on who selects it."""


NOTHING = msgspec.Raw(b"null")


class Event(msgspec.Struct, frozen=True, array_like=True):
    """An event as the watch below tells it; ``value`` is an object, or a text."""

    type: str
    revision: int
    value: msgspec.Raw
    previous: msgspec.Raw = NOTHING
    """What it was before, of a change that is still to be selected."""

    @property
    def objects(self) -> list[bytes]:
        """What has to be converted to tell of it."""
        if self.type == READY:
            return []
        both = (bytes(self.value), bytes(self.previous))
        return [each for each in both if each != b"null"]


_event = msgspec.json.Decoder(Event).decode


def stored_event(type: str, value: bytes, revision: int) -> bytes:
    """An event of a stored object, as a line."""
    return msgspec.json.encode(Event(type, revision, msgspec.Raw(value))) + b"\n"


def stored_change(change: Change) -> bytes:
    """A change of a stored object, as a line."""
    now, before = (
        NOTHING if value is None else msgspec.Raw(value)
        for value in (change.value, change.previous)
    )
    return msgspec.json.encode(Event(CHANGED, change.revision, now, before)) + b"\n"


def ready_event(line: bytes) -> bytes:
    """An event that needs no conversion, as a line."""
    text = msgspec.Raw(msgspec.json.encode(line.decode()))
    return msgspec.json.encode(Event(READY, 0, text)) + b"\n"


def stored_view(view: View, *, select: bool) -> View:
    """The same view of a watch, told for :class:`ConvertingWatcher`.

    Unless it is to ``select`` itself, it tells of everything.
    """
    return msgspec.structs.replace(
        view,
        matches=view.matches if select else None,
        tell=None if select else stored_change,
        render=stored_event,
        form="stored",
        bookmark=lambda *told: ready_event(view.bookmark(*told)),
        failure=lambda problem: ready_event(view.failure(problem)),
    )


class ConvertingWatcher:
    """A watch whose objects are converted on the way out.

    Flow: ``chunk`` may raise ``Pending``; whoever reads it makes the calls and asks
    again. Nothing is lost meanwhile.
    """

    def __init__(
        self,
        watcher: Watcher,
        *,
        renderer: Renderer,
        calls: Calls,
        matches: Callable[[bytes], bool] | None = None,
    ) -> None:
        self._watcher = watcher
        self._renderer = renderer
        self._calls = calls
        self._matches = matches or (lambda value: True)
        self._held: list[Event] = []
        self._exchange = Exchange()

    def close(self) -> None:
        self._watcher.close()

    async def chunk(self) -> bytes:
        """Some whole events; empty when it is over."""
        while True:
            if not self._held:
                data = await self._watcher.chunk()
                self._held = [_event(line) for line in data.splitlines()]
            if not self._held:
                return b""
            lines = self._told()
            self._held = []
            self._exchange = Exchange()
            if lines:
                return lines

    def _told(self) -> bytes:
        objects = [value for each in self._held for value in each.objects]
        self._calls.begin(self._exchange)
        try:
            converted = iter(self._renderer.kind.current(objects))
        except ApiProblem as problem:
            self.close()
            return self._renderer.failure(status.internal(problem.message))
        finally:
            self._calls.end()
        return b"".join(self._line(each, converted) for each in self._held)

    def _line(self, event: Event, converted: Iterator[bytes]) -> bytes:
        """What is told of an event; nothing if nobody selects it."""
        if event.type == READY:
            return msgspec.json.decode(event.value, type=str).encode()
        now = next(converted) if event.value != NOTHING else None
        was = next(converted) if event.previous != NOTHING else None
        is_now = now is not None and self._matches(now)
        if event.type != CHANGED:
            assert now is not None, "such an event has an object"
            told = self._renderer.event(event.type, now, event.revision)
            return told if is_now else b""
        if was is not None and not self._matches(was):
            was = None
        if is_now and now is not None:
            type = "ADDED" if was is None else "MODIFIED"
            return self._renderer.event(type, now, event.revision)
        if was is None:
            return b""
        return self._renderer.event("DELETED", was, event.revision)
