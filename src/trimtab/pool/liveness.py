"""Liveness: who is alive, told by Leases and measured by each observer's own clock.

A replica and a holder each renew one Lease. An observer counts from the moment *it* saw
the Lease change, so no two hosts' clocks are compared; a fresh observer waits a full
period. A replica that cannot renew stops acting before others may think it dead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, Literal

import msgspec

from trimtab.api import Metadata, MicroTime, hashed, wire
from trimtab.cache import Change
from trimtab.client import AlreadyExists, Client, NotFound, TrimtabError, budget
from trimtab.kinds import Lease, LeaseSpec
from trimtab.pool.kinds import LABEL_ROLE

logger = logging.getLogger("trimtab.pool")

Role = Literal["replica", "holder"]
MISSING_KEPT: Final = 4096
"""Names without a Lease whose first mention is remembered."""


class LivenessOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How fast death is noticed; all replicas should say the same."""

    namespace: str
    """Where the Leases are."""
    duration: float = 15.0
    """Seconds without a renewal after which somebody counts as dead."""

    @property
    def period(self) -> float:
        """Seconds between two renewals."""
        return self.duration / 3

    @property
    def act_within(self) -> float:
        """Seconds after a renewal for which a replica may act. The rest of the
        duration is for what it has begun by then."""
        return self.duration * 2 / 3


class Leases:
    """Writes Leases that nobody contends for: each has one writer, or equal ones."""

    def __init__(
        self,
        client: Client,
        options: LivenessOptions,
        *,
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._options = options
        self._now = now

    async def renew(self, identity: str, *, role: Role) -> None:
        """Show that somebody lives; makes the Lease where there is none."""
        name = lease_name(identity, role)
        spec = LeaseSpec(
            holderIdentity=identity,
            leaseDurationSeconds=max(1, round(self._options.duration)),
            renewTime=MicroTime.of(self._now()),
        )
        with budget(self._options.period):
            try:
                await self._patch(name, spec)
            except NotFound:
                await self._create(name, spec, role)

    async def _patch(self, name: str, spec: LeaseSpec) -> None:
        await self._client.patch(
            Lease, name, {"spec": wire(spec)}, namespace=self._options.namespace
        )

    async def _create(self, name: str, spec: LeaseSpec, role: Role) -> None:
        metadata = Metadata(
            name=name, namespace=self._options.namespace, labels={LABEL_ROLE: role}
        )
        try:
            await self._client.create(Lease(metadata=metadata, spec=spec))
        except AlreadyExists:
            await self._patch(name, spec)

    async def remove(self, identity: str, *, role: Role) -> None:
        """Nobody lives under that name any more; gone already is as good."""
        name = lease_name(identity, role)
        try:
            with budget(self._options.period):
                await self._client.delete(
                    Lease, name, namespace=self._options.namespace
                )
        except TrimtabError as error:
            logger.debug("The lease %s stays and runs out: %s", name, error)


class Presence:
    """This replica's own Lease, and what follows of it.

    Guarantees: ``may_act`` is False before any other replica, whose clock runs as fast
    as ours, thinks this one dead: it counts from *before* a renewal was sent, and the
    others from when they saw it.
    """

    def __init__(
        self, leases: Leases, options: LivenessOptions, *, incarnation: str
    ) -> None:
        self.incarnation = incarnation
        self._leases = leases
        self._options = options
        self._renewed: float | None = None
        self.begun = asyncio.Event()
        """Set when the Lease was written for the first time."""

    def may_act(self, now: float) -> bool:
        """Whether this replica may hand anything out, or take anything away."""
        renewed = self._renewed
        return renewed is not None and now < renewed + self._options.act_within

    async def run(self) -> None:
        """Renew until cancelled; a failure is tried again at the next turn."""
        clock = asyncio.get_running_loop().time
        while True:
            sent = clock()
            try:
                await self._leases.renew(self.incarnation, role="replica")
                self._renewed = sent
                self.begun.set()
            except TrimtabError as error:
                logger.warning("The replica's lease was not renewed: %s", error)
            await asyncio.sleep(max(0.0, sent + self._options.period - clock()))

    async def leave(self) -> None:
        """Stop acting, and let the others know."""
        self._renewed = None
        await self._leases.remove(self.incarnation, role="replica")


class Holders:
    """Renews the Leases of holders for them, seldom enough for the API server.

    One write for a holder in each period, however often and for however many checkouts
    it renews.
    """

    def __init__(self, leases: Leases, options: LivenessOptions) -> None:
        self._leases = leases
        self._options = options
        self._renewed: dict[str, float] = {}

    def is_due(self, holder: str, now: float) -> bool:
        """Whether it is time for a renewal of this holder's Lease."""
        last = self._renewed.get(holder)
        return last is None or now >= last + self._options.period

    async def touch(self, holder: str, now: float) -> None:
        """Show that a holder lives, unless that was shown a moment ago.

        Errors: what the API server said; then the holder must renew again.
        """
        if not self.is_due(holder, now):
            return
        self._renewed[holder] = now
        try:
            await self._leases.renew(holder, role="holder")
        except BaseException:
            self._renewed.pop(holder, None)
            raise
        self._prune(now)

    def _prune(self, now: float) -> None:
        if len(self._renewed) > 64:
            since = now - 2 * self._options.duration
            kept = {key: at for key, at in self._renewed.items() if at > since}
            self._renewed = kept


class Deaths:
    """Who seems dead, by what this observer has seen of the Leases.

    Guarantees: nobody is dead before a full duration of *this* observer's time without
    a change, of which the observer saw its own renewals go by: while the watch is
    silent for all, nobody is dead, and after such a silence all begin anew.
    """

    def __init__(self, options: LivenessOptions, *, incarnation: str) -> None:
        self._options = options
        self._incarnation = incarnation
        self._seen: dict[str, float] = {}
        """When each Lease was last seen to change; those that are there."""
        self._missing: dict[str, float] = {}
        """When a name without a Lease was first asked for, or its Lease went."""
        self._own: float | None = None

    def follow(self, change: Change[Lease], now: float) -> None:
        """Take a change of a Lease that the watch brought."""
        lease = change.new or change.old
        identity = lease.spec.holderIdentity if lease else None
        if not identity:
            return
        if change.new is None:
            self._seen.pop(identity, None)
            self._note(identity, now)
            return
        self._missing.pop(identity, None)
        self._seen[identity] = now
        if identity == self._incarnation:
            self._heard(now)

    def dead(self, identity: str, now: float) -> bool:
        """Whether somebody has been silent for a full duration, as far as we can tell.

        Nobody is dead by the name ""; we ourselves are not.
        """
        if not identity or identity == self._incarnation or not self.sighted(now):
            return False
        since = self._seen.get(identity)
        if since is None:
            since = self._note(identity, now)
        return now - since > self._options.duration

    def silent(self, identity: str, now: float) -> float:
        """Seconds that a Lease which is there has not changed."""
        return now - self._seen.get(identity, now)

    def sighted(self, now: float) -> bool:
        """Whether the watch shows what happens: our own renewals, at least."""
        return self._own is not None and now - self._own <= 2 * self._options.period

    def forget(self, but: Iterable[str]) -> None:
        """Nobody asks for other missing names than these any more."""
        kept = set(but)
        for name in [each for each in self._missing if each not in kept]:
            del self._missing[name]

    def _heard(self, now: float) -> None:
        blind = self._own is None or now - self._own > 2 * self._options.period
        self._own = now
        if blind:
            self._seen = dict.fromkeys(self._seen, now)
            self._missing = dict.fromkeys(self._missing, now)

    def _note(self, identity: str, now: float) -> float:
        if len(self._missing) >= MISSING_KEPT and identity not in self._missing:
            return now
        return self._missing.setdefault(identity, now)


def lease_name(identity: str, role: Role) -> str:
    """The Lease of a replica or of a holder."""
    if role == "replica":
        return f"trimtab-pool-{identity}"
    return hashed("trimtab-holder", identity)
