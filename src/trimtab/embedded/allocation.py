"""Allocation: which cluster IP and which ports of the nodes a Service gets.

Nothing here can be reached there; they are given because clients look. What is in use,
and which ranges there are, is found in the store at the start and kept up by its
changes. An address is in use as soon as there is an object for it, whoever made that.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import msgspec

from trimtab.embedded.store import Change, Store

SERVICES = "core/services/"
ADDRESSES = "networking.k8s.io/ipaddresses/"
RANGES = "networking.k8s.io/servicecidrs/"
DEFAULT = "kubernetes"
MANAGED = "ipaddress.kubernetes.io/managed-by"
ALLOCATOR = "ipallocator.k8s.io"
NODE_PORTS = range(30000, 32768)


class _Port(msgspec.Struct, gc=False):
    nodePort: int = 0


class _Spec(msgspec.Struct, gc=False):
    clusterIP: str = ""
    healthCheckNodePort: int = 0
    ports: list[_Port] = []


class _Service(msgspec.Struct, gc=False):
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Meta(msgspec.Struct, gc=False):
    labels: dict[str, str] = {}
    deletionTimestamp: str | None = None


class _Condition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""


class _Ranges(msgspec.Struct, gc=False):
    cidrs: list[str] = []


class _Status(msgspec.Struct, gc=False):
    conditions: list[_Condition] = []


class _Range(msgspec.Struct, gc=False):
    metadata: _Meta
    spec: _Ranges = msgspec.field(default_factory=_Ranges)
    status: _Status = msgspec.field(default_factory=_Status)


_decode = msgspec.json.Decoder(_Service).decode
_decode_range = msgspec.json.Decoder(_Range).decode


class Allocation:
    """What the Services of one store have, and what is free."""

    def __init__(self, store: Store, network: str) -> None:
        self._network = IPv4Network(network)
        self._first = int(self._network.network_address) + 1
        self._next_address = 10
        self._next_port = 0
        self._taken: set[str | int] = set()
        self._reserved: set[str] = set()
        self._ranges: dict[str, list[IPv4Network]] = {}
        for prefix in (SERVICES, ADDRESSES, RANGES):
            for row in store.range(prefix):
                self._look(row.key, row.value)
        store.subscribe(self._seen)

    @property
    def first(self) -> str:
        """The address of the API server's own Service."""
        return str(IPv4Address(self._first))

    def is_free(self, what: str | int) -> bool:
        """Whether nobody has an address or a port."""
        return what not in self._taken and what not in self._reserved

    def _networks(self) -> Iterator[IPv4Network]:
        """The ranges that addresses may be taken from, the first one first."""
        yield from self._ranges.get(DEFAULT, [self._network])
        for name in sorted(self._ranges):
            if name != DEFAULT:
                yield from self._ranges[name]

    def allocate(self, what: str, wanted: Any) -> Any:
        """A ``clusterIP`` or a ``nodePort``: the wanted one, or any that is free.

        Errors: ``ValueError`` in the real server's words.
        """
        if what == "clusterIP":
            return self._address(wanted)
        return self._port(wanted)

    def _address(self, wanted: str | None) -> str:
        if wanted:
            address = IPv4Address(wanted)
            if not any(address in each for each in self._networks()):
                raise ValueError(
                    "the provided network does not match the current range"
                )
            if not self.is_free(wanted):
                raise ValueError("provided IP is already allocated")
            return wanted
        for network in self._networks():
            if found := self._next(network):
                return found
        raise ValueError("range is full")

    def _next(self, network: IPv4Network) -> str:
        """The next free address of a range; empty if there is none."""
        first, size = int(network.network_address) + 1, network.num_addresses - 2
        for _ in range(size):
            self._next_address = self._next_address % size + 1
            address = str(IPv4Address(first + self._next_address - 1))
            if self.is_free(address) and address != self.first:
                return address
        return ""

    def _port(self, wanted: int | None) -> int:
        if wanted:
            if wanted not in NODE_PORTS:
                ports = f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
                raise ValueError(
                    "provided port is not in the valid range. The range of valid ports "
                    f"is {ports}"
                )
            if wanted in self._taken:
                raise ValueError("provided port is already allocated")
            return wanted
        for _ in NODE_PORTS:
            port = NODE_PORTS[self._next_port % len(NODE_PORTS)]
            self._next_port += 1
            if port not in self._taken:
                return port
        raise ValueError("range is full")

    def _seen(self, change: Change) -> None:
        if change.previous is not None:
            self._forget(change.key, change.previous)
        if change.value is not None:
            self._look(change.key, change.value)

    def _forget(self, key: str, value: bytes) -> None:
        if key.startswith(SERVICES):
            self._taken -= _used(value)
        elif key.startswith(ADDRESSES):
            self._reserved.discard(key.removeprefix(ADDRESSES))
        elif key.startswith(RANGES):
            self._ranges.pop(key.removeprefix(RANGES), None)

    def _look(self, key: str, value: bytes) -> None:
        if key.startswith(SERVICES):
            self._taken |= _used(value)
        elif key.startswith(ADDRESSES):
            if _decode_range(value).metadata.labels.get(MANAGED) != ALLOCATOR:
                self._reserved.add(key.removeprefix(ADDRESSES))
        elif key.startswith(RANGES):
            self._ranges[key.removeprefix(RANGES)] = _usable(_decode_range(value))


def _usable(found: _Range) -> list[IPv4Network]:
    """The networks of a range, if addresses may be taken from it."""
    ready = any(
        each.type == "Ready" and each.status == "True"
        for each in found.status.conditions
    )
    if not ready or found.metadata.deletionTimestamp is not None:
        return []
    return [IPv4Network(each) for each in found.spec.cidrs if ":" not in each]


def _used(value: bytes) -> set[str | int]:
    spec = _decode(value).spec
    used: set[str | int] = {spec.clusterIP, spec.healthCheckNodePort}
    used |= {port.nodePort for port in spec.ports}
    return used - {"", "None", 0}
