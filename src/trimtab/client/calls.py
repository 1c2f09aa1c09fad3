"""Calls: one request with its deadline, its retries and its errors.

This is what every verb goes through. A call ends: by an answer, by a named error, or
when its deadline passes (the argument, else what the surrounding budget has left, else
30 seconds). Whatever happens to a write after it may have left is :class:`Ambiguous`.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import TypeVar

import msgspec

from trimtab.client import answers
from trimtab.client.budget import remaining
from trimtab.client.credentials import Credentials
from trimtab.client.errors import (
    Ambiguous,
    ApiError,
    DeadlineExceeded,
    ServerTimeout,
    TransportError,
    TrimtabError,
    Unauthorized,
    Unreachable,
)
from trimtab.client.guard import allowed
from trimtab.client.ratelimit import RateLimit
from trimtab.client.retry import RetryPolicy
from trimtab.client.rooms import Room
from trimtab.client.transport import (
    Progress,
    Request,
    Response,
    Transport,
    TransportStatistics,
)

T = TypeVar("T")

MiB = 1 << 20
SAFE_METHODS = frozenset({"GET", "HEAD"})
GATEWAY_ERRORS = frozenset({502, 504})

logger = logging.getLogger("trimtab.client")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a client behaves; every bound has a value."""

    deadline: float = 30.0
    """Seconds for a call that names none and has no budget around it."""
    body_limit: int = 64 * MiB
    """The longest answer that is read."""
    error_limit: int = 64 * 1024
    """The longest text of an error that is read."""
    pool: int = 32
    """Connections for calls; watches and followed logs have their own."""
    compression: bool = False
    """Ask for gzip. It pays over slow networks and costs CPU on both sides."""
    user_agent: str = "trimtab"
    retry: RetryPolicy = RetryPolicy()


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """What a client has done since it was made."""

    requests: Mapping[tuple[str, str], int]
    """By verb and outcome: an HTTP status, the name of an error, or Cancelled."""
    retries: int
    streams_open: int
    transport: TransportStatistics


class _Attempt(Progress):
    """One try of a call: until when, how far it came, and what the server said."""

    __slots__ = ("ends", "status")

    def __init__(self, ends: float) -> None:
        super().__init__()
        self.ends = ends
        self.status = 0


class Calls:
    """Sends requests and makes sense of what comes back."""

    def __init__(
        self,
        transport: Transport,
        *,
        credentials: Credentials,
        options: Options,
        random: Random,
        rate_limit: RateLimit | None = None,
        headers: Mapping[str, str],
        impersonation: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.options = options
        self._transport = transport
        self._credentials = credentials
        self._random = random
        self._rate_limit = rate_limit
        self._headers = headers
        self._impersonation = tuple(impersonation)
        self._outcomes: Counter[tuple[str, str]] = Counter()
        self._retries = 0
        self._streams_open = 0

    async def call(
        self,
        request: Request,
        *,
        verb: str,
        into: type[T],
        deadline: float | None = None,
        limit: int | None = None,
        safe: bool | None = None,
        retry: bool = True,
    ) -> T:
        """Send a request and read its whole answer as ``into``.

        ``bytes`` means as it is.

        Guarantees: returns or raises before the deadline; at most ``limit`` bytes of
        the answer are held; a request that is not ``safe`` is sent once, unless the
        server said that it did nothing with it.
        """
        cap = self.options.body_limit if limit is None else limit

        async def perform(attempt: _Attempt) -> T:
            response = await self._send(request, attempt)
            try:
                body = await response.read(limit=cap)
                if into is bytes:
                    return bytes(body)  # type: ignore[return-value]
                return answers.decode(into, body, about=request)
            finally:
                response.close()

        return await self._persist(
            perform, request, verb=verb, deadline=deadline, safe=safe, retry=retry
        )

    async def fill(
        self, room: Room, request: Request, *, verb: str, deadline: float | None = None
    ) -> None:
        """Send a request and have the whole of its answer, and only it, in a room."""
        limit = self.options.body_limit

        async def perform(attempt: _Attempt) -> None:
            room.clear()
            response = await self._send(request, attempt)
            try:
                while data := await response.chunk():
                    room.add(data)
                    if len(room) > limit:
                        raise answers.too_large(request, seen=len(room), limit=limit)
            finally:
                response.close()

        await self._persist(
            perform, request, verb=verb, deadline=deadline, safe=True, retry=True
        )

    async def stream(
        self, request: Request, *, verb: str, deadline: float | None = None
    ) -> Stream:
        """Send a request whose answer is read piece by piece, until it is closed.

        The deadline holds for the head of the answer; the reader minds the rest.
        """

        async def perform(attempt: _Attempt) -> Stream:
            return Stream(await self._send(request, attempt), self, request)

        return await self._persist(
            perform, request, verb=verb, deadline=deadline, safe=True, retry=True
        )

    async def _persist(
        self,
        perform: Callable[[_Attempt], Awaitable[T]],
        request: Request,
        *,
        verb: str,
        deadline: float | None,
        safe: bool | None,
        retry: bool,
    ) -> T:
        """Make attempts until one succeeds, another makes no sense, or time is up."""
        loop = asyncio.get_running_loop()
        safe = request.method in SAFE_METHODS if safe is None else safe
        seconds = self.seconds(deadline)
        if not safe:
            seconds = allowed(seconds)
        ends = loop.time() + seconds
        number, refreshed = 0, False
        while True:
            number += 1
            attempt = _Attempt(ends)
            outcome = "Cancelled"
            try:
                value = await _within(attempt, perform, request, seconds)
                outcome = str(attempt.status)
                return value
            except TrimtabError as error:
                outcome = _outcome(error)
                failure = error
            except Exception as error:
                outcome = type(error).__name__
                raise
            finally:
                self._outcomes[verb, outcome] += 1
            pause = self.options.retry.pause(
                failure, attempt=number, safe=safe, random=self._random
            )
            if isinstance(failure, Unauthorized) and not refreshed:
                refreshed, pause = True, 0.0
                self._credentials.invalidate(attempt.presented)
            elif not retry:
                pause = None
            if pause is None or loop.time() + pause >= ends:
                raise _final(failure, request, lost=attempt.sent and not safe)
            self._retries += 1
            await asyncio.sleep(pause)

    def seconds(self, deadline: float | None) -> float:
        """How long a call may take whose caller names this deadline, or none."""
        left = remaining()
        if deadline is None:
            return self.options.deadline if left is None else left
        return deadline if left is None else min(deadline, left)

    async def _send(self, request: Request, attempt: _Attempt) -> Response:
        """Send once; the answer's head has come and is good, or this raises."""
        if self._rate_limit is not None:
            await _take_place(self._rate_limit, request, attempt.ends)
        attempt.presented = await self._credentials.headers()
        headers = {**self._headers, **dict(request.headers), **attempt.presented}
        request = msgspec.structs.replace(
            request, headers=(*headers.items(), *self._impersonation)
        )
        response = await self._transport.send(request, progress=attempt)
        attempt.status = response.status
        if response.status >= 300:
            try:
                raise await answers.error_of(
                    request, response, limit=self.options.error_limit
                )
            finally:
                response.close()
        for warning in response.headers("Warning"):
            logger.warning("%s: the server warns: %s", request, _text(warning))
        return response

    async def close(self) -> None:
        """End every connection; calls under way fail."""
        await self._transport.close()

    def statistics(self) -> Statistics:
        return Statistics(
            requests=dict(self._outcomes),
            retries=self._retries,
            streams_open=self._streams_open,
            transport=self._transport.statistics(),
        )


class Stream:
    """An answer that is read piece by piece. Close it: it holds a connection."""

    def __init__(self, response: Response, calls: Calls, request: Request) -> None:
        self.request = request
        self._response = response
        self._calls: Calls | None = calls
        calls._streams_open += 1

    async def chunk(self) -> bytes:
        """Whatever has come; empty at the end."""
        return await self._response.chunk()

    async def pump(self, take: Callable[[bytes], None]) -> None:
        """Hand over whatever comes, as it comes, until the end."""
        await self._response.pump(take)

    def close(self) -> None:
        if self._calls is not None:
            self._calls._streams_open -= 1
            self._calls = None
            self._response.close()


async def _within(
    attempt: _Attempt,
    perform: Callable[[_Attempt], Awaitable[T]],
    request: Request,
    seconds: float,
) -> T:
    try:
        # Else something would be sent after all, on a connection that is at hand.
        if asyncio.get_running_loop().time() >= attempt.ends:
            raise TimeoutError
        async with asyncio.timeout_at(attempt.ends):
            return await perform(attempt)
    except TimeoutError as error:
        raise DeadlineExceeded(
            f"{request}: no answer within {seconds:.3g} s; "
            "is the server overloaded, or the deadline too short?"
        ) from error


def _outcome(error: TrimtabError) -> str:
    return str(error.status) if isinstance(error, ApiError) else type(error).__name__


async def _take_place(limit: RateLimit, request: Request, ends: float) -> None:
    """Wait for our turn, or fail at once if it comes too late: the place is free."""
    delay = limit.reserve(asyncio.get_running_loop().time(), ends=ends)
    if delay is None:
        raise DeadlineExceeded(
            f"{request}: the client's own rate limit has no place before the deadline; "
            "raise the limit, or send less."
        )
    if delay:
        await asyncio.sleep(delay)


def _text(warning: str) -> str:
    """What a header like ``299 - "some \\"text\\""`` says."""
    quoted = warning.partition('"')[2].rpartition('"')[0]
    return re.sub(r"\\(.)", r"\1", quoted) or warning


def _final(error: TrimtabError, request: Request, *, lost: bool) -> TrimtabError:
    """What the caller is told; a write that may have happened is ambiguous."""
    unknown = isinstance(error, TransportError | ServerTimeout) or (
        isinstance(error, ApiError) and error.status in GATEWAY_ERRORS
    )
    if not lost or not unknown or isinstance(error, Unreachable):
        return error
    ambiguous = Ambiguous(
        f"{request}: it was sent and may have been carried out, its answer was lost "
        f"({error}); read the object before acting again."
    )
    ambiguous.__cause__ = error
    return ambiguous
