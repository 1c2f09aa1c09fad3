"""The site: what all pods of one node share, handed to each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from ipaddress import IPv4Address
from pathlib import Path
from random import Random

import msgspec

from trimtab.api.kinds import Taint
from trimtab.api.quantity import Quantity
from trimtab.client import Client
from trimtab.kubelet import logs
from trimtab.kubelet.images import Images
from trimtab.kubelet.limits import Cgroups, Meter
from trimtab.kubelet.processes import Warden
from trimtab.runtime.backoff import Backoff
from trimtab.runtime.events import Recorder

LOOPBACK = "127.0.0.1"
POD_ADDRESSES = int(IPv4Address("127.64.0.0"))
POD_ADDRESS_COUNT = 1 << 22


class KubeletOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a node behaves. Each default is what a real kubelet has."""

    name: str
    """The node's name."""
    folder: Path
    """Where pods have their files; one kubelet at a time uses it."""
    images: Images
    api: tuple[str, str] = ("", "")
    """Host and port at which pods find the API server."""
    alone: bool = True
    """No node controller runs in the cluster: the node itself says that it is ready."""
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    capacity: Mapping[str, str] = {}
    """In place of what the machine has."""
    pods: int = 110
    restart: Backoff = Backoff(first=10.0, factor=2.0, cap=300.0, jitter=0.0)
    """Pauses before a container is started a third time, a fourth, and so on."""
    pull: Backoff = Backoff(first=10.0, factor=2.0, cap=300.0, jitter=0.0)
    """Pauses between two looks for an image or a configuration that is not there."""
    steady: float = 600.0
    """Seconds that a container must run for its restarts to be forgotten."""
    heartbeat: float = 10.0
    status_every: float = 300.0
    """Seconds between two reports of a node that did not change."""
    housekeeping: float = 10.0
    refresh: float = 60.0
    """Seconds between two looks at Secrets and ConfigMaps that are mounted."""
    watch_memory: float = 0.5
    """Seconds between two looks at memory where no cgroup limits it."""
    mounts: bool = True
    """Use mounts of their own where the system allows it."""
    cgroups: bool = True
    logs: logs.Limits = logs.Limits()
    farewell: float = 2.0
    """Seconds that containers have to end when the kubelet stops."""


class Addresses:
    """Addresses on the loopback, one for each pod."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._taken: set[str] = set()

    def take(self, wanted: str = "") -> str:
        """One that is free: the wanted one, if it is."""
        if wanted and wanted not in self._taken:
            self._taken.add(wanted)
            return wanted
        while True:
            offset = self._random.randrange(1, POD_ADDRESS_COUNT - 1)
            address = str(IPv4Address(POD_ADDRESSES + offset))
            if address not in self._taken:
                self._taken.add(address)
                return address

    def release(self, address: str) -> None:
        self._taken.discard(address)


class Site:
    """What a pod needs of its node."""

    def __init__(
        self,
        client: Client,
        options: KubeletOptions,
        *,
        warden: Warden,
        cgroups: Cgroups | None,
        recorder: Recorder,
        random: Random,
        now: Callable[[], datetime],
        allocatable: Mapping[str, Quantity],
    ) -> None:
        self.client = client
        self.options = options
        self.warden = warden
        self.cgroups = cgroups
        self.recorder = recorder
        self.random = random
        self.now = now
        self.allocatable = allocatable
        self.addresses = Addresses(random)
        self.meter = Meter(options.watch_memory)
        self.services: Callable[[str], Mapping[str, str]] = lambda namespace: {}
        """Variables that tell a pod of a namespace where its Services are."""
        self.hosts: Callable[[str], str] = lambda namespace: ""
        """Lines of a hosts file that name the Services."""

    @property
    def can_mount(self) -> bool:
        return self.warden.mounts and self.options.mounts
