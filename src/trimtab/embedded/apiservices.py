"""APIServices: one for each group and version, and whether somebody answers for it.

Nothing is aggregated here: what others would serve is never there. But clients look up
in these objects what is served, and operators wait for theirs to become available.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

import msgspec

from trimtab.api.times import rfc3339
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.deletion import DeleteOptions
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.registry import Registry
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Change, Store
from trimtab.embedded.writes import Write

GROUP = "apiregistration.k8s.io"
API_VERSION = f"{GROUP}/v1"
SERVICES = "core/services/"
PREFIX = f"{GROUP}/apiservices/"
MANAGER = "kube-apiserver"
MANAGED = "kube-aggregator.kubernetes.io/automanaged"


class ApiServices:
    """Follows the kinds that are served, and those objects themselves."""

    def __init__(
        self,
        store: Store,
        *,
        catalog: Catalog,
        registry: Registry,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._registry = registry
        self._now = now
        self._revision = -1
        self._due = True

    def start(self) -> None:
        """Follow the changes of the store."""
        self._store.subscribe(self._seen)

    def step(self) -> bool:
        """Bring them up to date; True if there is more to do."""
        if not self._due and self._revision == self._catalog.revision:
            return False
        self._due = False
        self._revision = self._catalog.revision
        kind = self._catalog.by_kind(API_VERSION, "APIService")
        assert kind is not None, "they are always served"
        found = {
            row.key.removeprefix(PREFIX): msgspec.json.decode(row.value)
            for row in self._store.range(PREFIX)
        }
        wanted = self._wanted()
        for name in wanted.keys() - found.keys():
            self._registry.create(Write(kind=kind, manager=MANAGER), wanted[name])
        for name, obj in found.items():
            with suppress(ApiProblem):
                self._follow(kind, name, obj, wanted)
        return False

    def _seen(self, change: Change) -> None:
        if change.key.startswith((PREFIX, SERVICES)):
            self._due = True

    def _wanted(self) -> dict[str, Plain]:
        """One for each group and version of CRDs."""
        places = {
            (each.group, each.version)
            for each in self._catalog.resources()
            if each.custom
        }
        return {
            f"{version}.{group}": _custom(group, version) for group, version in places
        }

    def _follow(
        self, kind: Kind, name: str, obj: Plain, wanted: dict[str, Plain]
    ) -> None:
        labels = metadata_of(obj).get("labels") or {}
        if labels.get(MANAGED) == "true" and name not in wanted:
            self._registry.delete(kind, "", name, DeleteOptions())
            return
        said = self._judged(obj["spec"].get("service"))
        state = obj.get("status") or {}
        conditions: list[Plain] = state.get("conditions") or []
        before: Plain = next((e for e in conditions if e["type"] == "Available"), {})
        if {key: before.get(key) for key in said} == said:
            return
        time = rfc3339(self._now())
        if before.get("status") == said["status"]:
            time = before.get("lastTransitionTime") or time
        others = [each for each in conditions if each is not before]
        told = [*others, {**said, "lastTransitionTime": time}]
        write = Write(kind=kind, name=name, subresource="status", manager=MANAGER)
        self._registry.update(write, {**obj, "status": {"conditions": told}})

    def _judged(self, service: Plain | None) -> Plain:
        """Whether a group and version is there; if others serve it, why not."""
        if service is None:
            return _said("True", "Local", "Local APIServices are always available")
        there = self._store.get(f"{SERVICES}{service['namespace']}/{service['name']}")
        called = f'service/{service["name"]} in "{service["namespace"]}"'
        if there is None:
            return _said("False", "ServiceNotFound", f"{called} is not present")
        port = _port_name(msgspec.json.decode(there.value))
        told = f'endpointslices for {called} have no addresses with port name "{port}"'
        return _said("False", "MissingEndpoints", told)


def _said(status: str, reason: str, message: str) -> Plain:
    told = {"type": "Available", "status": status}
    return {**told, "reason": reason, "message": message}


def _port_name(service: Plain) -> str:
    ports = service["spec"].get("ports") or [{}]
    return str(ports[0].get("name") or "")


def _custom(group: str, version: str) -> Plain:
    return {
        "apiVersion": API_VERSION,
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}", "labels": {MANAGED: "true"}},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 1000,
            "versionPriority": 100,
        },
    }
