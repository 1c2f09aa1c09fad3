"""Events: short-lived notes on what happened to an object.

The server keeps one set of events and shows it through two APIs, core ``v1`` and
``events.k8s.io/v1``. This is the core form: a read of it shows what was written
through either, it is what ``kubectl describe`` shows, and it can be written without
``eventTime``. An event that has one is held to the stricter rules of the newer API:
``reportingComponent``, ``reportingInstance``, ``action`` and ``reason`` must be there,
and ``source``, ``firstTimestamp``, ``lastTimestamp`` and ``count`` must not.
"""

from __future__ import annotations

from datetime import datetime

from trimtab.api.kinds.references import ObjectReference
from trimtab.api.objects import Object
from trimtab.api.resource import Resource
from trimtab.api.times import MicroTime


class EventSource(Object):
    """Which component noticed it, on which host."""

    component: str = ""
    host: str = ""


class EventSeries(Object):
    """How often the same thing happened, and when it last did."""

    count: int | None = None
    lastObservedTime: MicroTime | None = None


class Event(Resource, version="v1", builtin=True):
    """Something that happened to ``involvedObject``, in its namespace."""

    involvedObject: ObjectReference
    type: str = ""
    reason: str = ""
    message: str = ""
    action: str = ""
    count: int | None = None
    firstTimestamp: datetime | None = None
    lastTimestamp: datetime | None = None
    eventTime: MicroTime | None = None
    series: EventSeries | None = None
    related: ObjectReference | None = None
    source: EventSource = EventSource()
    reportingComponent: str = ""
    reportingInstance: str = ""
