"""The server of a world: the embedded API, in this process, on a host of its own.

Whoever is not a replica (people, kubelets, the laws) asks it by a function call and has
the answer at once. Every change of an object goes to those who follow, with the name of
who made it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextvars import copy_context
from datetime import UTC, datetime
from functools import lru_cache
from random import Random
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import unquote

import msgspec

from trimtab.client.transport import Request
from trimtab.embedded.api import Answer, Api
from trimtab.embedded.driver import Driver, Stream
from trimtab.embedded.inprocess import ADMIN
from trimtab.embedded.requests import ApiRequest
from trimtab.embedded.store import Change, Store
from trimtab.embedded.tokens import Tokens
from trimtab.sim.hosts import HOST, Host

T = TypeVar("T")
Plain: TypeAlias = dict[str, Any]

MERGE: Final = "application/merge-patch+json"
JSON: Final = "application/json"
SERVER: Final = "server"
decode = msgspec.json.decode


class Writer(msgspec.Struct, frozen=True, gc=False):
    """Who makes the change that is told of, and by which call."""

    name: str
    replica: int = -1
    """Of which replica; -1 for anybody else."""
    program: bool = False
    """Whether that replica is no operator's."""
    manager: str = ""
    request: ApiRequest | None = None


ITSELF: Final = Writer(SERVER)


class ObjectChange(msgspec.Struct, frozen=True, gc=False):
    """An object before and after; ``None`` where there is none."""

    key: str
    """``group/resource/namespace/name``; without a namespace, one part less."""
    before: Plain | None
    after: Plain | None
    writer: Writer

    @property
    def resource(self) -> str:
        """``group/resource``."""
        return "/".join(self.key.split("/", 2)[:2])


class Server:
    """One API server without a socket, and the state that it holds."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, seed: int | str) -> None:
        self.host = Host(SERVER, random=Random(f"server {seed}"))
        self.objects: dict[str, Plain] = {}
        """Every object as it is now, by its key."""
        self.closed = False
        """Whether the world is over: what was on its way then arrives nowhere."""
        self.failures: list[Exception] = []
        """Of followers: a law that raises is no law."""
        self._followers: list[Callable[[ObjectChange], None]] = []
        self._writer = ITSELF
        self._context = copy_context()
        self._context.run(HOST.set, self.host)
        self._loop = loop
        self._context.run(self._build, seed)

    def _build(self, seed: int | str) -> None:
        self._store = Store(None)
        self._store.subscribe(self._changed)
        self.api = Api(
            self._store,
            now=self.now,
            random=Random(f"api {seed}"),
            tokens=Tokens(),
            clock=self._loop.time,
        )
        self._driver = Driver(self.api)

    def now(self) -> datetime:
        """The true time."""
        return datetime.fromtimestamp(self.host.wall(self._loop.time()), UTC)

    def time(self) -> float:
        """The loop's clock."""
        return self._loop.time()

    def start(self) -> None:
        self._context.run(self._driver.start)

    def close(self) -> None:
        self.closed = True
        self._context.run(self._driver.close)
        self._store.close()

    def follow(self, follower: Callable[[ObjectChange], None]) -> None:
        """Have every later change told to ``follower``, within the write."""
        self._followers.append(follower)

    def forget(self) -> None:
        """Forget all history: watches must begin anew."""
        self._here(self.api.forget)

    def later(self, seconds: float, call: Callable[..., None], *args: Any) -> None:
        """Call something on the server's host."""
        self._loop.call_later(seconds, call, *args, context=self._context)

    def handle(self, request: Request, *, writer: Writer) -> Answer | Stream:
        """Carry out a replica's request, now."""
        asked = ApiRequest(
            method=request.method,
            path=unquote(request.path),
            query=dict(reversed(request.query)),
            headers=_headers(request.headers),
            body=request.body or b"",
            user=ADMIN,
            impersonation=(),
        )
        return self._here(self._answer, asked, writer)

    def _here(self, call: Callable[..., T], *args: Any) -> T:
        """Call something on the server's host, from wherever."""
        if HOST.get() is self.host:
            return call(*args)
        return self._context.run(call, *args)

    def _answer(self, asked: ApiRequest, writer: Writer) -> Answer | Stream:
        # The driver's own work, which follows a write, is nobody else's.
        self._writer = msgspec.structs.replace(
            writer, request=asked, manager=asked.query.get("fieldManager", "")
        )
        try:
            return _at_once(self._driver.answer(asked))
        finally:
            self._writer = ITSELF

    def ask(
        self,
        method: str,
        path: str,
        body: Plain | None = None,
        *,
        who: str = "people",
        media: str = JSON,
        query: Mapping[str, str] | None = None,
    ) -> tuple[int, Plain]:
        """Ask as somebody who is not a replica; the status and the object."""
        asked = ApiRequest(
            method=method,
            path=path,
            query=dict(query or {}),
            headers={"content-type": media, "accept": JSON},
            body=msgspec.json.encode(body) if body is not None else b"",
            user=ADMIN,
            impersonation=(),
        )
        answer = self._here(self._answer, asked, Writer(who))
        assert isinstance(answer, Answer)
        whole = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        return answer.status, decode(whole)

    def _changed(self, change: Change) -> None:
        before = self.objects.get(change.key)
        if change.value is None:
            after = None
            self.objects.pop(change.key, None)
        else:
            after = self.objects[change.key] = decode(change.value)
        told = ObjectChange(change.key, before, after, self._writer)
        for follower in self._followers:
            try:
                follower(told)
            except Exception as error:
                self.failures.append(error)

    def of(self, resource: str) -> list[Plain]:
        """The objects of a resource, in the order of their keys."""
        prefix = f"{resource}/"
        keys = sorted(key for key in self.objects if key.startswith(prefix))
        return [self.objects[key] for key in keys]


@lru_cache(maxsize=64)
def _headers(given: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The first of each name; a client sends the same ones again and again."""
    return {key.lower(): value for key, value in reversed(given)}


def _at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """The outcome of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    raise AssertionError("the server waited, though no fault was planted in it")
