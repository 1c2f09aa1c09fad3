"""Tables of configuration and events: small objects that others refer to or tell of."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from trimtab.embedded.builtin.printers.cells import (
    Plain,
    Printer,
    Row,
    created,
    part,
    printer,
    since,
)


def _config_map(obj: Plain, now: datetime) -> Row:
    size = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    return [obj["metadata"]["name"], size, created(obj, now)]


def _secret(obj: Plain, now: datetime) -> Row:
    size = len(obj.get("data") or ())
    return [obj["metadata"]["name"], obj.get("type") or "", size, created(obj, now)]


def _only_age(obj: Plain, now: datetime) -> Row:
    return [obj["metadata"]["name"], created(obj, now)]


def _event(obj: Plain, now: datetime) -> Row:
    moments = obj.get("firstTimestamp"), obj.get("lastTimestamp")
    about, source = part(obj, "involvedObject"), part(obj, "source")
    text = obj.get("message") or ""
    return _event_row(obj, now, moments, about, source, text, obj.get("count"))


def _new_event(obj: Plain, now: datetime) -> Row:
    """The same of the newer group, which has other names for most of it."""
    moments = obj.get("deprecatedFirstTimestamp"), obj.get("deprecatedLastTimestamp")
    about, source = part(obj, "regarding"), part(obj, "deprecatedSource")
    text = obj.get("note") or ""
    times = obj.get("deprecatedCount")
    return _event_row(obj, now, moments, about, source, text, times)


def _event_row(
    obj: Plain,
    now: datetime,
    moments: tuple[str | None, str | None],
    about: Plain,
    source: Plain,
    text: str,
    times: int | None,
) -> Row:
    first = since(moments[0] or obj.get("eventTime"), now)
    last = since(moments[1], now) if moments[1] else first
    series = obj.get("series")
    if series is not None:
        last, times = since(series.get("lastObservedTime"), now), series.get("count")
    elif not times:
        times = 1
    return [
        last,
        obj.get("type") or "",
        obj.get("reason") or "",
        _target(about),
        about.get("fieldPath") or "",
        _source(obj, source),
        text.strip(),
        first,
        times or 0,
        obj["metadata"]["name"],
    ]


def _target(about: Plain) -> str:
    kind: str = (about.get("kind") or "").lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def _source(obj: Plain, source: Plain) -> str:
    controller = obj.get("reportingComponent") or obj.get("reportingController") or ""
    component = source.get("component") or controller
    host = source.get("host") or obj.get("reportingInstance")
    return f"{component}, {host}" if host else component


_OF_EVENTS: Final = (
    "Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, "
    "Count*, Name/name*"
)
_AGE: Final = "Name/name, Age"

PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("", "ConfigMap"): printer("Name/name, Data, Age", _config_map),
    ("", "Secret"): printer("Name/name, Type, Data, Age", _secret),
    ("", "ServiceAccount"): printer(_AGE, _only_age),
    ("", "Event"): printer(_OF_EVENTS, _event),
    ("events.k8s.io", "Event"): printer(_OF_EVENTS, _new_event),
    ("resource.k8s.io", "DeviceClass"): printer(_AGE, _only_age),
    ("resource.k8s.io", "ResourceClaimTemplate"): printer(_AGE, _only_age),
}
