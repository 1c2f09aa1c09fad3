"""Transitions: what each step makes of a worker's status. Pure, one function a step.

Each takes the worker as it was seen and returns the status to write, or raises
:class:`Impossible` where the state that the step needs does not hold. Writing it is a
compare-and-swap on the very worker that was seen (:mod:`trimtab.pool.swapping`), so
what was checked here is still so when it is written.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from trimtab.client import TrimtabError
from trimtab.pool.kinds import Checkout, Worker, WorkerStatus
from trimtab.pool.states import (
    ALLOWED,
    CRASHES,
    PARKED,
    TAKEN,
    TERMINAL,
    Reason,
    State,
)


class Impossible(TrimtabError):
    """The worker is not in a state from which this step leads anywhere."""


def spawned(worker: Worker, *, owner: str) -> WorkerStatus:
    """The row is ours: this replica makes its pod."""
    _require(worker, worker.status.owner == "", "it has an owner already")
    _require_state(worker, State.SPAWNING)
    return _stay(worker, owner=owner, pod=worker.metadata.name)


def ready(
    worker: Worker,
    *,
    owner: str,
    address: str,
    port: int,
    at: datetime,
    certificate_expires: datetime | None = None,
) -> WorkerStatus:
    """Its pod answers: anybody may claim it."""
    _require_state(worker, State.SPAWNING)
    _require(worker, worker.status.owner == owner, "another replica spawns it")
    return _move(
        worker,
        State.IDLE,
        address=address,
        port=port,
        idleSince=at,
        certificateExpires=certificate_expires,
        **_UNMARKED,
        **_ALIVE,
    )


def claim(
    worker: Worker,
    *,
    tenant: str,
    checkout: Checkout,
    owner: str,
    ttl: int | None = None,
    activation: bool = False,
) -> WorkerStatus:
    """One checkout has it from now on; it is activated first where that is needed."""
    status = worker.status
    _require(worker, status.state in PARKED, f"it is {status.state.value}")
    _require(worker, not status.reaper, f"it is marked by {status.reaper}")
    bound = status.state is State.HOT_IDLE
    _require(worker, not bound or status.tenant == tenant, "it is another tenant's")
    return _move(
        worker,
        State.HOT if bound or not activation else State.ACTIVATING,
        tenant=tenant,
        checkout=checkout,
        owner=owner,
        epoch=status.epoch + 1,
        ttl=ttl,
        idleSince=None,
    )


def activated(worker: Worker, *, checkout: str) -> WorkerStatus:
    """It is bound to its tenant: the checkout may begin."""
    _require_state(worker, State.ACTIVATING)
    _require_checkout(worker, checkout)
    return _move(worker, State.HOT, **_UNMARKED, **_ALIVE)


def beat(worker: Worker, *, owner: str) -> WorkerStatus:
    """Whoever works on it says that they still do; a mark is cleared by that."""
    status = worker.status
    slow = status.state in (State.SPAWNING, State.ACTIVATING)
    _require(worker, slow, f"it is {status.state.value}, so nobody works on it")
    _require(worker, status.owner == owner, "another replica works on it")
    return _stay(worker, beat=status.beat + 1, **_UNMARKED, **_ALIVE)


def park(worker: Worker, *, checkout: str, at: datetime) -> WorkerStatus:
    """The checkout is over and clean: its tenant may have it again.

    A worker that is draining meanwhile only loses its checkout.
    """
    _require_checkout(worker, checkout)
    if worker.status.state is State.DRAINING:
        return _stay(worker, checkout=None, **_UNMARKED)
    _require_state(worker, State.HOT)
    return _move(
        worker, State.HOT_IDLE, checkout=None, idleSince=at, **_UNMARKED, **_ALIVE
    )


def mark(
    worker: Worker, *, reaper: str, reason: Reason, reap_after: datetime
) -> WorkerStatus:
    """Whoever has it seems dead: say so, and take away the epoch it had."""
    status = worker.status
    _require(worker, not status.reaper, f"it is marked by {status.reaper}")
    # Where it is on its way out already, the first reason is the one that counts.
    return _stay(
        worker,
        reaper=reaper,
        reapAfter=reap_after,
        epoch=status.epoch + 1,
        retireReason=status.retireReason or reason.value,
    )


def unmark(worker: Worker) -> WorkerStatus:
    """Whoever has it is alive after all."""
    status = worker.status
    _require(worker, bool(status.reaper), "it is not marked")
    keep = status.state is State.DRAINING
    return _stay(worker, **(_UNMARKED | ({} if keep else _ALIVE)))


def fence(worker: Worker) -> WorkerStatus:
    """Make every write fail that was decided on an older revision; nothing else."""
    return _stay(worker, epoch=worker.status.epoch + 1)


def certified(worker: Worker, *, expires: datetime) -> WorkerStatus:
    """It has a certificate that lasts until then."""
    return _stay(worker, certificateExpires=expires)


def drain(worker: Worker, *, reason: Reason, keep: bool = False) -> WorkerStatus:
    """Nobody gets it any more; a checkout may ``keep`` it until it is released."""
    _require(worker, worker.status.state is not State.DRAINING, "it drains already")
    checkout = worker.status.checkout if keep else None
    return _move(
        worker,
        State.DRAINING,
        retireReason=reason.value,
        checkout=checkout,
        idleSince=None,
        **_UNMARKED,
    )


def give_up(worker: Worker) -> WorkerStatus:
    """Take a draining worker from a holder that seems dead."""
    _require_state(worker, State.DRAINING)
    _require(worker, worker.status.checkout is not None, "it has no checkout")
    return _stay(worker, checkout=None, **_UNMARKED)


def retire(worker: Worker) -> WorkerStatus:
    """Its pod is deleted: the end."""
    _require_state(worker, State.DRAINING)
    _require(worker, worker.status.checkout is None, "it is checked out")
    crashed = worker.status.retireReason in {each.value for each in CRASHES}
    return _move(worker, State.LOST if crashed else State.RETIRED, **_UNMARKED)


def lose(worker: Worker, *, reason: Reason, message: str = "") -> WorkerStatus:
    """Its pod is gone by itself: the end, whoever had it."""
    return _move(
        worker,
        State.LOST,
        retireReason=reason.value,
        checkout=None,
        idleSince=None,
        message=message,
        **_UNMARKED,
    )


def carries(worker: Worker, checkout: str) -> bool:
    """Whether a checkout has the worker."""
    held = worker.status.checkout
    return held is not None and held.id == checkout


_UNMARKED: Final[dict[str, Any]] = {"reaper": "", "reapAfter": None}
_ALIVE: Final[dict[str, Any]] = {"retireReason": ""}


def _move(worker: Worker, to: State, **fields: Any) -> WorkerStatus:
    state = worker.status.state
    _require(worker, to in ALLOWED[state], f"it is {state.value}, not to be {to.value}")
    return _checked(worker, msgspec.structs.replace(worker.status, state=to, **fields))


def _stay(worker: Worker, **fields: Any) -> WorkerStatus:
    state = worker.status.state
    _require(worker, state not in TERMINAL, f"it is {state.value}")
    return _checked(worker, msgspec.structs.replace(worker.status, **fields))


def _checked(worker: Worker, status: WorkerStatus) -> WorkerStatus:
    assert status.epoch >= worker.status.epoch, "epochs never decrease"
    assert (status.state in TAKEN) <= (status.checkout is not None)
    assert (status.state in PARKED | TERMINAL) <= (status.checkout is None)
    return status


def _require_state(worker: Worker, state: State) -> None:
    have = worker.status.state
    _require(worker, have is state, f"it is {have.value}, not {state.value}")


def _require_checkout(worker: Worker, checkout: str) -> None:
    _require(worker, carries(worker, checkout), f"the checkout {checkout} has it not")


def _require(worker: Worker, holds: bool, why: str) -> None:
    if not holds:
        raise Impossible(f"{worker} cannot take this step: {why}.")
