"""Addresses of Services: each is an object, and so is each range they come from.

A Service's address comes and goes with the Service; one that is deleted under it is
made again. A range is ready once it is known here, and a range that is in use stays
until its addresses are gone or another range has them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from ipaddress import ip_address, ip_network

import msgspec

from trimtab.api.times import rfc3339
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.deletion import DeleteOptions
from trimtab.embedded.following import Follower
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.registry import Registry
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Change, Store
from trimtab.embedded.writes import Write

API_VERSION = "networking.k8s.io/v1"
SERVICES = "core/services/"
ADDRESSES = "networking.k8s.io/ipaddresses/"
RANGES = "networking.k8s.io/servicecidrs/"
SERVER = "kube-apiserver"
MANAGER = "service-cidr-controller"
FINALIZER = "networking.k8s.io/service-cidr-finalizer"
FAMILY = "ipaddress.kubernetes.io/ip-family"
MANAGED = "ipaddress.kubernetes.io/managed-by"
ALLOCATOR = "ipallocator.k8s.io"
IN_USE = (
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or "
    "create a new ServiceCIDR"
)


class _Spec(msgspec.Struct, gc=False):
    clusterIPs: list[str] = []


class _Service(msgspec.Struct, gc=False):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decode = msgspec.json.Decoder(_Service).decode


class ServiceAddresses(Follower):
    """Who has which address, as far as it has changed since the last look."""

    prefix = SERVICES

    def __init__(
        self,
        store: Store,
        *,
        catalog: Catalog,
        registry: Registry,
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(store, catalog=catalog, registry=registry, now=now)
        self._holders: dict[str, str] = {}
        self._ranges_due = True

    def step(self) -> bool:
        """Make and remove the addresses that are due, then look at the ranges."""
        super().step()
        if not self._due and self._ranges_due:
            self._ranges_due = False
            for row in self._store.range(RANGES):
                with suppress(ApiProblem):
                    self._follow_range(msgspec.json.decode(row.value))
        return bool(self._due) or self._ranges_due

    def _seen(self, change: Change) -> None:
        if change.key.startswith(SERVICES) and change.previous is not None:
            self._release(change.previous)
        super()._seen(change)
        if change.key.startswith(ADDRESSES):
            self._ranges_due = True
            if change.value is None:
                self._due[change.key.removeprefix(ADDRESSES)] = None
        elif change.key.startswith(RANGES):
            self._ranges_due = True

    def _look(self, key: str, value: bytes) -> None:
        for address in _addresses(value):
            self._holders[address] = key
            self._due[address] = None

    def _release(self, value: bytes) -> None:
        for address in _addresses(value):
            self._holders.pop(address, None)
            self._due[address] = None

    def _kind(self, name: str) -> Kind:
        kind = self._catalog.by_kind(API_VERSION, name)
        assert kind is not None, "they are always served"
        return kind

    def _follow(self, address: str) -> None:
        """An address is there while a Service has it."""
        kind, holder = self._kind("IPAddress"), self._holders.get(address)
        row = self._store.get(ADDRESSES + address)
        if holder is not None and row is None:
            obj = _address(address, holder.removeprefix(SERVICES))
            self._registry.create(Write(kind=kind, manager=SERVER), obj)
        elif holder is None and row is not None:
            labels = metadata_of(kind.decode(row.value)).get("labels") or {}
            if labels.get(MANAGED) == ALLOCATOR:
                self._registry.delete(kind, "", address, DeleteOptions())

    def _follow_range(self, obj: Plain) -> None:
        meta = metadata_of(obj)
        finalizers = meta.get("finalizers") or []
        if not meta.get("deletionTimestamp"):
            if FINALIZER not in finalizers:
                self._finalize(meta["name"], [*finalizers, FINALIZER])
            self._say(obj, "True", "", "Kubernetes Service CIDR is ready")
        elif self._is_needed(obj):
            self._say(obj, "False", "Terminating", IN_USE)
        elif FINALIZER in finalizers:
            kept = [each for each in finalizers if each != FINALIZER]
            self._finalize(meta["name"], kept)

    def _is_needed(self, obj: Plain) -> bool:
        """Whether an address would be left in no range at all."""
        own = metadata_of(obj)["name"]
        others = [
            ip_network(each)
            for row in self._store.range(RANGES)
            if row.key.removeprefix(RANGES) != own
            for each in msgspec.json.decode(row.value)["spec"].get("cidrs") or ()
        ]
        mine = [ip_network(each) for each in obj["spec"].get("cidrs") or ()]
        for row in self._store.range(ADDRESSES):
            address = ip_address(row.key.removeprefix(ADDRESSES))
            labels = metadata_of(msgspec.json.decode(row.value)).get("labels") or {}
            managed = labels.get(MANAGED) == ALLOCATOR
            held = any(address in each for each in mine)
            if managed and held and not any(address in each for each in others):
                return True
        return False

    def _finalize(self, name: str, finalizers: list[str]) -> None:
        kind = self._kind("ServiceCIDR")
        obj, _ = self._registry.read(kind, "", name)
        metadata_of(obj)["finalizers"] = finalizers
        write = Write(kind=kind, name=name, manager="kube-controller-manager")
        self._registry.update(write, obj)

    def _say(self, obj: Plain, status: str, reason: str, message: str) -> None:
        for each in (obj.get("status") or {}).get("conditions") or ():
            told = (each["status"], each.get("reason", ""), each.get("message", ""))
            if each["type"] == "Ready" and told == (status, reason, message):
                return
        condition = {
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": rfc3339(self._now()),
        }
        name = metadata_of(obj)["name"]
        write = Write(
            kind=self._kind("ServiceCIDR"),
            name=name,
            subresource="status",
            manager=MANAGER,
            force=True,
        )
        intent = {
            "apiVersion": API_VERSION,
            "kind": "ServiceCIDR",
            "metadata": {"name": name},
            "status": {"conditions": [condition]},
        }
        self._registry.apply(write, intent)


def _addresses(value: bytes) -> Iterator[str]:
    return (each for each in _decode(value).spec.clusterIPs if each not in ("", "None"))


def _address(name: str, service: str) -> Plain:
    namespace, _, owner = service.partition("/")
    family = "IPv6" if ":" in name else "IPv4"
    return {
        "apiVersion": API_VERSION,
        "kind": "IPAddress",
        "metadata": {"name": name, "labels": {FAMILY: family, MANAGED: ALLOCATOR}},
        "spec": {
            "parentRef": {
                "resource": "services",
                "namespace": namespace,
                "name": owner,
            }
        },
    }
