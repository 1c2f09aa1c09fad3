"""Watches: the changes of a kind as they happen, as typed events.

The answer to a watch is a line of JSON for each event. Lines are decoded straight into
the type; a bookmark and an error, which carry other things, are told apart first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from trimtab.api import codec
from trimtab.client import answers
from trimtab.client.calls import Calls, Stream
from trimtab.client.errors import (
    BodyTooLarge,
    Disconnected,
    Malformed,
    Stalled,
    StatusBody,
)
from trimtab.client.kinds import (
    BookmarkObject,
    Kind,
    RawEvent,
    info_of,
    type_of,
)
from trimtab.client.paths import path, query
from trimtab.client.transport import Request

T = TypeVar("T")
Change: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
CHANGES = (b'{"type":"ADDED"', b'{"type":"MODIFIED"', b'{"type":"DELETED"')
# A server sends a bookmark about once a minute to a watcher that asks for them; a
# watch that has been silent for this long is talking to nobody.
IDLE = 150.0


class WatchEvent(msgspec.Struct, Generic[T], gc=False):
    """One change: what happened, and the object as it is now (or was last)."""

    type: Change
    object: T


class Bookmark(msgspec.Struct, frozen=True, kw_only=True):
    """Everything up to this revision has been sent."""

    resource_version: str
    initial_events_end: bool = False
    """The objects that were there at the start are all through."""


class WatchQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is watched: where, which, and from which revision."""

    namespace: str | None = None
    labels: str | None = None
    fields: str | None = None
    resource_version: str | None = None
    initial_events: bool = False
    bookmarks: bool = True
    timeout: int | None = None
    """Seconds after which the server ends the watch; None: as it likes."""
    raw: bool = False

    def request(self, kind: Kind) -> Request:
        initial = self.initial_events or None
        return Request(
            method="GET",
            path=path(info_of(kind), namespace=self.namespace),
            query=query(
                (
                    ("watch", True),
                    ("allowWatchBookmarks", self.bookmarks or initial),
                    ("labelSelector", self.labels),
                    ("fieldSelector", self.fields),
                    ("resourceVersion", self.resource_version),
                    ("sendInitialEvents", initial),
                    ("resourceVersionMatch", initial and "NotOlderThan"),
                    ("timeoutSeconds", self.timeout),
                )
            ),
            stream=True,
        )


class Watch(Generic[T]):
    """An open (or soon open) watch: ``async with client.watch(Pod) as events``.

    Flow: the request is sent on entering. Iteration yields events and bookmarks until
    the server ends the watch, which is ordinary: watch again from the last revision.
    Guarantees: nothing is skipped or made up; leaving the ``async with`` ends the
    connection; an event is held only while it is being handed out.
    Errors: :class:`Gone` (list again), any other :class:`ApiError` that the server puts
    into the stream, :class:`Disconnected` if the stream breaks, :class:`Stalled` if it
    is silent for ``idle`` seconds, :class:`Malformed` for a line that is no event.
    With ``raw``, objects come as the JSON that was sent, unread.
    """

    def __init__(
        self,
        calls: Calls,
        kind: Kind,
        asked: WatchQuery,
        *,
        deadline: float | None,
        idle: float,
    ) -> None:
        self._calls = calls
        self._request = asked.request(kind)
        self._deadline = deadline
        self._idle = idle
        self._read = _reader(msgspec.Raw if asked.raw else type_of(kind))
        self._stream: Stream | None = None
        self._silence = _Silence(idle, self.close)
        self._entered = False
        self._failure: Exception | None = None
        """What came behind events that were handed out; raised at the next call."""
        self._lines: list[bytes] = []
        self._tail = bytearray()

    async def __aenter__(self) -> Watch[T]:
        if self._entered:
            raise RuntimeError(f"{self._request}: a watch is used once; make another")
        self._entered = True
        self._stream = await self._calls.stream(
            self._request, verb="watch", deadline=self._deadline
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the watch; iteration stops."""
        self._lines.clear()
        self._tail.clear()
        self._silence.close()
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def __aiter__(self) -> AsyncIterator[WatchEvent[T] | Bookmark]:
        return self

    async def __anext__(self) -> WatchEvent[T] | Bookmark:
        await self._fill()
        return self._decode(self._lines.pop())

    async def batch(self) -> list[WatchEvent[T] | Bookmark]:
        """All events that came together; empty when the server ended the watch.

        Cheaper than iterating when many events arrive at once.
        """
        events: list[WatchEvent[T] | Bookmark] = []
        try:
            await self._fill()
            while self._lines:
                events.append(self._decode(self._lines.pop()))
        except StopAsyncIteration:
            return []
        except Exception as error:
            if not events:
                raise
            self._failure = error
        return events

    async def deliver(
        self, take: Callable[[list[WatchEvent[T] | Bookmark]], None]
    ) -> None:
        """Hand over all events that come together, until the server ends the watch.

        The cheapest way to follow one: no task is woken for what has come.
        Errors: also what ``take`` raises, which is then not called again.
        """
        if self._lines:
            take(await self.batch())
        self._check_entered()
        self._check_tail()
        if self._stream is None:
            return

        def receive(data: bytes) -> None:
            self._silence.begins()
            lines = self._completed(data)
            events: list[WatchEvent[T] | Bookmark] = []
            try:
                for line in lines:
                    events.append(self._event(line))
            finally:
                if events:
                    take(events)
            self._check_tail()

        self._silence.begins()
        try:
            await self._stream.pump(receive)
        except Exception as error:
            self._check_silence(error)
            if self._stream is None:
                return  # it was closed from our side, by another task
            self.close()
            raise
        finally:
            self._silence.ends()
        self._check_silence(None)
        self._ended()

    async def _fill(self) -> None:
        """Have at least one line in hand, the first of them at the end of the list."""
        self._check_entered()
        if not self._lines:
            self._lines = await self._next_lines()
            self._lines.reverse()

    def _check_entered(self) -> None:
        if not self._entered:
            raise RuntimeError(f"{self._request}: enter the watch with `async with`")
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    async def _next_lines(self) -> list[bytes]:
        """The lines that the next piece of the answer completes, at least one."""
        while True:
            self._check_tail()
            data = await self._chunk()
            if not data:
                self._ended()
                raise StopAsyncIteration
            if complete := self._completed(data):
                return complete

    def _completed(self, data: bytes) -> list[bytes]:
        """The lines that a piece of the answer completes; its rest is kept."""
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._tail:
            lines[0] = bytes(self._tail + lines[0])
            self._tail.clear()
        self._tail += rest
        return [line for line in lines if line]

    async def _chunk(self) -> bytes:
        if self._stream is None:
            return b""
        self._silence.begins()
        try:
            data = await self._stream.chunk()
        except Exception as error:
            self._check_silence(error)
            if self._stream is None:
                return b""  # it was closed from our side, by another task
            self.close()
            raise
        finally:
            self._silence.ends()
        self._check_silence(None)
        return data

    def _check_silence(self, error: Exception | None) -> None:
        if self._silence.too_long:
            raise Stalled(
                f"{self._request}: the watch was silent for {self._idle:.3g} s; "
                "watch again from the last revision."
            ) from error

    def _ended(self) -> None:
        within = bool(self._tail)
        self.close()
        if within:
            raise Disconnected(f"{self._request}: the watch ended within an event.")

    def _check_tail(self) -> None:
        limit = self._calls.options.body_limit
        if len(self._tail) > limit:
            seen = len(self._tail)
            self.close()
            raise BodyTooLarge(
                f"{self._request}: one event is longer than {limit} bytes.",
                seen=seen,
                limit=limit,
            )

    def _decode(self, line: bytes) -> WatchEvent[T] | Bookmark:
        try:
            return self._event(line)
        except Exception:
            self.close()  # what comes after it would be handed out with a gap
            raise

    def _event(self, line: bytes) -> WatchEvent[T] | Bookmark:
        if line.startswith(CHANGES):
            return self._change(line)
        raw = answers.decode(RawEvent, line, about=self._request)
        if raw.type in ("ADDED", "MODIFIED", "DELETED"):
            return self._change(line)
        if raw.type == "BOOKMARK":
            return self._bookmark(raw)
        if raw.type == "ERROR":
            status = answers.decode(StatusBody, raw.object, about=self._request)
            raise answers.error_from(status, about=self._request)
        raise Malformed(f"{self._request}: {raw.type!r} is no kind of watch event.")

    def _change(self, line: bytes) -> WatchEvent[T]:
        try:
            return self._read(line)
        except answers.UNREADABLE as error:
            raise answers.malformed(WatchEvent, error, about=self._request) from error

    def _bookmark(self, raw: RawEvent) -> Bookmark:
        mark = answers.decode(BookmarkObject, raw.object, about=self._request)
        return Bookmark(
            resource_version=mark.metadata.resourceVersion,
            initial_events_end=mark.metadata.annotations.get(INITIAL_EVENTS_END)
            == "true",
        )


def _reader(item: Any) -> Callable[[bytes], WatchEvent[Any]]:
    """Decodes a line straight into the event that is handed out."""
    event: Any = WatchEvent[item]
    return codec.decoder(event).decode


class _Silence:
    """Calls when one wait is longer than ``limit``; one timer does for many waits.

    A timer for each wait would cost more than decoding what was waited for. This one
    looks, when it is due, how long the present wait has been, and comes back later.
    """

    __slots__ = ("_call", "_limit", "_since", "_timer", "too_long")

    def __init__(self, limit: float, call: Callable[[], None]) -> None:
        self._limit = limit
        self._call = call
        self._since: float | None = None
        """When the present wait began; None between two."""
        self._timer: asyncio.TimerHandle | None = None
        self.too_long = False

    def begins(self) -> None:
        loop = asyncio.get_running_loop()
        self._since = loop.time()
        if self._timer is None:
            self._timer = loop.call_at(self._since + self._limit, self._look)

    def ends(self) -> None:
        self._since = None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if self._since is None:
            return  # nobody waits; the next wait makes a new timer
        loop = asyncio.get_running_loop()
        due = self._since + self._limit
        if loop.time() < due:
            self._timer = loop.call_at(due, self._look)
        else:
            self.too_long = True
            self._call()
