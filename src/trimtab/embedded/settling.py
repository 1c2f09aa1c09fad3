"""Settling: what a write may touch, and one that changed nothing leaves no trace."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from trimtab.embedded.kinds import Plain
from trimtab.embedded.managed import with_entries
from trimtab.embedded.writes import Write


def with_settled_times(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The object with its old times if nothing but times changed.

    For after admission: a write that changed nothing must not make a revision. The
    ``resourceVersion`` does not count; the new object may not have one yet.
    """
    old = before["metadata"].get("managedFields") or []
    new = after["metadata"].get("managedFields") or []
    if len(old) != len(new) or not new or old == new:
        return after
    timeless = [{**each, "time": ""} for each in (*old, *new)]
    if timeless[: len(old)] != timeless[len(old) :]:
        return after
    settled_one = with_entries(after, old)
    is_same = _unversioned(settled_one) == _unversioned(before)
    return settled_one if is_same else after


def _unversioned(object: dict[str, Any]) -> dict[str, Any]:
    return {**object, "metadata": {**object["metadata"], "resourceVersion": ""}}


def kept(write: Write, obj: Plain, old: Plain) -> Plain:
    """What a write may touch: the object without its status, or its status alone."""
    kind = write.kind
    if write.subresource == "status":
        left = {key: value for key, value in old.items() if key != "status"}
        if "status" in obj:
            left["status"] = obj["status"]
        if kind.custom is None:
            left["metadata"] = obj["metadata"]
        else:
            meta = dict(old["metadata"])
            meta.pop("managedFields", None)
            if "managedFields" in obj["metadata"]:
                meta["managedFields"] = obj["metadata"]["managedFields"]
            left["metadata"] = meta
        return deepcopy(left)
    if kind.has_status and not write.subresource:
        obj.pop("status", None)
        if "status" in old:
            obj["status"] = deepcopy(old["status"])
    return obj
