"""Transport: how a request reaches an API server, over HTTP or within the process.

The client knows verbs, deadlines, retries and errors; a transport only carries one
request there and its answer back. It raises the :class:`TransportError` family and
nothing else of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

JSON = "application/json"
JSON_BODY = (("Content-Type", JSON),)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request. ``path`` is already quoted; ``query`` is not."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    """A name may occur more than once."""
    body: bytes | None = None
    stream: bool = False
    """A stream lives long (watch, logs) and must not take a place in the pool."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def __repr__(self) -> str:
        return f"Request({self})"  # the headers may hold a token, the body a secret


class Progress:
    """How far a request came: what decides whether a lost answer is ambiguous."""

    __slots__ = ("presented", "sent")

    def __init__(self) -> None:
        self.sent = False
        """True from the moment before the first byte may have left."""
        self.presented: Mapping[str, str] = {}
        """The credentials that went with it."""


class Response(Protocol):
    """An answer whose head has come and whose body has not been read."""

    @property
    def status(self) -> int: ...

    def headers(self, name: str) -> Sequence[str]:
        """Every value of one header, in any case; empty if it is not there."""
        ...

    async def read(self, *, limit: int) -> bytes | bytearray:
        """The whole body; :class:`BodyTooLarge` once it is longer than ``limit``."""
        ...

    async def chunk(self) -> bytes:
        """Whatever has come of the body; empty at its end."""
        ...

    async def pump(self, take: Callable[[bytes], None]) -> None:
        """Hand over whatever comes of the body as it comes, until its end.

        Errors: also what ``take`` raises, which is then not called again.
        """
        ...

    def close(self) -> None:
        """Give the connection back if the body was read to its end, else end it.

        Whoever waits for more of it is woken, by its end or an error.
        """
        ...


class TransportStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What went through a transport since it was made."""

    connections_opened: int = 0
    connections_open: int = 0
    connections_reused: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0


class Transport(Protocol):
    """Carries requests to one API server."""

    async def send(self, request: Request, *, progress: Progress) -> Response: ...

    async def close(self) -> None: ...

    def statistics(self) -> TransportStatistics: ...
