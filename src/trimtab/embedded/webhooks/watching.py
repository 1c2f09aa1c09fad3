"""Watching what a webhook converts: events are held back until they are converted.

The watch below runs on what is stored, as all do, and tells its events in a form of its
own. Here they are converted, as many at once as have come, and told as they are wished
for.
"""

from __future__ import annotations

import msgspec

from trimtab.embedded import status
from trimtab.embedded.calls import Calls, Exchange
from trimtab.embedded.forms import Renderer
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.watching import View, Watcher

READY = ""
"""Stands for the type of an event that is written already."""


class Event(msgspec.Struct, frozen=True, array_like=True):
    """An event as the watch below tells it; ``value`` is an object, or a text."""

    type: str
    revision: int
    value: msgspec.Raw


_event = msgspec.json.Decoder(Event).decode


def stored_event(type: str, value: bytes, revision: int) -> bytes:
    """An event of a stored object, as a line."""
    return msgspec.json.encode(Event(type, revision, msgspec.Raw(value))) + b"\n"


def ready_event(line: bytes) -> bytes:
    """An event that needs no conversion, as a line."""
    text = msgspec.Raw(msgspec.json.encode(line.decode()))
    return msgspec.json.encode(Event(READY, 0, text)) + b"\n"


def stored_view(view: View) -> View:
    """The same view of a watch, told for :class:`ConvertingWatcher`."""
    return msgspec.structs.replace(
        view,
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

    def __init__(self, watcher: Watcher, *, renderer: Renderer, calls: Calls) -> None:
        self._watcher = watcher
        self._renderer = renderer
        self._calls = calls
        self._held: list[Event] = []
        self._exchange = Exchange()

    def close(self) -> None:
        self._watcher.close()

    async def chunk(self) -> bytes:
        """Some whole events; empty when it is over."""
        if not self._held:
            data = await self._watcher.chunk()
            self._held = [_event(line) for line in data.splitlines()]
        if not self._held:
            return b""
        lines = self._told()
        self._held = []
        self._exchange = Exchange()
        return lines

    def _told(self) -> bytes:
        objects = [bytes(each.value) for each in self._held if each.type != READY]
        self._calls.begin(self._exchange)
        try:
            converted = iter(self._renderer.kind.current(objects))
        except ApiProblem as problem:
            self.close()
            return self._renderer.failure(status.internal(problem.message))
        finally:
            self._calls.end()
        return b"".join(
            msgspec.json.decode(each.value, type=str).encode()
            if each.type == READY
            else self._renderer.event(each.type, next(converted), each.revision)
            for each in self._held
        )
