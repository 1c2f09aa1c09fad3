"""Retries: which failures are worth another try, and how long to wait before it.

A call is *safe* if doing it twice is the same as doing it once (reads). A safe call is
tried again after a transport failure or a server failure, with jitter. Any call is
tried again when the server itself says that it did nothing and names a time to come
back (429 and 503 with ``Retry-After``).
"""

from __future__ import annotations

from random import Random

import msgspec

from trimtab.client.errors import (
    ApiError,
    CertificateInvalid,
    Closed,
    Disconnected,
    ServerError,
    TooManyRequests,
    TrimtabError,
    Unavailable,
    Unreachable,
)

# Beyond any cap, and within the range of floating point.
MAX_DOUBLINGS = 64


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how fast to try again; a call's deadline bounds all of it."""

    attempts: int = 4
    """Tries in all after a failure of the transport or the server."""
    told: int = 10
    """Tries in all when the server names the pause itself."""
    base: float = 0.1
    """The first pause is random between zero and this; each next one doubles it."""
    cap: float = 5.0
    """No pause of our own choice is longer."""

    def pause(
        self, error: TrimtabError, *, attempt: int, safe: bool, random: Random
    ) -> float | None:
        """Seconds to wait before try number ``attempt + 1``; None to give up."""
        told = told_to_wait(error)
        if told is not None:
            return told + random.uniform(0, self.base) if attempt < self.told else None
        if not safe or attempt >= self.attempts or not _passing(error):
            return None
        doublings = min(attempt - 1, MAX_DOUBLINGS)
        return random.uniform(0, min(self.cap, self.base * 2.0**doublings))


def told_to_wait(error: TrimtabError) -> float | None:
    """The pause that the server asks for, if it did nothing and asks for one."""
    if isinstance(error, TooManyRequests | Unavailable):
        return error.retry_after
    return None


def _passing(error: TrimtabError) -> bool:
    if isinstance(error, CertificateInvalid | Closed):
        return False
    if isinstance(error, ApiError):
        return isinstance(error, ServerError | TooManyRequests)
    return isinstance(error, Unreachable | Disconnected)
