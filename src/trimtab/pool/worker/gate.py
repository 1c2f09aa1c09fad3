"""The gate: who may use a worker now, and nobody else.

A worker serves one checkout at a time, and each has a higher epoch than the one before.
The gate holds the present epoch and every use of the worker that is under way. It needs
no loop and no socket, so a worker of any protocol can stand behind one.

==========  ===================================================================
*unknown*   nothing was begun yet, or the program was started again: nobody is served
*fenced*    lower epochs are refused; the worker is being bound to its tenant
*open*      the client of one checkout is served
*closed*    that client is gone: nobody is served until a higher epoch begins
==========  ===================================================================
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum

import msgspec

from trimtab.client.errors import TrimtabError
from trimtab.pool import secrets


class Refused(TrimtabError):
    """The gate is not open for this; the message says why."""


class Phase(Enum):
    """What the gate does at present; see the module's first lines."""

    UNKNOWN = "unknown"
    FENCED = "fenced"
    OPEN = "open"
    CLOSED = "closed"


class GateStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What a gate holds, and what it has let through and refused."""

    phase: Phase
    epoch: int
    uses: int
    served: int
    refused: int
    dropped: int


class Use:
    """One use of the worker that the gate let in: a call, or a connection.

    Whoever was let in calls ``end`` when nothing is done for the client any more.
    """

    __slots__ = ("_drop", "_gate", "checkout", "dropped", "epoch", "tenant")

    def __init__(self, gate: Gate, drop: Callable[[], None]) -> None:
        self.epoch = gate.epoch
        self.checkout = gate.checkout
        self.tenant = gate.tenant
        self.dropped = False
        self._gate = gate
        self._drop = drop

    def end(self) -> None:
        self._gate.ended(self)

    def drop(self) -> None:
        """Tell whoever serves it to stop; it is under way until they say ``end``."""
        self.dropped = True
        self._drop()


class Gate:
    """Lets the client of the present checkout in; see the module's first lines.

    Guarantees: after ``begin(n)`` no use of an epoch below n is let in, and every one
    that was is told to stop; ``quiet`` returns when they have. Epochs never go down. A
    checkout that was cleaned is never open again.

    Assumptions: called by the thread of one loop. ``floor`` is the highest epoch that
    an earlier run of this program knew, if it is known.
    """

    def __init__(self, key: bytes, worker_uid: str, *, floor: int = 0) -> None:
        self.epoch = floor
        self.phase = Phase.UNKNOWN
        self.checkout = ""
        self.tenant = ""
        self._key = key
        self._uid = worker_uid
        self._control = secrets.control(key, worker_uid)
        self._expected = ""
        self._uses: set[Use] = set()
        self._quiet: list[asyncio.Future[None]] = []
        self._served = self._refused = self._dropped = 0

    def __repr__(self) -> str:
        return f"Gate(epoch={self.epoch}, phase={self.phase.value})"

    def controls(self, token: str) -> bool:
        """Whether a token is that of a gateway."""
        return secrets.verify(token, self._control)

    def begin(self, epoch: int, *, checkout: str, tenant: str = "") -> None:
        """Open the gate for one checkout. Doing so again changes nothing.

        Errors: :class:`Refused` for an epoch below the present one, for one that was
        cleaned, and for another checkout of the present one.
        """
        if self._is_open_for(epoch, checkout):
            return
        if epoch == self.epoch and self.phase not in (Phase.UNKNOWN, Phase.FENCED):
            raise self._no(f"epoch {epoch} belongs to another checkout, or has ended")
        self._raise_to(epoch)
        self.phase, self.checkout, self.tenant = Phase.OPEN, checkout, tenant
        self._expected = secrets.token(self._key, self._uid, checkout, epoch)

    def fence(self, epoch: int) -> None:
        """Refuse lower epochs from now on, and let nobody in yet.

        Errors: :class:`Refused` for an epoch below the present one, or one that ended.
        """
        if epoch == self.epoch and self.phase is Phase.CLOSED:
            raise self._no(f"epoch {epoch} has ended")
        if epoch == self.epoch and self.phase in (Phase.OPEN, Phase.FENCED):
            return
        self._raise_to(epoch)
        self.phase = Phase.FENCED

    def clean(self, epoch: int, *, checkout: str) -> None:
        """Close the gate behind a checkout. Doing so again changes nothing.

        Errors: :class:`Refused` for an epoch below the present one, and for another
        checkout of the present one.
        """
        if self.phase is Phase.OPEN and epoch == self.epoch:
            if checkout != self.checkout:
                raise self._no(f"epoch {epoch} belongs to another checkout")
            self._drop(list(self._uses))
        else:
            self._raise_to(epoch)
        self.phase, self._expected = Phase.CLOSED, ""

    def admit(self, token: str, *, drop: Callable[[], None]) -> Use:
        """Let a client in who shows the token of the present checkout.

        ``drop`` is called, once, when that client may be served no longer.

        Errors: :class:`Refused`, which does not say how near the token was.
        """
        if self.phase is not Phase.OPEN or not secrets.verify(token, self._expected):
            raise self._no("the token is not that of the present checkout")
        use = Use(self, drop)
        self._uses.add(use)
        self._served += 1
        return use

    async def quiet(self, *, altogether: bool = False) -> None:
        """Wait until no use is under way but those of the open checkout, or none."""
        while self._uses if altogether else self._others():
            waiter = asyncio.get_running_loop().create_future()
            self._quiet.append(waiter)
            await waiter

    def ended(self, use: Use) -> None:
        """A use is over, in whatever way."""
        self._uses.discard(use)
        waiters, self._quiet = self._quiet, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def statistics(self) -> GateStatistics:
        return GateStatistics(
            phase=self.phase,
            epoch=self.epoch,
            uses=len(self._uses),
            served=self._served,
            refused=self._refused,
            dropped=self._dropped,
        )

    def _is_open_for(self, epoch: int, checkout: str) -> bool:
        present = (self.epoch, self.checkout) == (epoch, checkout)
        return self.phase is Phase.OPEN and present

    def _raise_to(self, epoch: int) -> None:
        if epoch < self.epoch:
            raise self._no(f"epoch {epoch} is over: the present one is {self.epoch}")
        self.epoch, self.checkout, self.tenant = epoch, "", ""
        self._expected = ""
        self._drop([use for use in self._uses if use.epoch < epoch])

    def _drop(self, uses: list[Use]) -> None:
        for use in uses:
            if not use.dropped:
                self._dropped += 1
                use.drop()

    def _others(self) -> bool:
        """Whether a use is under way that the open checkout does not account for."""
        if self.phase is Phase.OPEN:
            return any(use.epoch < self.epoch for use in self._uses)
        return bool(self._uses)

    def _no(self, why: str) -> Refused:
        self._refused += 1
        return Refused(f"The worker refuses this call: {why}.")
