"""Who has shown signs of life: for each running job, when it was last heard of.

Each observer measures on its own clock, from when *it* last saw a sign: no times of
other machines are compared, and whoever has just started waits a whole lease first.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from trimtab.operators.vmafx import claims
from trimtab.operators.vmafx.kinds import VmafxJob, VmafxNode
from trimtab.operators.vmafx.queue import Key

LEASE = 60.0


class _Held(msgspec.Struct, gc=False):
    uid: str
    attempt: int
    session: str
    heard: float


class Leases:
    """The jobs that somebody has, and when they were last heard of.

    Guarantees: a job is silent when no beat of its node's session named it, with its
    attempt, for a lease; at once, when its node has begun another session.
    """

    def __init__(self, *, lease: float = LEASE) -> None:
        self._lease = lease
        self._held: dict[Key, _Held] = {}
        self._beats: dict[Key, tuple[str, int]] = {}
        self._by_session: dict[str, set[Key]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def job(self, job: VmafxJob, *, now: float) -> None:
        """Take a job as it is now."""
        run = job.status.run
        if not claims.is_held(job):
            self.drop(job.key)
            return
        known = self._held.get(job.key)
        if known is not None and known.attempt == run.attempt:
            return
        self.drop(job.key)
        held = _Held(job.metadata.uid, run.attempt, run.session, now)
        self._held[job.key] = held
        self._by_session.setdefault(run.session, set()).add(job.key)

    def drop(self, key: Key) -> None:
        """Forget a job that nobody has any more."""
        known = self._held.pop(key, None)
        if known is None:
            return
        keys = self._by_session[known.session]
        keys.discard(key)
        if not keys:
            del self._by_session[known.session]

    def node(self, node: VmafxNode, *, now: float) -> None:
        """Take a node as it is now: a new beat renews the jobs that it names."""
        status = node.status
        session, beat = self._beats.get(node.key, ("", -1))
        if session and session != status.session:
            self._end(session)
        if (session, beat) == (status.session, status.beat):
            return
        self._beats[node.key] = (status.session, status.beat)
        named = {(doing.job, doing.attempt) for doing in status.jobs}
        for key in self._by_session.get(status.session, ()):
            held = self._held[key]
            if (held.uid, held.attempt) in named:
                held.heard = now

    def gone(self, node: Key) -> None:
        """Forget a node; what it had is silent."""
        session, _ = self._beats.pop(node, ("", -1))
        self._end(session)

    def of(self, session: str) -> Iterable[Key]:
        """The jobs that a session has."""
        return tuple(self._by_session.get(session, ()))

    def silent(self, now: float) -> list[Key]:
        """The jobs whose lease is over."""
        return [
            key for key, held in self._held.items() if now - held.heard >= self._lease
        ]

    def attempt(self, key: Key) -> int:
        """Which attempt of a job somebody has; 0 if nobody has it."""
        held = self._held.get(key)
        return held.attempt if held else 0

    def _end(self, session: str) -> None:
        for key in self._by_session.get(session, ()):
            self._held[key].heard = float("-inf")
