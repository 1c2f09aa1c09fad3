"""Gateways: one request to whichever of them answers, and what its answer means."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from trimtab.client.calling import Caller, NoReply, Place, Reply
from trimtab.client.errors import ConfigError
from trimtab.pool.gateway.wire import Code, Problem
from trimtab.pool.requests import (
    Full,
    Never,
    NotNow,
    NotYours,
    Refused,
    Unavailable,
)

TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"
PORT: Final = 8444
SECONDS: Final = 10.0
"""For a call that does not stand in line."""


class Denied(Refused):
    """The gateway does not know this caller, or it may not have such a worker."""


class Gateways:
    """The gateways of a pool: any of them will do, and the last that did is first.

    Errors: the family of :class:`trimtab.pool.requests.Refused` if one answered no,
    :class:`NoReply` if none answered.
    """

    def __init__(
        self, places: tuple[Place, ...], *, token: Callable[[], str], caller: Caller
    ) -> None:
        self._places = places
        self._token = token
        self._caller = caller
        self._first = 0

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        within: float = SECONDS,
        safe: bool = True,
    ) -> bytes:
        """Ask one after the other until one has answered.

        What is not ``safe`` to be done twice is not asked again once it was sent.
        """
        data = None if body is None else msgspec.json.encode(body)
        failure: NoReply | None = None
        for _ in self._places:
            place = self._places[self._first]
            try:
                reply = await self._caller.call(
                    place,
                    method,
                    path,
                    headers=self._headers(),
                    body=data,
                    within=within,
                    safe=safe,
                )
            except NoReply as error:
                failure = error
                self._first = (self._first + 1) % len(self._places)
                if error.sent and not safe:
                    break
                continue
            if reply.status == 200:
                return reply.body
            raise self._refused(reply)
        assert failure is not None
        raise failure

    def _refused(self, reply: Reply) -> Refused:
        error = refusal(reply)
        if isinstance(error, Unavailable):  # another one may be available
            self._first = (self._first + 1) % len(self._places)
        return error

    def lines(self, path: str) -> AsyncIterator[bytes]:
        """The lines of an answer that goes on."""
        place = self._places[self._first]
        return self._caller.lines(place, path, headers=self._headers(), within=SECONDS)

    def _headers(self) -> tuple[tuple[str, str], ...]:
        bearer = f"Bearer {self._token()}"
        return (("Authorization", bearer), ("Content-Type", "application/json"))


def refusal(reply: Reply) -> Refused:
    """What an answer says that is not yes."""
    try:
        problem = msgspec.json.decode(reply.body, type=Problem)
        code = Code(problem.code)
    except (msgspec.DecodeError, ValueError):
        text = f"The gateway answered {reply.status}, which says nothing."
        return Unavailable(text)
    text, after = problem.message, problem.retryAfter
    if code is Code.FULL:
        return Full(text, limit=problem.limit, retry_after=after or 1.0)
    kinds: dict[Code, type[Refused]] = {
        Code.NEVER: Never,
        Code.NOT_NOW: NotNow,
        Code.NOT_YOURS: NotYours,
        Code.DENIED: Denied,
        Code.UNAUTHENTICATED: Denied,
        Code.BAD_REQUEST: Never,
        Code.NOT_FOUND: Never,
    }
    return kinds.get(code, Unavailable)(text, retry_after=after)


def place_of(url: str, ca: bytes | None, server_name: str | None) -> Place:
    """The gateway at a URL."""
    parts = urlsplit(url)
    try:
        port = parts.port or PORT
    except ValueError:
        port = 0
    if parts.scheme != "https" or not parts.hostname or not port:
        raise ConfigError(f"{url!r} is no gateway: give https://HOST[:PORT].")
    name = server_name or parts.hostname
    return Place(host=parts.hostname, port=port, name=name, ca=ca)


def token_of(given: str | Path | Callable[[], str] | None) -> Callable[[], str]:
    """What gives the token that is current; without one, that of the pod."""
    if callable(given):
        return given
    if isinstance(given, str):
        return lambda: given
    path = given or Path(TOKEN)

    def read() -> str:
        # The kubelet puts a new one there before the old one expires.
        try:
            return path.read_text().strip()
        except OSError as error:
            raise ConfigError(
                f"The token in {path} cannot be read ({error.strerror}); name the file"
                " of a service account's token."
            ) from error

    return read
