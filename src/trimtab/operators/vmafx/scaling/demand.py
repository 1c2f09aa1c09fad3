"""Demand: how many jobs wait and run, whose and for which backend, and since when."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple

import msgspec

from trimtab.operators.vmafx import claims
from trimtab.operators.vmafx.kinds import VmafxJob


class Kind(NamedTuple):
    """What jobs are counted together."""

    namespace: str
    tenant: str
    backend: str
    """Empty: any will do."""


class Demand(msgspec.Struct):
    """How many there are of one kind."""

    waiting: int = 0
    running: int = 0
    since: datetime | None = None
    """When the oldest of those that wait was made."""

    def add(self, other: Demand) -> None:
        """Count others as well."""
        self.waiting += other.waiting
        self.running += other.running
        known = [each for each in (self.since, other.since) if each]
        self.since = min(known, default=None)

    def age(self, now: datetime) -> float:
        """Seconds that the oldest has waited; 0 if none does."""
        return max(0.0, (now - self.since).total_seconds()) if self.since else 0.0


def demand_of(
    jobs: Iterable[VmafxJob], *, tenant_of: Callable[[str], str]
) -> dict[Kind, Demand]:
    """What is asked for now. Of a job that is split, its segments count."""
    found: dict[Kind, Demand] = {}
    for job in jobs:
        if claims.is_over(job) or claims.is_split(job):
            continue
        place = job.metadata.namespace
        kind = Kind(place, tenant_of(place), job.spec.backend or "")
        runs = claims.is_running(job)
        since = None if runs else job.metadata.creationTimestamp
        one = Demand(waiting=not runs, running=runs, since=since)
        found.setdefault(kind, Demand()).add(one)
    return found
