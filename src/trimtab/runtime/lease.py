"""Leases: what to do next with the Lease that replicas contend for, as a plain object.

An :class:`Elector` is told what was read and is asked what to write; it does no I/O and
reads no clock. Three rules keep two replicas from holding the Lease at once, as long as
their clocks run equally fast:

- A holder counts its time from the moment *before* it sent a renewal.
- A challenger counts from the moment it first *saw* the Lease as it is now, which is
  later; a fresh one therefore waits a full duration. ``renewTime`` is for people.
- Every write names the uid and the revision that it was decided on, so it is refused
  if anybody wrote in between.

The records are those of client-go, whose electors may contend for the same Lease.
"""

from __future__ import annotations

import math
import socket
from collections import deque
from datetime import datetime, timedelta
from random import Random
from typing import Any

import msgspec

from trimtab.api.kinds.coordination import Lease, LeaseSpec
from trimtab.api.objects import wire
from trimtab.api.resource import Metadata
from trimtab.api.times import MicroTime

NEVER = -math.inf
ATTEMPTS_KEPT = 32
"""Writes whose answers may still be unknown; far more than fit into one duration."""


class LeaseOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which Lease is contended for, by whom, and how patiently."""

    name: str
    namespace: str
    identity: str
    """Unique for each process: see :func:`identity`."""
    duration: float = 15.0
    """Whole seconds without a renewal after which others may take the Lease. They are
    told it in the Lease itself, so replicas may differ."""
    renew_deadline: float = 10.0
    """Seconds without a renewal after which a holder gives up. What is left of the
    duration is the time for leader-scoped work to end in peace."""
    retry: float = 2.0
    """Seconds between two renewals, or two looks of a challenger."""
    stuck: float = 60.0
    """Seconds that the main event loop may be blocked. Renewals go on meanwhile; past
    them the replica counts as broken and its Lease runs out."""

    def __post_init__(self) -> None:
        if not (self.name and self.namespace and self.identity):
            raise ValueError("A lease needs a name, a namespace and an identity.")
        if self.duration < 1 or self.duration != int(self.duration):
            raise ValueError(
                f"A lease lasts whole seconds, at least one, and not {self.duration}: "
                "that is all that a Lease object can say."
            )
        if not 0 < self.retry < self.renew_deadline < self.duration:
            raise ValueError(
                "A lease needs 0 < retry < renew_deadline < duration, and not "
                f"{self.retry}, {self.renew_deadline}, {self.duration}: else it is "
                "lost before it is renewed."
            )
        if self.stuck <= self.retry:
            raise ValueError("A loop can be found stuck only after more than a retry.")


def identity(random: Random) -> str:
    """A name for this process that no other has: the host's, and some chance."""
    return f"{socket.gethostname()}_{random.getrandbits(64):016x}"


def lasting(seconds: int, *, name: str, namespace: str, random: Random) -> LeaseOptions:
    """A lease for this process that lasts so long; the rest in the usual proportion."""
    return LeaseOptions(
        name=name,
        namespace=namespace,
        identity=identity(random),
        duration=float(seconds),
        renew_deadline=seconds * 2 / 3,
        retry=seconds * 2 / 15,
        stuck=max(60.0, float(seconds)),
    )


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A write that holds only if the Lease is still what it was decided on."""

    spec: LeaseSpec
    resource_version: str = ""
    """Empty if there is no Lease: make one."""
    uid: str = ""

    def patch(self) -> dict[str, Any]:
        """As a merge patch, so that what others wrote into the Lease stays."""
        metadata = {"resourceVersion": self.resource_version, "uid": self.uid}
        # `wire` leaves an empty holder out, and then the old one would stay.
        holder = {"holderIdentity": self.spec.holderIdentity}
        return {"metadata": metadata, "spec": wire(self.spec) | holder}

    def lease(self, options: LeaseOptions) -> Lease:
        """As a new object."""
        metadata = Metadata(name=options.name, namespace=options.namespace)
        return Lease(metadata=metadata, spec=self.spec)


class Elector:
    """One process's view of the Lease.

    Flow: ``saw`` whatever a read or a write answered; ``propose`` when something might
    be written, send that at once, and tell the answer. An answer that was lost is made
    up for by the next read: what we wrote is recognised.

    Guarantees: of any electors whose clocks run equally fast, at most one ``holds`` at
    any moment, however long anything takes or whatever gets lost; unless somebody
    deletes the Lease and a replica that has never seen it starts at that moment.
    Nobody takes a Lease from a holder that renews in time.
    """

    def __init__(self, options: LeaseOptions) -> None:
        self.options = options
        self.renewed = NEVER
        """When the write was sent that the Lease now shows; NEVER if it is not ours."""
        self._lease: Lease | None = None
        """As last seen; also when it is gone since, for what it promised then."""
        self._gone = True
        self._changed: float | None = None
        """When the Lease was first seen as it is; None before the first look."""
        self._sent: deque[tuple[MicroTime, float]] = deque(maxlen=ATTEMPTS_KEPT)
        """Our writes: their ``renewTime``, and the moment before they were sent."""

    @property
    def ours(self) -> bool:
        """Whether the Lease shows a write of ours, be it expired or not.

        Only a write of this very process counts: another process of the same identity
        is somebody else.
        """
        return self.renewed > NEVER

    @property
    def deadline(self) -> float:
        """Until when nobody else can hold it, if it is ours."""
        return self.renewed + self.options.duration

    @property
    def contended(self) -> bool:
        """Whether anything was ever proposed, and so might have been written."""
        return bool(self._sent)

    @property
    def holder(self) -> str:
        """Who held it when it was last seen; empty for nobody."""
        return (self._spec.holderIdentity or "") if not self._gone else ""

    @property
    def transitions(self) -> int:
        """How often the Lease has changed hands."""
        return self._spec.leaseTransitions or 0

    @property
    def _spec(self) -> LeaseSpec:
        return self._lease.spec if self._lease else LeaseSpec()

    def holds(self, now: float) -> bool:
        """Whether this process holds the Lease, beyond doubt."""
        return now < self.deadline

    def saw(self, lease: Lease | None, *, now: float) -> None:
        """The Lease as the server has just told it; None if there is none."""
        if lease is None:
            # Its holder may not know yet, so its time counts from now on.
            if not self._gone or self._changed is None:
                self._changed = now
            self._gone = True
            return
        if self._gone or _version(lease) != _version(self._lease):
            self._changed = now
        self._lease, self._gone = lease, False
        self.renewed = self._sent_at(lease.spec)

    def expires(self) -> float:
        """When the Lease may be taken, by what was seen of it; NEVER for right now."""
        spec, kept = self._spec, self.ours and not self._gone
        if kept or not spec.holderIdentity or self._changed is None:
            return NEVER
        seconds = spec.leaseDurationSeconds or 0
        return self._changed + (seconds if seconds > 0 else self.options.duration)

    def propose(self, *, now: float, wall: datetime) -> Proposal | None:
        """What to write at this moment: take or renew the Lease; None: nothing yet."""
        if self._changed is None or (now < self.expires() and not self.holds(now)):
            return None
        old, renewal = self._spec, self.ours
        time = self._unique(wall)
        transitions = self.transitions + (0 if renewal or self._lease is None else 1)
        self._sent.append((time, now))
        return self._proposal(
            LeaseSpec(
                holderIdentity=self.options.identity,
                leaseDurationSeconds=int(self.options.duration),
                acquireTime=old.acquireTime if renewal else time,
                renewTime=time,
                leaseTransitions=transitions,
            )
        )

    def release(self, *, wall: datetime) -> Proposal | None:
        """What to write to let the Lease go; None if there is nothing to let go."""
        if self._gone or not self.ours:
            return None
        time = self._unique(wall)
        return self._proposal(
            LeaseSpec(
                holderIdentity="",
                leaseDurationSeconds=1,
                acquireTime=time,
                renewTime=time,
                leaseTransitions=self.transitions,
            )
        )

    def _proposal(self, spec: LeaseSpec) -> Proposal:
        if self._gone or self._lease is None:
            return Proposal(spec=spec)
        metadata = self._lease.metadata
        return Proposal(
            spec=spec, resource_version=metadata.resourceVersion, uid=metadata.uid
        )

    def _unique(self, wall: datetime) -> MicroTime:
        """Each write of ours is known by its time, also when the clock stands still."""
        time = MicroTime.of(wall)
        if self._sent:
            time = max(time, self._sent[-1][0] + timedelta(microseconds=1))
        return MicroTime.of(time)

    def _sent_at(self, spec: LeaseSpec) -> float:
        if spec.holderIdentity != self.options.identity:
            return NEVER
        for time, sent in self._sent:
            if time == spec.renewTime:
                return sent
        return NEVER


def _version(lease: Lease | None) -> tuple[str, str]:
    metadata = lease.metadata if lease else Metadata()
    return metadata.uid, metadata.resourceVersion
