"""Allocation: which cluster IP and which ports of the nodes a Service gets.

Nothing here can be reached there; they are given because clients look. What is in use
is found in the store at the start and kept up by its changes.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Any

import msgspec

from trimtab.embedded.store import Change, Store

SERVICES = "core/services/"
NODE_PORTS = range(30000, 32768)


class _Port(msgspec.Struct, gc=False):
    nodePort: int = 0


class _Spec(msgspec.Struct, gc=False):
    clusterIP: str = ""
    healthCheckNodePort: int = 0
    ports: list[_Port] = []


class _Service(msgspec.Struct, gc=False):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decode = msgspec.json.Decoder(_Service).decode


class Allocation:
    """What the Services of one store have, and what is free."""

    def __init__(self, store: Store, network: str) -> None:
        self._network = IPv4Network(network)
        self._first = int(self._network.network_address) + 1
        self._size = self._network.num_addresses - 2
        self._next_address = 10
        self._next_port = 0
        self._taken: set[str | int] = set()
        for row in store.range(SERVICES):
            self._taken |= _used(row.value)
        store.subscribe(self._seen)

    @property
    def first(self) -> str:
        """The address of the API server's own Service."""
        return str(IPv4Address(self._first))

    def allocate(self, what: str, wanted: Any) -> Any:
        """A ``clusterIP`` or a ``nodePort``: the wanted one, or any that is free.

        Errors: ``ValueError`` in the real server's words.
        """
        if what == "clusterIP":
            return self._address(wanted)
        return self._port(wanted)

    def _address(self, wanted: str | None) -> str:
        if wanted:
            if IPv4Address(wanted) not in self._network:
                raise ValueError(
                    "the provided network does not match the current range"
                )
            if wanted in self._taken:
                raise ValueError("provided IP is already allocated")
            return wanted
        for _ in range(self._size):
            self._next_address = self._next_address % self._size + 1
            address = str(IPv4Address(self._first + self._next_address - 1))
            if address not in self._taken and address != self.first:
                return address
        raise ValueError("range is full")

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
        if not change.key.startswith(SERVICES):
            return
        if change.previous is not None:
            self._taken -= _used(change.previous)
        if change.value is not None:
            self._taken |= _used(change.value)


def _used(value: bytes) -> set[str | int]:
    spec = _decode(value).spec
    used: set[str | int] = {spec.clusterIP, spec.healthCheckNodePort}
    used |= {port.nodePort for port in spec.ports}
    return used - {"", "None", 0}
