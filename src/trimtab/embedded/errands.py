"""Errands: what the server does by itself and others may have a say in.

Garbage goes through the same door as what clients delete: webhooks and policies are
asked about it. So an errand may have to wait for an answer, and may be refused; then
it is tried again, after a while that grows.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Collection

from trimtab.embedded.calls import Calls, Exchange, Pending
from trimtab.embedded.kinds import Kind
from trimtab.embedded.requests import User
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.writes import Write

MANAGER = "kube-controller-manager"
MOST = 20
"""So many wait for answers at the same time."""
FIRST, LONGEST = 0.005, 60.0
"""Seconds until an errand that was refused is tried again, at first and at most."""
SETTLED = frozenset({"NotFound", "Conflict"})
"""Gone or changed in the meantime: its change has queued it again."""

Work = Callable[[str], None]
Name = tuple[str, str]


def account(name: str) -> User:
    """One of the controllers, as those see it who are asked."""
    groups = ("system:serviceaccounts", "system:serviceaccounts:kube-system")
    return User(
        f"system:serviceaccount:kube-system:{name}", (*groups, "system:authenticated")
    )


def write_by(user: User, kind: Kind, namespace: str, name: str = "") -> Write:
    """A write of a controller; those who are asked see who it is."""
    return Write(
        kind=kind,
        namespace=namespace,
        name=name,
        manager=MANAGER,
        user=user,
        warnings=[],
    )


class Errands:
    """A queue of work by key, each once.

    Guarantees: no errand runs while an earlier one of the same name waits for answers;
    it runs after it.
    """

    def __init__(self, calls: Calls, *, now: Callable[[], float]) -> None:
        self._calls = calls
        self._now = now
        self._queue: deque[tuple[Work, str]] = deque()
        self._queued: set[Name] = set()
        self._asking: set[Name] = set()
        self._again: dict[Name, Work] = {}
        self._refused: dict[Name, int] = {}
        self._later: list[tuple[float, int, Work, str]] = []
        self._count = 0
        self._pending: list[Pending] = []

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way: at most, something is tried again later."""
        return not (self._queue or self._asking)

    def add(self, work: Work, key: str) -> None:
        """Have something done, soon."""
        name = (work.__name__, key)
        if name in self._asking:
            self._again[name] = work
        elif name not in self._queued:
            self._queued.add(name)
            self._queue.append((work, key))

    def step(self, limit: int) -> bool:
        """Do some of what is due; True if there is more that can be done now."""
        while self._later and self._later[0][0] <= self._now():
            self.add(*heapq.heappop(self._later)[2:])
        for _ in range(min(limit, len(self._queue))):
            if len(self._asking) >= MOST:
                return False
            work, key = self._queue.popleft()
            self._queued.discard((work.__name__, key))
            self._run(work, key, Exchange())
        return bool(self._queue)

    def due_in(self) -> float | None:
        """Seconds until something is tried again; None if nothing is."""
        return max(0.0, self._later[0][0] - self._now()) if self._later else None

    def take_pending(self) -> Collection[Pending]:
        """What has to be asked, for whoever can: ``again`` goes on with the errand."""
        taken, self._pending = self._pending, []
        return taken

    def _run(self, work: Work, key: str, exchange: Exchange) -> None:
        name = (work.__name__, key)
        self._asking.discard(name)
        self._calls.begin(exchange)
        try:
            work(key)
        except Pending as pending:
            pending.again = lambda: self._run(work, key, exchange)
            self._asking.add(name)
            self._pending.append(pending)
            return
        except ApiProblem as problem:
            if problem.reason not in SETTLED:
                self._refuse(work, key)
                return
        finally:
            self._calls.end()
        self._refused.pop(name, None)
        if name in self._again:
            self.add(self._again.pop(name), key)

    def _refuse(self, work: Work, key: str) -> None:
        """Try again after a while, twice as long as the last one."""
        name = (work.__name__, key)
        self._again.pop(name, None)
        times = self._refused[name] = self._refused.get(name, 0) + 1
        self._count += 1
        due = self._now() + min(LONGEST, FIRST * 2 ** min(times, 20))
        heapq.heappush(self._later, (due, self._count, work, key))
