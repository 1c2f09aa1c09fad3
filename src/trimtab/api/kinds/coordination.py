"""Leases: who holds something, and since when they last said so."""

from __future__ import annotations

from trimtab.api.objects import Object
from trimtab.api.resource import Resource
from trimtab.api.times import MicroTime


class LeaseSpec(Object):
    """The holder and its renewals.

    The times are the holder's own clock and for people to read. Whether a lease has
    run out is measured by each observer on its own clock, from the moment it saw
    ``renewTime`` last change.
    """

    holderIdentity: str | None = None
    leaseDurationSeconds: int | None = None
    acquireTime: MicroTime | None = None
    renewTime: MicroTime | None = None
    leaseTransitions: int | None = None
    preferredHolder: str | None = None
    strategy: str | None = None


class Lease(Resource, group="coordination.k8s.io", version="v1", builtin=True):
    """Something that one holder at a time has, for as long as it renews."""

    spec: LeaseSpec = LeaseSpec()
