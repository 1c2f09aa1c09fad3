"""What goes over the wire between a gateway and its clients, as JSON.

==========================================================  =======================
``POST /v1/pools/NAMESPACE/POOL/acquire``                   a worker, or a refusal
``POST /v1/pools/NAMESPACE/POOL/release``                   a checkout is over
``POST /v1/pools/NAMESPACE/POOL/drain``                     a worker is to go
``GET  /v1/pools/NAMESPACE/POOL/workers[?watch=1]``         the rows; and as they change
``POST /v1/holders/HOLDER/renew``                           a client lives
``GET  /healthz``, ``GET /readyz``                          for probes
==========================================================  =======================
"""

from __future__ import annotations

import re
from datetime import datetime
from enum import Enum
from http import HTTPStatus
from typing import Annotated, Final

import msgspec

from trimtab.pool.kinds import Worker
from trimtab.pool.states import State

MAX_WAIT: Final = 600.0
MAX_HELD: Final = 1000
"""Workers of one holder; its renewals name them all."""
HOLDER: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""What a client may call itself."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
Holder = Annotated[str, msgspec.Meta(pattern=f"^{HOLDER.pattern}$")]
Id = Annotated[str, msgspec.Meta(pattern="^[-a-z0-9]{8,128}$")]


class Code(Enum):
    """Why something was refused; the words that programs read."""

    BAD_REQUEST = "bad-request"
    UNAUTHENTICATED = "unauthenticated"
    DENIED = "denied"
    NOT_FOUND = "not-found"
    FULL = "full"
    NEVER = "never"
    NOT_NOW = "not-now"
    NOT_YOURS = "not-yours"
    UNAVAILABLE = "unavailable"
    INTERNAL = "internal"


STATUS: Final = {
    Code.BAD_REQUEST: HTTPStatus.BAD_REQUEST,
    Code.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    Code.DENIED: HTTPStatus.FORBIDDEN,
    Code.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Code.FULL: HTTPStatus.TOO_MANY_REQUESTS,
    Code.NEVER: HTTPStatus.UNPROCESSABLE_ENTITY,
    Code.NOT_NOW: HTTPStatus.TOO_MANY_REQUESTS,
    Code.NOT_YOURS: HTTPStatus.CONFLICT,
    Code.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    Code.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
}


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A refusal: a code for programs, a sentence for people, and when to ask again."""

    code: str
    message: str
    retryAfter: float | None = None
    limit: str = ""
    """Of a code ``full``: which limit is reached."""


class Acquire(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """A worker is wanted."""

    tenant: Name
    holder: Holder
    """The process that will renew."""
    shape: str = ""
    cpu: str = ""
    memory: str = ""
    ttl: Annotated[int, msgspec.Meta(ge=0)] | None = None
    wait: Annotated[float, msgspec.Meta(ge=0, le=MAX_WAIT)] = 0.0


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """A worker, for one holder alone as long as it renews."""

    checkout: str
    worker: str
    uid: str
    namespace: str
    address: str
    port: int
    token: str
    epoch: int
    ca: str
    """PEM: what the worker's certificate is verified against; its name is there."""
    renewWithin: float
    source: str
    deadline: datetime | None = None
    warning: str = ""

    def __repr__(self) -> str:
        return f"Granted(checkout={self.checkout!r}, worker={self.worker!r})"


class Release(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """A use is over. ``clean`` False: the worker is not fit for another."""

    checkout: Id
    holder: Holder
    clean: bool = True
    worker: Name | None = None
    """Which; it helps a gateway that has not heard of the checkout yet."""


class Renew(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A client lives, and has these checkouts; what else it holds, it does not know."""

    checkouts: Annotated[list[Id], msgspec.Meta(max_length=MAX_HELD)] | None = None


class Drain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A worker is to go: at once if nobody uses it, else when it is released."""

    worker: Name


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A worker, for people and for watchers. It holds nothing that lets one use it."""

    name: str
    state: str
    shape: str
    tenant: str = ""
    owner: str = ""
    holder: str = ""
    epoch: int = 0
    since: datetime | None = None
    """When the checkout began, or when it was parked."""
    reason: str = ""
    gone: bool = False
    """Of a watch: the row is there no more."""


def row_of(worker: Worker, *, gone: bool = False) -> Row:
    """The row of a worker."""
    status = worker.status
    held = status.checkout
    return Row(
        name=worker.metadata.name,
        state=status.state.value,
        shape=worker.spec.shape,
        tenant=status.tenant,
        owner=status.owner,
        holder=held.holder if held else "",
        epoch=status.epoch,
        since=held.since if held else status.idleSince,
        reason=status.retireReason,
        gone=gone,
    )


STATES: Final = tuple(state.value for state in State)
