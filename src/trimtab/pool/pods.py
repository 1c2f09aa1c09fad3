"""Pods of workers as the watch shows them, and who waits for one to be ready."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Final

import msgspec

from trimtab.api import Conditions, Object, Resource
from trimtab.cache import Change, Key
from trimtab.client import TrimtabError
from trimtab.pool.kinds import LABEL_POOL

ENDED: Final = frozenset({"Failed", "Succeeded"})


class WorkerPodStatus(Object):
    """How far a pod is."""

    phase: str = ""
    podIP: str = ""
    conditions: Conditions = Conditions()


class WorkerPod(Resource, version="v1", kind="Pod", builtin=True):
    """Of a pod only what the pool reads: there may be ten thousand of them."""

    status: WorkerPodStatus = WorkerPodStatus()


class SeenPod(msgspec.Struct, frozen=True, gc=False):
    """What is remembered of the pod of a worker."""

    uid: str
    pool: str
    phase: str
    address: str
    ready: bool
    going: bool
    """It was told to end."""

    @property
    def ended(self) -> bool:
        """Whether nothing of it will run again."""
        return self.going or self.phase in ENDED


class PodEnded(TrimtabError):
    """A pod ended, or was deleted, before it was ready."""


class Pods:
    """The pods that carry the label of a worker, by the worker's key.

    A pod has the name of its worker.
    """

    def __init__(self) -> None:
        self._pods: dict[Key, SeenPod] = {}
        self._waiters: dict[Key, asyncio.Future[SeenPod]] = {}

    def follow(self, change: Change[WorkerPod]) -> None:
        """Take a change that the watch brought."""
        if change.new is None:
            self._pods.pop(change.key, None)
        else:
            self._pods[change.key] = seen(change.new)
        self._tell(change.key)

    def get(self, key: Key) -> SeenPod | None:
        return self._pods.get(key)

    def items(self) -> Iterator[tuple[Key, SeenPod]]:
        """All pods; safe against changes meanwhile."""
        yield from tuple(self._pods.items())

    async def until_ready(self, key: Key) -> SeenPod:
        """Wait until a pod is ready and has an address.

        Errors: :class:`PodEnded` if it ends instead. The caller minds the time.
        """
        waiter: asyncio.Future[SeenPod] = asyncio.get_running_loop().create_future()
        self._waiters[key] = waiter
        try:
            if key in self._pods:
                self._tell(key)
            return await waiter
        finally:
            self._waiters.pop(key, None)

    def _tell(self, key: Key) -> None:
        waiter, pod = self._waiters.get(key), self._pods.get(key)
        if waiter is None or waiter.done():
            return
        if pod is None or pod.ended:
            why = f"is {pod.phase}" if pod else "was deleted"
            waiter.set_exception(
                PodEnded(f"The pod {key[0]}/{key[1]} {why} before it was ready.")
            )
        elif pod.ready:
            waiter.set_result(pod)


def seen(pod: WorkerPod) -> SeenPod:
    """A pod in short."""
    status, metadata = pod.status, pod.metadata
    return SeenPod(
        uid=metadata.uid,
        pool=sys.intern(metadata.labels.get(LABEL_POOL, "")),
        phase=sys.intern(status.phase),
        address=status.podIP,
        ready=bool(status.podIP) and status.conditions.is_true("Ready"),
        going=metadata.deletionTimestamp is not None,
    )
