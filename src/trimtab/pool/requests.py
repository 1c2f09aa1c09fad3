"""What is asked of a pool and what it answers: requests, grants, and refusals."""

from __future__ import annotations

from datetime import datetime

import msgspec

from trimtab.api import Quantity
from trimtab.cache import Key
from trimtab.client import TrimtabError
from trimtab.pool.states import Source


class AcquireRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One worker is wanted."""

    pool: Key
    """Namespace and name."""
    tenant: str
    holder: str
    """The process that will renew, by a name that no other process has."""
    shape: str = ""
    """By name; or empty, and then the smallest that has this cpu and memory."""
    cpu: Quantity | None = None
    memory: Quantity | None = None
    ttl: int | None = None
    """Seconds to park after this use; None means what the tenant or pool says."""
    wait: float = 0.0
    """Seconds to stand in line before :class:`NotNow`."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """A worker, for one holder alone, as long as it renews. The token is in no repr."""

    checkout: str
    worker: str
    uid: str
    namespace: str
    address: str
    port: int
    token: str
    epoch: int
    ca: bytes
    renew_within: float
    """Seconds after which a holder that did not renew counts as dead."""
    source: Source
    deadline: datetime | None = None
    """For people: when that is, unless it is renewed."""
    warning: str = ""

    def __repr__(self) -> str:
        return f"Grant(checkout={self.checkout!r}, worker={self.worker!r})"


class Refused(TrimtabError):
    """The pool says no; ``retry_after`` says when asking again makes sense."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Never(Refused):
    """It can never be had: no such pool or shape, or more than the tenant may have."""


class Full(Refused):
    """The tenant has all that it may have."""

    def __init__(self, message: str, *, limit: str, retry_after: float) -> None:
        super().__init__(message, retry_after=retry_after)
        self.limit = limit
        """Which limit: workers, cpu, memory or maxWorkers."""


class NotNow(Refused):
    """The wait was over before there was a worker."""


class Unavailable(Refused):
    """This replica hands out nothing at the moment: it stops, or cannot renew."""


class NotYours(Refused):
    """The checkout is unknown, over, or another holder's."""
