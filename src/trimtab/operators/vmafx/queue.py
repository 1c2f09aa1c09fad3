"""The jobs that wait for a node: which one is next, for whoever asks.

A synchronous view, fed with every job as it changes. Tenants take turns by their
weights, and a namespace that belongs to none counts as one; of a tenant's own jobs the
order is by priority, then by age, then by id. Asking costs the same whatever the number
of jobs: a heap for each tenant and backend, from which what no longer waits is dropped
when it comes up.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

import msgspec

from trimtab.operators.vmafx import claims
from trimtab.operators.vmafx.kinds import VmafxJob
from trimtab.operators.vmafx.shares import Share, Turns, Unit

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
    unit: Unit
    due: float
    # Of its entry in a heap; an entry with another number is dead.
    number: int


class _Given(msgspec.Struct, gc=False):
    """One job that a node has, or that was taken for one a moment ago."""

    unit: Unit
    # Whether it was seen to run; else it may come back unclaimed.
    runs: bool


class _Tally(msgspec.Struct, gc=False):
    """How many jobs of a unit wait and run, and for which backends some waited."""

    waiting: int = 0
    running: int = 0
    backends: set[str] = msgspec.field(default_factory=set)


class JobQueue:
    """What waits, by tenant and backend.

    ``tenant_of`` says to which tenant a namespace belongs; empty is to none, and then
    the namespace shares as a tenant would, with weight 1. ``share_of`` says what a
    tenant is due. When their answers change, ``regroup``.

    Guarantees: a job is offered only while its last seen form waits, and not before
    its backoff is over, measured from when it was first seen to wait. Of tenants that
    always have jobs which can be given, each gets its share of what is given. A tenant
    at its limit gets no more. Memory grows with the jobs that wait and run, not with
    their changes.
    """

    def __init__(
        self,
        *,
        tenant_of: Callable[[str], str] = lambda namespace: "",
        share_of: Callable[[str], Share] = lambda tenant: Share(),
    ) -> None:
        self._tenant_of = tenant_of
        self._share_of = share_of
        self._waiting: dict[Key, _Waiting] = {}
        self._given: dict[Key, _Given] = {}
        self._tallies: dict[Unit, _Tally] = {}
        self._turns = Turns(lambda unit: max(1, self._share(unit).weight))
        self._ready: dict[tuple[Unit, str], list[tuple[Order, int, Key]]] = {}
        self._later: list[tuple[float, int, Key]] = []
        self._entries = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, job: VmafxJob, *, now: float) -> Sequence[str]:
        """Take a job as it is now; the backends for which more can be given by that.

        An empty one stands for any.
        """
        key = job.key
        if claims.is_split(job):
            return ()  # its segments wait in its place
        if claims.is_running(job):
            self._runs(key)
            return ()
        if claims.is_over(job) or job.spec.cancel:
            return self.drop(key)
        freed = self._returned(key)
        order, backend = _order(job), job.spec.backend or _ANY
        due = now + claims.backoff(job)
        known = self._waiting.get(key)
        if known is not None:
            if (known.order, known.backend) == (order, backend) and known.due <= due:
                return freed
            due = min(due, known.due)
        self._wait(key, order, backend, due)
        if due <= now:
            self._offer(key, self._entries)
            return (*freed, backend)
        heapq.heappush(self._later, (due, self._entries, key))
        return freed

    def drop(self, key: Key) -> Sequence[str]:
        """Forget a job that is gone; as ``put``, what can be given by that."""
        self._leave(key)
        return self._free(key)

    def due(self, now: float) -> float | None:
        """Move what may be given by now; seconds until there is more, if there is."""
        while self._later and self._later[0][0] <= now:
            _, number, key = heapq.heappop(self._later)
            self._offer(key, number)
        return max(0.0, self._later[0][0] - now) if self._later else None

    def take(
        self, backends: Sequence[str], *, now: float, tenant: str = ""
    ) -> Key | None:
        """The next job for a node with these backends; it is offered only once.

        A node that names none gets only jobs that take any; one that works for a tenant
        gets only that tenant's. Whoever takes a job and fails to claim it puts back
        what it reads then.
        """
        self.due(now)
        lines = {_ANY, *backends}
        unit = self._own(tenant, lines) if tenant else None
        if not tenant:
            unit = self._turns.next(lines, self._can)
        if unit is None:
            return None
        firsts = [(first, line) for line in lines if (first := self._first(unit, line))]
        _, line = min(firsts)
        _, _, key = heapq.heappop(self._ready[unit, line])
        self._turns.serve(unit)
        self._give(key, unit, runs=False)
        self._leave(key)
        return key

    def keys(self) -> Iterable[Key]:
        """All that wait, in no order."""
        return self._waiting.keys()

    def waiting(self, tenant: str) -> int:
        """How many jobs of a tenant wait."""
        tally = self._tallies.get((tenant, ""))
        return tally.waiting if tally else 0

    def regroup(self, *, now: float) -> None:
        """Ask anew to whom each job belongs, and what each is due."""
        self._tallies.clear()
        self._turns.clear()
        self._ready.clear()
        for key, known in self._waiting.items():
            known.unit = self._unit(key)
            self._tally(known.unit).waiting += 1
            if known.due <= now:
                self._offer(key, known.number)
        for key, given in self._given.items():
            given.unit = self._unit(key)
            self._tally(given.unit).running += 1

    def _unit(self, key: Key) -> Unit:
        tenant = self._tenant_of(key[0])
        return (tenant, "") if tenant else ("", key[0])

    def _share(self, unit: Unit) -> Share:
        return self._share_of(unit[0]) if unit[0] else Share()

    def _tally(self, unit: Unit) -> _Tally:
        return self._tallies.setdefault(unit, _Tally())

    def _wait(self, key: Key, order: Order, backend: str, due: float) -> None:
        known = self._waiting.get(key)
        unit = known.unit if known else self._unit(key)
        if known is None:
            self._tally(unit).waiting += 1
        self._entries += 1
        self._waiting[key] = _Waiting(order, backend, unit, due, self._entries)

    def _leave(self, key: Key) -> None:
        known = self._waiting.pop(key, None)
        if known is not None:
            tally = self._tallies[known.unit]
            tally.waiting -= 1
            self._tidy(known.unit, tally)

    def _give(self, key: Key, unit: Unit, *, runs: bool) -> None:
        self._given[key] = _Given(unit, runs)
        self._tally(unit).running += 1

    def _runs(self, key: Key) -> None:
        """A job is seen to run: it may have been given elsewhere."""
        given = self._given.get(key)
        if given is None:
            known = self._waiting.get(key)
            self._give(key, known.unit if known else self._unit(key), runs=True)
            if known:
                self._turns.serve(known.unit, here=False)
        else:
            given.runs = True
        self._leave(key)

    def _returned(self, key: Key) -> Sequence[str]:
        """A job waits that was given before: what never ran cost no turn."""
        given = self._given.get(key)
        if given is not None and not given.runs:
            self._turns.refund(given.unit)
        return self._free(key)

    def _free(self, key: Key) -> Sequence[str]:
        """A job does not run any more; what its tenant may have instead."""
        given = self._given.pop(key, None)
        if given is None:
            return ()
        tally = self._tallies[given.unit]
        tally.running -= 1
        self._tidy(given.unit, tally)
        if self._share(given.unit).running is None:
            return ()
        unit = given.unit
        lines = [each for each in tally.backends if self._first(unit, each)]
        for line in lines:
            self._turns.want(unit, line)
        return lines

    def _tidy(self, unit: Unit, tally: _Tally) -> None:
        if tally.waiting:
            return
        self._turns.forget(unit)
        for backend in tally.backends:
            self._ready.pop((unit, backend), None)
        tally.backends.clear()
        if not tally.running:
            self._tallies.pop(unit, None)

    def _own(self, tenant: str, lines: Iterable[str]) -> Unit | None:
        unit = (tenant, "")
        known = unit in self._tallies
        return unit if known and any(self._can(unit, line) for line in lines) else None

    def _can(self, unit: Unit, line: str) -> bool:
        most = self._share(unit).running
        if most is not None and self._tallies[unit].running >= most:
            return False
        return self._first(unit, line) is not None

    def _offer(self, key: Key, number: int) -> None:
        known = self._waiting.get(key)
        if known is None or known.number != number:
            return
        unit, tally = known.unit, self._tallies[known.unit]
        tally.backends.add(known.backend)
        heap = self._ready.setdefault((unit, known.backend), [])
        heapq.heappush(heap, (known.order, number, key))
        if len(heap) > 2 * tally.waiting + _DEAD:
            heap[:] = [entry for entry in heap if self._lives(entry)]
            heapq.heapify(heap)
        self._turns.want(unit, known.backend)

    def _lives(self, entry: tuple[Order, int, Key]) -> bool:
        known = self._waiting.get(entry[2])
        return known is not None and known.number == entry[1]

    def _first(self, unit: Unit, backend: str) -> Order | None:
        heap = self._ready.get((unit, backend), [])
        while heap and not self._lives(heap[0]):
            heapq.heappop(heap)
        return heap[0][0] if heap else None


def _order(job: VmafxJob) -> Order:
    created = job.metadata.creationTimestamp
    age = created.isoformat() if created else _NEW
    return (-job.spec.priority, age, job.metadata.uid)
