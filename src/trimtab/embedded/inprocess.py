"""The in-process transport: a client's requests go to the API by a function call.

No socket, no thread, no certificate: what a simulation or a quick test needs. The
client cannot tell: statuses, headers, watches, limits and planted faults are those of
the server.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import unquote

from trimtab.client import answers
from trimtab.client.config import Config
from trimtab.client.credentials import Static, TlsMaterial
from trimtab.client.errors import Closed, Disconnected
from trimtab.client.transport import (
    Progress,
    Request,
    Response,
    TransportStatistics,
)
from trimtab.embedded.api import Answer
from trimtab.embedded.authentication import AUTHENTICATED
from trimtab.embedded.driver import Cut, Driver, Stream
from trimtab.embedded.identity import ADMINISTRATOR, MASTERS
from trimtab.embedded.requests import IMPERSONATE, ApiRequest, User
from trimtab.embedded.status import too_large

ADDRESS = "https://in-process.invalid"
BODY_LIMIT = 3 << 20
ADMIN = User(ADMINISTRATOR, (MASTERS, AUTHENTICATED))


def in_process_config(*, namespace: str = "default") -> Config:
    """The configuration of a client whose transport is an :class:`InProcess`."""
    return Config(
        server=ADDRESS,
        tls=TlsMaterial(),
        credentials=Static(),
        namespace=namespace,
        proxy=None,
        impersonate=None,
        source="the API server in this process",
    )


class InProcess:
    """Carries requests to the API of a driver in the same event loop.

    ``user`` is who asks: there is no credential to show. Each request lets the others
    have a turn of the loop first, as one over a network would.

    Assumptions: the driver was started in this loop. Closing the transport ends what
    came by it, not the driver.
    """

    def __init__(self, driver: Driver, *, user: User = ADMIN) -> None:
        self._driver = driver
        self._user = user
        self._closed = False
        self._open: set[InProcessResponse] = set()
        self._sent = 0
        self._received = 0
        self._requests = 0

    async def send(self, request: Request, *, progress: Progress) -> Response:
        await asyncio.sleep(0)
        if self._closed:
            raise Closed(f"{request}: the client is closed; make a new one.")
        progress.sent = True
        self._requests += 1
        self._sent += len(request.body or b"")
        try:
            answer = await self._answer(request)
        except Cut:
            raise Disconnected(f"{request}: the answer broke off (cut).") from None
        response = InProcessResponse(answer, request, self)
        self._open.add(response)
        if self._closed:
            response.close()
            raise Closed(f"{request}: the client was closed meanwhile.")
        return response

    async def _answer(self, request: Request) -> Answer | Stream:
        asked = self._asked(request)
        if len(asked.body) > BODY_LIMIT:
            problem = too_large(f"limit is {BODY_LIMIT}")
            return self._driver.refuse(asked, problem)
        return await self._driver.answer(asked)

    def _asked(self, request: Request) -> ApiRequest:
        headers: dict[str, str] = {}
        for key, value in request.headers:
            headers.setdefault(key.lower(), value)
        return ApiRequest(
            method=request.method,
            path=unquote(request.path),
            query=dict(reversed(request.query)),
            headers=headers,
            body=request.body or b"",
            user=self._user,
            impersonation=tuple(
                (key.lower(), value)
                for key, value in request.headers
                if key.lower().startswith(IMPERSONATE)
            ),
        )

    async def close(self) -> None:
        self._closed = True
        for response in tuple(self._open):
            response.close()

    def statistics(self) -> TransportStatistics:
        """Connections are answers here: each is open until it is closed."""
        return TransportStatistics(
            connections_opened=self._requests,
            connections_open=len(self._open),
            bytes_sent=self._sent,
            bytes_received=self._received,
        )

    def received(self, size: int) -> None:
        """Used by responses: so much of one was read."""
        self._received += size

    def forget(self, response: InProcessResponse) -> None:
        """Used by responses: one is closed."""
        self._open.discard(response)

    @property
    def closed(self) -> bool:
        """Whether the client has closed it."""
        return self._closed


class Answered(ABC):
    """An answer of the API as clients read it, at their own pace."""

    def __init__(self, answer: Answer | Stream, request: Request) -> None:
        self._answer = answer
        self._request = request
        self._pieces: Iterator[bytes] = iter(())
        if isinstance(answer, Answer):
            body = answer.body
            self._pieces = iter((body,)) if isinstance(body, bytes) else iter(body)

    @property
    def status(self) -> int:
        return self._answer.status

    def headers(self, name: str) -> Sequence[str]:
        if name.lower() == "content-type":
            return (self._answer.content_type,)
        own = () if isinstance(self._answer, Stream) else self._answer.headers
        return tuple(value for key, value in own if key.lower() == name.lower())

    async def read(self, *, limit: int) -> bytes | bytearray:
        body = bytearray()
        while data := await self.chunk():
            body += data
            if len(body) > limit:
                raise answers.too_large(self._request, seen=len(body), limit=limit)
        return body

    async def pump(self, take: Callable[[bytes], None]) -> None:
        while data := await self.chunk():
            take(data)

    @abstractmethod
    async def chunk(self) -> bytes:
        """Whatever has come of the body; empty at its end."""


class InProcessResponse(Answered):
    """One that comes from an API in the same loop."""

    def __init__(
        self, answer: Answer | Stream, request: Request, transport: InProcess
    ) -> None:
        super().__init__(answer, request)
        self._transport = transport

    async def chunk(self) -> bytes:
        try:
            if isinstance(self._answer, Stream):
                data = await self._answer.chunk()
            else:
                data = next(filter(None, self._pieces), b"")
        except Cut:
            raise self._broken("cut") from None
        except Exception as error:
            raise self._broken(type(error).__name__) from error
        if self._transport.closed:
            raise Closed(f"{self._request}: the client was closed meanwhile.")
        self._transport.received(len(data))
        return data

    def _broken(self, why: str) -> Disconnected:
        return Disconnected(f"{self._request}: the answer broke off ({why}).")

    def close(self) -> None:
        self._pieces = iter(())
        if isinstance(self._answer, Stream):
            self._answer.close()
        self._transport.forget(self)
