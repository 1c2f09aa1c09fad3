"""A small API in place of the real one, so that what carries requests is tested alone.

Its paths say what it does: it echoes, answers in pieces, breaks, and watches.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast

import aiohttp
import msgspec
import pytest

from trimtab.client.credentials import TlsMaterial
from trimtab.embedded import bodies
from trimtab.embedded.api import Answer, WatchAnswer
from trimtab.embedded.authentication import Authenticator, StaticToken
from trimtab.embedded.certificates import Pair
from trimtab.embedded.driver import Driver
from trimtab.embedded.faults import Faults
from trimtab.embedded.identity import Identity
from trimtab.embedded.listener import Listener
from trimtab.embedded.requests import ApiRequest
from trimtab.embedded.server import bind
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.tokens import Tokens
from trimtab.embedded.watching import Watcher

JO = StaticToken(token="open-sesame", user="jo", groups=("crew",))
NOW = datetime.now(UTC)


class StandInWatcher:
    """A watch whose events a test puts in; with ``endless`` there is always one."""

    def __init__(self, *, endless: bytes = b"") -> None:
        self.closed = False
        self.given = 0
        self._endless = endless
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()

    def put(self, data: bytes) -> None:
        self._chunks.put_nowait(data)

    async def chunk(self) -> bytes:
        if self.closed:
            return b""
        data = self._endless or await self._chunks.get()
        self.given += len(data)
        return b"" if self.closed else data

    def close(self) -> None:
        self.closed = True
        self._chunks.put_nowait(b"")


class StandIn:
    """Answers by path; remembers what it was asked."""

    def __init__(self) -> None:
        self.requests: list[ApiRequest] = []
        self.watchers: list[StandInWatcher] = []
        self.routes: dict[str, Callable[[ApiRequest], Answer]] = {}
        self.left_to_do = 0
        self.steps = 0
        self.maintained = 0
        self.maintain_again = 3600.0
        self.deprecated: set[tuple[str, str, str, str]] = set()

    def admit(self, request: ApiRequest) -> ApiRequest:
        return request

    def handle(self, request: ApiRequest) -> Answer | WatchAnswer:
        self.requests.append(request)
        if request.path in self.routes:
            return self.routes[request.path](request)
        if request.path == "/endless" or request.flag("watch"):
            endless = b"x" * 65535 + b"\n" if request.path == "/endless" else b""
            watcher = StandInWatcher(endless=endless)
            self.watchers.append(watcher)
            return WatchAnswer(watcher=cast(Watcher, watcher))
        if request.path == "/boom":
            raise RuntimeError("a mistake in the API")
        if request.path == "/bytes":
            return Answer(body=b"b" * int(request.query["size"]))
        if request.path == "/pieces":
            return Answer(body=self._pieces(request))
        return Answer(body=bodies.encode(self._echo(request)))

    def refusal(self, request: ApiRequest, problem: ApiProblem) -> Answer:
        return Answer(status=problem.code, body=bodies.encode(problem.status))

    def work(self) -> bool:
        self.steps += 1
        self.left_to_do = max(0, self.left_to_do - 1)
        return self.left_to_do > 0

    def take_pending(self) -> tuple[()]:
        return ()

    def due_in(self) -> float:
        return 3600.0

    def maintain(self) -> float:
        self.maintained += 1
        return self.maintain_again

    def _echo(self, request: ApiRequest) -> dict[str, Any]:
        return {
            "method": request.method,
            "path": request.path,
            "query": dict(request.query),
            "headers": dict(request.headers),
            "length": len(request.body),
            "user": request.user.name,
            "groups": request.user.groups,
            "extra": request.user.extra,
            "uid": request.user.uid,
        }

    def _pieces(self, request: ApiRequest) -> Iterator[bytes]:
        breaks_at = int(request.query.get("breaks", "-1"))
        for number in range(int(request.query["count"])):
            if number == breaks_at:
                raise RuntimeError("a mistake in the middle")
            yield b"%07d\n" % number * (int(request.query["size"]) // 8)


class Standing:
    """A stand-in that listens, and ways to ask it."""

    def __init__(self, api: StandIn, identity: Identity, port: int) -> None:
        self.api = api
        self.identity = identity
        self.port = port
        self.url = f"https://127.0.0.1:{port}"
        self.driver: Driver
        self.listener: Listener

    def context(self, pair: Pair | None = None) -> ssl.SSLContext:
        """A client's TLS; with a certificate of the client if there is one."""
        material = TlsMaterial(ca=self.identity.ca)
        if pair is not None:
            material = msgspec.structs.replace(
                material, certificate=pair.certificate, key=pair.key
            )
        return material.context()

    def session(
        self, *, anonymous: bool = False, **options: Any
    ) -> aiohttp.ClientSession:
        """As the administrator, or as nobody."""
        pair = None if anonymous else self.identity.administrator
        connector = aiohttp.TCPConnector(ssl=self.context(pair))
        return aiohttp.ClientSession(
            self.url, connector=connector, auto_decompress=False, **options
        )

    async def raw(
        self, *, anonymous: bool = False
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection without a library's idea of HTTP."""
        pair = None if anonymous else self.identity.administrator
        return await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=self.context(pair), ssl_shutdown_timeout=0.2
        )

    async def exchange(self, text: str, *, anonymous: bool = False) -> bytes:
        """All that comes back for a request that asks for the connection's end."""
        reader, writer = await self.raw(anonymous=anonymous)
        writer.write(text.replace("\n", "\r\n").encode())
        answer = await reader.read()
        writer.close()
        return answer


@asynccontextmanager
async def standing(
    api: StandIn | None = None, *, faults: Faults | None = None
) -> AsyncIterator[Standing]:
    """A stand-in behind the real driver and listener."""
    identity = Identity(None, now=NOW)
    bound = bind("127.0.0.1", 0)
    made = Standing(api or StandIn(), identity, bound.getsockname()[1])
    made.driver = Driver(made.api, faults=faults)
    made.driver.start()
    authenticator = Authenticator(
        tokens=Tokens(identity.signing_key),
        now=lambda: datetime.now(UTC),
        static=[JO],
    )
    made.listener = Listener(
        made.driver, authenticator=authenticator, context=identity.context()
    )
    await made.listener.open(bound)
    try:
        yield made
    finally:
        made.driver.close()
        await made.listener.close(seconds=1.0)


@pytest.fixture
async def server() -> AsyncIterator[Standing]:
    async with standing() as made:
        yield made


@pytest.fixture
async def session(server: Standing) -> AsyncIterator[aiohttp.ClientSession]:
    async with server.session(headers={"User-Agent": "test"}) as made:
        yield made
