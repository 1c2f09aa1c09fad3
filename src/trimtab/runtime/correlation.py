"""Correlation: which of the things that happen become an Event, and which a count.

The rules are those that people know from Kubernetes' own components. The same thing
happening again is one Event whose count grows. More than ten things alike in ten
minutes, told apart only by their message, are combined into one. An object may have 25
Events at once and then one more every five minutes.

Synchronous, and bounded: it remembers the last thousand of each, for a time.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from trimtab.api.kinds.references import ObjectReference
from trimtab.client.ratelimit import RateLimit

K = TypeVar("K")
V = TypeVar("V")

COMBINED = "(combined from similar events): "


class EventLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is told. The defaults are those of Kubernetes' own components."""

    similar: int = 10
    """Different messages of one object, type and reason before they are combined."""
    within: float = 600.0
    """Seconds of silence after which those are counted anew."""
    burst: int = 25
    """Events of one object at once."""
    refill: float = 300.0
    """Seconds until an object may have one more."""
    lifetime: float = 3600.0
    """Seconds of silence after which a repetition is a new Event; about as long as
    servers keep Events."""
    remembered: int = 1024
    """Events, groups of similar ones, and objects that are remembered."""


class Happening(msgspec.Struct, frozen=True):
    """One call of a handler."""

    about: ObjectReference
    type: str
    reason: str
    message: str
    when: datetime


class Record(msgspec.Struct):
    """One Event as it is, or will be, on the server."""

    about: ObjectReference
    type: str
    reason: str
    message: str
    first: datetime
    last: datetime
    count: int = 0
    name: str = ""
    """Its name; empty until it was first sent."""
    created: bool = False
    """Whether the server has it: then a repetition patches it."""
    pending: bool = False
    """Whether it waits to be written."""


class Remembered(Generic[K, V]):
    """The last so many values by key, each until it was not asked for some time."""

    def __init__(self, *, size: int, lifetime: float) -> None:
        self._size = size
        self._lifetime = lifetime
        self._values: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K, now: float, *, make: Callable[[], V]) -> V:
        """The value of a key, made if it is not there or was silent for too long."""
        seen, value = self._values.pop(key, (-math.inf, None))
        if value is None or now - seen > self._lifetime:
            value = make()
        self._values[key] = (now, value)
        if len(self._values) > self._size:
            self._values.popitem(last=False)
        return value

    def __len__(self) -> int:
        return len(self._values)


class Correlator:
    """Turns happenings into records to be written."""

    def __init__(self, limits: EventLimits) -> None:
        self._limits = limits
        size = limits.remembered
        self._records = Remembered[tuple[object, ...], Record](
            size=size, lifetime=limits.lifetime
        )
        self._messages = Remembered[tuple[object, ...], set[str]](
            size=size, lifetime=limits.within
        )
        # An allowance that was not used for this long is a full one again.
        self._allowances = Remembered[tuple[object, ...], RateLimit](
            size=size, lifetime=limits.burst * limits.refill
        )

    def observe(self, happening: Happening) -> Record | None:
        """The record that now tells of this, to be written; None if that is too much.

        What is too much is counted nevertheless: the next write tells of it.
        """
        now = happening.when.timestamp()
        about = _identity(happening.about)
        message = self._told(happening, about, now)
        record = self._records.get(
            # Parts of an object share its allowance, and have Events of their own.
            (
                *about,
                happening.about.fieldPath,
                happening.type,
                happening.reason,
                message[0],
            ),
            now,
            make=lambda: _record(happening),
        )
        record.message = message[1]
        record.last = max(record.last, happening.when)
        record.count += 1
        return record if self._is_allowed(about, now) else None

    def _told(
        self, happening: Happening, about: tuple[object, ...], now: float
    ) -> tuple[str, str]:
        """What tells this one from similar ones, and the message of its Event."""
        group = (*about, happening.type, happening.reason)
        messages = self._messages.get(group, now, make=set)
        if happening.message in messages:
            return happening.message, happening.message
        if len(messages) >= self._limits.similar:
            return COMBINED, COMBINED + happening.message
        messages.add(happening.message)
        return happening.message, happening.message

    def _is_allowed(self, about: tuple[object, ...], now: float) -> bool:
        allowance = self._allowances.get(about, now, make=self._allowance)
        return allowance.reserve(now, ends=math.nextafter(now, math.inf)) is not None

    def _allowance(self) -> RateLimit:
        return RateLimit(per_second=1.0 / self._limits.refill, burst=self._limits.burst)


def _identity(about: ObjectReference) -> tuple[object, ...]:
    return (about.apiVersion, about.kind, about.namespace, about.name, about.uid)


def _record(happening: Happening) -> Record:
    return Record(
        about=happening.about,
        type=happening.type,
        reason=happening.reason,
        message=happening.message,
        first=happening.when,
        last=happening.when,
    )
