"""Flows: the flow control objects that are always there, and what is said of others.

Requests are not held back here, so nothing follows from these objects; but those that a
real server keeps are kept, and each FlowSchema says whether its priority level exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import msgspec

from trimtab.api.times import rfc3339
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.registry import Registry
from trimtab.embedded.status import ApiProblem, quoted
from trimtab.embedded.store import Change, Store
from trimtab.embedded.writes import Write

GROUP = "flowcontrol.apiserver.k8s.io"
API_VERSION = f"{GROUP}/v1"
SCHEMAS = f"{GROUP}/flowschemas/"
LEVELS = f"{GROUP}/prioritylevelconfigurations/"
PRODUCER = "api-priority-and-fairness-config-producer-v1"
CONSUMER = "api-priority-and-fairness-config-consumer-v1"
AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec"
FIXED = frozenset({"exempt", "catch-all"})
# How long the real server lets a change to one of its own objects stand, at most.
PATIENCE = timedelta(minutes=1)


class Flows:
    """What has changed since the last look."""

    def __init__(
        self,
        store: Store,
        *,
        catalog: Catalog,
        registry: Registry,
        own: Iterable[Plain],
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._registry = registry
        self._own = tuple(own)
        self._now = now
        self._due = True
        self._restored = now()

    def start(self) -> None:
        """Put what is missing in its place, then follow the changes of the store."""
        self._restore()
        self._store.subscribe(self._seen)

    def step(self) -> bool:
        """Say what is to be said; True if something else has changed by that."""
        if self._due:
            self._due = False
            levels = {row.key.removeprefix(LEVELS) for row in self._store.range(LEVELS)}
            for row in self._store.range(SCHEMAS):
                self._judge(msgspec.json.decode(row.value), levels)
        return False

    def maintain(self) -> None:
        """Restore what is the server's own, once in a while."""
        if self._now() - self._restored >= PATIENCE:
            self._restore()

    def _seen(self, change: Change) -> None:
        if change.key.startswith((SCHEMAS, LEVELS)):
            self._due = True

    def _restore(self) -> None:
        self._restored = self._now()
        for wanted in self._own:
            try:
                self._ensure(wanted)
            except ApiProblem:
                continue  # it is being changed: there will be another time

    def _ensure(self, wanted: Plain) -> None:
        kind = self._kind(wanted["kind"])
        name = metadata_of(wanted)["name"]
        write = Write(kind=kind, name=name, manager=PRODUCER)
        row = self._store.get(kind.key("", name))
        if row is None:
            self._registry.create(
                write, msgspec.json.decode(msgspec.json.encode(wanted))
            )
            return
        found = kind.decode(row.value)
        notes = metadata_of(found).get("annotations") or {}
        followed = notes.get(AUTOUPDATE) == "true" or name in FIXED
        if name == "exempt" and notes.get(AUTOUPDATE) != "true":
            return  # its shares are the administrator's
        if followed and found["spec"] != wanted["spec"]:
            self._registry.update(write, {**found, "spec": wanted["spec"]})

    def _kind(self, name: str) -> Kind:
        kind = self._catalog.by_kind(API_VERSION, name)
        assert kind is not None, "flow control is always served"
        return kind

    def _judge(self, schema: Plain, levels: set[str]) -> None:
        """Whether the level of a schema is there."""
        level = schema["spec"]["priorityLevelConfiguration"]["name"]
        known = level in levels
        said = {
            "type": "Dangling",
            "status": "False" if known else "True",
            "lastTransitionTime": rfc3339(self._now()),
            "reason": "Found" if known else "NotFound",
            "message": "This FlowSchema references the PriorityLevelConfiguration "
            f"object named {quoted(level)} "
            + ("and it exists" if known else "but there is no such object"),
        }
        for each in (schema.get("status") or {}).get("conditions") or ():
            if each["type"] == said["type"]:
                if {**each, "lastTransitionTime": ""} == {
                    **said,
                    "lastTransitionTime": "",
                }:
                    return
                if each.get("status") == said["status"]:
                    said["lastTransitionTime"] = each["lastTransitionTime"]
        name = metadata_of(schema)["name"]
        self._registry.apply(
            Write(
                kind=self._kind("FlowSchema"),
                name=name,
                subresource="status",
                manager=CONSUMER,
                force=True,
            ),
            {
                "apiVersion": API_VERSION,
                "kind": "FlowSchema",
                "metadata": {"name": name},
                "status": {"conditions": [said]},
            },
        )
