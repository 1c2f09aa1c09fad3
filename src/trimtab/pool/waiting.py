"""The line of those who wait for a worker: fair to tenants, in order within each.

Tenants take turns, however many requests each of them has. Within a tenant, requests
for the same shapes are served in the order they came; one that waits for a rare shape
does not hold up those for another.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

W = TypeVar("W")
T = TypeVar("T")

Shapes = tuple[str, ...]


class Waiter(Generic[W]):
    """A place in the line."""

    __slots__ = ("queued", "shapes", "tenant", "value")

    def __init__(self, tenant: str, shapes: Shapes, value: W) -> None:
        self.tenant = tenant
        self.shapes = shapes
        """What would do, the best first."""
        self.value = value
        self.queued = False


class Line(Generic[W]):
    """Who waits, and whose turn it is.

    Guarantees: while somebody of a tenant is offered what they want each time it is
    their turn, no other tenant gets two before they get one.
    """

    def __init__(self) -> None:
        self._tenants: OrderedDict[str, dict[Shapes, deque[Waiter[W]]]] = OrderedDict()
        """The next tenant is the first one."""
        self._waiting: Counter[str] = Counter()
        """By the shape that each would like best."""
        self._blocked: set[str] = set()
        """Tenants that have all they may have."""

    def __len__(self) -> int:
        return self._waiting.total()

    def add(self, waiter: Waiter[W], *, first: bool = False) -> None:
        """Stand in line; ``first`` is for those who had been served and were not."""
        assert not waiter.queued
        waiter.queued = True
        queue = self._tenants.setdefault(waiter.tenant, {}).setdefault(
            waiter.shapes, deque()
        )
        if first:
            queue.appendleft(waiter)
            self._tenants.move_to_end(waiter.tenant, last=False)
        else:
            queue.append(waiter)
        self._waiting[waiter.shapes[0]] += 1

    def remove(self, waiter: Waiter[W]) -> bool:
        """Leave the line; False if the waiter is not in it any more."""
        if not waiter.queued:
            return False
        self._tenants[waiter.tenant][waiter.shapes].remove(waiter)
        self._left(waiter)
        return True

    def block(self, tenant: str) -> None:
        """Pass this tenant over until it is unblocked."""
        self._blocked.add(tenant)

    def unblock(self, tenant: str) -> None:
        self._blocked.discard(tenant)

    def unblock_all(self) -> None:
        self._blocked.clear()

    def serve(
        self, offer: Callable[[Waiter[W]], T | None]
    ) -> Iterator[tuple[Waiter[W], T]]:
        """Offer to each in turn, until nobody takes anything.

        Whoever was served goes to the back with their tenant.
        """
        served = True
        while served:
            served = False
            for tenant in list(self._tenants):
                if tenant in self._blocked:
                    continue
                for queue in list(self._tenants.get(tenant, {}).values()):
                    taken = offer(queue[0])
                    if taken is not None:
                        waiter = queue.popleft()
                        self._left(waiter)
                        if tenant in self._tenants:
                            self._tenants.move_to_end(tenant)
                        served = True
                        yield waiter, taken
                        break

    def demand(self) -> Counter[str]:
        """How many wait for each shape, without tenants that may have no more."""
        wanted = Counter(self._waiting)
        for tenant in self._blocked & self._tenants.keys():
            for shapes, queue in self._tenants[tenant].items():
                wanted[shapes[0]] -= len(queue)
        return +wanted

    def tenants(self) -> tuple[str, ...]:
        """Those that wait, whose turn is next first."""
        return tuple(self._tenants)

    def _left(self, waiter: Waiter[W]) -> None:
        waiter.queued = False
        self._waiting[waiter.shapes[0]] -= 1
        queues = self._tenants[waiter.tenant]
        if not queues[waiter.shapes]:
            del queues[waiter.shapes]
        if not queues:
            del self._tenants[waiter.tenant]
            self._blocked.discard(waiter.tenant)
