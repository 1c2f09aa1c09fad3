"""What can go wrong between a caller and an API server, one type for each.

Two families. :class:`ApiError`: the server answered, and the answer was no; its
subclasses are the reasons that the Kubernetes API gives. :class:`TransportError`: there
was no usable answer. For a *write* the second family splits on whether the request may
have been carried out: :class:`Unreachable` says that it was never sent,
:class:`Ambiguous` that it may have been, so the caller must read again before it acts.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class TrimtabError(Exception):
    """The base of every error that Trimtab raises on purpose."""


class ConfigError(TrimtabError):
    """A kubeconfig, a credential or an environment that cannot be used as it is."""


class Cause(msgspec.Struct, frozen=True):
    """One of the things that an :class:`Invalid` object got wrong."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True):
    """What a ``Status`` says about the object it is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[Cause] | None = None
    retryAfterSeconds: int | None = None


class StatusBody(msgspec.Struct, frozen=True):
    """The ``Status`` object that an API server sends instead of what was asked for."""

    code: int | None = None
    status: str = ""
    reason: str = ""
    message: str = ""
    details: Details | None = None


class ApiError(TrimtabError):
    """The server answered, and the answer was no."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        reason: str = "",
        details: Details | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.details = details or Details()
        self.retry_after = retry_after

    @property
    def causes(self) -> Sequence[Cause]:
        """The single complaints, for an object that is wrong in several places."""
        return self.details.causes or ()


class BadRequest(ApiError):
    """The request itself makes no sense to the server (400)."""


class Unauthorized(ApiError):
    """The server does not accept the credentials (401)."""


class Forbidden(ApiError):
    """The server knows who asks, and that they may not (403)."""


class NotFound(ApiError):
    """There is no such object, or no such resource (404)."""


class MethodNotAllowed(ApiError):
    """The resource does not have that verb (405)."""


class NotAcceptable(ApiError):
    """The server cannot answer in the form that was asked for (406)."""


class Conflict(ApiError):
    """Somebody else wrote first, or owns the field (409)."""


class AlreadyExists(Conflict):
    """There is an object of that name already (409)."""


class Gone(ApiError):
    """The revision that was asked for is no longer there: list again (410)."""


class TooLarge(ApiError):
    """The request is larger than the server takes (413)."""


class UnsupportedMediaType(ApiError):
    """The server does not read bodies of that type (415)."""


class Invalid(ApiError):
    """The object breaks its schema or its rules (422); ``causes`` says where."""


class TooManyRequests(ApiError):
    """The server asks for a pause, or a budget forbids the eviction (429)."""


class ServerError(ApiError):
    """The server failed (5xx)."""


class Unavailable(ServerError):
    """The server is there and not ready (503)."""


class ServerTimeout(ServerError):
    """The server gave up; a write may or may not have been carried out (504)."""


class TransportError(TrimtabError):
    """There was no usable answer."""


class Unreachable(TransportError):
    """No connection could be made; nothing was sent."""


class CertificateInvalid(Unreachable):
    """The server's certificate was not accepted; nothing was sent."""


class Disconnected(TransportError):
    """The connection ended before the answer did."""


class DeadlineExceeded(TransportError):
    """The call did not end in the time it had."""


class BodyTooLarge(TransportError):
    """The answer is longer than the cap on bodies."""

    def __init__(self, message: str, *, seen: int, limit: int) -> None:
        super().__init__(message)
        self.seen = seen
        self.limit = limit


class Malformed(TransportError):
    """The answer is not what the API promises: not JSON, or of another shape."""


class Stalled(TransportError):
    """A watch went silent for longer than a living server would be."""


class Closed(TransportError):
    """The client was closed before or during the call."""


class Ambiguous(TransportError):
    """A write was sent and its answer was lost: read again before acting on it.

    ``__cause__`` is what happened to the answer.
    """
