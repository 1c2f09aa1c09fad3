"""What the parts of a replica share: its options, its view, and whom it asks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING, Any, Final

import msgspec

from trimtab.cache import Key, Store
from trimtab.client import Client
from trimtab.client.budget import without_budget
from trimtab.pool.calls import Keyring, WorkerCalls
from trimtab.pool.kinds import Shape, Worker, WorkerPool
from trimtab.pool.liveness import Deaths, Holders, LivenessOptions, Presence
from trimtab.pool.pods import Pods
from trimtab.pool.requests import Never
from trimtab.pool.templates import revision
from trimtab.pool.view import View

if TYPE_CHECKING:
    from trimtab.pool.accounts import Accounts
    from trimtab.pool.swapping import Rows

logger = logging.getLogger("trimtab.pool")

REVISIONS: Final = 1024
"""Hashes of templates that are remembered."""


class PoolOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a replica works; what concerns one pool is in its spec."""

    lease_namespace: str
    """Where the Leases of replicas and holders are, and the leader's."""
    namespaces: tuple[str, ...] = ()
    """Whose pools it serves; empty means those of all namespaces."""
    name: str = ""
    """What its incarnation begins with: the pod's name. Default: the host's."""
    lease_seconds: float = 15.0
    """Seconds without a renewal after which a replica or a holder counts as dead."""
    grace: float = 10.0
    """Seconds between a mark and the end of a worker whose holder seems dead."""
    period: float = 5.0
    """Seconds between two passes of a reaper. An idle worker ends so late at most."""
    spawns: int = 16
    """Workers that one replica spawns at a time."""
    actions: int = 64
    """What one pass of a reaper does at most, before it is another pass's turn."""
    keep_terminal: float = 300.0
    """Seconds that rows of ended workers stay, for people to see."""
    skew: float = 30.0
    """Seconds that the wall clocks of two replicas may differ. Only how soon a fresh
    replica ends idle workers depends on it."""

    @property
    def liveness(self) -> LivenessOptions:
        return LivenessOptions(
            namespace=self.lease_namespace, duration=self.lease_seconds
        )


class Tasks:
    """Tasks of one part, in the replica's group, that can be waited for."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        _ = self.begin(work)

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """As ``start``, for those who end it themselves."""
        task = self._group.create_task(work, context=without_budget())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def __len__(self) -> int:
        return len(self._running)

    async def end(self, within: float) -> None:
        """Wait until they have ended; after so many seconds, cancel those that run."""
        ends = asyncio.get_running_loop().time() + within
        while self._running:
            left = ends - asyncio.get_running_loop().time()
            if left <= 0:
                for task in self._running:
                    task.cancel()
            await asyncio.wait(tuple(self._running), timeout=max(left, 0.0) or None)


class Parts:
    """What is handed to each part of a replica; made once, by the replica."""

    def __init__(
        self,
        client: Client,
        *,
        calls: WorkerCalls,
        keyring: Keyring,
        options: PoolOptions,
        incarnation: str,
        random: Random,
        now: Callable[[], datetime],
        group: asyncio.TaskGroup,
        pools: Store[WorkerPool],
    ) -> None:
        self.client = client
        self.calls = calls
        self.keyring = keyring
        self.options = options
        self.incarnation = incarnation
        self.random = random
        self.now = now
        self.group = group
        self.background = Tasks(group)
        """What nobody waits for: it is finished before the replica stops."""
        self.pools = pools
        self.clock = asyncio.get_running_loop().time
        self.view = View(incarnation)
        self.pods = Pods()
        self.deaths = Deaths(options.liveness, incarnation=incarnation)
        self.claimants: set[str] = set()
        """Holders that need no Lease: each is alive as long as its claim is there."""
        self.stopping = False
        self._revisions: dict[tuple[str, int, str], str] = {}
        self.rows: Rows
        self.accounts: Accounts
        self.presence: Presence
        self.holders: Holders

    def pool(self, key: Key) -> WorkerPool:
        """A pool that is there. Errors: :class:`Never` if it is not."""
        found = self.pools.get(key)
        if found is None or found.metadata.deletionTimestamp is not None:
            raise Never(
                f"There is no WorkerPool {key[0]}/{key[1]}; create it, or correct the "
                "name."
            )
        return found

    def dead(self, identity: str, now: float) -> bool:
        """Whether a replica or a holder seems dead."""
        return identity not in self.claimants and self.deaths.dead(identity, now)

    def outdated(self, pool: WorkerPool, worker: Worker) -> bool:
        """Whether the pool's template would make another worker today."""
        for shape in pool.spec.shapes:
            if shape.name == worker.spec.shape:
                return self._revision(pool, shape) != worker.spec.revision
        return True

    def _revision(self, pool: WorkerPool, shape: Shape) -> str:
        """As :func:`revision`, which is too slow for every release."""
        at = (pool.metadata.uid, pool.metadata.generation, shape.name)
        known = self._revisions.get(at)
        if known is None:
            if len(self._revisions) >= REVISIONS:
                self._revisions.clear()
            known = self._revisions[at] = revision(pool.spec, shape)
        return known

    def may_act(self) -> bool:
        """Whether this replica may hand out workers now."""
        return not self.stopping and self.presence.may_act(self.clock())

    def unique(self) -> str:
        """Sixteen hexadecimal digits that nobody else has."""
        return f"{self.random.getrandbits(64):016x}"
