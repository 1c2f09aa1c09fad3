"""Tables of devices: what is claimed, and what nodes have to give."""

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


def _claim(obj: Plain, now: datetime) -> Row:
    return [obj["metadata"]["name"], _claim_state(obj), created(obj, now)]


def _claim_state(obj: Plain) -> str:
    status, leaving = part(obj, "status"), obj["metadata"].get("deletionTimestamp")
    states = ["deleted"] if leaving else []
    if status.get("allocation") is None:
        states += [] if leaving else ["pending"]
    else:
        states += (
            ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
        )
    return ",".join(states)


def _slice(obj: Plain, now: datetime) -> Row:
    spec = part(obj, "spec")
    return [
        obj["metadata"]["name"],
        spec.get("nodeName") or "",
        spec.get("driver") or "",
        part(spec, "pool").get("name") or "",
        created(obj, now),
    ]


def _taint(obj: Plain, now: datetime) -> Row:
    taint = part(obj, "spec", "taint")
    added = taint.get("timeAdded")
    return [
        obj["metadata"]["name"],
        taint.get("key") or "",
        taint.get("value") or "",
        taint.get("effect") or "",
        since(added, now) if added else "",
        created(obj, now),
    ]


PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("resource.k8s.io", "ResourceClaim"): printer("Name/name, State, Age", _claim),
    ("resource.k8s.io", "ResourceSlice"): printer(
        "Name/name, Node, Driver, Pool, Age", _slice
    ),
    ("resource.k8s.io", "DeviceTaintRule"): printer(
        "Name/name, Key, Value, Effect, TimeAdded, Age", _taint
    ),
}
