"""Laws that hold for any operator, checked within every write: each by what it changed.

The cost of a check is that of the changed object, however many there are. Laws about
the state at rest are in :mod:`trimtab.sim.endings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import msgspec

from trimtab.sim.scenario import Always, Scenario, resource_of
from trimtab.sim.server import ObjectChange, Plain, Server

Broken: TypeAlias = Callable[[str, str], None]
"""Called with the law and a sentence that says how it was broken."""

LEASES: Final = "coordination.k8s.io/leases"
EVENTS: Final = ("core/events", "events.k8s.io/events")
APPLY: Final = "application/apply-patch+yaml"
MOST_CONDITIONS: Final = 32
LONGEST_MESSAGE: Final = 32_768

WINDOW: Final = 10.0
MOST_WRITES: Final = 200

STORM: Final = "no object is written in a storm"
ONE_LEADER: Final = "only the leader writes"
ONE_OWNER: Final = "a status field has one writer"
BOUNDED: Final = "conditions are bounded"
KEPT: Final = "the schema keeps what the operator writes"


class Laws:
    """Watches every change of one world."""

    def __init__(self, scenario: Scenario, server: Server, broken: Broken) -> None:
        definitions = scenario.definitions
        name = scenario.operator.name if scenario.operator else ""
        self._scenario = scenario
        self._server = server
        self._broken = broken
        self._lease = f"{LEASES}/default/{name}"
        self._fenced = scenario.elects and all(each.leader for each in definitions)
        self._always = [_own(each) for each in scenario.always]
        self._kinds = {resource_of(each.kind) for each in definitions}
        self._owners: dict[str, dict[str, str]] = {}
        """By uid: who wrote which field of the status last."""
        self._storms: dict[str, tuple[float, int]] = {}
        """By key: since when writes are counted, and how many there were."""
        self.writes = 0
        """By replicas, of what the operator is about."""
        self.last_write = 0.0
        """Or the last Event: what is at rest is not told of any more."""
        self.last_written = ""
        """The key of it."""
        self._clock = server.time
        server.follow(self.changed)

    def changed(self, change: ObjectChange) -> None:
        resource = change.resource
        replica = change.writer.replica >= 0
        if replica and resource != LEASES:
            self.last_write, self.last_written = self._clock(), change.key
        if replica and resource != LEASES and resource not in EVENTS:
            self.writes += 1
            self._no_storm(change.key)
            if self._fenced and not change.writer.program:
                self._one_leader(change)
        if resource in self._kinds:
            if change.after is None:
                self._owners.pop((change.before or {})["metadata"]["uid"], None)
            else:
                self._reconciled(change, change.after, replica)
        for name, law in self._always:
            for sentence in law(self._server, change) or ():
                self._broken(name, sentence)

    def _reconciled(self, change: ObjectChange, after: Plain, replica: bool) -> None:
        status = after.get("status")
        if status is None:
            return
        if (change.before or {}).get("status") != status:
            self._bounded(change.key, status)
            if replica:
                self._one_owner(change, after, status)
        if replica:
            self._kept(change, after)
            self._one_manager(change.key, after)

    def _no_storm(self, key: str) -> None:
        now = self.last_write
        since, count = self._storms.get(key, (now, 0))
        if now - since > WINDOW:
            since, count = now, 0
        self._storms[key] = since, count + 1
        if count == MOST_WRITES:
            self._broken(STORM, f"{key} was written {count} times in {WINDOW:g} s.")

    def _one_leader(self, change: ObjectChange) -> None:
        lease = self._server.objects.get(self._lease, {})
        holder = lease.get("spec", {}).get("holderIdentity") or "nobody"
        if holder.rpartition("_")[0] != change.writer.name:
            self._broken(
                ONE_LEADER,
                f"{change.writer.name} wrote {change.key} while {holder} held the "
                "lease.",
            )

    def _one_owner(self, change: ObjectChange, after: Plain, status: Plain) -> None:
        before = (change.before or {}).get("status") or {}
        written = self._owners.setdefault(after["metadata"]["uid"], {})
        manager = change.writer.manager
        for path in _differing(before, status, ""):
            known = written.setdefault(path, manager)
            if known != manager:
                written[path] = manager
                self._broken(
                    ONE_OWNER,
                    f"status{path} of {change.key} was written by {known}, and now by "
                    f"{manager}.",
                )

    def _one_manager(self, key: str, after: Plain) -> None:
        """By the server's own account: no two appliers own one field of the status."""
        owners: dict[str, str] = {}
        for entry in after["metadata"].get("managedFields", ()):
            part = entry.get("fieldsV1", {}).get("f:status")
            if part is None or entry["operation"] != "Apply":
                continue
            for path in _owned_leaves(part, ""):
                known = owners.setdefault(path, entry["manager"])
                if known != entry["manager"]:
                    both = f"{known} and {entry['manager']}"
                    self._broken(ONE_OWNER, f"status{path} of {key} is {both}'s.")

    def _bounded(self, key: str, status: Plain) -> None:
        conditions = status.get("conditions") or []
        types = [each.get("type") for each in conditions]
        doubled = len(types) != len(set(types))
        if doubled or len(types) > MOST_CONDITIONS:
            self._broken(BOUNDED, f"{key} has the conditions {', '.join(types)}.")
        for each in conditions:
            if len(each.get("message", "")) > LONGEST_MESSAGE:
                self._broken(BOUNDED, f"{key}: the message of {each['type']} is long.")

    def _kept(self, change: ObjectChange, after: Plain) -> None:
        request = change.writer.request
        if request is None or request.headers.get("content-type") != APPLY:
            return
        sent = msgspec.json.decode(request.body)
        for path in _missing(sent.get("status") or {}, after.get("status") or {}, ""):
            self._broken(
                KEPT,
                f"{change.writer.name} wrote status{path} of {change.key}, and the "
                "server dropped it: the CRD does not list it.",
            )


def _own(law: Any) -> tuple[str, Always]:
    """A law of the scenario's, with its name; a class is made anew for this run."""
    made = law() if isinstance(law, type) else law
    return getattr(law, "__name__", "own law"), made


def _differing(before: Any, after: Any, path: str) -> Iterator[str]:
    """The leaves that differ, as paths; conditions go by their type."""
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in {**before, **after}:
            yield from _differing(before.get(name), after.get(name), f"{path}.{name}")
    elif path == ".conditions":
        old = {each["type"]: each for each in before or ()}
        new = {each["type"]: each for each in after or ()}
        for name in {**old, **new}:
            if old.get(name) != new.get(name):
                yield f".conditions[{name}]"
    else:
        yield path


def _owned_leaves(fields: Plain, path: str) -> Iterator[str]:
    """The paths of what an entry of managed fields owns."""
    for name, below in fields.items():
        if name != ".":
            place = f"{path}.{name.partition(':')[2]}"
            if below:
                yield from _owned_leaves(below, place)
            else:
                yield place


def _missing(sent: Any, kept: Any, path: str) -> Iterator[str]:
    """Fields that were sent and are not there."""
    if not isinstance(sent, dict):
        return
    if not isinstance(kept, dict):
        yield path
        return
    for name, value in sent.items():
        if value is None:
            continue
        if name not in kept:
            yield f"{path}.{name}"
        else:
            yield from _missing(value, kept[name], f"{path}.{name}")
