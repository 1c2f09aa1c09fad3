"""Trouble: what keeps a feed from following its server, and what may help."""

from __future__ import annotations

import msgspec

from trimtab.client.errors import (
    ApiError,
    BadRequest,
    Disconnected,
    Forbidden,
    Gone,
    Invalid,
    MethodNotAllowed,
    Stalled,
    TrimtabError,
)


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """What keeps a feed from following."""

    text: str
    since: float
    lasting: bool
    """Whether waiting is unlikely to help, so that it is told at once."""
    silence: bool
    """Whether only a word of the server ends it: an answer may lead nowhere again."""

    @classmethod
    def of(cls, error: Exception, *, since: float) -> Trouble:
        text = str(error) or type(error).__name__
        silence = isinstance(error, Stalled)
        refused = isinstance(error, ApiError) and 400 <= error.status < 429
        lasting = silence or (refused and not isinstance(error, Gone))
        return cls(text=text, since=since, lasting=lasting, silence=silence)


def is_refusal(error: Exception, *, streaming: bool) -> bool:
    """Whether to try the other way of reading a list: a stream, or pages."""
    refusals: tuple[type[TrimtabError], ...] = (Forbidden, MethodNotAllowed)
    if streaming:
        refusals += (BadRequest, Invalid, Stalled, Disconnected, Gone)
    return isinstance(error, refusals)
