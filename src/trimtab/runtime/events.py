"""Events: what a handler tells people about an object, in the object's own namespace.

``recorder.event(obj, "Normal", "Created", "Created Deployment web")`` is what
``kubectl describe`` shows below the object. It is best effort by design: it never makes
a handler wait or fail, and what cannot be written is counted.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Literal, TypeAlias

import msgspec

from trimtab.api.kinds.events import Event, EventSource
from trimtab.api.kinds.references import ObjectReference
from trimtab.api.resource import Metadata, Resource
from trimtab.api.times import rfc3339
from trimtab.client.client import Client
from trimtab.client.errors import (
    AlreadyExists,
    NotFound,
    ServerError,
    TooManyRequests,
    TransportError,
    TrimtabError,
)
from trimtab.runtime.backoff import Backoff
from trimtab.runtime.correlation import (
    COMBINED,
    Correlator,
    EventLimits,
    Happening,
    Record,
)

EventType: TypeAlias = Literal["Normal", "Warning"]

logger = logging.getLogger(__name__)

# The caps of the server, so that a long message is a shorter one and not a lost one.
MESSAGE = 1024 - len(COMBINED)
REASON = 128
NAME = 236

# What names of Events may not have, and names of what they are about may.
NOT_A_NAME = re.compile(r"[^a-z0-9.-]|(?<=[.-])\.|(?<=\.)-")

DEADLINE = 5.0
TRIES = 6
PAUSES = Backoff(first=0.5, cap=15.0)


class RecorderStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the calls so far."""

    pending: int
    """Calls and Events that wait to be written."""
    written: int
    """Creates and patches that the server took."""
    limited: int
    """Calls that were only counted, because their object had too many Events."""
    dropped: int
    """Calls and Events that are lost."""


class Recorder:
    """Writes Events for one component of one process (its instance).

    Flow: ``event`` notes the call and returns; ``run`` combines what was noted and
    writes it, one at a time, until ``stop`` and then for at most ``drain`` seconds.

    Guarantees: ``event`` may be called from any thread, and before ``run``. At most
    ``pending`` calls, and as many Events, wait at a time; what is more is dropped.

    Assumptions: ``now`` tells the time of day, with a zone.

    Errors: none. A refusal drops that Event; while the server is away, ``run`` tries
    again a few times.
    """

    def __init__(
        self,
        client: Client,
        *,
        component: str,
        instance: str,
        now: Callable[[], datetime],
        random: Random,
        limits: EventLimits | None = None,
        pending: int = 1024,
        drain: float = 2.0,
    ) -> None:
        self._client = client
        self._component = component
        self._instance = instance
        self._now = now
        self._random = random
        self._correlator = Correlator(limits or EventLimits())
        self._limit = pending
        self._drain = drain
        self._noted: deque[Happening] = deque()
        # Records with something to write, each once, the first first.
        self._pending: deque[Record] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._span: asyncio.Timeout | None = None
        self._awake = asyncio.Event()
        self._stopping = False
        self._written = self._limited = self._dropped = 0

    def event(
        self,
        obj: Resource,
        type: EventType,
        reason: str,
        message: str,
        *,
        field: str = "",
    ) -> None:
        """Tell people about an object, or a part of it: the field at that path.

        Returns at once, and never raises.
        """
        try:
            if len(self._noted) >= self._limit:
                self._dropped += 1
                return
            about = _reference(obj, field)
            reason, message = reason[:REASON], _cut(message)
            self._noted.append(Happening(about, type, reason, message, self._now()))
            if self._loop is not None and not self._awake.is_set():
                self._loop.call_soon_threadsafe(self._awake.set)
        except Exception:
            self._dropped += 1
            logger.warning("an event could not be noted", exc_info=True)

    async def run(self) -> None:
        """Write what is noted until ``stop`` is called; cancelling drops the rest."""
        self._loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as span:
                self._span = span
                if self._stopping:
                    self.stop()
                await self._write_until_stopped()
        except TimeoutError:
            if not span.expired():
                raise
        finally:
            self._loop = self._span = None
            self._dropped += len(self._pending) + len(self._noted)
            self._pending.clear()
            self._noted.clear()

    def stop(self) -> None:
        """Have ``run`` write what is left, and end. Called in its loop's thread."""
        self._stopping = True
        self._awake.set()
        if self._loop is not None and self._span is not None:
            self._span.reschedule(self._loop.time() + self._drain)

    def statistics(self) -> RecorderStatistics:
        """What became of the calls so far."""
        return RecorderStatistics(
            pending=len(self._noted) + len(self._pending),
            written=self._written,
            limited=self._limited,
            dropped=self._dropped,
        )

    async def _write_until_stopped(self) -> None:
        while True:
            self._awake.clear()
            self._correlate()
            if self._pending:
                record = self._pending.popleft()
                record.pending = False
                await self._write(record)
            elif self._stopping:
                return
            elif not self._noted:
                await self._awake.wait()

    def _correlate(self) -> None:
        while self._noted:
            record = self._correlator.observe(self._noted.popleft())
            if record is None:
                self._limited += 1
            elif record.pending:
                pass  # one write will tell of both
            elif len(self._pending) >= self._limit:
                self._dropped += 1
            else:
                record.pending = True
                self._pending.append(record)

    async def _write(self, record: Record) -> None:
        """Send one Event; a few times, if the server is away."""
        written = False
        try:
            for attempt in range(1, TRIES + 1):
                try:
                    await self._send(record)
                    written = True
                    return
                except (TransportError, ServerError, TooManyRequests) as error:
                    failure: TrimtabError = error
                    await asyncio.sleep(PAUSES.pause(attempt, random=self._random))
            logger.warning("%s", f"an event was not written: {failure}")
        except TrimtabError as error:
            logger.warning("%s", f"an event was refused: {error}")
        finally:
            self._written += written
            self._dropped += not written

    async def _send(self, record: Record) -> None:
        if record.created:
            try:
                return await self._patch(record)
            except NotFound:  # the server keeps them for an hour or so
                record.created = False
        record.name = record.name or self._name(record)
        try:
            await self._client.create(self._event(record), deadline=DEADLINE)
        except AlreadyExists:  # ours: the answer to an earlier try was lost
            await self._patch(record)
        record.created = True

    async def _patch(self, record: Record) -> None:
        body = {
            "count": record.count,
            "lastTimestamp": rfc3339(record.last),
            "message": record.message,
        }
        await self._client.patch(
            Event,
            record.name,
            body,
            namespace=_namespace(record),
            deadline=DEADLINE,
        )

    def _name(self, record: Record) -> str:
        """A name of its own that shows what it is about."""
        # Names of some kinds have characters that those of Events must not have.
        plain = NOT_A_NAME.sub("-", record.about.name.lower())[:NAME].strip("-.")
        return f"{plain or 'event'}.{self._random.getrandbits(64):016x}"

    def _event(self, record: Record) -> Event:
        return Event(
            metadata=Metadata(name=record.name, namespace=_namespace(record)),
            involvedObject=record.about,
            type=record.type,
            reason=record.reason,
            message=record.message,
            count=record.count,
            firstTimestamp=record.first,
            lastTimestamp=record.last,
            source=EventSource(component=self._component),
            reportingComponent=self._component,
            reportingInstance=self._instance,
        )


def _namespace(record: Record) -> str:
    """Where it goes: Events of cluster-scoped objects are in ``default``."""
    return record.about.namespace or "default"


def _reference(obj: Resource, field: str) -> ObjectReference:
    return ObjectReference(
        apiVersion=obj.apiVersion,
        kind=obj.kind,
        namespace=obj.metadata.namespace,
        name=obj.metadata.name,
        uid=obj.metadata.uid,
        resourceVersion=obj.metadata.resourceVersion,
        fieldPath=field,
    )


def _cut(message: str) -> str:
    """As much of a message as an Event takes; the cap is in bytes."""
    return message.encode(errors="replace")[:MESSAGE].decode(errors="ignore")
