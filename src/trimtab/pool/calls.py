"""What the pool asks of a worker, and of whoever keeps its keys: two protocols.

The pool itself opens no socket. A gateway gives it calls over HTTPS
(:mod:`trimtab.pool.httpcalls`); a simulation gives it calls within the process.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec

from trimtab.client import TrimtabError
from trimtab.kinds import Secret
from trimtab.pool.kinds import Activation, Worker, WorkerPool


class CallFailed(TrimtabError):
    """A worker did not do what it was asked, or nobody knows whether it did.

    The pool never hands such a worker out again.
    """


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to call, and how to know each other. The key shows in no repr."""

    name: str
    """The worker's name, which its certificate must carry."""
    uid: str
    address: str
    port: int
    ca: bytes = b""
    """PEM: what the worker's certificate is verified against."""
    key: bytes = b""
    """The worker's own HMAC key: it signs the tokens of its checkouts."""
    bearer: str = ""
    """What the pool shows to the worker, for the calls below."""

    def __repr__(self) -> str:
        return f"Target(name={self.name!r}, address={self.address!r})"


class WorkerCalls(Protocol):
    """Calls to a worker. Each raises :class:`CallFailed`, and ends by itself."""

    async def begin(
        self, target: Target, *, epoch: int, checkout: str, tenant: str
    ) -> None:
        """Serve this checkout under this epoch, and nothing below it from now on.

        Guarantees: when it returns, connections of lower epochs are dropped. The same
        call once more changes nothing; one with a lower epoch fails.
        """

    async def clean(self, target: Target, *, epoch: int, checkout: str) -> None:
        """The checkout is over: end its connections and forget what it left."""

    async def healthy(self, target: Target) -> None:
        """Answer. Liveness is never fenced: it takes no epoch."""

    async def activate(
        self, target: Target, *, epoch: int, tenant: str, activation: Activation
    ) -> None:
        """Bind the worker to a tenant; the same call once more changes nothing."""


class Keyring(Protocol):
    """Keys and certificates of workers (:mod:`trimtab.pool.secrets` keeps them)."""

    async def secret(self, worker: Worker, *, pool: WorkerPool) -> Secret:
        """The Secret that a new worker gets, under its own name; nothing is created.

        The pool creates it, owned by the worker, and mounts it into the pod.
        """

    async def target(self, worker: Worker) -> Target:
        """Whom to call for a worker whose status has an address.

        Reads the worker's Secret at most once for each uid.

        Errors: :class:`CallFailed` when its keys are gone for good; any other error
        means that nobody can tell at the moment.
        """

    async def renew(self, worker: Worker, *, pool: WorkerPool) -> datetime:
        """Give the worker a new certificate if need be; when the present one ends."""

    def token(self, target: Target, *, checkout: str, epoch: int) -> str:
        """What the holder of a checkout shows to the worker."""
