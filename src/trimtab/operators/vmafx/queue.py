"""The jobs that wait for a node: which one is next, for whoever asks.

A synchronous view, fed with every job as it changes. The order is by priority, then by
age, then by id. Asking costs the same whatever the number of jobs: a heap for each
backend, from which what no longer waits is dropped when it comes up.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import msgspec

from trimtab.operators.vmafx import claims
from trimtab.operators.vmafx.kinds import VmafxJob

Key = tuple[str, str]
Order = tuple[int, str, str]

_ANY = ""
# A job that does not say since when it is there is the newest.
_NEW = "9999"
# A heap with more dead entries than living ones, and than this, is made anew.
_DEAD = 64


class _Waiting(msgspec.Struct, gc=False):
    """One job that waits: its place in the order, and from when it may be given."""

    order: Order
    backend: str
    due: float
    # Of its entry in a heap; an entry with another number is dead.
    number: int


class JobQueue:
    """What waits, by backend.

    Guarantees: a job is offered only while its last seen form waits, and not before
    its backoff is over, measured from when it was first seen to wait. Memory grows
    with the jobs that wait, not with their changes.
    """

    def __init__(self) -> None:
        self._waiting: dict[Key, _Waiting] = {}
        self._ready: dict[str, list[tuple[Order, int, Key]]] = {}
        self._later: list[tuple[float, int, Key]] = []
        self._entries = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, job: VmafxJob, *, now: float) -> bool:
        """Take a job as it is now; whether it has just become one that may be given."""
        key = job.key
        if claims.is_over(job) or claims.is_running(job) or job.spec.cancel:
            self._waiting.pop(key, None)
            return False
        order, backend = _order(job), job.spec.backend or _ANY
        due = now + claims.backoff(job)
        known = self._waiting.get(key)
        if known is not None:
            if (known.order, known.backend) == (order, backend) and known.due <= due:
                return False
            due = min(due, known.due)
        self._entries += 1
        self._waiting[key] = _Waiting(order, backend, due, self._entries)
        if due <= now:
            self._offer(key, self._entries)
            return True
        heapq.heappush(self._later, (due, self._entries, key))
        return False

    def drop(self, key: Key) -> None:
        """Forget a job that is gone."""
        self._waiting.pop(key, None)

    def due(self, now: float) -> float | None:
        """Move what may be given by now; seconds until there is more, if there is."""
        while self._later and self._later[0][0] <= now:
            _, number, key = heapq.heappop(self._later)
            self._offer(key, number)
        return max(0.0, self._later[0][0] - now) if self._later else None

    def take(self, backends: Sequence[str], *, now: float) -> Key | None:
        """The next job for a node with these backends; it is offered only once.

        A node that names none gets only jobs that take any. Whoever takes a job and
        fails to claim it puts back what it reads then.
        """
        self.due(now)
        firsts = [
            (first, backend)
            for backend in {_ANY, *backends}
            if (first := self._first(backend)) is not None
        ]
        if not firsts:
            return None
        _, backend = min(firsts)
        _, _, key = heapq.heappop(self._ready[backend])
        del self._waiting[key]
        return key

    def keys(self) -> Iterable[Key]:
        """All that wait, in no order."""
        return self._waiting.keys()

    def _offer(self, key: Key, number: int) -> None:
        known = self._waiting.get(key)
        if known is None or known.number != number:
            return
        heap = self._ready.setdefault(known.backend, [])
        heapq.heappush(heap, (known.order, number, key))
        if len(heap) > 2 * len(self._waiting) + _DEAD:
            heap[:] = [entry for entry in heap if self._lives(entry)]
            heapq.heapify(heap)

    def _lives(self, entry: tuple[Order, int, Key]) -> bool:
        known = self._waiting.get(entry[2])
        return known is not None and known.number == entry[1]

    def _first(self, backend: str) -> Order | None:
        heap = self._ready.get(backend, [])
        while heap and not self._lives(heap[0]):
            heapq.heappop(heap)
        return heap[0][0] if heap else None


def _order(job: VmafxJob) -> Order:
    created = job.metadata.creationTimestamp
    age = created.isoformat() if created else _NEW
    return (-job.spec.priority, age, job.metadata.uid)
