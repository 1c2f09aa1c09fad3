"""Trouble: what keeps a feed from following its server, and what may help."""

from __future__ import annotations

from random import Random

import msgspec

from trimtab.cache.options import FeedOptions
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
from trimtab.client.retry import told_to_wait


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


class Troubles:
    """The troubles of one feed: the present one, and how many came in a row."""

    def __init__(self, options: FeedOptions, random: Random) -> None:
        self.failures = 0
        """In a row, without anything heard between them."""
        self._options = options
        self._random = random
        self._present: Trouble | None = None

    def over(self) -> bool:
        """The server was heard; whether that ends anything."""
        self.failures = 0
        was, self._present = self._present, None
        return was is not None

    def add(self, error: Exception, *, now: float, steady: bool) -> float:
        """One more failure, of a watch that was ``steady`` or of another try.

        Returns the seconds to wait before the next try.
        """
        self.failures += 1
        if steady and not isinstance(error, Stalled):
            self.failures, self._present = 1, None
        since = now if self._present is None else self._present.since
        self._present = Trouble.of(error, since=since)
        doubled = self._options.first_pause * 2.0 ** min(self.failures - 1, 32)
        pause = self._random.uniform(0, min(self._options.longest_pause, doubled))
        told = told_to_wait(error) if isinstance(error, TrimtabError) else None
        return pause + (told or 0.0)

    def problem(self, now: float, *, steady: bool) -> str | None:
        """What is worth telling people; None while it may pass."""
        trouble = self._present
        if trouble is None or (steady and not trouble.silence):
            return None
        if not trouble.lasting and now - trouble.since < self._options.patience:
            return None
        return trouble.text


def is_refusal(error: Exception, *, streaming: bool) -> bool:
    """Whether to try the other way of reading a list: a stream, or pages."""
    refusals: tuple[type[TrimtabError], ...] = (Forbidden, MethodNotAllowed)
    if streaming:
        refusals += (BadRequest, Invalid, Stalled, Disconnected, Gone)
    return isinstance(error, refusals)
