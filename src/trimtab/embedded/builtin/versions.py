"""Versions: the built-in kinds whose versions differ in more than their name.

An Event has another shape in the newer group, and the first version of an autoscaler
knows one metric and keeps the rest in annotations. Either is stored in one version, as
the real server does, and what is written in the other one is converted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from trimtab.embedded.builtin import scalers
from trimtab.embedded.builtin.shapes import shape

Plain = dict[str, Any]

STORED: Final = {
    ("events.k8s.io", "events"): ("", "v1"),
    ("autoscaling", "horizontalpodautoscalers"): ("autoscaling", "v2"),
}
"""The group and version that objects of a resource are stored in."""
FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    "Event": ("v1", "events.k8s.io/v1"),
    "HorizontalPodAutoscaler": ("autoscaling/v1", "autoscaling/v2"),
}
"""The versions that are converted into each other."""
EVENT_NAMES: Final = {
    "involvedObject": "regarding",
    "source": "deprecatedSource",
    "message": "note",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
"""What a field of an Event is called in the newer group."""


def _renamed(obj: Plain, names: Mapping[str, str]) -> Plain:
    return {names.get(key, key): value for key, value in obj.items()}


_OLD_NAMES: Final = {new: old for old, new in EVENT_NAMES.items()}
_TO: Final[Mapping[tuple[str, str], Callable[[Plain], Plain]]] = {
    ("Event", "v1"): lambda obj: _renamed(obj, _OLD_NAMES),
    ("Event", "events.k8s.io/v1"): lambda obj: _renamed(obj, EVENT_NAMES),
    ("HorizontalPodAutoscaler", "autoscaling/v1"): scalers.to_first,
    ("HorizontalPodAutoscaler", "autoscaling/v2"): scalers.to_second,
}


class Versions:
    """The converter of the built-in kinds; it asks nobody."""

    def convert(self, objects: Sequence[Plain], to: str) -> list[Plain]:
        """Objects in a version; those that are in it already stay what they are."""
        return [self._convert(each, to) for each in objects]

    def _convert(self, obj: Plain, to: str) -> Plain:
        kind = obj["kind"]
        if obj["apiVersion"] == to:
            return obj
        copy: Plain = msgspec.json.decode(msgspec.json.encode(obj))
        made = {**_TO[kind, to](copy), "apiVersion": to}
        shape(to.rpartition("/")[0], kind, made)
        return made


CONVERTER: Final = Versions()


def own_entries(kind: str, api_version: str, obj: Plain) -> Plain:
    """An Event without the managed fields that the real server cannot track.

    It converts no fields from group to group: in the old one, entries of the new one
    go; in the new one, all entries go with one of the old one.
    """
    if kind != "Event" or api_version not in FAMILIES[kind]:
        return obj
    entries = obj["metadata"].get("managedFields") or []
    own = [each for each in entries if each.get("apiVersion") == api_version]
    if len(own) == len(entries):
        return obj
    meta = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    if own and api_version == "v1":
        meta["managedFields"] = own
    return {**obj, "metadata": meta}
