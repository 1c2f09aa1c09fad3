"""The view: all rows in memory as they were last seen, found in constant time.

It is fed by the informer of workers and by the answers of our own writes; of two
versions of a row the newer one stays. It decides nothing, and no time passes in it:
whoever tells it something says when that was, by the loop's clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Final, TypeVar

from trimtab.cache import Change, Key
from trimtab.cache.changes import is_newer
from trimtab.pool.kinds import Worker
from trimtab.pool.states import LIVING, PARKED, TERMINAL, State

K = TypeVar("K", bound=Hashable)

Stack = dict[Key, None]
"""Keys in order of arrival; the last one is on top. Any can be taken out."""
NOBODY: Final[Stack] = {}


class Row:
    """A worker, and since when, by our own clock."""

    __slots__ = ("changed", "entered", "suspect", "worker")

    def __init__(self, worker: Worker, now: float) -> None:
        self.worker = worker
        self.entered = now
        """When its state, or who has it, was first seen as it is."""
        self.changed = now
        """When anything of it was first seen as it is."""
        self.suspect = False
        """Not to be handed out before it is seen again: somebody else is at it, or a
        write to it got no answer."""


class View:
    """Rows by everything that somebody looks for.

    Guarantees: :meth:`candidate` and :meth:`saw` take the same number of steps
    whatever the number of rows, pools and tenants.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._rows: dict[Key, Row] = {}
        self._pools: dict[Key, Stack] = {}
        self._parked: dict[tuple[Key, str, str, bool], Stack] = {}
        """By pool, tenant, shape, and whether the row is ours."""
        self._holders: dict[str, Stack] = {}
        self._checkouts: dict[str, Key] = {}
        self._counts: Counter[tuple[Key, State]] = Counter()
        self._shapes: Counter[tuple[Key, str]] = Counter()
        """Neutral workers, idle or spawning, by pool and shape."""

    # What is seen

    def follow(self, change: Change[Worker], now: float) -> bool:
        """Take what the informer says; whether the view is another one now."""
        if change.new is not None:
            return self.saw(change.new, now)
        row = self._rows.get(change.key)
        if row is None or change.old is None:
            return False
        if row.worker.metadata.uid == change.old.metadata.uid:
            self.gone(row.worker)
        return True

    def saw(self, worker: Worker, now: float) -> bool:
        """Take a row as somebody read or wrote it; False if it is nothing new."""
        row = self._rows.get(worker.key)
        if row is None:
            row = self._rows[worker.key] = Row(worker, now)
            self._insert(row)
            return True
        old = row.worker
        newer = is_newer(
            worker.metadata.resourceVersion, than=old.metadata.resourceVersion
        )
        if not newer:
            return False
        self._remove(row)
        row.worker, row.changed, row.suspect = worker, now, False
        if _stage(old) != _stage(worker):
            row.entered = now
        self._insert(row)
        return True

    def gone(self, worker: Worker) -> None:
        """The row is not there any more."""
        row = self._rows.get(worker.key)
        if row is not None and row.worker.metadata.uid == worker.metadata.uid:
            self._remove(row)
            del self._rows[worker.key]

    # Who is free

    def candidate(self, pool: Key, tenant: str, shapes: Iterable[str]) -> Worker | None:
        """A worker to claim, and from now on nobody else here is offered it.

        Parked for the tenant comes before bound to nobody, ours before others', the
        one that was parked last before those that have cooled for longer, and of all
        shapes that will do the first in their order.
        """
        wanted = tuple(shapes)
        for bound in (tenant, ""):
            for shape in wanted:
                for ours in (True, False):
                    stack = self._parked.get((pool, bound, shape, ours))
                    if stack:
                        row = self._rows[next(reversed(stack))]
                        self.suspect(row.worker.key)
                        return row.worker
        return None

    def suspect(self, key: Key) -> None:
        """Offer a row to nobody until it is seen again, or let go by :meth:`trust`."""
        row = self._rows.get(key)
        if row is not None and not row.suspect:
            self._remove(row)
            row.suspect = True
            self._insert(row)

    def trust(self, key: Key) -> None:
        """Nothing was written to it after all."""
        row = self._rows.get(key)
        if row is not None and row.suspect:
            self._remove(row)
            row.suspect = False
            self._insert(row)

    # What is there

    def get(self, key: Key) -> Row | None:
        return self._rows.get(key)

    def by_checkout(self, checkout: str) -> Worker | None:
        key = self._checkouts.get(checkout)
        return None if key is None else self._rows[key].worker

    def by_holder(self, holder: str) -> list[Row]:
        return [self._rows[key] for key in self._holders.get(holder, NOBODY)]

    def rows(self, pool: Key | None = None) -> Iterator[Row]:
        """All rows, or those of a pool; safe against changes meanwhile."""
        keys = self._rows if pool is None else self._pools.get(pool, NOBODY)
        for key in tuple(keys):
            row = self._rows.get(key)
            if row is not None:
                yield row

    def count(self, pool: Key, state: State) -> int:
        return self._counts[pool, state]

    def living(self, pool: Key) -> int:
        """Workers that are not over."""
        return sum(self._counts[pool, state] for state in LIVING)

    def neutral(self, pool: Key, shape: str) -> int:
        """Workers of a shape that are bound to nobody: idle, or on their way there."""
        return self._shapes[pool, shape]

    def pools(self) -> tuple[Key, ...]:
        return tuple(self._pools)

    def __len__(self) -> int:
        return len(self._rows)

    # Indexes

    def _insert(self, row: Row) -> None:
        worker, key = row.worker, row.worker.key
        pool, status = pool_of(worker), row.worker.status
        self._pools.setdefault(pool, {})[key] = None
        self._counts[pool, status.state] += 1
        if _is_neutral(worker):
            self._shapes[pool, worker.spec.shape] += 1
        if _is_free(row):
            self._parked.setdefault(self._place(worker), {})[key] = None
        if status.checkout is not None:
            self._holders.setdefault(status.checkout.holder, {})[key] = None
            self._checkouts[status.checkout.id] = key

    def _remove(self, row: Row) -> None:
        worker, key = row.worker, row.worker.key
        pool, status = pool_of(worker), row.worker.status
        _pop(self._pools, pool, key)
        _lower(self._counts, (pool, status.state))
        if _is_neutral(worker):
            _lower(self._shapes, (pool, worker.spec.shape))
        if _is_free(row):
            _pop(self._parked, self._place(worker), key)
        if status.checkout is not None:
            _pop(self._holders, status.checkout.holder, key)
            if self._checkouts.get(status.checkout.id) == key:
                del self._checkouts[status.checkout.id]

    def _place(self, worker: Worker) -> tuple[Key, str, str, bool]:
        status = worker.status
        ours = status.owner == self._owner
        return pool_of(worker), status.tenant, worker.spec.shape, ours


def pool_of(worker: Worker) -> Key:
    return worker.metadata.namespace, worker.spec.pool


def is_living(worker: Worker) -> bool:
    return worker.status.state not in TERMINAL


def _is_neutral(worker: Worker) -> bool:
    return worker.status.state in (State.SPAWNING, State.IDLE)


def _is_free(row: Row) -> bool:
    status, metadata = row.worker.status, row.worker.metadata
    free = status.state in PARKED and not status.reaper and not row.suspect
    return free and metadata.deletionTimestamp is None


def _stage(worker: Worker) -> tuple[State, str]:
    held = worker.status.checkout
    return worker.status.state, held.id if held else ""


def _pop(index: dict[K, Stack], at: K, key: Key) -> None:
    stack = index.get(at)
    if stack is not None:
        stack.pop(key, None)
        if not stack:
            del index[at]


def _lower(counts: Counter[K], at: K) -> None:
    counts[at] -= 1
    if not counts[at]:
        del counts[at]
