"""Calls: what a request has to ask of somebody else before it can be answered.

The API is synchronous, and an HTTP call is not. A run of a request that needs an answer
which it does not have yet ends in :class:`Pending`; whoever drives the API makes the
calls and runs the request again, with the answers known. The rerun sees the store as it
is then: if what it would send is not what was sent before, it asks again. So no lock is
held over a call, nothing is decided on what was true a while ago, and nothing is
written before the last run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from random import Random
from typing import Any, Protocol, TypeVar
from uuid import UUID

import msgspec

T = TypeVar("T")
MOST_BYTES = 3 << 20


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One POST of JSON over TLS, but for its uid, which each sending has anew."""

    url: str
    address: tuple[str, int] | None = None
    """Where to connect, if it is not where the URL says."""
    ca: bytes = b""
    """The certificates to trust, PEM; those of the system if there are none."""
    timeout: float
    """Seconds."""
    most: int = MOST_BYTES
    """The longest answer that is read."""
    head: bytes
    """What is sent before the uid, up to the quotation mark."""
    tail: bytes
    """What is sent after it."""


class CallAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a call."""

    status: int = 0
    media: str = ""
    """What the body is said to be."""
    body: bytes = b""
    error: str = ""
    """Why there is no answer, in the words of Go's HTTP client."""


class Answered(msgspec.Struct, frozen=True):
    """An answer, and the uid of the review that it must be the answer to."""

    uid: str
    answer: CallAnswer


class Caller(Protocol):
    """Makes calls; one that fails is an answer too."""

    async def __call__(self, call: Call, body: bytes) -> CallAnswer: ...


class Exchange:
    """What the runs of one request share: answers, and what was drawn by chance."""

    __slots__ = ("answers", "drawn", "now", "taken")

    def __init__(self) -> None:
        self.answers: dict[Call, Answered] = {}
        self.drawn: dict[str, list[Any]] = {}
        self.taken: dict[str, int] = {}
        self.now: datetime | None = None


class Pending(Exception):
    """A run that cannot go on without the answers to some calls.

    ``again`` runs the request once more; ``exchange`` is where the answers go.
    """

    def __init__(
        self, calls: Sequence[Call], exchange: Exchange, uid: Callable[[], str]
    ) -> None:
        super().__init__(f"{len(calls)} calls have to be made first")
        self.calls = {call: uid() for call in dict.fromkeys(calls)}
        """Each with the uid that it is sent with."""
        self.exchange = exchange
        self.again: Callable[[], Any] = _nobody


def _nobody() -> Any:
    raise AssertionError("only the API knows how to run a request again")


class Calls:
    """The exchange of the request under way, for those who need answers or chance."""

    def __init__(self, random: Random) -> None:
        self.exchange: Exchange | None = None
        self._random = random

    def new_uid(self) -> str:
        return str(UUID(int=self._random.getrandbits(128), version=4))

    def begin(self, exchange: Exchange) -> None:
        """A run of a request begins; it draws the same as the runs before."""
        exchange.taken.clear()
        self.exchange = exchange

    def end(self) -> None:
        """What happens from here on is no request's."""
        self.exchange = None

    def ask(self, *calls: Call) -> list[Answered]:
        """The answers to some calls, which are made at the same time.

        Errors: :class:`Pending` if not all are known.
        """
        exchange = self.exchange
        assert exchange is not None, "only requests can wait for an answer"
        known = exchange.answers
        missing = [each for each in calls if each not in known]
        if missing:
            raise Pending(missing, exchange, self.new_uid)
        return [known[each] for each in calls]

    def draw(self, what: str, make: Callable[[], T]) -> T:
        """Something made up, or what an earlier run made up in its place."""
        exchange = self.exchange
        if exchange is None:
            return make()
        drawn = exchange.drawn.get(what)
        if drawn is None:
            drawn = exchange.drawn[what] = []
        index = exchange.taken.get(what, 0)
        exchange.taken[what] = index + 1
        if index == len(drawn):
            drawn.append(make())
        value: T = drawn[index]
        return value

    def redraw(self, what: str, value: T) -> T:
        """Put something else in the place of what was drawn last."""
        if self.exchange is not None:
            self.exchange.drawn[what][self.exchange.taken[what] - 1] = value
        return value

    def now(self, clock: Callable[[], datetime]) -> datetime:
        """The time; for all runs of a request it is the same."""
        exchange = self.exchange
        if exchange is None:
            return clock()
        if exchange.now is None:
            exchange.now = clock()
        return exchange.now
