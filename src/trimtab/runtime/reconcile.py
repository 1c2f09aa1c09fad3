"""What a reconcile is: one look at one object that brings the world nearer to its spec.

A handler is called with an object and never with an event. It reads what should be
(``spec``), looks at what is, does the next step, and says how that went:

=========================  ==========================================================
it returns                 all is as it should be; it runs again when something changes
``Result(after=30)``       the same, and it runs again in 30 seconds in any case
it raises ``Retry``        not yet: it runs again after a pause that grows, or ``after``
it raises ``Terminal``     no use trying: it runs again when something changes
it raises anything else    a failure: logged, counted, and retried as ``Retry`` is
=========================  ==========================================================

Four things follow, and a handler may rely on each:

*Level, not edge.* Ten changes may come as one call. What is gone from the object is
gone: a handler that must remember something writes it into ``status``.

*One at a time.* Two reconciles of one object never overlap. Two objects do.

*Again and again.* A handler runs after a restart, after a lost connection and for no
reason that it can see. Doing nothing when nothing is to be done is its normal case.

*There is a reason.* Each call has one or more :class:`Cause`, for people who ask why
something ran. What a handler does must not depend on it.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

Key: TypeAlias = tuple[str, str]
"""Namespace and name; the namespace of a cluster-scoped object is empty."""

Why: TypeAlias = Literal[
    "change", "initial", "timer", "retry", "resync", "owned", "watched"
]


class Request(msgspec.Struct, frozen=True, gc=False):
    """Which object a reconcile is about, for handlers that want no object."""

    key: Key

    @property
    def namespace(self) -> str:
        return self.key[0]

    @property
    def name(self) -> str:
        return self.key[1]

    def __str__(self) -> str:
        return "/".join(part for part in self.key if part)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a reconcile ended that did not fail."""

    after: float | None = None
    """Run again in so many seconds, if nothing brings the object back sooner."""
    status: Any = None
    """The status fields to write, if any; what is not mentioned stays."""

    def __post_init__(self) -> None:
        _check_pause(self.after)


class Retry(Exception):
    """Raised by a handler that cannot go on yet; the message says what it waits for.

    ``after`` names the pause in seconds. Such a retry was planned, so it does not count
    towards the pauses that grow nor towards the circuit breaker. Without it, it does.
    """

    def __init__(self, message: str = "", *, after: float | None = None) -> None:
        _check_pause(after)
        super().__init__(message)
        self.after = after


class Terminal(Exception):
    """Raised by a handler for which trying again is of no use; the message says why.

    The object waits until something changes: most often, until somebody edits it.
    """


class Cause(msgspec.Struct, frozen=True, gc=False):
    """Why a reconcile runs: what happened, to which object, and in which fields."""

    why: Why
    object: str = ""
    """The object that it happened to, as people name it: ``Deployment shop/web``."""
    fields: tuple[str, ...] = ()
    """The fields that changed, as dotted paths: ``spec.image``."""
    link: Any = None
    """The trace of the event, where traces are collected."""

    def __str__(self) -> str:
        what = _WHAT[self.why]
        text = f"{what} of {self.object}" if self.object else what
        return f"{text} ({', '.join(self.fields)})" if self.fields else text


_WHAT: dict[Why, str] = {
    "change": "change",
    "initial": "first list",
    "timer": "timer",
    "retry": "retry",
    "resync": "resync",
    "owned": "owned change",
    "watched": "watched change",
}


def _check_pause(after: float | None) -> None:
    if after is not None and not 0.0 <= after < float("inf"):
        raise ValueError(
            f"a pause of {after} seconds cannot be waited for; "
            "give a number of seconds from zero upwards"
        )
